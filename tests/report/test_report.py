"""The public page: self-contained, safe with any column name, and computed from the released table only."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.report import bundle_report, internal_report, public_report
from tests.support.samples import ODD_NAMES

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
        domains=dict.fromkeys(names, (0.0, 10.0)),
        outside="clip",
    )


def without_strips(page: str) -> str:
    """The page without the dots of its strips, which are elements of their own."""
    return re.sub(r'<span class="strip".*?</span>', "", page, flags=re.DOTALL)


@pytest.mark.parametrize("page", [public_report, internal_report])
def test_no_outside_resource(page: object) -> None:
    text = page(release())  # type: ignore[operator]
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


def test_the_internal_page_has_no_script_either() -> None:
    page = internal_report(release())
    assert "script" not in Outline(page).tags
    assert len(page.encode()) < 200_000


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
    assert "b" not in Outline(without_strips(page)).tags


def test_page_depends_on_the_released_table_only() -> None:
    """The same released values from different originals give the same page."""
    first, second = release(), release(values=np.full(40, 3.0))
    pages = [public_report(_with_data(one, first.data)) for one in (first, second)]
    assert pages[0] == pages[1]


def _with_data(made: shoal.Release, data: object) -> shoal.Release:
    from dataclasses import replace

    return replace(made, data=data)


def test_a_promise_without_groups_or_budget_has_no_card_for_them() -> None:
    def cards(made: shoal.Release) -> list[str]:
        return re.findall(r'<li class="card"><small>(.*?)</small>', public_report(made))

    data = pa.table({"a": np.arange(20.0)})
    grouped = shoal.protect(data, method="mdav-dp", epsilon=1, k=5, domains={"a": (0, 20)})
    drawn = shoal.protect(data, method="laplace", epsilon=1, domains={"a": (0, 20)})
    assert cards(grouped) == ["ε", "k", "Remaining detail", "Residual risk"]
    assert cards(drawn) == ["ε", "Remaining detail", "Residual risk"]


def test_the_verdict_comes_first_then_promise_usefulness_and_risk() -> None:
    data = pa.table({"a": np.arange(40.0), "b": np.arange(40.0)[::-1]})
    made = shoal.protect(data, method="mdav-dp", epsilon=1, k=5, domains={"a": (0, 40), "b": (0, 40)})
    page = internal_report(made, shoal.evaluate(data, made), data)
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    words = [re.sub(r"<[^>]+>", "", heading).split(": ")[-1] for heading in headings]
    order = [
        "publish with these limits",
        "Guarantee",
        "utility",
        "measured risk",
        "Columns",
        "Risk",
    ]
    places = [next(i for i, found in enumerate(words) if found.startswith(word)) for word in order]
    assert places == sorted(places)


def test_three_pages_have_one_name_each(tmp_path: Path) -> None:
    made = release()
    data = pa.table({name: np.linspace(0, 10, 40) for name in ("a", "b")})
    made.save(tmp_path / "out")
    pages = {
        "Public report": [public_report(made), bundle_report(tmp_path / "out")],
        "Internal report": [internal_report(made)],
        "Comparison": [bundle_report(tmp_path / "out", data)],
    }
    for name, found in pages.items():
        for page in found:
            assert f"<h1>{name}</h1>" in page
            assert re.search(r"<title>(.*?):", page)[1] == name  # type: ignore[index]


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
    first = text[: text.rindex("Statement in detail")]
    made = release().statement
    assert made.sentence in first
    for entry in made.not_promised:
        assert entry in first
    for word in ("ε", "k", "information loss", "Residual risk", "Amber: ", "What this means"):
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


class TestNumbersWithIntervals:
    """The public page of a synthetic release shows intervals, and says that its rows are no sample."""

    @staticmethod
    def synthetic(method: str) -> shoal.Release:
        random = np.random.default_rng(1)
        table = pd.DataFrame(
            {"age": random.integers(18, 90, 400), "sex": random.choice(["f", "m"], 400, p=[0.7, 0.3])}
        )
        domains = {"age": (0, 120), "sex": ["f", "m"]}
        return shoal.protect(table, method=method, epsilon=4, seed=1, domains=domains)

    def test_means_and_shares_have_intervals(self, tmp_path: Path) -> None:
        made = self.synthetic("pairs-dp")
        made.save(tmp_path / "out")
        intervals = shoal.intervals(made, ["mean(age)", "share(sex = f)"])
        for page in (public_report(made), bundle_report(tmp_path / "out")):
            text = " ".join(Outline(page).texts)
            assert "not a sample of people. Do not compute intervals" in text
            assert "95 of 100 such intervals contain the value of the population." in text
            for one in intervals:
                assert f"{one.low:.5g}" in text
                assert f"{one.high:.5g}" in text

    def test_where_intervals_take_re_runs_the_page_names_the_command(self) -> None:
        text = " ".join(Outline(public_report(self.synthetic("tree-dp"))).texts)
        assert "not a sample of people" in text
        assert "95 of 100" not in text

    def test_other_releases_have_no_such_section(self) -> None:
        assert "not a sample of people" not in public_report(release())
