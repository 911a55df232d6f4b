"""The page about the server for readers: its OpenAPI description comes in, plain HTML without scripts leaves."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from shoal.look import tokens

_STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: var(--space-5) var(--space-4); font:
  var(--text)/var(--leading) var(--font); color: var(--ink); background: var(--ground); overflow-wrap:
  break-word; }
h1 { font-size: var(--text-title); line-height: 1.2; margin: 0 0 var(--space-2); }
h2 { font-size: var(--text); margin: 0; } p { margin: var(--space-2) 0; max-width: var(--measure); } a { color:
  var(--accent); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: var(--radius); box-shadow:
  var(--shadow); padding: var(--space-3) var(--space-4); margin: var(--space-3) 0; }
code { font: .95em var(--mono); } h2 b { display: inline-block; min-width: 4.2em; color: var(--accent); }
table { border-collapse: collapse; width: 100%; font-size: var(--text-small); }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-top: 1px solid
  var(--line); font-weight: 400; }
th { width: 11rem; color: var(--soft); } caption { text-align: left; font-weight: var(--weight-strong);
  padding: .3rem 0 .1rem; }
@media (max-width: 40rem) { th { width: 7rem; } }
@media print { body { padding: 0; } section { break-inside: avoid; } }
"""


def html_page(description: dict[str, Any]) -> str:
    """All operations with what they take and return."""
    info = description["info"]
    operations = "".join(
        _operation(method, path, operation)
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(info['title'])}</title><style>{tokens()}{_STYLE}</style></head><body><main>"
        f"<h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>"
        "<p>The same for programs: <a href='/openapi.json'>openapi.json</a>.</p>"
        f"{operations}</main></body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    takes = [
        (f"<code>{escape(parameter['name'])}</code>", parameter["in"])
        for parameter in operation.get("parameters", ())
    ]
    answers = [
        (escape(status), _marked(response["description"]))
        for status, response in operation["responses"].items()
    ]
    return (
        f"<section><h2><code><b>{method.upper()}</b> {escape(path)}</code></h2>"
        f"<p>{_marked(operation.get('description') or operation['summary'])}</p>"
        f"{_lines('Takes', takes)}{_lines('Answers', answers)}</section>"
    )


def _marked(words: str) -> str:
    """
    >>> _marked("`closed`: a < b")
    '<code>closed</code>: a &lt; b'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))


def _lines(title: str, lines: list[tuple[str, str]]) -> str:
    if not lines:
        return ""
    rows = "".join(f"<tr><th scope='row'>{name}</th><td>{words}</td></tr>" for name, words in lines)
    return f"<table><caption>{title}</caption><tbody>{rows}</tbody></table>"
