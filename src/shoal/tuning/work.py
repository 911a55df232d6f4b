"""The work of a tuning: prepared settings come in, their outcomes go to the store as they are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shoal.mechanisms.base import Progress
from shoal.noise import Seeded
from shoal.release.protect import Preparation
from shoal.text import Message
from shoal.tuning.grid import Setting
from shoal.tuning.simulate import run_setting
from shoal.tuning.store import Store
from shoal.workers import Stream, Task, stream

Notice = Callable[[Message], None]


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
