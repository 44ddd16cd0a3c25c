// Filter, sort and shorten the table of units; without this script the whole table is there to read.
"use strict";
(() => {
  const PAGE = 200;
  const table = document.getElementById("table");
  if (table) {
    setUp(table);
  }
  // What is folded away would be missing on paper.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((each) => { each.open = false; }));

  function setUp(table) {
    const body = table.tBodies[0];
    const form = document.getElementById("controls");
    const filter = document.getElementById("filter");
    const more = document.getElementById("more");
    const toggles = [...form.querySelectorAll(".toggle")];
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...body.rows].map((row, index) => ({ row, index, text: null }));
    const state = { words: [], hidden: new Set(), column: -1, down: false, limit: PAGE };
    let order = rows;

    const textOf = (entry) => {
      entry.text ??= entry.row.textContent.toLowerCase();
      return entry.text;
    };
    const fits = (entry) =>
      !state.hidden.has(entry.row.dataset.outcome) &&
      state.words.every((word) => textOf(entry).includes(word));
    const number = (count) => count.toLocaleString("en");

    function show() {
      let fitting = 0;
      for (const entry of order) {
        const fit = fits(entry);
        fitting += fit;
        const hide = !fit || fitting > state.limit;
        if (entry.row.hidden !== hide) {
          entry.row.hidden = hide;
        }
      }
      const listed = Math.min(fitting, state.limit);
      const few = listed < fitting ? `, the first ${number(listed)} are listed` : "";
      document.getElementById("shown").textContent =
        `${number(fitting)} of ${number(rows.length)} ${rows.length === 1 ? "unit fits" : "units fit"}${few}`;
      more.parentElement.hidden = listed === fitting;
      more.textContent = `List all ${number(fitting)}`;
    }

    function sort() {
      const sortBy = heads[state.column]?.dataset.sort;
      const keyOf = ({ row }) => {
        const cell = row.cells[state.column];
        return sortBy === "number" ? Number(cell.dataset.value ?? cell.textContent) : cell.textContent.trim();
      };
      const compare = sortBy === "number"
        ? (a, b) => a - b
        : new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;
      if (sortBy) {
        const sign = state.down ? -1 : 1;
        const keyed = rows.map((entry) => ({ entry, key: keyOf(entry) }));
        keyed.sort((a, b) => sign * compare(a.key, b.key) || a.entry.index - b.entry.index);
        order = keyed.map(({ entry }) => entry);
      } else {
        order = rows;
      }
      body.append(...order.map(({ row }) => row));
      heads.forEach((head, index) => {
        if (index === state.column) {
          head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        } else {
          head.removeAttribute("aria-sort");
        }
      });
    }

    // The view is part of the address, so that it can be sent to somebody.
    function remember() {
      const parts = new URLSearchParams();
      if (filter.value) parts.set("q", filter.value);
      if (state.hidden.size) parts.set("without", [...state.hidden].join(","));
      if (state.column >= 0) parts.set("sort", `${state.column}${state.down ? "d" : "a"}`);
      const hash = parts.toString();
      history.replaceState(null, "", hash ? `#${hash}` : "#units");
    }

    function restore() {
      const hash = decode(location.hash.slice(1));
      const target = hash && document.getElementById(hash);
      if (target && body.contains(target)) {
        reset();
        state.limit = Math.max(PAGE, rows.findIndex(({ row }) => row === target) + 1);
        show();
        target.scrollIntoView({ block: "center", behavior: "instant" });
        return;
      }
      if (!location.hash.includes("=")) return;
      const parts = new URLSearchParams(location.hash.slice(1));
      filter.value = parts.get("q") ?? "";
      state.words = words(filter.value);
      state.hidden = new Set((parts.get("without") ?? "").split(",").filter(Boolean));
      toggles.forEach((each) => each.setAttribute("aria-pressed", String(!state.hidden.has(each.dataset.outcome))));
      const column = Number.parseInt(parts.get("sort") ?? "-1", 10);
      state.column = column < heads.length ? column : -1;
      state.down = (parts.get("sort") ?? "").endsWith("d");
      sort();
      show();
    }

    function reset() {
      filter.value = "";
      Object.assign(state, { words: [], column: -1, down: false, limit: PAGE });
      state.hidden.clear();
      toggles.forEach((each) => each.setAttribute("aria-pressed", "true"));
      sort();
    }

    function decode(text) {
      try {
        return decodeURIComponent(text);
      } catch {
        return "";
      }
    }

    function words(text) {
      return text.toLowerCase().split(/\s+/).filter(Boolean);
    }

    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const again = state.column === index;
        if (again && state.down) {
          state.column = -1; // third time: failures first, as at the beginning
        } else {
          state.down = again;
          state.column = index;
        }
        if (state.column < 0) state.down = false;
        sort();
        show();
        remember();
      });
    });
    let waiting = 0;
    const narrow = () => {
      state.words = words(filter.value);
      state.limit = PAGE;
      show();
      remember();
    };
    filter.addEventListener("input", () => {
      clearTimeout(waiting);
      if (rows.length > 1000) {
        waiting = setTimeout(narrow, 120); // not at every key of a word
      } else {
        narrow();
      }
    });
    toggles.forEach((each) => each.addEventListener("click", () => {
      const outcome = each.dataset.outcome;
      const on = state.hidden.delete(outcome) || !state.hidden.add(outcome);
      each.setAttribute("aria-pressed", String(on));
      show();
      remember();
    }));
    more.addEventListener("click", () => {
      const next = order.filter(fits)[state.limit];
      state.limit = Infinity;
      show();
      next?.row.querySelector("a")?.focus();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("input, textarea, [contenteditable]");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        filter.focus();
      } else if (event.key === "Escape" && event.target === filter && filter.value) {
        filter.value = "";
        filter.dispatchEvent(new Event("input"));
      }
    });
    addEventListener("hashchange", restore);
    form.hidden = false;
    show();
    restore();
  }
})();
