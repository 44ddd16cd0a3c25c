-- A small trading company: raw tables and one mart that fans out (each order once per line).
create schema raw;
create schema marts;

create table raw.customers (
  customer_id integer not null,
  name varchar not null,
  country varchar not null
);
insert into raw.customers
select i, 'Customer ' || i, (['DE', 'FR', 'NL', 'SE'])[1 + i % 4]
from range(1, 41) as t (i);

create table raw.orders (
  order_id integer not null,
  customer_id integer not null,
  ordered_on date not null,
  shipping decimal(8, 2) not null
);
insert into raw.orders
select i, 1 + (i * 7) % 40, date '2025-01-01' + (i % 365)::integer, (5 + i % 10)::decimal(8, 2)
from range(1, 1201) as t (i);

create table raw.order_lines (
  order_id integer not null,
  line_no integer not null,
  product varchar not null,
  quantity integer not null,
  unit_price decimal(8, 2) not null
);
insert into raw.order_lines
select o.order_id, l.n, 'product-' || (1 + (o.order_id * 3 + l.n) % 12), 1 + (o.order_id + l.n) % 5,
       (10 + (o.order_id * l.n) % 40 + 0.25)::decimal(8, 2)
from raw.orders o, (values (1), (2), (3)) as l (n)
where l.n <= 1 + o.order_id % 3;

create table raw.returns (
  order_id integer not null,
  returned_on date not null,
  reason varchar
);
insert into raw.returns
select order_id, ordered_on + 14, case when order_id % 2 = 0 then 'damaged' end
from raw.orders
where order_id % 17 = 0;

create table marts.order_lines_wide as
select o.*, l.line_no, l.product, l.quantity, l.unit_price, c.country
from raw.orders o
join raw.order_lines l using (order_id)
join raw.customers c using (customer_id);

create view marts.customer_orders as
select c.customer_id, c.country, count(*) as orders
from raw.customers c
join raw.orders o using (customer_id)
group by all;
