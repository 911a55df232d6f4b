"""Tune: compare methods and group sizes by loss and risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.columns.declaration import read_declared
from shoal.columns.schema import Schema
from shoal.errors import OptionError
from shoal.io import Conventions
from shoal.mechanisms.recipe import Tuned
from shoal.noise import parse_epsilon
from shoal.privacy.claims import MODELS, Model
from shoal.progress import Progress, silent
from shoal.release.protect import Preparation
from shoal.release.uses import note_use
from shoal.text import Message
from shoal.tuning.expected import Outcome
from shoal.tuning.grid import (
    Question,
    Row,
    Setting,
    automatic_utility,
    best_row,
    candidates_of,
    compared,
    figures,
    followed,
    make_grid,
    make_row,
    recipe_of,
    with_frontier,
)
from shoal.tuning.private import (
    account,
    check_comparison,
    check_options,
    check_private,
    private_epsilon,
    tune_privately,
)
from shoal.tuning.result import Tuning, reasons
from shoal.tuning.work import Notice, open_store, run_all
from shoal.workers import available_cores

# rows times settings up to which closed forms take less time than starting processes for them
_SMALL = 100_000


def tune(
    data: Any,
    schema: Schema | None = None,
    epsilon: Any = None,
    methods: Sequence[str] | None = None,
    ks: Sequence[int] | None = None,
    *,
    splits: Sequence[str] | None = None,
    noises: Sequence[str] | None = None,
    deltas: Sequence[Any] | None = None,
    seeds: int = 5,
    fast: bool = False,
    target: str | None = None,
    utility: str | None = None,
    max_risk: float | None = None,
    claim: str | None = None,
    private: Any = None,
    columns: Sequence[str] | None = None,
    domains: Mapping[str, Any] | None = None,
    domain_from_data: float | None = None,
    outside: str = "error",
    missing: str = "error",
    na: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    file: Conventions | Mapping[str, Any] | None = None,
    tuned: str | Sequence[str] | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
    **options: Any,
) -> Tuning:
    """Compare methods and their settings on a table: what each loses, what risk it leaves, and which to take.

    Every setting is run with several seeds and measured by `shoal.evaluate`. The expected row error of most methods is
    known in closed form, clipping included, and is used where it is what settings are ranked by.

    Args:
        data: a path or a pandas, polars or pyarrow table.
        schema: kinds, roles and public domains, as for `shoal.protect`.
        epsilon: the budget of every setting.
        methods: presets to compare; by default those with an ε that take the columns.
        ks: sizes to compare; by default ten, from 3 to half of the rows.
        splits: ways to share ε over columns; by default each method's own.
        noises: noise families; by default Laplace.
        deltas: probabilities with which the promise may fail, for methods that take one; by default 0. Their claims
            differ, and the comparison says so.
        seeds: runs of each setting.
        fast: closed forms only, without runs: losses in seconds, no risks.
        target: what somebody will learn from the release, such as "income>30000"; then settings are ranked by it, and
            methods with that setting spend more on it.
        utility: the measure to rank by: normalised_sse, scaled_sse, wasserstein, correlation_difference,
            total_variation or learning. By default the row error, or, if rows of a compared method belong to nobody, a
            measure that needs no rows.
        max_risk: recommend only settings that surely link at most this percentage of rows.
        claim: compare only settings whose statement makes this claim, such as "dp".
        private: choose k by the exponential mechanism at this ε instead, without looking at anything else; only for
            `ranking-dp` of one column or with link=False.
        tuned: what else was chosen by looking at these records, such as "domains": the recipe says so, too.
        ledger: charge a private choice to this ledger (a path or a postgresql:// address), before it is made.
        dataset: the name of the data set, whose budget `ledger` charges; the journal of use notes a comparison.
        out: folder that keeps every finished run, so that the same call goes on after an interruption, and gets
            `tuning.json`, `tuning.svg` and `method.toml`.
        workers: processes; all cores when absent.
        progress: called with (what, done, total).
        notice: called with an estimate of the time before the work starts, a message whose `str` is its sentence.
        options: settings that all methods share, as for `shoal.protect`; methods without such a setting ignore it.

    Returns:
        The comparison. It holds facts about the original data, and a setting chosen from it was chosen by looking at
        the records: its recipe says so, and a statement made from it too. A private choice may be published.

    Raises:
        InputError: the table cannot be used.
        OptionError: an option cannot be used, or no setting fits the table.
        ClaimError: a private choice was asked for where no bound on its score is proved.
        OutputError: the folder holds something else.

    Guarantee:
        None for a comparison. With `private`: ε-DP of the original records under replace-one for the choice, see
        `shoal.tuning.private.choose_privately`.

    Cost:
        One partition per setting and one release with its evaluation per setting and seed.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 45, 28, 60, 52, 39], "income": [20.5, 31.0, 18.2, 44.9, 36.0, 27.5]})
    >>> found = tune(people, epsilon="2", methods=["laplace", "ranking-dp"], ks=[2, 3], fast=True,
    ...              domains={"age": (0, 120), "income": (0.0, 200.0)})
    >>> str(found.best), [row.setting.k for row in found.rows]
    ('ranking-dp, k = 3', [3, 2, None])
    """
    declared = {
        "schema": schema,
        "columns": columns,
        "domains": domains,
        "domain_from_data": domain_from_data,
        "outside": outside,
        "missing": missing,
        "na": na,
        "types": types,
        "file": file,
        "tuned": tuned,
    }
    table = read_declared(data, schema, na=na, types=types, file=file)
    charged = account(ledger, dataset, private)
    if private is not None:
        # first of all: what other options would say about the records is not paid for
        check_private(methods, utility, target, max_risk, noises, deltas)
    check_comparison(seeds, fast, target, utility, max_risk, claim, workers, table)
    aimed = options if target is None else {**options, "target": target}
    question = Question(table, epsilon, declared, aimed)
    folder = None if out is None else Path(out)
    if private is not None:
        return tune_privately(question, ks, splits, private_epsilon(private), folder, charged)
    grid = make_grid(methods, ks, splits, noises, table.n, deltas)
    check_options(options, grid)
    candidates, refused = candidates_of(question, grid, claim)
    runs = () if fast else tuple(range(1, seeds + 1))
    arguments = {
        "epsilon": None if epsilon is None else parse_epsilon(epsilon),
        "grid": [setting.to_dict() for setting in grid],
        "seeds": len(runs),
        "target": target,
        "utility": utility,
        "max_risk": max_risk,
        "claim": claim,
        **declared,
        "schema": None if schema is None else schema.to_dict(),
        **options,
    }
    store = open_store(folder, table, arguments)
    if any(_spoiled(found.statement.model) for found in candidates.values()):
        # afterwards it would be too late to say so
        (notice or _unheard)(Message.of("chosen-from-comparison"))
    cores = available_cores() if workers is None else workers
    if fast and table.n * len(candidates) <= _SMALL:
        cores = 1
    run_all(candidates, runs, target, store, cores, progress or silent, notice or _unheard)
    found = _tuning(question, candidates, refused, store.outcomes, runs, target, utility, max_risk)
    note_use("measured", table, found.columns, "shoal.tune", dataset)
    if folder is not None:
        found.save(folder)
    return found


def _tuning(
    question: Question,
    candidates: Mapping[Setting, Preparation],
    refused: dict[Setting, Message],
    outcomes: Mapping[Setting, Outcome],
    seeds: Sequence[int],
    target: str | None,
    utility: str | None,
    max_risk: float | None,
) -> Tuning:
    measured = {}
    for setting in candidates:
        outcome = outcomes[setting]
        if outcome.refused is not None:
            refused[setting] = outcome.refused
        else:
            measured[setting] = figures(outcome)
    if not measured:
        raise OptionError("no-setting-can-be-used", reason=next(iter(refused.values())))
    first = candidates[next(iter(measured))].described
    numeric = all(attribute.kind_facts.measured for attribute in first.attributes)
    ranked_by = utility or automatic_utility(list(measured.values()), numeric, target)
    rows = with_frontier(
        [
            make_row(setting, candidates[setting].statement.model, found, ranked_by, first.n)
            for setting, found in measured.items()
        ]
    )
    best = best_row(rows, max_risk)
    tuned = _chosen([row.setting for row in rows if row.apart is None], best)
    taken = None if best is None else followed(question, best.setting, tuned)
    return Tuning(
        epsilon=None if question.epsilon is None else parse_epsilon(question.epsilon),
        utility=ranked_by,
        rows=rows,
        refused=refused,
        best=None if best is None else best.setting,
        reasons=reasons(rows, best, ranked_by, max_risk, first.n, tuned),
        tuned=tuned,
        seeds=len(seeds),
        columns=first.columns,
        n=first.n,
        recipe=None if taken is None else recipe_of(taken),
        verdict=None if taken is None else taken.foreseen.verdict,
    )


def _spoiled(model: Model) -> bool:
    """Whether a choice that looked at the records leaves nothing of a claim."""
    return MODELS[model].guarantee and not MODELS[model].of_the_table


def _chosen(settings: Sequence[Setting], best: Row | None) -> Tuned | None:
    """What was chosen by taking the best of these settings, as far as its method has it; None without a choice."""
    what = compared(settings)
    if best is not None:
        what = tuple(name for name in what if getattr(best.setting, name) is not None)
    return Tuned(what) if what else None


def _unheard(notice: Message) -> None:
    """A notice that nobody reads."""
