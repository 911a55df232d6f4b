"""Private choices: of a setting by its loss on the original records, and of a bound on the rows of each unit.

Only one score of settings is available, because only for this one is a sensitivity bound proved: the squared error of
groups at fixed ranks, of each column by itself, plus the noise error, which follows from public facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from shoal.columns import read_declared, texts, unit_words
from shoal.errors import ClaimError, InputError, OptionError, OutputError, closest
from shoal.io import Table, dumps
from shoal.mechanisms import DEFAULT_METHOD, Choice, RankingDP, Tuned, known_parameter, method_class
from shoal.noise import NOISES, exponential_choice, parse_epsilon
from shoal.noise import source as noise_source
from shoal.numbers import Integers, exact
from shoal.partition import check_k, group_sizes
from shoal.privacy import Accountant, Adjacency, Model, Spend, row_budget
from shoal.release import Preparation
from shoal.text import Message
from shoal.tuning.expected import anywhere_square
from shoal.tuning.grid import Setting, TuningQuestion, check_utility, compared, followed, make_grid, recipe_of
from shoal.tuning.result import Tuning

if TYPE_CHECKING:
    from shoal.columns import Schema


METHOD = RankingDP.name
# Penalties count units of 1/UNITS of a squared domain width: finer than the budget can resolve.
UNITS = 64
# Values are rounded to this many bits, so that sums of squares fit into 64.
_BITS = 16
# options with a list or an argument of their own
_COMPARED = ("k", "split", "noise", "delta", "epsilon")
# what is reserved and spent
_CHOICE = "choice of settings"


def choose_privately(candidates: Mapping[Setting, Preparation], spend: Spend) -> Setting:
    """Draw one of the candidates by the exponential mechanism, favouring the smallest expected error.

    Args:
        candidates: releases of the same columns by `ranking-dp` under claim `dp`, prepared from public facts.
        spend: the charge for the choice.

    Raises:
        ClaimError: the release itself does not claim `dp`, so the budgets cannot be added.

    Guarantee:
        ε-DP of the original records under replace-one for the ε that is spent, the number of records public: one
        replaced record changes every penalty by at most `UNITS`. Proof: docs/proofs/queries.md#tuning.

    Cost:
        One sort per column, one pass per candidate and column.

    Reference:
        McSherry and Talwar, "Mechanism Design via Differential Privacy"; PSD-2014 for the groups.
    """
    check_candidates(candidates)
    penalties = np.array(list(rank_fixed_penalties(list(candidates.values()))), dtype=np.int64)
    epsilon, source = spend.take()
    rate = epsilon / (2 * UNITS)
    place = exponential_choice(np.ones(penalties.size, dtype=np.int64), penalties, rate, source)
    return list(candidates)[place]


def check_candidates(candidates: Mapping[Setting, Preparation]) -> None:
    """Check from public facts alone that the proof covers a choice among these candidates.

    Raises:
        ClaimError: the proof does not cover it.
    """
    for setting, prepared in candidates.items():
        _check(setting, prepared)


def rank_fixed_penalties(candidates: Sequence[Preparation]) -> list[int]:
    """For every candidate the mean over columns of expected error / width², in `UNITS`, rounded down.

    The sensitivity of the mean is at most 1 under replace-one. Rounding down does not increase it: if two numbers
    differ by at most an integer, so do their integer parts.

    Guarantee:
        Exact on integers: no rounding before the last step depends on a record.
    """
    described = candidates[0].described
    totals = [Fraction(0)] * len(candidates)
    for name in described.columns:
        positions, _ = described.positions(name)
        values, width = coarse(positions, described.lattices[name].steps)
        ordered = np.sort(values)
        for place, prepared in enumerate(candidates):
            method = prepared.method
            assert isinstance(method, RankingDP)
            sizes = group_sizes(described.n, method.size, method.remainder)
            noise = _public_noise(sizes, float(prepared.plan.shares[name]), clip=method.clip)
            totals[place] += rank_fixed_sse(ordered, sizes) / width**2 + Fraction(noise)
    return [math.floor(UNITS * total / len(described.columns)) for total in totals]


def rank_fixed_sse(ordered: NDArray[np.int64], sizes: NDArray[np.int64]) -> Fraction:
    """Squared error around the means of consecutive groups of sorted integers with the given sizes.

    Guarantee:
        For values from 0 to W, replacing one changes it by at most W². Proof: docs/proofs/queries.md#tuning.

    >>> rank_fixed_sse(np.array([0, 2, 5, 6, 7]), np.array([2, 3]))
    Fraction(4, 1)
    """
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    squares = int(np.sum(ordered * ordered))
    sums = np.add.reduceat(ordered, starts)
    total = Fraction(squares)
    for size in np.unique(sizes).tolist():
        # a group's sum squared can need more than 64 bits
        total -= Fraction(sum(part * part for part in sums[sizes == size].tolist()), size)
    return total


def coarse(positions: NDArray[np.int64], steps: int) -> tuple[NDArray[np.int64], int]:
    """Positions in 16 bits, in the same order, and the largest possible one.

    >>> coarse(np.array([0, 3, 7]), 7), coarse(np.array([0, 2**20]), 2**20)[1]
    ((array([0, 3, 7]), 7), 32768)
    """
    shift = max(0, steps.bit_length() - _BITS)
    return positions >> shift, steps >> shift


def _public_noise(sizes: NDArray[np.int64], share: float, *, clip: bool) -> float:
    """Squared error expected from the noise, in squared widths, from public facts alone."""
    scale = 1.0 / (sizes.astype(np.float64) * share)
    square = anywhere_square(scale) if clip else 2.0 * scale * scale
    return float(np.sum(sizes * square))


def _check(setting: Setting, prepared: Preparation) -> None:
    method, statement = prepared.method, prepared.statement
    if statement.data_dependent:
        raise ClaimError("private-needs-every-other-choice-made", data_dependent=statement.data_dependent[0])
    if not isinstance(method, RankingDP):
        raise ClaimError("private-chooses-only", method=METHOD, method_2=method.name)
    if statement.model != "dp":
        raise ClaimError("private-adds-what-choice-costs-claim", setting=setting, model=statement.model)
    if not NOISES[method.noise].closed_form:
        raise OptionError("private-knows-error-laplace-noise-only", noise=method.noise)


def check_comparison(
    seeds: int,
    fast: bool,
    target: str | None,
    utility: str | None,
    max_risk: float | None,
    claim: str | None,
    workers: int | None,
    table: Table,
) -> None:
    for name, number in (("seeds", seeds), ("workers", 1 if workers is None else workers)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise OptionError("checks-option-whole-number-least-1", option=name, found=number)
    check_utility(utility, target)
    if target is not None:
        from shoal.evaluation import check_target

        check_target(target, table)
    if claim is not None and claim not in get_args(Model):
        raise OptionError(
            "unknown-claim",
            option="claim",
            claim=claim,
            allowed=tuple(get_args(Model)),
            hint=closest(claim, get_args(Model)),
        )
    if max_risk is not None and not 0 <= max_risk <= 100:
        raise OptionError("max-risk-percentage-from-0-100", option="max_risk", found=max_risk)
    for option, given in (("max_risk", max_risk), ("target", target)):
        if fast and given is not None:
            raise OptionError("option-takes-runs", option=option)
    if fast and utility not in (None, "normalised_sse", "scaled_sse"):
        raise OptionError("utility-no-closed-form", utility=utility)


def check_private(
    methods: Sequence[str] | None,
    utility: str | None,
    target: str | None,
    max_risk: float | None,
    noises: Sequence[str] | None,
    deltas: Sequence[Any] | None = None,
) -> None:
    if methods is not None and list(methods) != [METHOD]:
        raise ClaimError("private-chooses-only-not", method=METHOD, methods=tuple(methods))
    asked = {"utility": utility, "target": target, "max_risk": max_risk, "noises": noises, "deltas": deltas}
    for option, given in asked.items():
        if given is not None:
            raise ClaimError("private-scores-squared-error-groups-fixed", option=option)


def private_epsilon(private: Any) -> Fraction:
    """The budget of a private choice.

    Raises:
        OptionError: it is not a valid budget; the message names this option and not that of the release.
    """
    try:
        return parse_epsilon(private)
    except OptionError as error:
        raise OptionError("private-budget-own", reason=error) from None


def check_options(options: Mapping[str, Any], grid: Sequence[Setting]) -> None:
    """Refuse shared settings that no compared method has, and shared settings that are themselves compared."""
    taken = {name for setting in grid for name in method_class(setting.method).parameters()}
    for name in options:
        known_parameter(name)
        if name in _COMPARED:
            plural = name if name == "epsilon" else f"{name}s"
            raise OptionError("is-compared", name=name, plural=plural)
        if name not in taken:
            raise OptionError("no-compared-method-option", name=name)


@dataclass(frozen=True, slots=True)
class ChoiceAccount:
    """Where a private choice is charged: a ledger and a data set in it."""

    address: str | Path
    dataset: str


def account(ledger: str | Path | None, dataset: str | None, private: Any) -> ChoiceAccount | None:
    """The account of a tuning, None without a ledger.

    Raises:
        OptionError: the data set is not named, or there is no private choice to charge.
    """
    from shoal.ledger import named_dataset

    name = named_dataset(ledger, dataset)
    if ledger is None or name is None:
        return None
    if private is None:
        raise OptionError("ledger-charges-private-choice", option="private")
    return ChoiceAccount(ledger, name)


def tune_privately(
    question: TuningQuestion,
    ks: Sequence[int] | None,
    splits: Sequence[str] | None,
    epsilon: Fraction,
    folder: Path | None,
    charged: ChoiceAccount | None = None,
) -> Tuning:
    """Choose under a budget. Nothing else about the records is computed, so nothing else is disclosed."""
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError("not-new-folder", folder=folder)
    grid = make_grid([METHOD], ks, splits, None, question.table.n)
    check_options(question.options, grid)
    candidates = {setting: question.prepared(setting) for setting in grid}
    for setting, prepared in candidates.items():
        check_k(setting.k or 1, prepared.described.n)
    chosen_among = compared(grid)
    if not chosen_among:
        raise OptionError("there-setting-only", grid=grid[0])
    check_candidates(candidates)
    described = candidates[grid[0]].described
    for name in described.columns:
        described.positions(name)  # report errors in the records now: nothing may fail after the charge
    best = _paid(candidates, chosen_among, epsilon, charged)
    tuned = Tuned(chosen_among, epsilon, _bought(grid, best, chosen_among))
    taken = followed(question, best, tuned)
    found = Tuning(
        epsilon=parse_epsilon(question.epsilon),
        utility=None,
        rows=(),
        refused={},
        best=best,
        reasons=(Message.of("drawn-privately", best=best, settings=len(grid), epsilon=float(epsilon)),),
        tuned=tuned,
        seeds=0,
        columns=described.columns,
        n=described.n,
        recipe=recipe_of(taken),
        verdict=taken.foreseen.verdict,
    )
    if folder is not None:
        found.save(folder)
    return found


def _bought(grid: Sequence[Setting], best: Setting, chosen_among: Sequence[str]) -> tuple[Choice, ...]:
    """What the charge for a private choice covers: each option's value, and the values it was drawn from."""
    return tuple(Choice(name, _value(best, name), _values(grid, name)) for name in chosen_among)


def _values(grid: Iterable[Setting], name: str) -> tuple[int | str, ...]:
    return tuple(dict.fromkeys(_value(setting, name) for setting in grid))


def _value(setting: Setting, name: str) -> int | str:
    found = getattr(setting, name)
    return found if isinstance(found, str) else int(found)


def _paid(
    candidates: Mapping[Setting, Preparation],
    chosen_among: Sequence[str],
    epsilon: Fraction,
    charged: ChoiceAccount | None,
) -> Setting:
    """Make the choice; with a ledger, charge it first and record the result there."""
    prepared = next(iter(candidates.values()))
    if charged is None:
        return choose_privately(candidates, _spend(prepared, epsilon))
    from shoal.ledger import charge_choice, keep_choice, open_ledger

    among = {name: _values(candidates, name) for name in chosen_among}
    ledger = open_ledger(charged.address)
    try:
        number = charge_choice(
            ledger,
            charged.dataset,
            among,
            epsilon,
            prepared.method.adjacency,
            prepared.statement.unit,
        )
        best = choose_privately(candidates, _spend(prepared, epsilon))
        keep_choice(ledger, charged.dataset, number, {name: _value(best, name) for name in chosen_among})
    finally:
        ledger.close()
    return best


def _spend(prepared: Preparation, epsilon: Fraction) -> Spend:
    """Spend the whole budget of a choice, stated per unit, on one draw."""
    of_row = row_budget(epsilon, prepared.described.provenance.rows_per_unit)
    account = Accountant.of(
        {_CHOICE: of_row}, of_row, noise_source(None), adjacency=prepared.method.adjacency
    )
    return account.spend(_CHOICE, of_row)


SETTING = "bound"
_PURPOSE = "choice of bound"
_MOST_ROWS = 10_000
_FINEST = 10_000
# probability with which a choice may miss its share by more than `units_off` says
_MISSED = 0.05
_RECIPE = "# A bound on the rows of each unit that was chosen privately, with its cost.\n"


@dataclass(frozen=True, slots=True)
class BoundChoice:
    """A bound chosen privately; it may be published.

    Attributes:
        rows: the chosen number of rows.
        tuned: the choice with its cost, for `shoal.protect`.
    """

    rows: int
    tuned: Tuned

    @property
    def bound(self) -> dict[str, int]:
        """The bound, for `shoal.protect` and schemas."""
        return {"rows": self.rows}

    def recipe_text(self, schema: Schema) -> str:
        """The beginning of a recipe: the schema with this bound, and the choice with its cost.

        `shoal protect --config` takes it with an ε, and a method other than pairs-dp if one is given.
        """
        document = {
            "method": DEFAULT_METHOD,
            "tuned": self.tuned.text,
            "tuned_epsilon": self.tuned.epsilon,
            "tuned_choice": [choice.to_dict() for choice in self.tuned.choice],
        }
        return _RECIPE + dumps({**document, **schema.with_bound(self.bound).to_dict()})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "rows": self.rows,
            "epsilon": float(self.tuned.epsilon or 0),
            "tuned_choice": [choice.to_dict() for choice in self.tuned.choice],
        }


def units_off(epsilon: Any, most: int, share: Any = Fraction(9, 10)) -> float:
    """By how many units a choice may miss its share, with a probability of 95%: from public quantities alone.

    A penalty above t occurs with a probability of at most `most` · exp(-ε t / (2 max(q, 1 - q))), because some
    bound has the penalty 0.

    >>> round(units_off("0.1", 30), 1)
    115.1
    """
    budget, wanted = _checked(epsilon, most, share)
    return 2 * float(max(wanted, 1 - wanted)) / float(budget) * math.log(most / _MISSED)


def choose_bound(
    data: Any,
    schema: Schema,
    epsilon: Any,
    *,
    most: int,
    share: Any = Fraction(9, 10),
    ledger: str | Path | None = None,
    dataset: str | None = None,
) -> BoundChoice:
    """Choose how many rows of a unit may take part, so that about a share of the units lose none.

    Args:
        data: a path or a table.
        schema: its declarations, with a unit column.
        epsilon: the budget of the choice, per unit; a release with the chosen bound adds it to its own ε.
        most: the largest number of rows to choose; a public fact, fixed without looking at the records.
        share: of the units, whose rows should all take part.
        ledger: charge the choice to this ledger before it is made.
        dataset: the name of the data set that the ledger charges.

    Guarantee:
        ε-DP of the original records under add-remove of a whole unit. Proof: docs/proofs/units.md, section 4.

    Raises:
        OptionError: an option cannot be used; nothing was charged.
        InputError: a row has no unit; nothing was charged.

    >>> import pyarrow as pa
    >>> from shoal import Schema
    >>> schema = Schema.from_dict({"attribute": [{"name": "who", "role": "unit", "type": "integer"}]})
    >>> stays = pa.table({"who": [i // 2 for i in range(400)]})
    >>> choose_bound(stays, schema, 5, most=30).bound
    {'rows': 2}
    """
    unit = schema.stepped.unit
    if unit is None:
        raise OptionError("bound-needs-unit", option="bound")
    budget, wanted = _checked(epsilon, most, share)
    charged = account(ledger, dataset, budget)
    names, codes = texts(read_declared(data, schema, empty=True), unit.name)
    if (codes < 0).any():
        raise InputError("unit-column-missing-values", column=unit.name)
    counts = np.bincount(codes, minlength=len(names))
    candidates = tuple(range(1, most + 1))
    accountant = Accountant.of(
        {_PURPOSE: budget}, budget, noise_source(None), adjacency=Adjacency.ADD_REMOVE, unit=unit.name
    )
    if charged is None:
        rows = draw_bound(counts, most, wanted, accountant.spend(_PURPOSE, budget))
    else:
        from shoal.ledger import charge_choice, keep_choice, open_ledger

        opened = open_ledger(charged.address)
        try:
            words = unit_words(unit.name, None, unit.called)
            number = charge_choice(
                opened, charged.dataset, {SETTING: candidates}, budget, Adjacency.ADD_REMOVE, words
            )
            rows = draw_bound(counts, most, wanted, accountant.spend(_PURPOSE, budget))
            keep_choice(opened, charged.dataset, number, {SETTING: rows})
        finally:
            opened.close()
    return BoundChoice(rows, Tuned((SETTING,), budget, (Choice(SETTING, rows, candidates),)))


def _checked(epsilon: Any, most: int, share: Any) -> tuple[Fraction, Fraction]:
    """The budget and the share."""
    budget = private_epsilon(epsilon)
    if type(most) is not int or not 2 <= most <= _MOST_ROWS:
        raise OptionError("most-rows-to-choose", option="most", most=_MOST_ROWS, found=most)
    wanted = exact(share, "share")
    if not 0 < wanted < 1 or wanted.denominator > _FINEST:
        raise OptionError("share-of-units", option="share", finest=_FINEST, found=share)
    return budget, wanted


def penalties_of(counts: Integers, most: int, share: Fraction) -> Integers:
    """How far the share of the units lies outside the ranks of each candidate 1 .. most, in units of 1/denominator.

    The ranks of r go from the number of units with fewer rows to that of units with at most r; a unit with more than
    `most` rows counts as one with `most`.

    >>> penalties_of(np.array([1, 1, 2, 7]), 4, Fraction(1, 2)).tolist()
    [0, 0, 2, 2]
    """
    clipped = np.minimum(counts, most)
    upto = np.cumsum(np.bincount(clipped, minlength=most + 1))[1:].astype(np.int64)
    below = np.concatenate((np.zeros(1, dtype=np.int64), upto[:-1]))
    wanted = share.numerator * counts.size
    found: Integers = np.maximum(
        0, np.maximum(wanted - share.denominator * upto, share.denominator * below - wanted)
    )
    return found


def draw_bound(counts: Integers, most: int, share: Fraction, spend: Spend) -> int:
    """The bound, by the exponential mechanism: a unit moves a penalty by at most the larger of share and 1 - share."""
    epsilon, source = spend.take()
    steps = max(share.numerator, share.denominator - share.numerator)
    lengths = np.ones(most, dtype=np.int64)
    return 1 + exponential_choice(lengths, penalties_of(counts, most, share), epsilon / (2 * steps), source)
