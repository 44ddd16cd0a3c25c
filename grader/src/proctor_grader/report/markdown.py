"""Pure: Markdown of an eval set as HTML that can't run, fetch or disguise anything.

Raw HTML stays text, links lead to http, https and mail only, images become words. Headings are
fitted below the page's own. Source: the CommonMark renderer's security notes, "html off".
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from proctor_grader.report.display import excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

MARKDOWN_SHOWN = 60_000
"""Brackets without end cost about 60 microseconds each."""

_SAFE_LINK = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)
_NESTING = 40


@lru_cache(maxsize=16)  # trials and variants of a task share its doc
def render_markdown(text: str, *, top_level: int = 3) -> Markup:
    """Return safe HTML; a text longer than `MARKDOWN_SHOWN` is cut.

    Args:
        text: Markdown from a set; untrusted.
        top_level: level that the first heading gets; later ones never skip a level.
    """
    parser = _parser()
    tokens = parser.parse(excerpt(text, MARKDOWN_SHOWN))
    _fit_headings(tokens, top_level)
    _align_by_class(tokens)
    rendered = parser.renderer.render(tokens, parser.options, {})
    return Markup(rendered)  # noqa: S704 - html is off and every link passed _is_safe_link


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = _is_safe_link  # type: ignore[method-assign]  # the documented way
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser


def _is_safe_link(url: str) -> bool:
    return _SAFE_LINK.fullmatch(url) is not None


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """An image would be fetched from elsewhere: its description and address stand for it."""
    token = tokens[index]
    alt = renderer.renderInlineAsText(token.children or [], options, env)
    words = f"[image: {alt or 'without description'} ({token.attrs.get('src', '')})]"
    return f'<span class="image">{escape(words)}</span>'


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    token = tokens[index]
    token.attrSet("rel", "noopener noreferrer nofollow")
    token.attrSet("referrerpolicy", "no-referrer")
    return renderer.renderToken(tokens, index, options, env)


def _table_open(*_: Any) -> str:
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'


def _table_close(*_: Any) -> str:
    return "</table></div>\n"


def _align_by_class(tokens: Sequence[Token]) -> None:
    """Tables come with style attributes, which the pages' security policy refuses."""
    for token in tokens:
        style = token.attrs.pop("style", None)
        if style is not None:
            token.attrSet("class", str(style).rpartition(":")[2])


def _fit_headings(tokens: Sequence[Token], top_level: int) -> None:
    """Renumber headings so that they start at `top_level` and go down one step at a time."""
    open_levels: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1])
            while open_levels and open_levels[-1] >= level:
                open_levels.pop()
            open_levels.append(level)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(top_level + len(open_levels) - 1, 6)}"
