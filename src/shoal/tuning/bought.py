"""A private tuning: a question and a budget come in, one setting leaves, charged before the records are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from shoal.errors import OptionError, OutputError
from shoal.method.tuned import Choice, Tuned
from shoal.noise import parse_epsilon
from shoal.noise import source as noise_source
from shoal.partition.base import check_k
from shoal.privacy import Accountant, Spend
from shoal.release.protect import Preparation
from shoal.text import Message
from shoal.tuning.checks import check_options
from shoal.tuning.grid import Setting, compared, make_grid
from shoal.tuning.private import METHOD, check_candidates, choose_privately
from shoal.tuning.question import Question, followed, recipe_of
from shoal.tuning.result import Tuning

# what is reserved and spent
_CHOICE = "choice of settings"


@dataclass(frozen=True, slots=True)
class Account:
    """Where a private choice is charged: a ledger, and a data set in it."""

    address: str | Path
    dataset: str


def account(ledger: str | Path | None, dataset: str | None, private: Any) -> Account | None:
    """The account of a tuning, None without a ledger.

    Raises:
        OptionError: the data set is not named, or there is no private choice that could be charged.
    """
    from shoal.ledger.units import named_dataset

    name = named_dataset(ledger, dataset)
    if ledger is None or name is None:
        return None
    if private is None:
        raise OptionError("ledger-charges-private-choice", option="private")
    return Account(ledger, name)


def tune_privately(
    question: Question,
    ks: Sequence[int] | None,
    splits: Sequence[str] | None,
    epsilon: Fraction,
    folder: Path | None,
    charged: Account | None = None,
) -> Tuning:
    """Choose under a budget. Nothing else about the records is computed, so nothing else can be seen."""
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
        described.positions(
            name
        )  # what is wrong with the records is said now: nothing may fail after the charge
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
    """What the price of a private choice paid for: each setting's value, and what it was drawn from."""
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
    charged: Account | None,
) -> Setting:
    """The choice; with a ledger it is charged first, and what was drawn is noted there."""
    prepared = next(iter(candidates.values()))
    if charged is None:
        return choose_privately(candidates, _spend(prepared, epsilon))
    from shoal.ledger import open_ledger
    from shoal.ledger.releases import charge_choice, keep_choice

    rows = prepared.described.circumstances.rows_per_unit
    among = {name: _values(candidates, name) for name in chosen_among}
    ledger = open_ledger(charged.address)
    try:
        number = charge_choice(
            ledger,
            charged.dataset,
            among,
            epsilon,
            epsilon * rows,
            prepared.method.neighbours,
            prepared.statement.unit,
        )
        best = choose_privately(candidates, _spend(prepared, epsilon))
        keep_choice(ledger, charged.dataset, number, {name: _value(best, name) for name in chosen_among})
    finally:
        ledger.close()
    return best


def _spend(prepared: Preparation, epsilon: Fraction) -> Spend:
    """All of the budget of a choice, for one draw: it is spent on nothing else."""
    account = Accountant.of(
        {_CHOICE: epsilon}, epsilon, noise_source(None), adjacency=prepared.method.adjacency
    )
    return account.spend(_CHOICE, epsilon)
