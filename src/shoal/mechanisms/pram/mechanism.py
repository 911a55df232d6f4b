"""pram: lay out the matrices of all columns, price them, and pass every record through them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import MISSING_VALUE, Attribute, Described, Lattice, day_text
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.mechanisms.method import Rebuilt, gap_terms
from shoal.mechanisms.pram.matrix import (
    DeclaredMatrix,
    for_diagonal,
    for_epsilon,
    in_order,
    largest_ratio,
    log_rounded_up,
    probability_text,
)
from shoal.mechanisms.pram.method import Pram
from shoal.noise import Source, through_matrix
from shoal.numbers import Floats, Integers, decimal_text
from shoal.privacy import Accountant, Plan, split_budget
from shoal.progress import Progress
from shoal.taxonomy import label
from shoal.text import Message

# a matrix has the square of this many entries
MOST_VALUES = 500
# positions in a band that stand for its values
_IN_BAND = 5
# combinations of values whose joint frequencies are corrected
MOST_CELLS = 200_000
_NOTHING = Fraction(0)
# a condition number that leaves no digit of a count
_SINGULAR = 1e9


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The values of a column that pass its matrix, in order; the last one is "missing" if that is a separate state.

    Attributes:
        names: their names.
        released: the number that is released for each of them, as `Rebuilt.values` holds it.
        starts: for an ordered column, the first lattice position of each value or band; None for names.
        places: for a column of names, the state of each place of its domain.
        banded: whether several lattice positions share a state.
    """

    names: tuple[str, ...]
    released: Floats
    starts: Integers | None = None
    places: Integers | None = None
    banded: bool = False

    def __len__(self) -> int:
        return len(self.names)

    def of(self, positions: Integers, absent: NDArray[np.bool_] | None) -> Integers:
        """The state of each record, from its lattice position and whether its value is missing."""
        if self.places is not None:
            return self.places[positions]
        assert self.starts is not None
        found = np.searchsorted(self.starts, positions, side="right") - 1
        return found if absent is None else np.where(absent, len(self) - 1, found)

    def spread(self, points: int) -> Integers:
        """Lattice positions for each state of a column of so many positions: several, evenly, where states are bands.

        -1 stands for a missing value.
        """
        if self.places is not None:
            first = [int(np.flatnonzero(self.places == state)[0]) for state in range(len(self))]
            gap = self.names[-1] == MISSING_VALUE
            return np.array([*first[: len(first) - gap], *[-1] * gap], dtype=np.int64)[:, None]
        assert self.starts is not None
        ends = np.append(self.starts[1:], points)
        parts = _IN_BAND if self.banded else 1
        inside = (2 * np.arange(parts) + 1) / (2 * parts)
        own = self.starts[:, None] + np.floor((ends - self.starts)[:, None] * inside).astype(np.int64)
        return np.vstack([own, np.full((len(self) - own.shape[0], parts), -1)])


def states_of(method: Pram, attribute: Attribute, lattice: Lattice) -> States:
    """The states of a column, from its declarations.

    Raises:
        OptionError: there are too many.
    """
    tree = attribute.tree
    if tree is not None:
        own = [name for name in map(label, attribute.values) if name in tree.values]
        names = tuple(dict.fromkeys((*own, *(name for name in tree.values if name != MISSING_VALUE))))
        names += (MISSING_VALUE,) * (MISSING_VALUE in tree.values and MISSING_VALUE not in names)
        _refuse_many(attribute, len(names))
        state = {name: number for number, name in enumerate(names)}
        places = np.array([state[name] for name in tree.values], dtype=np.int64)
        released = np.array([tree.code(name) for name in names], dtype=np.float64)
        return States(names, released, places=places)
    missing = (MISSING_VALUE,) if attribute.flagged else ()
    if attribute.kind_facts.listed:
        _refuse_many(attribute, len(attribute.ordered))
        starts = np.arange(len(attribute.ordered), dtype=np.int64)
        return States((*attribute.ordered, *missing), _with_gap(starts.astype(float), missing), starts)
    # a step may lead beyond the end of the domain, where no value is
    points = int(lattice.width / lattice.step) + 1
    number = min(points, method.bands)
    _refuse_many(attribute, number)
    edges = [place * points // number for place in range(number + 1)]
    ends = [(low, high - 1) for low, high in pairwise(edges)]
    middles = np.array([(low + high) // 2 for low, high in ends], dtype=np.int64)
    texts = [" to ".join(dict.fromkeys(_text(attribute, lattice, place) for place in band)) for band in ends]
    released = _with_gap(lattice.values(middles), missing)
    starts = np.array(edges[:-1], dtype=np.int64)
    return States((*texts, *missing), released, starts, banded=number < points)


def _with_gap(values: Floats, missing: Sequence[str]) -> Floats:
    return np.append(values, np.full(len(missing), np.nan))


def _text(attribute: Attribute, lattice: Lattice, place: int) -> str:
    value = lattice.lo + lattice.step * place
    if attribute.kind_facts.days:
        return day_text(value)
    exact = decimal_text(value)
    return exact if len(exact) <= 12 else f"{float(value):.6g}"


def _refuse_many(attribute: Attribute, number: int) -> None:
    if number > MOST_VALUES:
        raise OptionError("column-too-many-values", column=attribute.name, values=number, most=MOST_VALUES)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """How one column passes its matrix.

    Attributes:
        weights: the matrix; one for each state of the stratum where they differ.
        price: the ε that it costs a record, 0 if the release says nothing about the column; None if infinite.
        alike: the probabilities of staying and of becoming each other value, if these are the same for all values.
    """

    states: States
    weights: tuple[Integers, ...]
    price: Fraction | None
    alike: tuple[Fraction, Fraction] | None = None

    def probabilities(self, stratum: int = 0) -> Floats:
        """The matrix as numbers, one row for each original value."""
        weights = self.weights[stratum if len(self.weights) > 1 else 0]
        found: Floats = weights / weights.sum(axis=1, keepdims=True)
        return found


def lay_out(method: Pram, described: Described) -> dict[str, Passage]:
    """The matrices of all columns, from public facts. Without `invariant`.

    Raises:
        OptionError: a declared matrix does not fit its column, or ε does not cover the matrices.
    """
    states = {one.name: states_of(method, one, described.lattices[one.name]) for one in described.attributes}
    kept = dict(method.keep) if isinstance(method.keep, tuple) else {}
    matrices = dict(method.matrix or ())
    for option, given in (("keep", kept), ("matrix", matrices)):
        for name in given:
            if name not in states:
                raise OptionError(
                    "setting-names-column-not-released",
                    column=name,
                    option=option,
                    hint=closest(name, states),
                )
    for name in kept:
        if name in matrices:
            raise OptionError("keep-and-matrix-of-column", column=name, option="keep")
    _check_stratum(method, states, matrices)
    found: dict[str, Passage] = {}
    rest = []
    for name, own in states.items():
        keep = kept.get(name, None if isinstance(method.keep, tuple) else method.keep)
        if name in matrices:
            found[name] = _declared(method, name, own, matrices[name], states)
        elif keep is not None:
            found[name] = _made(own, for_diagonal(len(own), keep), None)
        else:
            rest.append(name)
    found |= _bought(method, found, {name: states[name] for name in rest})
    return {name: found[name] for name in states}


def _check_stratum(method: Pram, states: Mapping[str, States], matrices: Mapping[str, Any]) -> None:
    name = method.stratum
    if name is None:
        return
    if name not in states:
        raise OptionError(
            "setting-names-column-not-released", column=name, option="stratum", hint=closest(name, states)
        )
    if isinstance(matrices.get(name), tuple):
        raise OptionError("stratum-has-one-matrix", column=name, option="matrix")


def _declared(method: Pram, name: str, own: States, given: Any, states: Mapping[str, States]) -> Passage:
    weights: tuple[Integers, ...]
    if isinstance(given, DeclaredMatrix):
        weights = (in_order(name, given, own.names),)
    else:
        assert method.stratum is not None
        by_stratum, wanted = dict(given), states[method.stratum].names
        for value in wanted:
            if value not in by_stratum:
                raise OptionError("matrix-without-stratum-value", column=name, option="matrix", found=value)
        for value in by_stratum:
            if value not in wanted:
                raise OptionError(
                    "matrix-names-no-stratum",
                    column=name,
                    option="matrix",
                    found=value,
                    allowed=wanted,
                    hint=closest(value, wanted),
                )
        weights = tuple(in_order(name, by_stratum[value], own.names) for value in wanted)
    ratio = largest_ratio(weights)
    return Passage(own, weights, None if ratio is None else log_rounded_up(ratio))


def _made(own: States, weights: Integers, price: Fraction | None) -> Passage:
    """The passage of a matrix with equal odds; its price is computed where it is not the share it was made for."""
    total = int(weights[0].sum())
    other = int(weights[0][-1]) if len(own) > 1 else 0
    alike = Fraction(int(weights[0][0]), total), Fraction(other, total)
    if price is None:
        ratio = largest_ratio([weights])
        price = None if ratio is None else log_rounded_up(ratio)
    return Passage(own, (weights,), price, alike)


def _bought(method: Pram, others: Mapping[str, Passage], rest: Mapping[str, States]) -> dict[str, Passage]:
    """The columns without a declared matrix or diagonal, which share what is left of ε.

    Raises:
        OptionError: nothing is left, or the other matrices cost more than ε.
    """
    cost = sum((one.price or _NOTHING for one in others.values()), _NOTHING)
    if rest and method.epsilon is None:
        raise OptionError("column-without-matrix", column=next(iter(rest)), option="epsilon")
    if method.epsilon is None:
        return {}
    if cost > method.epsilon or (rest and cost == method.epsilon):
        raise OptionError(
            "matrices-cost-more-than-epsilon",
            option="epsilon",
            cost=decimal_text(cost),
            epsilon=decimal_text(method.epsilon),
        )
    # a column of one value tells nothing, and needs no share
    telling = [name for name, own in rest.items() if len(own) > 1]
    found = {
        name: _made(own, for_epsilon(1, method.epsilon), _NOTHING)
        for name, own in rest.items()
        if len(own) == 1
    }
    if not telling:
        return found
    split = method.split
    if not isinstance(split, str):
        split = {name: weight for name, weight in split if name not in found}
    widths = [Fraction(len(rest[name])) for name in telling]
    shares = split_budget(method.epsilon - cost, telling, widths, split)
    for name, share in zip(telling, shares, strict=True):
        found[name] = _made(rest[name], for_epsilon(len(rest[name]), share), share)
    return found


def settle(method: Pram, described: Described) -> tuple[Pram, tuple[Message, ...]]:
    """ε as the cost of the matrices, where no matrix was made for what is left of it."""
    if method.invariant or method.zeros:
        return method, ()
    passages = lay_out(method, described)
    known = {*dict(method.matrix or ()), *(dict(method.keep) if isinstance(method.keep, tuple) else ())}
    made = method.epsilon is not None and (method.keep is None or isinstance(method.keep, tuple))
    if made and any(name not in known for name in passages):
        return method, ()
    cost = sum((one.price or _NOTHING for one in passages.values()), _NOTHING)
    if not cost:
        raise OptionError("matrices-tell-nothing", option="keep" if method.keep is not None else "matrix")
    return replace(method, epsilon=cost), ()


def purpose(column: str) -> str:
    """What the ε of a column's matrix is spent on."""
    return f"values of {column}"


def plan(method: Pram, described: Described) -> Plan:
    """The price of each column's matrix, and the matrices as conditions of the statement."""
    if method.invariant:
        return Plan({}, {}, tuple(_invariant_terms(method, described)))
    passages = lay_out(method, described)
    conditions = tuple(_terms(method, described, passages))
    if method.zeros:
        return Plan({}, {}, conditions)
    prices = {name: one.price or _NOTHING for name, one in passages.items()}
    spending = {purpose(name): price for name, price in prices.items() if price}
    return Plan(spending, prices, conditions)


def _terms(method: Pram, described: Described, passages: Mapping[str, Passage]) -> Iterator[Message]:
    for name, one in passages.items():
        if one.alike is not None and len(one.states) > 1:
            stays, moves = map(probability_text, one.alike)
            facts = {"column": name, "values": len(one.states), "stays": stays, "moves": moves}
            yield Message.of("value-stays-or-moves", **facts)
    declared = tuple(name for name, one in passages.items() if one.alike is None)
    if declared:
        yield Message.of("matrices-declared", columns=declared)
    if any(len(one.weights) > 1 for one in passages.values()):
        yield Message.of("matrices-by-stratum", column=method.stratum)
    yield from _banded(passages)
    yield Message("frequencies-need-correction")
    yield from gap_terms(described)


def _banded(passages: Mapping[str, Passage]) -> Iterator[Message]:
    for name, one in passages.items():
        if one.states.banded:
            assert one.states.starts is not None
            yield Message.of("column-in-bands", column=name, bands=one.states.starts.size)


def _invariant_terms(method: Pram, described: Described) -> Iterator[Message]:
    yield Message("matrix-keeps-frequencies")
    for attribute in described.attributes:
        states = states_of(method, attribute, described.lattices[attribute.name])
        yield from _banded({attribute.name: Passage(states, (), None)})
    yield from gap_terms(described)


def check(method: Pram, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what a run would raise; `lay_out` raises all of it for any records."""
    kept = dict(method.keep) if isinstance(method.keep, tuple) else {}
    if not method.invariant or not isinstance(method.keep, tuple):
        return
    for name in described.columns:
        if name not in kept:
            raise OptionError("column-without-matrix", column=name, option="keep")


def _states(method: Pram, described: Described, name: str, states: States) -> tuple[Integers, int]:
    positions, clipped = described.positions(name)
    absent = described.absent(name) if name in described.flagged else None
    return states.of(positions, absent), clipped


def run(
    method: Pram,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Pass every record through the matrix of each column.

    Guarantee:
        ε-DP of the original records, the sum of the matrices' prices: docs/proofs/noise.md#pram.

    Cost:
        A sort of the records and a search in a row of a matrix for each value.
    """
    passages = {} if method.invariant else lay_out(method, described)
    values: dict[str, Floats] = {}
    clipped: dict[str, int] = {}
    by_stratum = None
    if method.stratum is not None:
        # matrices are selected by the original value, whatever is released of it
        by_stratum, _ = _states(method, described, method.stratum, passages[method.stratum].states)
    for number, attribute in enumerate(described.attributes):
        name = attribute.name
        if method.invariant:
            states = states_of(method, attribute, described.lattices[name])
            own, clipped[name] = _states(method, described, name, states)
            keep = dict(method.keep)[name] if isinstance(method.keep, tuple) else method.keep
            drawn = invariant(own, len(states), keep, account.free("values changed by an invariant matrix"))
        else:
            passage = passages[name]
            states = passage.states
            own, clipped[name] = _states(method, described, name, states)
            if passage.price and not method.zeros:
                _, source = account.spend(purpose(name), passage.price, over="records").take()
            else:
                source = account.free("values changed by a matrix without a price")
            drawn = passed(own, passage, by_stratum, source)
        values[name] = states.released[drawn]
        progress("drawing values", number + 1, len(described.columns))
    return Rebuilt(values, [], aligned=True, internal={"values_clipped": clipped, "clusters": []})


def passed(own: Integers, passage: Passage, by_stratum: Integers | None, source: Source) -> Integers:
    """The states of one column after its matrix, which the stratum of a record selects where there are several."""
    size = len(passage.states)
    if size == 1:
        return own
    if len(passage.weights) == 1:
        return through_matrix(own, passage.weights[0], source)
    assert by_stratum is not None
    return through_matrix(by_stratum * size + own, np.concatenate(passage.weights), source)


def invariant(own: Integers, size: int, keep: Fraction, source: Source) -> Integers:
    """States that stay, or become that of a random record: frequencies are preserved in expectation.

    The probability of staying is such that the rarest value that occurs keeps its state with probability `keep`, or
    more if a random record has it more often.

    >>> from shoal.noise import Seeded
    >>> invariant(np.array([0, 0, 1, 1]), 2, Fraction(1), Seeded(1)).tolist()
    [0, 0, 1, 1]
    """
    n = own.size
    if not n:
        return own
    counts = np.bincount(own, minlength=size)
    rarest = Fraction(int(counts[counts > 0].min()), n)
    stay = max((keep - rarest) / (1 - rarest), _NOTHING) if rarest < 1 else Fraction(1)
    stays = source.bernoulli(stay.numerator, stay.denominator, n)
    return np.where(stays, own, own[source.below(n, n)])


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Unmixed:
    """Joint counts of the original values of some columns, estimated from the released ones.

    With original counts t and the joint matrix P of the columns, released counts have expectation Pᵀ·t whatever t is,
    so that (Pᵀ)⁻¹·released is unbiased. Columns pass independently given the stratum: P is a product of matrices, one
    for each axis, and is never built.

    Attributes:
        names: the columns, an axis of the counts each; that of the stratum first if it selects among matrices.
        passages: of these columns.
        by_stratum: whether the first column selects among the matrices of the others.
        released: the released counts.
        counts: estimated original counts, which can be negative.
    """

    names: tuple[str, ...]
    passages: tuple[Passage, ...]
    by_stratum: bool
    released: Floats
    counts: Floats

    def solved(self, values: Floats) -> Floats:
        """g with P·g = values: the number that a released row contributes to an unbiased sum of `values` over records.

        The first axes of `values` are those of the counts.
        """
        return _solved(self.passages, self.by_stratum, values, transposed=False)


def _solved(passages: Sequence[Passage], by_stratum: bool, values: Floats, *, transposed: bool) -> Floats:
    """P⁻¹ or (Pᵀ)⁻¹ applied to the first axes of an array."""

    def along(axis: int, matrix: Floats, own: Floats) -> Floats:
        moved = np.moveaxis(own, axis, 0)
        found = np.linalg.solve(matrix.T if transposed else matrix, moved.reshape(moved.shape[0], -1))
        back: Floats = np.moveaxis(found.astype(np.float64).reshape(moved.shape), 0, axis)
        return back

    def others(own: Floats) -> Floats:
        if not by_stratum:
            return own
        found = np.empty_like(own)
        for stratum in range(own.shape[0]):
            part = own[stratum]
            for axis, passage in enumerate(passages[1:]):
                part = along(axis, passage.probabilities(stratum), part)
            found[stratum] = part
        return found

    alone = passages[:1] if by_stratum else passages
    # the matrix of the stratum is the outer one: the last of P and the first of its transpose
    found = values if transposed else others(values)
    for axis, passage in enumerate(alone):
        found = along(axis, passage.probabilities(), found)
    return others(found) if transposed else found


def unmix(method: Pram, described: Described, columns: Sequence[str]) -> Unmixed:
    """The joint counts of some columns before their matrices.

    Args:
        described: the released table.

    Raises:
        OptionError: a matrix has no inverse, or there is none because it was fitted to the records; there are too many
            combinations of values.
    """
    for column in columns:
        if method.invariant:
            raise OptionError("invariant-needs-no-correction", column=column)
        if column not in described.columns:
            raise OptionError(
                "corrected-column-not-released", column=column, hint=closest(column, described.columns)
            )
    every = lay_out(method, described)
    by_stratum = any(len(every[column].weights) > 1 for column in columns)
    first = (str(method.stratum),) if by_stratum else ()
    names = tuple(dict.fromkeys((*first, *columns)))
    passages = tuple(every[name] for name in names)
    for name, passage in zip(names, passages, strict=True):
        for number in range(len(passage.weights)):
            if np.linalg.cond(passage.probabilities(number)) > _SINGULAR:
                raise OptionError("matrix-without-inverse", column=name)
    sizes = tuple(len(passage.states) for passage in passages)
    if math.prod(sizes) > MOST_CELLS:
        raise OptionError("too-many-cells-to-correct", columns=names, cells=math.prod(sizes), most=MOST_CELLS)
    each = [
        _states(method, described, name, passage.states)[0]
        for name, passage in zip(names, passages, strict=True)
    ]
    cells = np.ravel_multi_index(tuple(each), sizes)
    released = np.bincount(cells, minlength=math.prod(sizes)).astype(np.float64).reshape(sizes)
    counts = _solved(passages, by_stratum, released, transposed=True)
    return Unmixed(names, passages, by_stratum, released, counts)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class CorrectedFrequency:
    """Estimated counts of the original values of one column, from the released ones.

    Attributes:
        names: the values.
        released: how many released rows have each value.
        counts: unbiased estimates of how many records have it; they can be negative.
        errors: their standard errors, which cover the random changes only.
    """

    names: tuple[str, ...]
    released: Integers
    counts: Floats
    errors: Floats


def estimate(method: Pram, described: Described, column: str) -> CorrectedFrequency:
    """The counts of a column before its matrix, by the inverse matrix.

    A count is a sum over records of φ, 1 for one value. It is estimated by the sum of g over released rows, P·g = φ,
    which has the variance Σ t·(P·g² - φ²) for original counts t; Σ released·g² - Σ counts·φ² estimates it without bias.

    Args:
        described: the released table.

    Raises:
        OptionError: the matrix has no inverse, or there is none because it was fitted to the records.
    """
    made = unmix(method, described, (column,))
    states = made.passages[-1].states
    size = len(states)
    indicators = np.broadcast_to(np.eye(size), (*made.counts.shape, size))
    shares = made.solved(indicators)
    spread = np.tensordot(made.released, shares**2, made.released.ndim)
    counts = made.counts.reshape(-1, size).sum(axis=0)
    released = made.released.reshape(-1, size).sum(axis=0).astype(np.int64)
    return CorrectedFrequency(states.names, released, counts, np.sqrt(np.maximum(spread - counts, 0.0)))
