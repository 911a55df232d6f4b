"""The public page: self-contained, safe with any column name, and computed from the released table only."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from samples import ODD_NAMES

import shoal
from shoal.report import internal_report, public_report

RESOURCES = ("src", "srcset", "data", "poster", "action", "background")
MARKUP = "<script>alert(1)</script>"


class Outline(HTMLParser):
    """Collects tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def release(names: tuple[str, ...] = ("a", "b"), values: np.ndarray | None = None) -> shoal.Release:
    numbers = np.linspace(0, 10, 40) if values is None else values
    data = pa.table({name: numbers for name in names})
    return shoal.protect(
        data,
        method="mdav-dp",
        epsilon=1,
        k=5,
        columns=names,
        domains=dict.fromkeys(names, (0, 10)),
        outside="clip",
    )


def without_scripts(page: str) -> str:
    return re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("page", [public_report, internal_report])
def test_no_outside_resource(page: object) -> None:
    text = without_scripts(page(release()))  # type: ignore[operator]
    for word in ("http://", "https://", "@import", "url("):
        assert word not in text
    outline = Outline(text)
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(outline.tags)
    assert not [name for name, _ in outline.attributes if name in RESOURCES]
    assert all(str(value).startswith("#") for name, value in outline.attributes if name == "href")
    # and the browser is told to refuse what a page might still ask for
    policies = [value for name, value in outline.attributes if name == "content"]
    assert str(policies[0]).startswith("default-src 'none'")


def test_the_page_of_a_bundle_has_no_script_and_is_small() -> None:
    page = public_report(release())
    assert "script" not in Outline(page).tags
    assert len(page.encode()) < 50_000


def test_the_library_is_inlined_once() -> None:
    page = internal_report(release())
    assert page.count("<script") == page.count("</script>") == 3
    assert len(page.encode()) < 8_000_000


def test_names_with_markup_are_text() -> None:
    made = release((*ODD_NAMES, MARKUP))
    outline = Outline(public_report(made))
    assert "script" not in outline.tags
    assert "b" not in outline.tags
    for name in ODD_NAMES:
        assert name in "".join(outline.texts)
    page = internal_report(made)
    assert MARKUP not in page
    assert "<b>net</b>" not in page
    # a name inside the drawings must not end the element they stand in
    drawings = page.split('id="drawings">')[1].split("</script>")[0]
    assert "<" not in drawings


def test_page_depends_on_the_released_table_only() -> None:
    """The same released values from different originals give the same page."""
    first, second = release(), release(values=np.full(40, 3.0))
    pages = [public_report(_with_data(one, first.data)) for one in (first, second)]
    assert pages[0] == pages[1]


def _with_data(made: shoal.Release, data: object) -> shoal.Release:
    from dataclasses import replace

    return replace(made, data=data)


def test_bars_cover_the_domain_and_hold_every_row() -> None:
    page = public_report(release(("a",)))
    bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="[\d.]+" height="([\d.]+)"', page)
    assert len(bars) == 40
    assert max(float(height) for _, height in bars) == 100


def test_an_experiment_says_so_on_the_page() -> None:
    data = pa.table({"a": np.arange(20.0)})
    made = shoal.protect(data, method="laplace", epsilon=1, seed=1, domains={"a": (0, 20)})
    assert "Red: do not publish" in public_report(made)
    assert "do not publish" not in public_report(release())


def test_constant_columns_are_drawn() -> None:
    made = shoal.protect(
        pa.table({"a": [5.0] * 6}), method="mdav-dp", epsilon=1000, k=6, domain_from_data=1.5
    )
    assert "<svg" in public_report(made)


def test_first_screen_holds_promise_limits_budget_size_loss_risk_and_light() -> None:
    text = "".join(Outline(public_report(release())).texts)
    first = text[: text.index("The promise in detail")]
    made = release().statement
    assert made.sentence in first
    for entry in made.not_promised:
        assert entry in first
    for word in ("ε", "k", "how much was lost", "Risk that remains", "Amber: ", "What this means"):
        assert word in first


def test_the_same_seed_gives_the_same_internal_page() -> None:
    data = pa.table({"a": np.arange(60.0), "b": np.arange(60.0)[::-1] % 7})
    pages = []
    for _ in range(2):
        made = shoal.protect(
            data, method="mdav-dp", epsilon=1, k=5, seed=4, domains={"a": (0, 60), "b": (0, 7)}
        )
        pages.append(internal_report(made, shoal.evaluate(data, made), data))
    assert pages[0] == pages[1]
