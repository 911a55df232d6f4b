"""Tune: compare settings of methods by loss and risk, in runs that can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from shoal.columns import Schema, read_declared
from shoal.errors import OptionError, OutputError
from shoal.io import Conventions, Table, private_file, private_folder, private_text
from shoal.mechanisms import Tuned
from shoal.noise import Seeded, parse_epsilon
from shoal.privacy import MODELS, Model
from shoal.progress import Progress, silent
from shoal.release import Preparation, note_use
from shoal.taxonomy import Taxonomy
from shoal.text import Message
from shoal.tuning.expected import SettingOutcome, TuningRun, run_setting
from shoal.tuning.grid import (
    Row,
    Setting,
    TuningQuestion,
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
from shoal.workers import Stream, Task, available_cores, stream

NAME = "runs.jsonl"
Notice = Callable[[Message], None]


class OutcomeStore:
    """Outcomes by setting, in memory and, if there is a folder, on disk."""

    def __init__(
        self, path: Path | None = None, found: Mapping[Setting, SettingOutcome] | None = None
    ) -> None:
        self._path = path
        self.outcomes: dict[Setting, SettingOutcome] = dict(found or {})

    def add(self, setting: Setting, outcome: SettingOutcome) -> None:
        """Add an outcome; runs of the same setting with other seeds are kept."""
        before = self.outcomes.get(setting, SettingOutcome())
        runs = {run.seed: run for run in (*before.runs, *outcome.runs)}
        self.outcomes[setting] = SettingOutcome(
            outcome.refused,
            outcome.expected or before.expected,
            tuple(runs[seed] for seed in sorted(runs)),
            outcome.seconds if outcome.settled else before.seconds,
            outcome.settled or before.settled,
        )
        if self._path is not None:
            self.append(_lines(setting, outcome))

    def append(self, lines: list[dict[str, Any]]) -> None:
        """Write lines to the file at once."""
        assert self._path is not None
        try:
            with private_file(self._path).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        except OSError as error:
            raise OutputError(
                "tuning-store-not-writable", path=self._path, reason=error.strerror or error
            ) from None


def open_store(folder: Path | None, table: Table, arguments: Mapping[str, Any]) -> OutcomeStore:
    """The store of a tuning: a new one, or that of an earlier run with the same data and arguments.

    Raises:
        OutputError: the folder holds other files, or a tuning of other data or with other arguments.
    """
    if folder is None:
        return OutcomeStore()
    path = folder / NAME
    header = {"data": fingerprint(table), "arguments": canonical(arguments)}
    if path.exists():
        found = _resumed(path, header)
        return OutcomeStore(private_file(path), found)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError("not-new-folder-holds-no-earlier", folder=folder)
    try:
        private_folder(folder)
    except OSError as error:
        raise OutputError("cannot-make-folder", folder=folder, reason=error.strerror or error) from None
    store = OutcomeStore(path)
    store.append([header])
    return store


def fingerprint(table: Table) -> str:
    """A hash of a table's values that identifies an interrupted tuning; as private as the table."""
    import pyarrow as pa

    frame = table.frame.to_arrow()
    digest = hashlib.sha256()
    for name in frame.column_names:
        column = frame.column(name).combine_chunks()
        digest.update(f"{name}:{column.type}".encode())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("values", column.type)])) as stream:
            stream.write_table(pa.table([column], names=["values"]))
        digest.update(sink.getvalue())
    return digest.hexdigest()


def canonical(value: Any) -> Any:
    """A value in the form in which JSON returns it.

    >>> from fractions import Fraction
    >>> canonical({"epsilon": Fraction(1, 2), "ks": (3, 5)})
    {'epsilon': '1/2', 'ks': [3, 5]}
    """
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, Taxonomy):
        return canonical(value.to_pairs())
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    return value if value is None or type(value) in (bool, int, float, str) else str(value)


def _resumed(path: Path, header: Mapping[str, Any]) -> dict[Setting, SettingOutcome]:
    first, *lines = _read(path)
    if "data" not in first or "arguments" not in first:
        raise OutputError("not-work-earlier-tuning", path=path)
    if first["data"] != header["data"]:
        raise OutputError("holds-tuning-other-data", parent=path.parent)
    for name in {**first["arguments"], **header["arguments"]}:
        before, now = first["arguments"].get(name), header["arguments"].get(name)
        if before != now:
            raise OutputError(
                "holds-tuning-other-arguments-now",
                parent=path.parent,
                name=name,
                before=_short(before),
                now=_short(now),
            )
    return _outcomes(lines)


def _read(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a file; a last line cut off by an interruption is removed from it."""
    try:
        text = path.read_text("utf-8", errors="replace")
        complete = text[: text.rfind("\n") + 1]
        if complete != text:
            private_text(path, complete)
        lines = [json.loads(line) for line in complete.splitlines()]
    except (OSError, ValueError) as error:
        raise OutputError("store-cannot-be-read", path=path, reason=error) from None
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise OutputError("not-work-earlier-tuning", path=path)
    return lines


def _lines(setting: Setting, outcome: SettingOutcome) -> list[dict[str, Any]]:
    key = {"setting": setting.to_dict()}
    if outcome.refused is not None:
        return [{**key, "refused": str(outcome.refused)}]
    shared = {**key, "expected": outcome.expected, "seconds": outcome.seconds}
    return [shared, *({**key, **asdict(run)} for run in outcome.runs)]


def _outcomes(lines: list[dict[str, Any]]) -> dict[Setting, SettingOutcome]:
    store = OutcomeStore()
    for line in lines:
        setting = Setting(**line["setting"])
        if "refused" in line:
            # the message as written by the version of Shoal that ran the setting
            store.add(setting, SettingOutcome(refused=Message.of("refused-before", words=line["refused"])))
        elif "seed" in line:
            run = TuningRun(line["seed"], line["measures"], line["seconds"])
            store.add(setting, SettingOutcome(runs=(run,)))
        else:
            store.add(
                setting, SettingOutcome(expected=line["expected"], seconds=line["seconds"], settled=True)
            )
    return store.outcomes


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


def run_all(
    candidates: Mapping[Setting, Preparation],
    seeds: Sequence[int],
    target: str | None,
    store: OutcomeStore,
    workers: int,
    progress: Progress,
    notice: Notice,
) -> None:
    """Run every setting with every seed, except those already in the store.

    One setting of each method goes first, with one seed; the remaining time is estimated from that before the rest
    is started.
    """
    left = [setting for setting in candidates if not _known(store, setting, seeds)]
    if not left:
        return
    probes = [setting for setting in _middle_of_each_method(left) if setting not in store.outcomes]
    with stream(min(workers, len(left))) as each:
        _run("timing one run of each method", each, candidates, probes, seeds[:1], target, store, progress)
        rest = [setting for setting in left if not _known(store, setting, seeds)]
        if rest:
            notice(_estimate(rest, candidates, seeds, store, min(workers, len(left))))
        _run("running settings", each, candidates, rest, seeds, target, store, progress)


def _known(store: OutcomeStore, setting: Setting, seeds: Sequence[int]) -> bool:
    return setting in store.outcomes and store.outcomes[setting].complete(seeds)


def _middle_of_each_method(settings: Sequence[Setting]) -> list[Setting]:
    by_method: dict[str, list[Setting]] = {}
    for setting in settings:
        by_method.setdefault(setting.method, []).append(setting)
    return [found[len(found) // 2] for found in by_method.values()]


def _run(
    what: str,
    each: Stream,
    candidates: Mapping[Setting, Preparation],
    settings: Sequence[Setting],
    seeds: Sequence[int],
    target: str | None,
    store: OutcomeStore,
    progress: Progress,
) -> None:
    if not settings:
        return
    tasks: list[Task] = []
    for setting in settings:
        known = store.outcomes.get(setting)
        pending = tuple(seeds) if known is None else known.left(seeds)
        # workers draw from explicit seeds: the system's entropy stays in this process
        tasks.append(partial(run_setting, replace(candidates[setting], source=Seeded(0)), pending, target))
    progress(what, 0, len(tasks))
    for done, (place, outcome) in enumerate(each(tasks), start=1):
        store.add(settings[place], outcome)
        progress(what, done, len(tasks))


def _estimate(
    rest: Sequence[Setting],
    candidates: Mapping[Setting, Preparation],
    seeds: Sequence[int],
    store: OutcomeStore,
    workers: int,
) -> Message:
    """The estimated time for the rest, from the finished runs."""
    shared: dict[str, list[float]] = {}
    each: dict[str, list[float]] = {}
    for setting, outcome in store.outcomes.items():
        if outcome.settled:
            shared.setdefault(setting.method, []).append(outcome.seconds)
        each.setdefault(setting.method, []).extend(run.seconds for run in outcome.runs)
    seconds, runs = 0.0, 0
    for setting in rest:
        known = store.outcomes.get(setting)
        pending = len(seeds) if known is None else len(known.left(seeds))
        runs += pending
        seconds += _mean(shared.get(setting.method)) + pending * _mean(each.get(setting.method))
    return Message.of(
        "work-left-runs" if seeds else "work-left-closed-form",
        left=len(rest),
        settings=len(candidates),
        runs=runs,
        time=_duration(seconds / workers),
        processes=Message.of("one-process" if workers == 1 else "several-processes", processes=workers),
    )


def _mean(values: Sequence[float] | None) -> float:
    return sum(values) / len(values) if values else 0.0


def _duration(seconds: float) -> Message:
    """An approximate time.

    >>> [str(_duration(seconds)) for seconds in (0.2, 75, 300)]
    ['a second', '75 seconds', '5 minutes']
    """
    if seconds < 1.5:
        return Message.of("time-second")
    if seconds < 120:
        return Message.of("time-seconds", seconds=seconds)
    if seconds < 7200:
        return Message.of("time-minutes", minutes=seconds / 60)
    return Message.of("time-hours", hours=seconds / 3600)


# rows times settings up to which closed forms take less time than starting processes for them
_SMALL = 100_000


def tune(
    data: Any,
    schema: Schema | None = None,
    epsilon: Any = None,
    methods: str | Sequence[str] | None = None,
    ks: Sequence[int] | None = None,
    *,
    splits: str | Sequence[str] | None = None,
    noises: str | Sequence[str] | None = None,
    deltas: Sequence[Any] | None = None,
    seeds: int = 5,
    fast: bool = False,
    target: str | None = None,
    utility: str | None = None,
    max_risk: float | None = None,
    claim: str | None = None,
    private: Any = None,
    columns: str | Sequence[str] | None = None,
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
    """Compare methods and settings on a table by utility loss and re-identification risk, and recommend one.

    Every setting is run with several seeds and measured by `shoal.evaluate`. The expected row error of most methods is
    known in closed form, clipping included, and is used where it is what settings are ranked by.

    Args:
        data: a path or a pandas, polars or pyarrow table.
        schema: kinds, roles and public domains, as for `shoal.protect`.
        epsilon: the budget of every setting.
        methods: presets to compare, or a single one; by default those with an ε that take the columns.
        ks: sizes to compare; by default ten, from 3 to half of the rows.
        splits: ways to share ε over columns; by default each method's own.
        noises: noise families; by default Laplace.
        deltas: values of δ to compare, for methods that have one; by default 0. Their claims
            differ, and the comparison says so.
        seeds: runs of each setting.
        fast: closed forms only, without runs: losses in seconds, no risks.
        target: the intended prediction target, such as "income>30000"; settings are then ranked by it, and
            methods with that setting spend more on it.
        utility: the measure to rank by: normalised_sse, scaled_sse, wasserstein, correlation_difference,
            total_variation or learning. By default the row error, or, if a compared method draws synthetic records, a
            measure that needs no rows.
        max_risk: recommend only settings that certainly link at most this percentage of rows.
        claim: compare only settings whose statement makes this claim, such as "dp".
        private: choose k by the exponential mechanism at this ε instead, computing nothing else; only for
            `ranking-dp` of one column or with link=False.
        tuned: other data-dependent choices made on these records, such as "domains": the recipe lists them too.
        ledger: charge a private choice to this ledger (a path or a postgresql:// address) before it is made.
        dataset: the name of the data set whose budget `ledger` charges; the journal of use records a comparison.
        out: folder that keeps every finished run, so that the same call resumes after an interruption, and receives
            `tuning.json`, `tuning.svg` and `method.toml`.
        workers: processes; all cores by default.
        progress: called with (what, done, total).
        notice: called with a time estimate before the work starts, a message whose `str` is its sentence.
        options: settings that all methods share, as for `shoal.protect`; methods without such a setting ignore it.

    Returns:
        The comparison. It holds facts about the original data, and a setting chosen from it is a data-dependent choice:
        its recipe says so, and so does a statement made from it. A private choice may be published.

    Raises:
        InputError: the table cannot be used.
        OptionError: an option cannot be used, or no setting fits the table.
        ClaimError: a private choice was requested where no sensitivity bound is proved.
        OutputError: the folder holds other files.

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
    methods, splits, noises = ([one] if isinstance(one, str) else one for one in (methods, splits, noises))
    declared = {
        "schema": schema,
        "columns": [columns] if isinstance(columns, str) else columns,
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
        # first: refuse options that would reveal facts about the records beyond what the budget covers
        check_private(methods, utility, target, max_risk, noises, deltas)
    check_comparison(seeds, fast, target, utility, max_risk, claim, workers, table)
    aimed = options if target is None else {**options, "target": target}
    question = TuningQuestion(table, epsilon, declared, aimed)
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
        # must be reported before the choice: afterwards it would be too late
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
    question: TuningQuestion,
    candidates: Mapping[Setting, Preparation],
    refused: dict[Setting, Message],
    outcomes: Mapping[Setting, SettingOutcome],
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
    """Whether a data-dependent choice leaves nothing of the claim."""
    return MODELS[model].guarantee and not MODELS[model].of_the_table


def _chosen(settings: Sequence[Setting], best: Row | None) -> Tuned | None:
    """The options chosen by taking the best of these settings, where the method has them; None without a choice."""
    what = compared(settings)
    if best is not None:
        what = tuple(name for name in what if getattr(best.setting, name) is not None)
    return Tuned(what) if what else None


def _unheard(notice: Message) -> None:
    """A notice that is discarded."""
