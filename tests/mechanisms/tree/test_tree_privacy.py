"""Privacy of the tree: one level by enumeration, and the exact loss of whole runs, under both neighbour relations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import shoal
from shoal.mechanisms.tree import intervals, mechanism
from shoal.mechanisms.tree import intervals as cuts
from shoal.mechanisms.tree import intervals as gate
from shoal.mechanisms.tree import mechanism as values
from shoal.mechanisms.tree.intervals import Layout, draw_cut, rank_intervals
from shoal.noise import Seeded, choice
from shoal.privacy import Accountant, RecordSum, Spend
from shoal.progress import silent
from shoal.release.protection import prepare
from tests.conftest import examples, slow_ones

LAST = 4
DIGITS = 200
RELATIONS = ("replace-one", "add-remove")


def data_sets(size: int) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(LAST + 1), size))


def neighbours(records: tuple[int, ...], relation: str) -> Iterator[tuple[int, ...]]:
    for place in range(len(records)):
        rest = records[:place] + records[place + 1 :]
        if relation == "add-remove":
            yield rest
        else:
            yield from (tuple(sorted((*rest, other))) for other in range(LAST + 1))


def layout_with(cut: Fraction, count: Fraction, relation: str) -> Layout:
    return Layout((cut,), (count,), (), Fraction(1), Fraction(0), relation == "add-remove")


def cut_bounds(
    records: Sequence[int], rate: Fraction, lo: int = 0, hi: int = LAST
) -> list[tuple[Fraction, Fraction]]:
    """Lower and upper bound of the probability of every cut lo+1 .. hi, from the weights that the sampler uses."""
    ordered = np.sort(np.array(records, dtype=np.int64))
    lengths, penalties = rank_intervals(ordered, lo, hi)
    possible = lengths > 0
    lengths, penalties = lengths[possible], penalties[possible]
    lower, upper = choice.cumulative_bounds(lengths, penalties - penalties.min(), rate, DIGITS)
    low = np.diff([0, *lower])
    high = np.diff([0, *upper])
    found = []
    for number, length in enumerate(lengths.tolist()):
        least, most = Fraction(int(low[number]), upper[-1]), Fraction(int(high[number]), lower[-1])
        found += [(least / length, most / length)] * length
    return found


def exp_below(x: Fraction, bits: int = DIGITS) -> Fraction:
    """A fraction just below exp(x)."""
    return 1 / Fraction(choice.exp_fixed(x, bits) + 2, 1 << bits)


def level_loss(records: tuple[int, ...], other: tuple[int, ...], layout: Layout) -> list[Fraction]:
    """For each cut an upper bound of exp(loss) of one level, cut and noisy counts of both sides together.

    Noise of scale b on a count moved by one loses 1/b, which outputs beyond both counts attain.
    """
    scale = layout.count_scale(layout.intervals[0])
    ratios = []
    mine, theirs = (cut_bounds(one, layout.cut_rate(layout.cuts[0])) for one in (records, other))
    for number, ((_, most), (least, _)) in enumerate(zip(mine, theirs, strict=True)):
        cut = number + 1
        sides = [sum(x < cut for x in one) for one in (records, other)]
        moved = abs(sides[0] - sides[1]) + abs(len(records) - sides[0] - len(other) + sides[1])
        counts = Fraction(1 << DIGITS, choice.exp_fixed(moved / scale, DIGITS))
        ratios.append(most / least * counts)
    return ratios


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize(("cut", "count"), [(Fraction(1), Fraction(1, 2)), (Fraction(1, 3), Fraction(5))])
def test_one_level_costs_no_more_than_its_shares(
    relation: str, size: int, cut: Fraction, count: Fraction
) -> None:
    layout = layout_with(cut, count, relation)
    # integers of 200 digits leave a gap that this room covers many times over
    allowed = exp_below(cut + count) * (1 + Fraction(1, 10**30))
    for records in data_sets(size):
        for other in neighbours(records, relation):
            for pair in ((records, other), (other, records)):
                assert max(level_loss(*pair, layout)) <= allowed


@pytest.mark.parametrize("relation", RELATIONS)
def test_enumeration_notices_noise_that_is_too_small(relation: str) -> None:
    """Counts lose all of their share and cuts a part of theirs, so shares a quarter too large are seen."""
    spent = layout_with(Fraction(5, 8), Fraction(5, 2), relation)
    worst = max(
        max(level_loss(records, other, spent))
        for records in data_sets(3)
        for other in neighbours(records, relation)
    )
    assert worst > exp_below(Fraction(1, 2) + 2)


def unlikely(counts: NDArray[np.int64], records: tuple[int, ...], rate: Fraction) -> bool:
    """Cuts that a sampler of the enumerated probabilities draws once in 10^9 times."""
    expected = counts.sum() * np.array([float(low) for low, _ in cut_bounds(records, rate)])
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(chi2.sf(statistic, LAST - 1) < 1e-9)


def drawn_cuts(records: tuple[int, ...], rate: Fraction) -> NDArray[np.int64]:
    """How often each cut is drawn in 3,000 runs."""
    ordered, source = np.array(records, dtype=np.int64), Seeded(5)
    drawn = Counter(draw_cut(ordered, 0, LAST, rate, source) for _ in range(3_000))
    return np.array([drawn[cut] for cut in range(1, LAST + 1)])


@pytest.mark.parametrize("records", [(), (2,), (2, 2, 2), (0, 0, 4), (0, 1, 3, 3), (4, 4)])
def test_the_sampler_draws_the_enumerated_probabilities(records: tuple[int, ...]) -> None:
    assert not unlikely(drawn_cuts(records, Fraction(3, 10)), records, Fraction(3, 10))


def test_a_sampler_of_another_rate_would_be_noticed() -> None:
    assert unlikely(drawn_cuts((0, 1, 3, 3), Fraction(4, 10)), (0, 1, 3, 3), Fraction(3, 10))


class Transcript:
    """Prescribes everything a run lets out and keeps what went in, so that two data sets can be compared."""

    def __init__(self, seed: int, factor: Fraction = Fraction(1)) -> None:
        self.seed, self.factor = seed, factor
        self.start()

    def start(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.losses: list[tuple[str, Any, Any]] = []

    def noisy(self, values: NDArray[np.int64], moves: Any, spend: Spend, what: Any) -> NDArray[np.float64]:
        amount, _ = spend.take()
        each = moves if isinstance(moves, list) else [moves] * values.size
        scales = [gate.scale_of(one, amount) for one in each]
        self.losses.append(("noise", values.tolist(), [each / self.factor for each in scales]))
        return self.random.integers(-3, 9, values.size).astype(np.float64)

    def draw_cut(self, ordered: NDArray[np.int64], lo: int, hi: int, rate: Fraction, source: Any) -> int:
        if hi <= lo:
            return hi + 1
        cut = int(self.random.integers(lo + 1, hi + 1))
        lengths, penalties = rank_intervals(ordered, lo, hi)
        weights = lengths * np.exp(-float(rate * self.factor) * (penalties - penalties.min()))
        rank = int(np.searchsorted(ordered, cut))
        self.losses.append(("cut", math.log(weights[rank] / lengths[rank] / weights.sum()), rate))
        return cut


def loss(one: Transcript, other: Transcript) -> float:
    """The largest log-ratio of the two runs' probabilities to let out what was prescribed."""
    total = 0.0
    for (kind, mine, scales), (_, theirs, other_scales) in zip(one.losses, other.losses, strict=True):
        if kind == "cut":
            total += mine - theirs
            continue
        assert scales == other_scales
        for here, there, scale in zip(mine, theirs, scales, strict=True):
            total += abs(here - there) / float(scale) if scale else (math.inf if here != there else 0.0)
    return total


def run_with(
    transcript: Transcript, records: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, **options: Any
) -> Transcript:
    transcript.start()
    monkeypatch.setattr(intervals, "noisy", transcript.noisy)
    monkeypatch.setattr(mechanism, "noisy", transcript.noisy)
    monkeypatch.setattr(values, "noisy", transcript.noisy)
    monkeypatch.setattr(cuts, "draw_cut", transcript.draw_cut)
    table = pa.table({"a": [a for a, _ in records], "b": [b for _, b in records]})
    domains = {"a": (0, 6), "b": (0, 9)} | options.pop("domains", {})
    prepared = prepare(shoal.io.read(table), method="tree-dp", seed=1, domains=domains, **options)
    account = prepared.method.account(prepared.plan, Seeded(1))
    prepared.method.run(prepared.described, prepared.plan, account, silent)
    assert account.unspent() == {}
    return transcript


NAMES = {"b": shoal.Taxonomy.from_dict({"*": {"low": [0, 1, 2, 3, 4], "high": [5, 6, 7, 8, 9]}})}
RECORDS = [(0, 0), (1, 9), (3, 3), (3, 4), (6, 9), (6, 0)]
OTHERS = [(0, 0), (6, 9), (0, 9), (3, 4), (2, 5)]


def worst_loss(relation: str, factor: Fraction, monkeypatch: pytest.MonkeyPatch, **options: Any) -> float:
    worst = 0.0
    settings = {"epsilon": "1.5", "neighbours": relation, "cuts": 2, "depth": 3, **options}
    for seed in range(examples(16)):
        first, second = Transcript(seed, factor), Transcript(seed, factor)
        run_with(first, RECORDS, monkeypatch, **settings)
        if relation == "add-remove":
            changed = [RECORDS[:place] + RECORDS[place + 1 :] for place in range(len(RECORDS))]
        else:
            changed = [
                [*RECORDS[:place], other, *RECORDS[place + 1 :]] for place in (0, 3, 5) for other in OTHERS
            ]
        for records in changed:
            run_with(second, records, monkeypatch, **settings)
            worst = max(worst, loss(first, second), loss(second, first))
    return worst


@pytest.mark.parametrize(
    ("relation", "options"),
    slow_ones(
        [
            ("replace-one", {}),
            ("replace-one", {"rebuild": "normal"}),
            ("replace-one", {"cuts": 0, "depth": 0}),
            # the first attribute is counted value by value, then both are
            ("replace-one", {"cuts": 3}),
            ("replace-one", {"cuts": 4}),
            ("replace-one", {"domains": NAMES}),
            ("replace-one", {"domains": NAMES, "cuts": 4}),
            ("add-remove", {"rows": 6, "domains": NAMES}),
            ("add-remove", {"rows": 6, "cuts": 4}),
            ("add-remove", {"rows": 6}),
            ("add-remove", {"rows": 6, "rebuild": "normal"}),
            ("add-remove", {}),
        ],
        1,
        4,
        6,
        8,
        10,
    ),
    ids=lambda case: case if isinstance(case, str) else ",".join(case),
)
def test_no_run_loses_more_than_epsilon(
    relation: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    worst = worst_loss(relation, Fraction(1), monkeypatch, **options)
    # the accounting is not only safe but used: half of ε is lost somewhere
    assert 0.75 < worst <= 1.5 * (1 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("levels", [2, 4], ids=["intervals", "values"])
def test_noise_of_half_the_scale_would_be_noticed(
    relation: str, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worst_loss(relation, Fraction(2), monkeypatch, cuts=levels) > 1.5


@pytest.mark.parametrize(
    ("options", "counted", "summed"),
    [
        ({"cuts": 2}, 0, 2),
        ({"cuts": 3}, 1, 1),
        ({"cuts": 4}, 2, 0),
        ({"cuts": 2, "domains": NAMES}, 0, 1),
        ({"cuts": 4, "domains": NAMES}, 2, 0),
    ],
    ids=["intervals", "one counted", "both counted", "names in intervals", "names counted"],
)
def test_what_is_spent_on_what_adds_up_to_epsilon(options: dict[str, Any], counted: int, summed: int) -> None:
    """Which way an attribute goes is seen in the plan, and what passes the gate costs what the plan says."""
    domains = {"a": (0, 6), "b": (0, 9)} | options.get("domains", {})
    table = shoal.io.read(pa.table({"a": [a for a, _ in RECORDS], "b": [b for _, b in RECORDS]}))
    plan = prepare(table, method="tree-dp", epsilon="1.5", **{**options, "domains": domains, "depth": 3}).plan
    assert sum(plan.spending.values()) == Fraction(3, 2)
    parts = {name.split(" of ")[0]: name for name in plan.spending}
    words = {0: None, 1: "of 1 attribute", 2: "of all attributes"}
    for part, number in (("value counts", counted), ("interval sums", summed)):
        assert (part in parts) == (number > 0)
        assert number == 0 or str(words[number]) in parts[part]


def spend_of(amount: Fraction) -> Spend:
    return Accountant.of({"counts": amount}, amount, Seeded(3)).spend("counts", amount)


def test_the_gate_adds_noise_of_the_scale_that_is_paid_for() -> None:
    values = np.zeros(20_000, dtype=np.int64)
    noise = gate.noisy(values, 7, spend_of(Fraction(2)), RecordSum("count"))
    q = math.exp(-2 / 7)
    expected = 2 * q / (1 - q) ** 2
    assert abs(noise.var() / expected - 1) < 0.1
    exact = gate.noisy(np.array([5, 6]), [0, 0], spend_of(Fraction(2)), RecordSum("count"))
    assert exact.tolist() == [5.0, 6.0]
