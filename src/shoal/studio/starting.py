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
from shoal.studio.session import PEOPLE, SessionFile, StudioSession
from shoal.tuning import default_sizes

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COMPARED_SIZES = 5
_COMPARED_METHODS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a run on the records, for confirmation.

    Attributes:
        epsilon, delta: per unit, as text; empty where the claim has none that composes.
        unit: the unit of protection.
        dataset, source: the declared name of the data set, and the file.
        ledger: the ledger that is charged; empty for none.
    """

    epsilon: str
    delta: str
    unit: str
    dataset: str
    source: str
    ledger: str


def cost(session: StudioSession, kind: str, price: str = "") -> Cost:
    """The cost of a release, or of a private choice, with the current choices.

    Raises:
        OptionError: a choice is missing.
    """
    ahead = session.look_ahead()
    if ahead.prepared is None or session.source is None:
        raise OptionError.saying(ahead.problems[0].message)
    stated = ahead.prepared.statement
    epsilon = stated.epsilon if MODELS[stated.model].budgeted else None
    if kind == "buy":
        epsilon = exact(price, "price")
    return Cost(
        "" if epsilon is None else decimal_text(epsilon),
        decimal_text(stated.delta) if epsilon is not None and stated.delta and kind != "buy" else "",
        stated.unit,
        session.dataset,
        session.source.name,
        session.ledger,
    )


def start(session: StudioSession, kind: str, **more: Any) -> StudioRun:
    """Start a run. A run that was never viewed is replaced by the next: nothing was selected from it."""
    if session.running is not None:
        raise OptionError("a-run-is-on-its-way")
    if session.source is None:
        raise OptionError("there-no-table-session")
    ahead = session.look_ahead()
    if kind in ("release", "rehearse", "buy") and not ahead.ready:
        raise OptionError.saying(ahead.problems[0].message)
    other = session.another if kind in ("rehearse", "compare") else None
    if other is not None and (wrong := other.problems(session.recipe)):
        raise OptionError.saying(wrong[0])
    if kind == "release":
        for run in [run for run in session.runs if run.kind == "release" and not run.seen]:
            session.drop(run)
    for run in [
        run for run in session.runs if run.state in ("failed", "cancelled") or run.kind in ("buy", "learn")
    ]:
        session.drop(run)
    folder = session.folder / f"run-{len(session.runs)}-{random.getrandbits(32):x}"
    run = StudioRun(
        letter(session), kind, session.recipe, folder, session.dataset, session.content, session.ledger
    )
    if other is not None:
        run.on, run.mark = other.name, other.mark
    if "of" in more:
        run.of = Path(more["of"])
    job = {
        **_job(session, session.source),
        "on": None if other is None else str(other.path),
        "people": PEOPLE,
        "rows": session.sheet.n,
        "ledger": session.ledger,
        "dataset": session.dataset,
        **more,
    }
    session.expecting.stop()
    session.runs.append(run)
    session.told = ""
    if kind in ("release", "rehearse"):
        session.shown = ""
    runs.start(run, job, lambda one: heard(session, one))
    session.version += 1
    return run


def _job(session: StudioSession, source: SessionFile) -> dict[str, Any]:
    """The common part of every job."""
    return {
        "data": str(source.path),
        "name": source.name,
        "mark": session.mark,
        "request": session.recipe.to_json(),
        "quasi": [a.name for a in session.recipe.taken if a.role == "quasi-identifier"],
    }


def expect(session: StudioSession) -> None:
    """Estimate the time of a run, in the background."""
    if session.source is not None and session.running is None and session.look_ahead().ready:
        session.expecting.ask(
            session.recipe, session.sheet.n, _job(session, session.source), lambda one: heard(session, one)
        )


def compare(session: StudioSession) -> StudioRun:
    """Compare settings, on the data used for rehearsals."""
    recipe = session.recipe
    first = [name for name in recipe.guarantee.first if name != recipe.method][: _COMPARED_METHODS - 1]
    kinds = {attribute.kind for attribute in recipe.taken}
    methods = [name for name in (recipe.method, *first) if kinds <= set(method_class(name).kinds)]
    rows = PEOPLE if session.another is None else session.another.rows
    sizes = default_sizes(rows)
    step = max(len(sizes) // _COMPARED_SIZES, 1)
    return start(
        session,
        "compare",
        methods=methods,
        ks=list(sizes[::step]),
        rows=rows,
        epsilon=recipe.settings.get("epsilon", "1"),
    )


def learn(session: StudioSession, target: str) -> StudioRun:
    """Measure the predictive utility of the run shown, for a column."""
    return start(session, "learn", target=target, of=str(session.run_of(session.shown).folder))


def letter(session: StudioSession) -> str:
    """The name of the next run."""
    taken = {run.letter for run in session.runs}
    return next((letter for letter in _LETTERS if letter not in taken), f"R{len(session.runs)}")


def heard(session: StudioSession, run: StudioRun) -> None:
    """Handle a message; called by the thread that listens to a run."""
    if run.kind == "buy" and run.state == "done" and run.bought:
        with session.lock:
            recipe = session.recipe
            settings = {**recipe.settings, "k": str(run.bought["k"])}
            session.settle(replace(recipe, settings=settings, bought=run.bought["bought"]))
            session.told = run.bought["why"]
            run.bought = {}
    if run.kind == "learn" and run.state == "done":
        with session.lock:
            about = next((one for one in session.releases if one.folder == run.of), None)
            if about is not None:
                about.facts["learning"] = run.facts
    session.version += 1
