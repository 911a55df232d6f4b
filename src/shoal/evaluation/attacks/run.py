"""Run the attacks on a released table, and report the measured risks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.arguments import as_names, renamed_arguments
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.evaluation.attacks import singling
from shoal.evaluation.attacks.singling import (
    AttackRisk,
    Encoded,
    Predicates,
    Rate,
    Space,
    attack_risk,
    computed,
    count_matches,
    encode,
    sampled,
)
from shoal.evaluation.learning import CONFIDENCE, Interval
from shoal.evaluation.linkage import THREADS_FROM, TIE_ULPS, TREE_SLACK, record_linkage, tie_width
from shoal.evaluation.pair import TablePair, make_pair, plain
from shoal.evaluation.result import _empty_table
from shoal.io import read
from shoal.partition import row_groups
from shoal.progress import Progress, silent
from shoal.text import Message, capital

if TYPE_CHECKING:
    from rich.table import Table


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A released table restricted to some columns, with identical rows grouped.

    Attributes:
        values: one row of each group.
        labels: group of each released row.
        sizes: number of released rows of each group.
    """

    space: Space
    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def over(cls, released: NDArray[np.float64], space: Space) -> Rows:
        groups = row_groups(released.T)
        return cls(space, np.asfortranarray(released[groups.first]), groups.labels, groups.sizes)

    def nearest(self, targets: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """The groups nearest to each target; several where distances are equal up to rounding.

        Cost:
            With numbers only, a tree: O(log n) for a target in few columns. With nominal columns, a scan of all
            distinct rows, each up to the column that puts it out of reach. Memory O(n).
        """
        used = self.space.widths > 0
        if not used.any():
            return [np.arange(len(self.values)) for _ in targets]
        space = self.space.part(np.flatnonzero(used).tolist())
        rows, points = self.values[:, used], np.asfortranarray(targets[:, used])
        numeric = ~space.nominal
        slack = np.full(len(points), TIE_ULPS * np.finfo(np.float64).eps * space.nominal.size)
        slack += tie_width(rows[:, numeric], points[:, numeric], space.widths[numeric])
        if numeric.all():
            return _by_tree(rows, points, space, slack)
        return _by_kernel(rows, points, space, slack)


def distances(points: NDArray[np.float64], rows: NDArray[np.float64], space: Space) -> NDArray[np.float64]:
    """All distances between points and rows.

    >>> space = Space(("age", "town"), np.array([False, True]), np.array([50.0, 1.0]))
    >>> distances(np.array([[20.0, 0.0]]), np.array([[45.0, 0.0], [20.0, 1.0]]), space).tolist()
    [[0.5, 1.0]]
    """
    total = np.zeros((len(points), len(rows)))
    for j, nominal in enumerate(space.nominal):
        a, b = points[:, j, None], rows[None, :, j]
        total += (a != b) if nominal else np.abs(a - b) / space.widths[j]
    return total


def _by_tree(
    rows: NDArray[np.float64], points: NDArray[np.float64], space: Space, slack: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    from scipy.spatial import cKDTree

    centre = rows.mean(axis=0)
    tree = cKDTree((rows - centre) / space.widths)
    scaled = (points - centre) / space.widths
    workers = -1 if len(points) >= THREADS_FROM else 1
    near, _ = tree.query(scaled, p=1, workers=workers)
    balls = tree.query_ball_point(scaled, near + TREE_SLACK * slack, p=1, workers=workers)
    out = []
    for i, ball in enumerate(balls):
        around = np.sort(np.asarray(ball, dtype=np.int64))
        gaps = distances(points[i : i + 1], rows[around], space)[0]
        out.append(around[gaps <= gaps.min() + slack[i]])
    return out


def _by_kernel(
    rows: NDArray[np.float64], points: NDArray[np.float64], space: Space, slack: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    from shoal.evaluation._kernels import nearest_candidates as scan

    # nominal columns first: most rows are out of reach after a few of them
    order = np.argsort(~space.nominal, kind="stable")
    scale = np.where(space.nominal, 1.0, 1.0 / space.widths)[order]
    rough_points, rough_rows = (np.ascontiguousarray(table[:, order] * scale) for table in (points, rows))
    points, rows = np.ascontiguousarray(points), np.ascontiguousarray(rows)
    names = int(space.nominal.sum())
    near, gaps = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    out = []
    for i in range(len(points)):
        seen, reach = scan(
            points[i],
            rows,
            space.nominal,
            space.widths,
            float(slack[i]),
            rough_points[i],
            rough_rows,
            names,
            near,
            gaps,
        )
        # a later row may have been nearer than the nearest so far
        out.append(near[:seen][gaps[:seen] <= reach])
    return out


def inference(
    targets: NDArray[np.float64],
    released: NDArray[np.float64],
    space: Space,
    secret: int,
    margin: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """The attacker knows everything about a person except one attribute, and infers that from the release.

    The attacker knows all other columns of the target exactly, looks up the nearest released row and takes
    its secret for that of the target. Among equally near rows each is taken with the same chance, so the
    credit of a target is the share of correct secrets among them. What holds for people in general (taxes
    follow income) is also learnt by this attack: only the success above that of a control group is due to
    the target being in the data.

    Args:
        secret: position of the unknown column.
        margin: how far off a correct guess of a number may be, one for all or one per target; nominal values must
            be equal.

    Reference:
        Giomi et al., A unified framework for quantifying privacy risk in synthetic data, PoPETs 2023.

    >>> space = Space(("age", "pay"), np.array([False, False]), np.array([50.0, 100.0]))
    >>> rows = np.array([[20.0, 0.0], [60.0, 90.0], [60.0, 50.0]])
    >>> inference(np.array([[25.0, 3.0], [61.0, 93.0], [62.0, 70.0]]), rows, space, 1, 5.0).tolist()
    [1.0, 0.5, 0.0]
    """
    known = [j for j in range(len(space.names)) if j != secret]
    rows = Rows.over(released[:, known], space.part(known))
    order = np.argsort(rows.labels, kind="stable")
    starts = np.concatenate(([0], np.cumsum(rows.sizes)))
    guesses = released[order, secret]
    allowed = np.broadcast_to(0.0 if space.nominal[secret] else margin, len(targets))
    credits = np.zeros(len(targets))
    for i, near in enumerate(rows.nearest(targets[:, known])):
        guess = np.concatenate([guesses[starts[group] : starts[group + 1]] for group in near])
        credits[i] = np.mean(np.abs(guess - targets[i, secret]) <= allowed[i])
    return credits


def inference_by_guessing(
    secrets: NDArray[np.float64], released: NDArray[np.float64], margin: float | NDArray[np.float64]
) -> float:
    """Chance that the secret of a random released row is right, mean over the targets.

    >>> inference_by_guessing(np.array([1.0, 5.0]), np.array([1.0, 2.0, 5.0, 9.0]), 1.0)
    0.375
    """
    values = np.sort(released)
    right = np.searchsorted(values, secrets + margin, "right") - np.searchsorted(values, secrets - margin)
    return float(right.mean() / values.size)


def linkability(
    targets: NDArray[np.float64],
    released: NDArray[np.float64],
    space: Space,
    first: Sequence[int],
    second: Sequence[int],
) -> NDArray[np.float64]:
    """The attacker joins two files about the same people that have no column in common.

    One source knows some columns of a person, the other source other columns: a clinic and a shop. The
    attacker looks up the released row nearest to each half of the person's record and claims that the halves
    belong together if both lookups end at the same row. Among equally near rows each is taken with the same
    chance, so the credit of a target is |A ∩ B| / (|A| |B|), A and B being the rows nearest to its halves:
    behind k identical rows it is 1/k.

    Args:
        targets: records whose halves are to be joined, all columns.
        released: the released table, all columns.
        first: positions of the columns the first source knows.
        second: those of the second source.

    Reference:
        Giomi et al., A unified framework for quantifying privacy risk in synthetic data, PoPETs 2023.

    >>> space = Space(("a", "b"), np.array([False, False]), np.array([9.0, 9.0]))
    >>> rows = np.array([[0.0, 0.0], [0.0, 0.0], [9.0, 9.0]])
    >>> linkability(np.array([[1.0, 2.0], [8.0, 8.0], [0.0, 9.0]]), rows, space, [0], [1]).tolist()
    [0.5, 1.0, 0.0]
    """
    halves = [Rows.over(released[:, list(part)], space.part(part)) for part in (first, second)]
    near = [rows.nearest(targets[:, list(part)]) for rows, part in zip(halves, (first, second), strict=True)]
    # released rows sorted by their group in the first half, to walk from a group to its rows
    order = np.argsort(halves[0].labels, kind="stable")
    starts = np.concatenate(([0], np.cumsum(halves[0].sizes)))
    is_near = np.zeros(len(halves[1].values), dtype=bool)
    credits = np.zeros(len(targets))
    for i, (one, other) in enumerate(zip(*near, strict=True)):
        rows = np.concatenate([order[starts[group] : starts[group + 1]] for group in one])
        is_near[other] = True
        shared = int(is_near[halves[1].labels[rows]].sum())
        is_near[other] = False
        credits[i] = shared / (rows.size * int(halves[1].sizes[other].sum()))
    return credits


def linkability_by_guessing(released_rows: int) -> float:
    """Chance that two random rows are the same one."""
    return 1.0 / released_rows


NO_CONTROL = Message.of("no-control-group")
RECORD_LINKAGE = "record linkage"
LINKABILITY = "linkability"
ONE_COLUMN = "singling out, one column"
SEVERAL_COLUMNS = "singling out, several columns"
_TWO_COLUMNS = Message.of("needs-two-columns")
_ATTACKING = "attacking the released table"


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class AttackReport:
    """Success of the attacks on released tables. Facts about the original data: not for publication.

    Attributes:
        risks: one per attack, with interval, baseline and, given a control group, the excess.
        columns: the columns attacked.
        rows: number of rows of the original, the released and the control table (None without one).
        skipped: attacks that were not possible, and why.
        tolerance: how far off a correct guess of a number may be, as a share of the column's range.
    """

    risks: tuple[AttackRisk, ...]
    columns: tuple[str, ...]
    rows: dict[str, int | None]
    skipped: dict[str, Message]
    tolerance: float

    @property
    def has_control(self) -> bool:
        return self.rows["control"] is not None

    def __getitem__(self, attack: str) -> AttackRisk:
        """The risk of an attack, by name."""
        return next(risk for risk in self.risks if risk.attack == attack)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values for JSON; undefined values are None."""
        out: dict[str, Any] = plain(
            {
                "columns": self.columns,
                "rows": self.rows,
                "confidence": CONFIDENCE,
                "tolerance": self.tolerance,
                "control": None if self.has_control else str(NO_CONTROL),
                "attacks": [risk.to_dict() for risk in self.risks],
                "skipped": {name: str(why) for name, why in self.skipped.items()},
            }
        )
        return out

    def table(self) -> Table:
        """One line per attack, for a terminal of 80 columns."""
        from rich.markup import escape

        out = _empty_table("Attacks (internal: facts about the original data), success in %")
        out.add_column("attack", overflow="fold")
        out.add_column("success (95%)", justify="right", no_wrap=True)
        out.add_column("guessing", justify="right", no_wrap=True)
        if self.has_control:
            out.add_column("control", justify="right", no_wrap=True)
            out.add_column("excess (95%)", justify="right", no_wrap=True)
        for risk in self.risks:
            cells = [escape(risk.attack), _with_interval(risk.success), _percent(risk.baseline.value)]
            if self.has_control:
                cells.append("-" if risk.control is None else _percent(risk.control.value))
                cells.append(
                    "-"
                    if risk.excess is None or risk.excess_interval is None
                    else _limits(risk.excess, risk.excess_interval)
                )
            out.add_row(*cells)
        lines = [f"{name}: {why}." for name, why in self.skipped.items()]
        lines.append(
            "Excess: success above that of the control group, 100 = all there was to gain."
            if self.has_control
            else f"{capital(str(NO_CONTROL))}."
        )
        out.caption = escape("\n".join(lines))
        return out

    def __rich__(self) -> Table:
        return self.table()


def _with_interval(rate: Rate) -> str:
    return _limits(rate.value, rate.interval)


def _limits(value: float, interval: Interval) -> str:
    return f"{_percent(value)} ({_percent(interval[0])} to {_percent(interval[1])})"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}"


@renamed_arguments(secret="sensitive")
def attack(
    original: Any,
    released: Any,
    control: Any = None,
    *,
    columns: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    attempts: int = 500,
    tolerance: float = 0.05,
    seed: int | None = None,
    progress: Progress | None = None,
) -> AttackReport:
    """`shoal.attack` without an entry in the journal of use; its arguments are documented there."""
    if attempts < 1:
        raise OptionError("attempts-least-1-needed-few-hundred", option="attempts", found=attempts)
    if not 0.0 <= tolerance <= 1.0:
        raise OptionError("tolerance-not-a-share", option="tolerance", found=tolerance)
    if seed is not None and seed < 0:
        raise OptionError("seed-negative", option="seed", found=seed)
    pair = make_pair(original, released)
    data = encode(pair.before, pair.published, None if control is None else read(control), columns)
    names = data.space.names
    secrets = names if sensitive is None else as_names(sensitive)
    for secret in secrets:
        if secret not in names:
            hint = closest(secret, names)
            raise OptionError(
                "secret-not-among-attacked-columns", option="sensitive", secret=secret, hint=hint
            )
        if sensitive is not None and len(names) == 1:
            raise OptionError("secret-only-attacked-column", option="sensitive", secret=secret)
    # two linkage attacks, two singling-out attacks, and the inference of each column
    tell, steps = progress or silent, 4 + len(names)
    tell(_ATTACKING, 0, steps)
    by_link, by_value, by_corner, *by_secret = np.random.default_rng(seed).spawn(3 + len(names))
    risks = [*_record_linkage(pair, names)]
    skipped: dict[str, Message] = {}
    tell(_ATTACKING, 1, steps)
    if len(names) > 1:
        risks.append(_linkability(data, attempts, by_link))
    else:
        skipped[LINKABILITY] = _TWO_COLUMNS
    distinct = singling.distinct_rows(data.released)
    for step, name, width, build, rng in (
        (2, ONE_COLUMN, 1, singling.rare_values, by_value),
        (3, SEVERAL_COLUMNS, min(singling.COLUMNS, len(names)), singling.corners, by_corner),
    ):
        tell(_ATTACKING, step, steps)
        if name == SEVERAL_COLUMNS and len(names) == 1:
            skipped[name] = _TWO_COLUMNS
            continue
        predicates = build(distinct, data.space, attempts, rng)
        if len(predicates) == 0:
            skipped[name] = Message.of("no-isolating-predicate")
            continue
        risks.append(_singling_out(data, name, predicates, width, attempts, rng))
    if len(names) == 1:
        skipped["inference"] = _TWO_COLUMNS
    else:
        for j, (name, rng) in enumerate(zip(names, by_secret, strict=True)):
            tell(_ATTACKING, 4 + j, steps)
            if name in secrets:
                risks.append(_inference(data, j, attempts, tolerance, rng))
    rows = {
        "original": len(data.original),
        "released": len(data.released),
        "control": None if data.control is None else len(data.control),
    }
    return AttackReport(tuple(risks), names, rows, skipped, tolerance)


def _record_linkage(pair: TablePair, names: Sequence[str]) -> list[AttackRisk]:
    """Nearest-record linkage, for a release that knows which record each row came from."""
    if not pair.matched:
        return []
    chosen = [name for name in names if pair.before.is_numeric(name) and pair.after.is_numeric(name)]
    if not chosen:
        return []
    before, after = (
        np.column_stack([table.numeric(name) for name in chosen]) for table in (pair.before, pair.after)
    )
    linked = record_linkage(
        before, after, np.array([pair.width(name, before[:, j]) for j, name in enumerate(chosen)])
    )
    low, high = linked.interval
    rate = Rate(linked.percent / 100.0, (low / 100.0, high / 100.0), linked.records)
    known = Message.of("knows-records-of-columns", columns=tuple(chosen))
    return [attack_risk(RECORD_LINKAGE, known, rate, computed(linked.chance / 100.0), None)]


def _linkability(data: Encoded, attempts: int, rng: np.random.Generator) -> AttackRisk:
    m = len(data.space.names)
    first, second = list(range((m + 1) // 2)), list(range((m + 1) // 2, m))

    def succeed(targets: NDArray[np.float64]) -> NDArray[np.float64]:
        return linkability(targets, data.released, data.space, first, second)

    success, control = _on_targets(succeed, data, attempts, rng)
    one, other = (tuple(data.space.names[j] for j in part) for part in (first, second))
    baseline = computed(linkability_by_guessing(len(data.released)))
    known = Message.of("knows-two-sources", one=one, other=other)
    return attack_risk(LINKABILITY, known, success, baseline, control)


def _inference(
    data: Encoded, secret: int, attempts: int, tolerance: float, rng: np.random.Generator
) -> AttackRisk:
    truth = data.original[:, secret]
    margin = 0.0 if data.space.nominal[secret] else tolerance * float(truth.max() - truth.min())

    def succeed(targets: NDArray[np.float64]) -> NDArray[np.float64]:
        return inference(targets, data.released, data.space, secret, margin)

    success, control = _on_targets(succeed, data, attempts, rng)
    baseline = computed(inference_by_guessing(truth, data.released[:, secret], margin))
    names = data.space.names
    others = tuple(name for name in names if name != names[secret])
    known = Message.of("knows-all-but-secret", columns=others)
    return attack_risk(f"inference of {names[secret]}", known, success, baseline, control, names[secret])


def _on_targets(
    succeed: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    data: Encoded,
    attempts: int,
    rng: np.random.Generator,
) -> tuple[Rate, Rate | None]:
    """Rates of an attack on people in the data and on people who are not."""

    def some(table: NDArray[np.float64]) -> NDArray[np.float64]:
        return table[rng.choice(len(table), min(attempts, len(table)), replace=False)]

    targets = some(data.original)
    if data.control is None:
        return sampled(succeed(targets)), None
    # both groups at once: they share the search structures
    credits = succeed(np.concatenate((targets, some(data.control))))
    return sampled(credits[: len(targets)]), sampled(credits[len(targets) :])


def _singling_out(
    data: Encoded, name: str, predicates: Predicates, width: int, attempts: int, rng: np.random.Generator
) -> AttackRisk:
    success = singling.isolation_rate(count_matches(data.original, predicates))
    guessed = singling.random_predicates(data.released, data.space, width, attempts, rng)
    baseline = singling.isolation_rate(count_matches(data.original, guessed))
    control = None
    if data.control is not None:
        counts = count_matches(data.control, predicates)
        control = singling.control_rate(counts, len(data.control), len(data.original))
    known = Message.of("one-column-at-a-time" if width == 1 else "columns-at-a-time", columns=width)
    return attack_risk(name, known, success, baseline, control)
