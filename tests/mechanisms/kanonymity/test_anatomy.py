"""Two linked tables: what they hold, what they link, and that they are measured before they are kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal import ClaimError, OptionError
from shoal.mechanisms.kanonymity.grouping_algorithms import ordered_buckets
from shoal.partition import ranking
from tests.support.samples import LIBRARIES

from .mixed import CONFIDENTIAL, QUASI, TOWNS, mixed, mixed_schema, rows


def release(**options: Any) -> shoal.Release:
    return shoal.protect(mixed(), mixed_schema(), "anatomy", **{"k": 6, "seed": 1, **options})


def groups_of(made: shoal.Release) -> dict[int, Counter[tuple[Any, ...]]]:
    """Confidential combinations of each group, by its number."""
    table = made.linked["confidential"]
    found: dict[int, Counter[tuple[Any, ...]]] = {}
    for line in table.to_pylist():
        values = tuple(line[name] for name in CONFIDENTIAL)
        found.setdefault(line["group"], Counter())[values] += line["count"]
    return found


@pytest.mark.parametrize("options", [{}, {"group_by": "confidential"}, {"l": 2}])
def test_groups_hold_the_values_of_their_members_and_nothing_else_is_linked(options: dict[str, Any]) -> None:
    made = release(**options)
    known = (*QUASI, "visits")
    assert made.data.column_names == [*known, "group"]
    assert made.linked["confidential"].column_names == ["group", *CONFIDENTIAL, "count"]
    assert rows(made.data, *known) == rows(mixed(), *known)
    (partition,) = made.partition
    own = {
        cluster: Counter(
            row
            for row, label in zip(
                zip(*(mixed()[name].to_pylist() for name in CONFIDENTIAL), strict=True),
                partition.labels.tolist(),
                strict=True,
            )
            if label == cluster
        )
        for cluster in range(len(partition))
    }
    listed = groups_of(made)
    assert Counter(frozenset(counter.items()) for counter in listed.values()) == Counter(
        frozenset(counter.items()) for counter in own.values()
    )
    members = Counter(made.data["group"].to_pylist())
    assert members == {group: sum(counter.values()) for group, counter in listed.items()}
    assert min(members.values()) >= 6


def test_groups_by_the_confidential_attribute_are_those_of_algorithm_7_1() -> None:
    schema = mixed_schema(illness="other")
    made = shoal.protect(mixed(), schema, "anatomy", k=6, seed=1, group_by="confidential")
    assert np.array_equal(made.partition[0].labels, ranking(mixed()["income"].to_numpy(), 6, "middle").labels)


@pytest.mark.parametrize("library", LIBRARIES)
def test_types_are_the_callers(library: str) -> None:
    table = nw.from_native(mixed(), eager_only=True)
    native = {"pandas": table.to_pandas, "polars": table.to_polars, "pyarrow": table.to_arrow}[library]()
    if library == "pandas":
        native = native.astype({"born": "datetime64[ns]"})
    made = shoal.protect(native, mixed_schema(), "anatomy", k=6, seed=1)
    before = nw.from_native(native, eager_only=True).schema
    for frame in (made.data, made.linked["confidential"]):
        assert type(frame) is type(native)
        after = nw.from_native(frame, eager_only=True).schema
        assert {name: after[name] for name in after if name in before} == {
            name: before[name] for name in after if name in before
        }


def test_with_t_the_second_table_holds_buckets_with_nearly_their_shares(tmp_path: Path) -> None:
    schema = mixed_schema(illness="other")
    made = shoal.protect(mixed(), schema, "anatomy", k=6, t=2, seed=1)
    assert made.statement.model == "t-closeness"
    income = mixed()["income"].to_numpy()
    buckets = ordered_buckets(income, 2)
    words = {f"{income[buckets == b].min():.15g} to {income[buckets == b].max():.15g}" for b in range(3)}
    table = made.linked["confidential"]
    assert set(table["income"].to_pylist()) == words
    counts: dict[int, dict[str, int]] = {}
    for line in table.to_pylist():
        counts.setdefault(line["group"], {})[line["income"]] = line["count"]
    total = Counter({word: 0 for word in words})
    for own in counts.values():
        total.update(own)
    for own in counts.values():
        size = sum(own.values())
        for word in words:
            ratio = (own[word] / size) / (total[word] / 80)
            assert 0.5 - 1e-12 <= ratio <= 2 + 1e-12
    made.save(tmp_path / "out", format="csv")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "data.csv",
        "confidential.csv",
        "statement.json",
        "method.toml",
        "log.toml",
        "report.html",
    }


def test_dates_orders_and_names_have_buckets_in_their_own_words() -> None:
    def second(name: str) -> set[str]:
        schema = mixed_schema(**{"income": "other", "illness": "other", name: "confidential"})
        made = shoal.protect(mixed(), schema, "anatomy", k=6, t=1, seed=1)
        return set(made.linked["confidential"][name].to_pylist())

    assert all(len(words.split(" to ")[0]) == len("1990-01-31") for words in second("born"))
    assert second("grade") in ({"low", "fair to high"}, {"low to fair", "high"})
    # along the taxonomy, where neighbours are similar; without one, the frequent value by itself
    assert sorted(" | ".join(sorted(second("town"))).split(" | ")) == list(TOWNS)
    assert second("illness") == {"none", "cold | flu | gout"}


def test_two_tables_that_do_not_fit_together_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.release import bundle

    def spoil(frame: pa.Table, path: Path, *more: object) -> None:
        if path.name.startswith("confidential"):
            frame = frame.slice(1)
        parquet.write_table(frame, path)

    monkeypatch.setattr(bundle, "write", spoil)
    with pytest.raises(ClaimError, match="count different numbers of records in a group"):
        release().save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_everything_confidential_leaves_no_first_table() -> None:
    schema = mixed_schema(**dict.fromkeys((*QUASI, "visits"), "confidential"))
    with pytest.raises(OptionError, match="needs a column that is not a sensitive attribute"):
        shoal.protect(mixed(), schema, "anatomy", k=6)


def test_draws_differ_and_seeds_repeat() -> None:
    first, again, other = (release(seed=seed) for seed in (1, 1, None))
    assert first.data.equals(again.data)
    assert not first.data.equals(other.data)


def test_what_is_left_in_rows_can_be_evaluated() -> None:
    measured = shoal.evaluate(mixed(), release())
    assert set(measured.columns) <= {*QUASI, "visits"}
    assert measured.utility["total_variation"] == 0
