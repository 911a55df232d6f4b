"""Start runs and apply their messages to a session."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import OptionError
from shoal.mechanisms import method_class
from shoal.numbers import decimal_text, exact
from shoal.privacy import MODELS
from shoal.studio import runs
from shoal.studio.runs import StudioRun
from shoal.studio.session import PEOPLE, Desk, SessionFile
from shoal.tuning import default_sizes

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COMPARED_SIZES = 5
_COMPARED_METHODS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run on the records costs, as it is confirmed.

    Attributes:
        epsilon, delta: per unit, as text; empty where the claim has none that adds up.
        unit: whom a budget is about.
        dataset, source: what is declared to be the data set, and the file.
        ledger: that is charged; empty for none.
    """

    epsilon: str
    delta: str
    unit: str
    dataset: str
    source: str
    ledger: str


def cost(desk: Desk, kind: str, price: str = "") -> Cost:
    """What a release, or a private choice for a price, would cost as things stand.

    Raises:
        OptionError: something is not settled.
    """
    ahead = desk.look_ahead()
    if ahead.prepared is None or desk.source is None:
        raise OptionError.saying(ahead.problems[0].message)
    stated, provenance = ahead.prepared.statement, ahead.prepared.described.provenance
    epsilon = stated.epsilon if MODELS[stated.model].budgeted else None
    if kind == "buy":
        epsilon = exact(price, "price") * provenance.rows_per_unit
    return Cost(
        "" if epsilon is None else decimal_text(epsilon),
        decimal_text(stated.delta) if epsilon is not None and stated.delta and kind != "buy" else "",
        stated.unit,
        desk.dataset,
        desk.source.name,
        desk.ledger,
    )


def start(desk: Desk, kind: str, **more: Any) -> StudioRun:
    """Start a run. One that was never looked at gives way to the next: there is nothing to select from."""
    if desk.running is not None:
        raise OptionError("a-run-is-on-its-way")
    if desk.source is None:
        raise OptionError("there-no-table-desk")
    ahead = desk.look_ahead()
    if kind in ("release", "rehearse", "buy") and not ahead.ready:
        raise OptionError.saying(ahead.problems[0].message)
    other = desk.another if kind in ("rehearse", "compare") else None
    if other is not None and (wrong := other.problems(desk.recipe)):
        raise OptionError.saying(wrong[0])
    if kind == "release":
        for run in [run for run in desk.runs if run.kind == "release" and not run.seen]:
            desk.drop(run)
    for run in [
        run for run in desk.runs if run.state in ("failed", "cancelled") or run.kind in ("buy", "learn")
    ]:
        desk.drop(run)
    folder = desk.folder / f"run-{len(desk.runs)}-{random.getrandbits(32):x}"
    run = StudioRun(letter(desk), kind, desk.recipe, folder, desk.dataset, desk.content, desk.ledger)
    if other is not None:
        run.on, run.mark = other.name, other.mark
    if "of" in more:
        run.of = Path(more["of"])
    job = {
        **_job(desk, desk.source),
        "on": None if other is None else str(other.path),
        "people": PEOPLE,
        "rows": desk.sheet.n,
        "ledger": desk.ledger,
        "dataset": desk.dataset,
        **more,
    }
    desk.expecting.stop()
    desk.runs.append(run)
    desk.told = ""
    if kind in ("release", "rehearse"):
        desk.shown = ""
    runs.start(run, job, lambda one: heard(desk, one))
    desk.version += 1
    return run


def _job(desk: Desk, source: SessionFile) -> dict[str, Any]:
    """What every process is told."""
    return {
        "data": str(source.path),
        "name": source.name,
        "mark": desk.mark,
        "request": desk.recipe.to_json(),
        "quasi": [a.name for a in desk.recipe.taken if a.role == "quasi-identifier"],
    }


def expect(desk: Desk) -> None:
    """Find out how long a run would take, beside everything else."""
    if desk.source is not None and desk.running is None and desk.look_ahead().ready:
        desk.expecting.ask(desk.recipe, desk.sheet.n, _job(desk, desk.source), lambda one: heard(desk, one))


def compare(desk: Desk) -> StudioRun:
    """Compare settings, on whom rehearsals are."""
    recipe = desk.recipe
    first = [name for name in recipe.promise.first if name != recipe.method][: _COMPARED_METHODS - 1]
    kinds = {attribute.kind for attribute in recipe.taken}
    methods = [name for name in (recipe.method, *first) if kinds <= set(method_class(name).kinds)]
    rows = PEOPLE if desk.another is None else desk.another.rows
    sizes = default_sizes(rows)
    step = max(len(sizes) // _COMPARED_SIZES, 1)
    return start(
        desk,
        "compare",
        methods=methods,
        ks=list(sizes[::step]),
        rows=rows,
        epsilon=recipe.settings.get("epsilon", "1"),
    )


def learn(desk: Desk, target: str) -> StudioRun:
    """How well a column can be learned from the run that is shown."""
    return start(desk, "learn", target=target, of=str(desk.run_of(desk.shown).folder))


def letter(desk: Desk) -> str:
    """What the next run is called."""
    taken = {run.letter for run in desk.runs}
    return next((letter for letter in _LETTERS if letter not in taken), f"R{len(desk.runs)}")


def heard(desk: Desk, run: StudioRun) -> None:
    """Called by the thread that listens to a run."""
    if run.kind == "buy" and run.state == "done" and run.bought:
        with desk.lock:
            recipe = desk.recipe
            settings = {**recipe.settings, "k": str(run.bought["k"])}
            desk.settle(replace(recipe, settings=settings, bought=run.bought["bought"]))
            desk.told = run.bought["why"]
            run.bought = {}
    if run.kind == "learn" and run.state == "done":
        with desk.lock:
            about = next((one for one in desk.releases if one.folder == run.of), None)
            if about is not None:
                about.facts["learning"] = run.facts
    desk.version += 1
