"""Hooks of mkdocs: make wide tables scroll and build the search index.

The theme is our own (`theme/`), on the tokens of reports and pages. The index is a script, not a file to be fetched, so
that search works where `site/` is opened from a disk.
"""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from shoal.look import tokens

_HEADING = re.compile(r'<h([1-3])[^>]*\bid="([^"]*)"[^>]*>(.*?)</h\1>', re.DOTALL)
_LONGEST = 4000
_entries: list[dict[str, Any]] = []


def on_pre_build(config: Any) -> None:
    _entries.clear()


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Note the words of a page; a wide table scrolls by itself, with the keyboard too."""
    _entries.extend(index_entries(page.title, page.url, html))
    number = 0

    def scrolling(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return f'<div class="scroll" role="region" aria-label="Table {number}" tabindex="0">{match[0]}</div>'

    return re.sub(r"<table.*?</table>", scrolling, html, flags=re.DOTALL)


def on_post_build(config: Any) -> None:
    """Put the shared tokens and the index beside the pages."""
    site = Path(config["site_dir"])
    (site / "tokens.css").write_text(tokens(), "utf-8")
    found = json.dumps(_entries, ensure_ascii=False, separators=(",", ":"))
    (site / "search-index.js").write_text(f"window.SEARCH_INDEX = {found};\n", "utf-8")


def index_entries(title: str, url: str, html: str) -> list[dict[str, Any]]:
    """The page itself and each of its sections, with their words.

    >>> found = index_entries("Noise", "noise.html", '<h1 id="a">Noise</h1><p>all</p><h2 id="b">Box</h2><p>one</p>')
    >>> [(entry["title"], entry["url"], entry["text"]) for entry in found]
    [('Noise', 'noise.html', 'all'), ('Noise: Box', 'noise.html#b', 'one')]
    """
    found = []
    places = list(_HEADING.finditer(html))
    ends = [place.start() for place in places[1:]] + [len(html)]
    for place, end in zip(places, ends, strict=True):
        top = place[1] == "1"
        heading = _words(place[3]).rstrip("¶ ")
        found.append(
            {
                "title": heading if top else f"{title}: {heading}",
                "url": url if top else f"{url}#{place[2]}",
                "text": _words(html[place.end() : end])[:_LONGEST],
                "top": top,
            }
        )
    return found


def _words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html))).strip()
