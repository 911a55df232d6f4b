"""The page about the server for readers: its OpenAPI description comes in, plain HTML without scripts leaves."""

from __future__ import annotations

from html import escape
from typing import Any

_STYLE = "body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}code{background:#eee}"


def html_page(description: dict[str, Any]) -> str:
    """All operations with what they take and return."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>{escape(description['info']['title'])}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(description['info']['title'])}</h1><p>{escape(description['info']['description'])}</p>",
        "<p>The same for programs: <a href='/openapi.json'>openapi.json</a>.</p>",
    ]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(f"<p>{escape(operation.get('description') or operation['summary'])}</p><ul>")
            parts += [
                f"<li>{parameter['in']} <code>{escape(parameter['name'])}</code></li>"
                for parameter in operation.get("parameters", ())
            ]
            parts += [
                f"<li>{status}: {escape(response['description'])}</li>"
                for status, response in operation["responses"].items()
            ]
            parts.append("</ul>")
    return "".join(parts) + "</body></html>"
