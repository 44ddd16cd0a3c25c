"""Docs of a set as HTML: readable, and unable to run, fetch or disguise anything."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.report.markdown import render_markdown

ALLOWED = {"p", "ul", "ol", "li", "a", "em", "strong", "s", "code", "pre", "blockquote", "hr", "br"}
ALLOWED |= {"table", "thead", "tbody", "tr", "th", "td", "div", "span"}
ALLOWED |= {f"h{level}" for level in range(1, 7)}
ATTRIBUTES = {"href", "title", "rel", "referrerpolicy", "class", "tabindex", "role", "start"}
ATTRIBUTES |= {"aria-label"}


class Inventory(HTMLParser):
    """What elements and attributes a piece of HTML holds."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def assert_harmless(html: str) -> None:
    found = Inventory(html)
    assert set(found.tags) <= ALLOWED
    for name, value in found.attributes:
        assert name in ATTRIBUTES, name
        if name == "href":
            assert re.match(r"(?i)https?://|mailto:", value or ""), value


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg/onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](vbscript:msgbox)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/x)",
    "[x](other.md)",
    "<javascript:alert(1)>",
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    "[![x](https://evil.example/p.png)](https://ok.example)",
    '[x](https://ok.example "\\" onmouseover=alert(1) x=\\"")',
    '[x]: javascript:alert(1) "t"\n\n[x]',
    '```html"><script>alert(1)</script>\nx\n```',
    "</div></section><h1>forged</h1>",
    "</textarea><style>*{display:none}</style>",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "\x00<script\x00>alert(1)</script>",
    "<!-- --><meta http-equiv=refresh content=0;url=https://evil.example>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_is_only_text(text: str) -> None:
    assert_harmless(render_markdown(text))


@given(st.lists(st.sampled_from([*HOSTILE, "*", "`", "[", "](", "\n", "<", ">", "&", '"'])))
def test_hostile_pieces_put_together_are_only_text(pieces: list[str]) -> None:
    assert_harmless(render_markdown("".join(pieces)))


def test_ordinary_markdown_is_rendered() -> None:
    html = render_markdown("**bold** `code`\n\n* one\n* two\n\n~~gone~~")
    assert "<strong>bold</strong> <code>code</code>" in html
    assert "<li>one</li>" in html
    assert "<s>gone</s>" in html


def test_links_leave_without_a_trace() -> None:
    html = render_markdown("[runbook](https://example.com/a?b=1&c=2)")
    assert 'href="https://example.com/a?b=1&amp;c=2"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_an_image_is_described_and_not_loaded() -> None:
    html = render_markdown("![a *nice* chart](https://example.com/c.png)")
    assert "<img" not in html
    assert "[image: a nice chart (https://example.com/c.png)]" in html


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        pytest.param("# a\n## b\n# c", ["h3", "h4", "h3"], id="start-below-the-pages-own"),
        pytest.param("## a\n#### b\n## c", ["h3", "h4", "h3"], id="no-level-is-skipped"),
        pytest.param("### a\n# b", ["h3", "h3"], id="higher-later"),
        pytest.param(
            "# a\n## b\n### c\n#### d\n##### e", ["h3", "h4", "h5", "h6", "h6"], id="end-at-six"
        ),
    ],
)
def test_headings_fit_into_the_page(text: str, levels: list[str]) -> None:
    assert re.findall(r"<(h\d)>", render_markdown(text)) == levels


def test_table_columns_are_aligned_without_style_attributes() -> None:
    html = render_markdown("| a | b |\n|--:|:-:|\n| 1 | 2 |")
    assert "style=" not in html
    assert html.count('class="right"') == 2
    assert html.count('class="center"') == 2


def test_credentials_and_hidden_characters_do_not_pass() -> None:
    html = render_markdown("postgresql://agent:topsecret@db/x and a\u202eb")
    assert "topsecret" not in html
    assert "⟨U+202E⟩" in html


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 200_000, id="brackets"),
        pytest.param("*a " * 50_000, id="emphasis"),
        pytest.param(">" * 20_000 + "x", id="quotes"),
        pytest.param("`" + "a`" * 50_000, id="code"),
        pytest.param("* " * 10_000, id="lists"),
        pytest.param("x" * 5_000_000, id="long"),
    ],
)
def test_hostile_sizes_end_soon(text: str) -> None:
    started = time.process_time()
    assert_harmless(render_markdown(text))
    assert time.process_time() - started < 30
