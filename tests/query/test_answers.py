"""Counts, sums, means, histograms, quantiles: sensitivities by brute force, noise by chi-square, errors as stated."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from shoal.errors import OptionError
from shoal.noise import Seeded, discrete_laplace
from shoal.partition import ranking
from shoal.privacy import Accountant, OverspendError
from shoal.query.answers import (
    AnswerNoise,
    HistogramCells,
    Linear,
    add_up,
    cells_of,
    centred,
    count,
    counting,
    histogram,
    mean,
    present_values,
    summing,
    total,
)
from shoal.query.facts import DatasetFacts, Neighbours, RowOrder, Where, parse_where
from shoal.query.rank import group_sums, quantile, ranked, ranking_means
from shoal.text import Message
from tests.conftest import examples

from .query_worlds import drawn, neighbours_of, rows_of, schema, table, tables_of

THRESHOLD = 1e-9
RELATIONS: tuple[Neighbours, ...] = ("replace-one", "add-remove")
DOMAINS = [
    (0, 2, 1),
    (-1, 1, 1),
    (-3, -1, 1),
    ("0.5", "1.5", "0.5"),
    (2, 4, 1),
    ("0.3", "0.9", "0.2"),
    (-1, 2, 2),
]
FILTERS: list[Any] = [
    None,
    {"column": "group", "op": "==", "value": "a"},
    {"column": "value", "op": ">", "value": "0.5"},
    {"or": [{"column": "group", "op": "!=", "value": "b"}, {"column": "value", "op": "<=", "value": 0}]},
]


def world(domain: tuple[Any, Any, Any], relation: Neighbours) -> tuple[Any, list[Any], list[Any]]:
    """Schema, all records, and pairs of neighbouring tables (two records, or up to two under add-remove)."""
    declared = schema(*domain)
    rows = rows_of(declared)
    tables = list(tables_of(rows, [2] if relation == "replace-one" else [1, 2]))
    pairs = [(one, other) for one in tables for other in neighbours_of(one, rows, relation)]
    return declared, rows, pairs


def facts_of(declared: Any, relation: Neighbours, rows: int = 2) -> DatasetFacts:
    return DatasetFacts(declared, relation, rows if relation == "replace-one" else None)


def filtered(raw: Any, facts: DatasetFacts) -> Where | None:
    return None if raw is None else parse_where(raw, facts)


def known_totals(declared: Any, pairs: list[Any], relation: Neighbours, function: Any) -> dict[Any, Any]:
    return {rows: function(table(rows, declared, relation)) for rows in {r for pair in pairs for r in pair}}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_sums_and_counts_move_as_far_as_stated_and_no_farther(
    domain: tuple[Any, Any, Any], relation: Neighbours
) -> None:
    declared, _, pairs = world(domain, relation)
    facts = facts_of(declared, relation)
    some = pairs if relation == "add-remove" else pairs[:: max(len(pairs) // 1500, 1)]
    for raw in FILTERS:
        where = filtered(raw, facts)
        kinds = {
            "count": counting(facts, where),
            "sum": summing(facts, "value", where),
            "centred": centred(facts, "value", where)[0],
        }
        for name, linear in kinds.items():
            known = known_totals(declared, some, relation, linear.total)
            moved = max(abs(known[one] - known[other]) for one, other in some)
            assert moved <= linear.sensitivity(facts), (name, raw)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_stated_sensitivities_are_reached(relation: Neighbours) -> None:
    """Smaller ones would be wrong: for each kind the worst pair of neighbours is in the world."""
    declared, _, pairs = world((-1, 2, 1), relation)
    facts = facts_of(declared, relation)
    where = filtered(FILTERS[1], facts)
    for linear in (
        counting(facts, where),
        summing(facts, "value", where),
        summing(facts, "value"),
        centred(facts, "value", where)[0],
    ):
        known = known_totals(declared, pairs, relation, linear.total)
        assert max(abs(known[one] - known[other]) for one, other in pairs) == linear.sensitivity(facts)


def test_sensitivities_in_the_unit_of_the_answer() -> None:
    declared = schema(-2, 10)
    both = {relation: facts_of(declared, relation) for relation in RELATIONS}
    condition = {"column": "group", "op": "==", "value": "a"}
    found = {}
    for relation, facts in both.items():
        where = parse_where(condition, facts)
        options = {"epsilon": Fraction(1)}
        found[relation] = [
            count(facts, where=where, **options).sensitivity,
            count(facts, **options).sensitivity,
            total(facts, column="value", **options).sensitivity,
            total(facts, column="value", where=where, **options).sensitivity,
            histogram(
                facts, cells=cells_of(facts, {"column": "group", "cells": ["a"]}), **options
            ).sensitivity,
        ]
    assert found["replace-one"] == [1, 0, 12, 12, 2]
    assert found["add-remove"] == [1, 1, 10, 10, 1]
    away = facts_of(schema(100, 110), "replace-one")
    assert total(away, column="value", epsilon=Fraction(1)).sensitivity == 10
    where = parse_where(condition, away)
    assert total(away, column="value", where=where, epsilon=Fraction(1)).sensitivity == 110


def test_the_number_of_records_is_free_where_it_is_public() -> None:
    facts = facts_of(schema(0, 2), "replace-one", 2)
    offer = count(facts, epsilon=Fraction(1))
    rows = table(((0, "a"), (1, None)), facts.schema, "replace-one")
    assert offer.epsilon == 0
    assert drawn(offer, rows, Seeded(1)) == 2
    assert count(facts_of(schema(0, 2), "add-remove"), epsilon=Fraction(1)).epsilon == 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_cells_of_a_histogram_move_together_by_what_is_stated(relation: Neighbours) -> None:
    declared, _, pairs = world((0, 2, 1), relation)
    facts = facts_of(declared, relation)
    for cells in (
        cells_of(facts, {"column": "value", "edges": ["0", "1", "2"]}),
        cells_of(facts, {"column": "value", "edges": ["-5", "-3", "0.5", "1.5", "9"]}),
        cells_of(facts, {"column": "group", "cells": ["a", "b", "elsewhere"]}),
    ):
        offer = histogram(facts, cells=cells, epsilon=Fraction(1))
        known = known_totals(declared, pairs, relation, lambda rows, c=cells: c.counts(rows, None))
        moved = max(
            sum(abs(a - b) for a, b in zip(known[one], known[other], strict=True)) for one, other in pairs
        )
        assert moved == offer.sensitivity
        assert all(min(counts) >= 0 for counts in known.values())


def test_every_record_is_in_its_cell() -> None:
    declared = schema(0, 10)
    facts = facts_of(declared, "replace-one", 7)
    rows = tuple((value, "a") for value in (0, 3, 3, 5, 10, None, 99))
    counts = cells_of(facts, {"column": "value", "edges": ["0", "3", "5", "10"]}).counts
    assert counts(table(rows, declared, "replace-one"), None) == [1, 2, 3]
    with pytest.raises(OptionError, match="increasing values"):
        cells_of(facts, {"column": "value", "edges": ["3", "3"]})
    with pytest.raises(OptionError, match="twice"):
        cells_of(facts, {"column": "group", "cells": ["a", "a"]})


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_mean_is_made_of_numbers_that_move_as_stated(relation: Neighbours) -> None:
    """The count below a mean leaves out missing values, so that it moves even if the number of records is public."""
    declared, _, pairs = world((0, 2, 1), relation)
    facts = facts_of(declared, relation)
    for raw in FILTERS:
        where = filtered(raw, facts)
        known = known_totals(
            declared, pairs, relation, lambda rows, w=where: int(present_values(rows, "value", w).sum())
        )
        assert max(abs(known[one] - known[other]) for one, other in pairs) == 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("raw", FILTERS[:2])
def test_answers_are_near_the_truth_when_the_budget_is_large(relation: Neighbours, raw: Any) -> None:
    declared = schema(-2, 10, "0.25")
    values = [("0.25", "a"), (9, "a"), (10, "b"), (-2, "a"), ("3.5", "b"), (None, "b")]
    rows = table(tuple(values), declared, relation)
    facts, epsilon = rows.facts, Fraction(10**6)
    where = filtered(raw, facts)
    chosen = [float(v) for v, g in values if v is not None and (raw is None or g == "a")]
    if raw is None and relation == "replace-one":
        chosen.append(4.0)  # the middle of the domain for the missing value
    for noise in ("laplace", "staircase"):
        options = {"epsilon": epsilon, "where": where, "noise": noise}
        assert drawn(total(facts, column="value", **options), rows, Seeded(3)) == pytest.approx(
            sum(chosen), abs=1e-2
        )
        assert drawn(mean(facts, column="value", **options), rows, Seeded(3)) == pytest.approx(
            np.mean(chosen), abs=1e-2
        )
        counted = 6 if raw is None else 3
        assert drawn(count(facts, **options), rows, Seeded(3)) == counted


def test_a_domain_that_does_not_end_on_the_lattice_keeps_its_upper_end() -> None:
    declared = schema(0, 10, 3)
    rows = table(((10, "a"), (0, "b"), (5, "a"), (99, "a")), declared, "replace-one")
    assert rows.positions["value"].tolist() == [3, 0, 2, 3]
    facts = rows.facts
    top = cells_of(facts, {"column": "value", "edges": ["9", "10"]})
    assert top.counts(rows, None) == [2]
    where = parse_where({"column": "value", "op": "<=", "value": 10}, facts)
    assert drawn(count(facts, where=where, epsilon=Fraction(10**6)), rows, Seeded(1)) == 4


class Untouched(Seeded):
    """Bits that nobody may take."""

    def words(self, n: int) -> Any:
        raise AssertionError("noise was drawn")


def test_noise_that_is_not_paid_for_is_not_drawn() -> None:
    """More reserved than an answer costs, more spent than is reserved, a reservation spent twice."""
    rows = table(((0, "a"), (2, "b")), schema(0, 2), "add-remove")
    offer = mean(rows.facts, column="value", epsilon=Fraction(1))
    assert offer.reserved == {"count": Fraction(1, 2), "sum": Fraction(1, 2)}
    with pytest.raises(OverspendError, match="reserves"):
        replace(offer, epsilon=Fraction(1, 2)).account(rows.facts, Untouched(1))
    poorer = replace(offer, reserved={"count": Fraction(1, 3)}).account(rows.facts, Untouched(1))
    with pytest.raises(OverspendError, match="left of 'count'"):
        offer.run(rows, poorer)
    account = offer.account(rows.facts, Seeded(1))
    offer.run(rows, account)
    account.source = Untouched(1)
    with pytest.raises(OverspendError, match="0 is left"):
        offer.run(rows, account)


def p_value(counts: Counter[int], law: Any, draws: int) -> float:
    """Chi-square over the values that are expected ten times or more, all others together."""
    often = [x for x in range(-200, 201) if law(x) * draws >= 10]
    observed = [counts[x] for x in often]
    wanted = [law(x) * draws for x in often]
    observed.append(draws - sum(observed))
    wanted.append(draws - sum(wanted))
    statistic = sum((o - w) ** 2 / w for o, w in zip(observed, wanted, strict=True))
    return float(chi2.sf(statistic, len(often)))


def laplace_law(scale: float) -> Any:
    rate = 1 / scale
    return lambda x: math.tanh(rate / 2) * math.exp(-rate * abs(x))


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_follows_the_stated_law_and_twice_the_scale_is_noticed(
    relation: Neighbours,
) -> None:
    draws, epsilon = 800, Fraction(1, 2)
    rows = table(((1, "a"), (2, "b"), (0, "a")), schema(0, 2), relation)
    facts = rows.facts
    where = filtered(FILTERS[1], facts)
    cells = cells_of(facts, {"column": "group", "cells": ["a", "b"]})
    counted = count(facts, where=where, epsilon=epsilon)
    added = total(facts, column="value", epsilon=epsilon)
    spread = histogram(facts, cells=cells, epsilon=epsilon)
    cases = [
        (lambda s: drawn(counted, rows, s) - 2, 1),
        (lambda s: round(drawn(added, rows, s)) - 3, 2),
        (lambda s: drawn(spread, rows, s)["b"] - 1, 2 if relation == "replace-one" else 1),
    ]
    for run, sensitivity in cases:
        source = Seeded(21)
        counts = Counter(run(source) for _ in range(draws))
        scale = sensitivity / float(epsilon)
        assert p_value(counts, laplace_law(scale), draws) > THRESHOLD
        assert p_value(counts, laplace_law(2 * scale), draws) < THRESHOLD


@pytest.mark.parametrize("noise", ["laplace", "staircase"])
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, "0.3"), (7, "1"), (5, "2.5"), (400, "0.7")])
def test_announced_errors_are_those_of_the_noise(noise: str, sensitivity: int, epsilon: str) -> None:
    unit = Fraction(1, 4)
    answer_noise = AnswerNoise.single(noise, sensitivity, unit, Fraction(epsilon))
    account = Accountant.of(answer_noise.reserved("numbers"), answer_noise.epsilon, Seeded(8))
    draws = np.array(answer_noise.draw(200_000, account, "numbers")) * 0.25
    assert np.std(draws) == pytest.approx(answer_noise.deviation, rel=0.03)
    inside = np.mean(np.abs(draws) <= answer_noise.interval)
    assert inside >= 0.95 - 0.003
    assert np.mean(np.abs(draws) <= answer_noise.interval - 0.25) < 0.95 + 0.003


def test_noise_of_a_given_scale_settles_what_it_costs() -> None:
    facts = facts_of(schema(0, 10), "add-remove")
    offer = total(facts, column="value", scale=Fraction(40))
    assert offer.epsilon == Fraction(1, 4)
    assert offer.noise == Message.of("noise-laplace", scale="40")
    assert "scale 40" in str(offer.noise)
    assert AnswerNoise.laplace(3, Fraction(1, 2), scale=Fraction(2)).scale == 4
    with pytest.raises(OptionError, match="not one of"):
        AnswerNoise.single("gaussian", 1, Fraction(1), Fraction(1))


def test_sums_of_any_size_are_exact() -> None:
    assert add_up(np.full(5000, 2**52, dtype=np.int64)) == 5000 * 2**52
    sums, sizes = group_sums(np.full(5000, 2**52, dtype=np.int64), 4999)
    assert (sums, sizes) == ([5000 * 2**52], [5000])


def slow_penalty(values: list[int], point: int, above: int, whole: int) -> int:
    """How far the wanted rank is from the ranks that a point covers, in parts of 1/whole."""
    below, upto = sum(v < point for v in values), sum(v <= point for v in values)
    target = above * len(values)
    return max(whole * below - target, target - whole * upto, 0)


@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.sampled_from([(1, 2), (1, 4), (9, 10), (0, 1), (1, 1), (99, 100)]),
)
@settings(max_examples=examples(100))
def test_penalties_by_runs_are_those_of_every_point(
    values: list[int], mask: list[bool], q: tuple[int, int]
) -> None:
    chosen = np.array(mask[: len(values)], dtype=np.bool_)
    kept = [value for value, one in zip(values, mask, strict=False) if one]
    # by points, and by rows
    for points in (10, 0):
        order = RowOrder.of(np.array(values, dtype=np.int64), points)
        lengths, starts, penalties = ranked(order, chosen, 9, *q)
        assert lengths.size == (points or 2 * len(values) + 2)
        spread = [int(p) for length, p in zip(lengths, penalties, strict=True) for _ in range(int(length))]
        assert spread == [slow_penalty(kept, point, *q) for point in range(10)]
        real = lengths > 0
        assert starts[real].tolist() == np.concatenate(([0], np.cumsum(lengths[real])[:-1])).tolist()
        assert min(spread) == 0


QUANTILES = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(0), Fraction(1)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_quantiles_are_private_by_enumeration(relation: Neighbours, q: Fraction) -> None:
    """All tables of up to three records on four points, also where a record stops meeting the conditions."""
    top, epsilon = 3, 1.0
    offer = quantile(facts_of(schema(0, top), relation), column="value", q=q, epsilon=Fraction(1), where=None)
    steps = q.denominator if relation == "replace-one" else max(q.numerator, q.denominator - q.numerator)
    assert offer.sensitivity == Fraction(steps, q.denominator)
    rate = epsilon / (2 * steps)

    def law(values: tuple[Any, ...]) -> np.ndarray:
        present = [v for v in values if v is not None]
        penalties = [slow_penalty(present, p, q.numerator, q.denominator) for p in range(top + 1)]
        weights = np.exp(-rate * np.array(penalties))
        return weights / weights.sum()

    records = [*range(top + 1), None]
    sizes = [3] if relation == "replace-one" else [1, 2, 3]
    worst, changed = 0.0, 0
    for size in sizes:
        for values in itertools.product(records, repeat=size):
            rows = tuple((v,) for v in values)
            for other in neighbours_of(rows, [(r,) for r in records], relation):
                one, two = law(values), law(tuple(v for (v,) in other))
                worst = max(worst, float(np.abs(np.log(one / two)).max()))
                changed = max(
                    changed,
                    *(
                        abs(
                            slow_penalty([v for v in values if v is not None], p, q.numerator, q.denominator)
                            - slow_penalty(
                                [v for (v,) in other if v is not None], p, q.numerator, q.denominator
                            )
                        )
                        for p in range(top + 1)
                    ),
                )
    assert worst <= epsilon + 1e-12
    assert changed == steps


def test_quantiles_follow_the_law_and_half_the_rate_is_noticed() -> None:
    values = (2, 2, 5, 7, 7, 7, 8)
    rows = table(tuple((v, "a") for v in values), schema(0, 9), "replace-one")
    offer = quantile(rows.facts, column="value", q=Fraction(1, 2), epsilon=Fraction(2))
    source, draws = Seeded(4), 6000
    found = Counter(drawn(offer, rows, source) for _ in range(draws))

    def expected(rate: float) -> np.ndarray:
        weights = np.exp([-rate * slow_penalty(list(values), p, 1, 2) for p in range(10)])
        return weights / weights.sum() * draws

    def p(wanted: np.ndarray) -> float:
        observed = np.array([found[float(point)] for point in range(10)])
        return float(chi2.sf(((observed - wanted) ** 2 / wanted).sum(), 9))

    assert p(expected(0.5)) > THRESHOLD
    assert p(expected(0.25)) < THRESHOLD
    announced = offer.error["rank_error_95"]
    far = sum(n for point, n in found.items() if slow_penalty(list(values), int(point), 1, 2) > 2 * announced)
    assert far <= 0.05 * draws


def test_shares_of_ranks_are_checked() -> None:
    facts = facts_of(schema(0, 9), "replace-one")
    for q in (Fraction(-1, 2), Fraction(3, 2), Fraction(1, 1000)):
        with pytest.raises(OptionError, match="q must be between 0 and 1"):
            quantile(facts, column="value", q=q, epsilon=Fraction(1))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_group_sums_are_those_of_ranking_and_move_by_the_width_together(k: int) -> None:
    top, n = 2, 5
    known = {}
    for values in itertools.product(range(top + 1), repeat=n):
        sums, sizes = group_sums(np.sort(np.array(values)), k)
        made = ranking(np.array(values), k, "last")
        assert sorted(sums) == sorted(made.sums(np.array(values)).tolist())
        assert sorted(sizes) == sorted(made.sizes.tolist())
        known[values] = sums
    moved = max(
        sum(abs(a - b) for a, b in zip(known[values], known[other], strict=True))
        for values in known
        for other in (
            (*values[:place], value, *values[place + 1 :])
            for place, value in itertools.product(range(n), range(top + 1))
        )
    )
    facts = facts_of(schema(0, top), "replace-one", n)
    assert moved == top == ranking_means(facts, column="value", k=k, epsilon=Fraction(1)).sensitivity


def test_ranking_means_need_a_public_number_of_records() -> None:
    with pytest.raises(OptionError, match="public number of records"):
        ranking_means(facts_of(schema(0, 2), "add-remove"), column="value", k=2, epsilon=Fraction(1))
    for k in (0, 3, True):
        with pytest.raises(OptionError, match="k must be"):
            ranking_means(facts_of(schema(0, 2), "replace-one", 2), column="value", k=k, epsilon=Fraction(1))
    rows = table(((0, "a"), (2, "a"), (1, "b"), (None, "b")), schema(0, 2), "replace-one")
    offer = ranking_means(rows.facts, column="value", k=2, epsilon=Fraction(10**6))
    assert drawn(offer, rows, Seeded(1)) == pytest.approx([0.5, 1.5], abs=1e-3)


def test_staircase_noise_is_for_single_numbers() -> None:
    """On a histogram one ε of staircase noise would be paid by every cell: there is no such option."""
    facts = facts_of(schema(0, 2), "replace-one")
    cells = HistogramCells("group", ("a",), labels=("a",))
    with pytest.raises(TypeError):
        histogram(facts, cells=cells, epsilon=Fraction(1), noise="staircase")  # type: ignore[call-arg]
    single = count(facts, where=filtered(FILTERS[1], facts), epsilon=Fraction(1, 2), noise="staircase")
    plain = count(facts, where=filtered(FILTERS[1], facts), epsilon=Fraction(1, 2))
    assert single.error["standard_deviation"] <= plain.error["standard_deviation"]
    wide = facts_of(schema(0, 1000), "add-remove")
    assert (
        total(wide, column="value", epsilon=Fraction(3), noise="staircase").error["standard_deviation"]
        < total(wide, column="value", epsilon=Fraction(3)).error["standard_deviation"]
    )


def test_noise_too_large_to_draw_is_refused_before_anything_is_looked_at() -> None:
    facts = facts_of(schema(0, 2**50), "add-remove")
    for noise in ("laplace", "staircase"):
        with pytest.raises(OptionError, match=r"2\^52"):
            total(facts, column="value", epsilon=Fraction(1, 10**6), noise=noise)


def test_a_linear_query_adds_only_records_with_a_value() -> None:
    rows = table(((None, "a"), (1, "a"), (2, None)), schema(0, 2), "add-remove")
    assert summing(rows.facts, "value").total(rows) == 3
    assert Linear(Fraction(1), 0, 1).total(rows) == 3
    assert int(discrete_laplace(0, 1)[0]) == 0
