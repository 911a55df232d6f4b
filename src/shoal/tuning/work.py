"""The runs of a tuning, kept on disk and resumed.

`runs.jsonl` begins with a fingerprint of data and arguments; every further line is one finished piece of work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from shoal.errors import OutputError
from shoal.io import Table
from shoal.io.common import private_file, private_folder, private_text
from shoal.noise import Seeded
from shoal.progress import Progress
from shoal.release.protect import Preparation
from shoal.taxonomy import Taxonomy
from shoal.text import Message
from shoal.tuning.expected import Outcome, Run, run_setting
from shoal.tuning.grid import Setting
from shoal.workers import Stream, Task, stream

NAME = "runs.jsonl"
Notice = Callable[[Message], None]


class Store:
    """Outcomes by setting, in memory and, if there is a folder, on disk."""

    def __init__(self, path: Path | None = None, found: Mapping[Setting, Outcome] | None = None) -> None:
        self._path = path
        self.outcomes: dict[Setting, Outcome] = dict(found or {})

    def add(self, setting: Setting, outcome: Outcome) -> None:
        """Keep what was found; runs of other seeds of the same setting stay."""
        before = self.outcomes.get(setting, Outcome())
        runs = {run.seed: run for run in (*before.runs, *outcome.runs)}
        self.outcomes[setting] = Outcome(
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


def open_store(folder: Path | None, table: Table, arguments: Mapping[str, Any]) -> Store:
    """The store of a tuning: a new one, or what an earlier start with the same data and arguments left behind.

    Raises:
        OutputError: the folder holds something else, or a tuning of other data or with other arguments.
    """
    if folder is None:
        return Store()
    path = folder / NAME
    header = {"data": fingerprint(table), "arguments": canonical(arguments)}
    if path.exists():
        found = _resumed(path, header)
        return Store(private_file(path), found)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError("not-new-folder-holds-no-earlier", folder=folder)
    try:
        private_folder(folder)
    except OSError as error:
        raise OutputError("cannot-make-folder", folder=folder, reason=error.strerror or error) from None
    store = Store(path)
    store.append([header])
    return store


def fingerprint(table: Table) -> str:
    """A hash of a table's values, by which an interrupted tuning is recognised; as private as the table."""
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
    """A value as JSON brings it back, whatever it was made of.

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


def _resumed(path: Path, header: Mapping[str, Any]) -> dict[Setting, Outcome]:
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
    """The complete lines of a file; a last line that was cut off by an interruption is removed from it."""
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


def _lines(setting: Setting, outcome: Outcome) -> list[dict[str, Any]]:
    key = {"setting": setting.to_dict()}
    if outcome.refused is not None:
        return [{**key, "refused": str(outcome.refused)}]
    shared = {**key, "expected": outcome.expected, "seconds": outcome.seconds}
    return [shared, *({**key, **asdict(run)} for run in outcome.runs)]


def _outcomes(lines: list[dict[str, Any]]) -> dict[Setting, Outcome]:
    store = Store()
    for line in lines:
        setting = Setting(**line["setting"])
        if "refused" in line:
            # the sentence of whichever version of Shoal wrote it
            store.add(setting, Outcome(refused=Message.of("refused-before", words=line["refused"])))
        elif "seed" in line:
            run = Run(line["seed"], line["measures"], line["seconds"])
            store.add(setting, Outcome(runs=(run,)))
        else:
            store.add(setting, Outcome(expected=line["expected"], seconds=line["seconds"], settled=True))
    return store.outcomes


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


def run_all(
    candidates: Mapping[Setting, Preparation],
    seeds: Sequence[int],
    target: str | None,
    store: Store,
    workers: int,
    progress: Progress,
    notice: Notice,
) -> None:
    """Run every setting with every seed, as far as the store does not know it yet.

    One setting of each method goes first, with one seed; from how long that took an estimate is made before the rest
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


def _known(store: Store, setting: Setting, seeds: Sequence[int]) -> bool:
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
    store: Store,
    progress: Progress,
) -> None:
    if not settings:
        return
    tasks: list[Task] = []
    for setting in settings:
        known = store.outcomes.get(setting)
        pending = tuple(seeds) if known is None else known.left(seeds)
        # workers draw from seeds of their own: the system's entropy stays here
        tasks.append(partial(run_setting, replace(candidates[setting], source=Seeded(0)), pending, target))
    progress(what, 0, len(tasks))
    for done, (place, outcome) in enumerate(each(tasks), start=1):
        store.add(settings[place], outcome)
        progress(what, done, len(tasks))


def _estimate(
    rest: Sequence[Setting],
    candidates: Mapping[Setting, Preparation],
    seeds: Sequence[int],
    store: Store,
    workers: int,
) -> Message:
    """How long the rest will take, from the runs that are known."""
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
    """A rough time.

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
