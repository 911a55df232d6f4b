"""Views of Shoal Studio: its cards, and the comparison of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import Body, Depends, Request
from markupsafe import Markup

from shoal.columns import KIND_FACTS, day_text
from shoal.io import read
from shoal.privacy import MODELS
from shoal.report import number_words
from shoal.studio import column_views, publishing
from shoal.studio.facts import IntruderComparison, pairs
from shoal.studio.facts import person as one_person
from shoal.studio.guarantee import typed
from shoal.studio.preview import command_text, fragment, render, script_text
from shoal.studio.runs import StudioRun
from shoal.studio.session import PEOPLE, StudioSession, StudioSessions
from shoal.text import Message


def judge(
    session: StudioSession, letter: str = "", column: str = "", tab: str = "distributions", row: int = 17
) -> str:
    run = session.judge(letter)
    if run is None:
        return render("judge_empty.html", session=session)
    return render(
        "judge.html",
        session=session,
        run=run,
        facts=run.facts,
        runs=session.releases,
        before=_before(session, run),
        part=Markup(judge_part(session, run, tab, column)),
        tab=tab,
        person=Markup(person(run, row)),
        frontier=Markup(frontier(session)),
        statement=run.facts["statement"],
    )


def judge_part(session: StudioSession, run: StudioRun, tab: str, column: str = "") -> str:
    """One of the tabs: distributions, relations, groups or learning."""
    shown = run.facts["columns"]
    wanted = next((one for one in shown if one["name"] == column), shown[0])
    compared = [one for one in session.shown_runs if one is not run and _people(one) == _people(run)][:3]
    return render(
        f"judge_{tab}.html",
        session=session,
        run=run,
        facts=run.facts,
        shown=shown,
        wanted=wanted,
        others=[(one.letter, same) for one in compared if (same := _same_column(one, wanted)) is not None],
        figure=figure(wanted),
        figures={one["name"]: figure(one) for one in shown},
        targets=[attribute.name for attribute in run.recipe.taken],
        learning=run.facts.get("learning"),
    )


def _people(run: StudioRun) -> tuple[bool, str]:
    """The data set of a run: only runs on the same people are drawn together."""
    return run.rehearsed, run.mark


def _same_column(run: StudioRun, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same column of another run, where it can be drawn in the same picture."""
    found = next((one for one in run.facts["columns"] if one["name"] == wanted["name"]), None)
    if found is None or (found["edges"], found["labels"]) != (wanted["edges"], wanted["labels"]):
        return None
    return figure(found)


def figure(column: Mapping[str, Any]) -> dict[str, Any]:
    """A distribution before and after, as shares of a drawing of 100 by 100."""
    before, after = column["shares"]["before"] or [], column["shares"]["after"]
    top = max([*before, *after, 1e-9]) * 1.06
    count = max(len(after), 1)
    width = 100 / count
    bars = [
        {"x": round(place * width, 3), "width": round(width * 0.94, 3), "height": round(100 * share / top, 3)}
        for place, share in enumerate(before)
    ]
    points = []
    for place, share in enumerate(after):
        height = round(100 - 100 * share / top, 3)
        points += [f"{place * width:.3f},{height}", f"{(place + 1) * width:.3f},{height}"]
    edges, labels = column["edges"], column["labels"]
    if edges:
        ticks = [
            (round(100 * (value - edges[0]) / (edges[-1] - edges[0]), 2), _tick(column, value))
            for value in _round_values(edges[0], edges[-1])
        ]
    else:
        ticks = [(round((place + 0.5) * width, 2), label) for place, label in enumerate(labels)]
    return {
        "bars": bars,
        "line": " ".join(points),
        "ticks": ticks,
        "grid": [(round(100 - 100 * level / top, 2), f"{100 * level:.3g}%") for level in _levels(top)],
        "labels": [
            (label, f"{100 * first:.1f}%", f"{100 * second:.1f}%", 100 * first / top, 100 * second / top)
            for label, first, second in zip(labels, before or after, after, strict=False)
        ],
        "numbers": bool(edges),
        "alt": f"Distribution of {column['name']}: "
        + (
            "" if column["moved"] is None else f"{100 * column['moved']:.1f}% of the rows would have to move."
        ),
    }


def _round_values(low: float, high: float) -> list[float]:
    """A few round numbers between two ends.

    >>> _round_values(17.5, 99.5), _round_values(0, 0.3)
    ([20.0, 40.0, 60.0, 80.0], [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
    """
    size = 10.0 ** math.floor(math.log10(high - low))
    step = next(share * size for share in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (share * size) <= 6.1)
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(step * place, 10) for place in places]


def _tick(column: Mapping[str, Any], value: float) -> str:
    if KIND_FACTS[column["kind"]].days:
        return day_text(round(value))
    return number_words(float(f"{value:.3g}"))


def _levels(top: float) -> list[float]:
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        if top / step <= 5:
            return [step * number for number in range(int(top / step) + 1)]
    return [0.0, 0.5, 1.0]


# heights of a line of text in the plot of runs, and of the lowest one, in percent
_LINE, _LOWEST = 8.0, 97.0
_PLAIN = (str, int, float, Fraction)
# the intruder's comparison, for each run shown
_COMPARED: WeakKeyDictionary[StudioRun, IntruderComparison | None] = WeakKeyDictionary()


def person(run: StudioRun, number: int) -> str:
    """The search for one person's row."""
    original, release = run.kept
    if run not in _COMPARED:
        of_table = MODELS[run.facts["statement"]["model"]].of_the_table
        quasi = [a.name for a in run.recipe.taken if a.role == "quasi-identifier"]
        _COMPARED[run] = pairs(read(original, strict=False), release, quasi if of_table else ())
    found = one_person(_COMPARED[run], number, release)
    return render("person.html", person=found, run=run, rows=len(original), exposed=run.facts.get("exposed"))


def frontier(session: StudioSession) -> str:
    """All runs and compared settings: loss over risk."""
    compared = next((run for run in reversed(session.runs) if run.kind == "compare"), None)
    loss = compared.loss if compared is not None and compared.loss else "total_variation"
    dots = [dot for run in session.shown_runs if (dot := _run_dot(run, loss))["loss"] is not None]
    dots += [_compared_dot(dot) for dot in (compared.dots if compared is not None else ()) if dot["loss"]]
    top = max((dot["loss"] for dot in dots), default=0.0) * 1.15 or 1.0
    right = min(max((dot["risk"] for dot in dots), default=0.0) * 1.15, 100.0) or 1.0
    for dot in dots:
        dot["x"], dot["y"] = round(100 * dot["risk"] / right, 2), round(100 - 100 * dot["loss"] / top, 2)
    _apart([dot for dot in dots if dot["letter"]])
    edge = sorted((dot for dot in dots if dot["frontier"]), key=lambda dot: dot["x"])
    return render(
        "frontier.html",
        session=session,
        dots=dots,
        chosen=next((dot for dot in dots if dot["name"] == session.dot), None),
        line=" ".join(f"{dot['x']},{dot['y']}" for dot in edge) if len(edge) > 1 else "",
        loss=loss.replace("_", " "),
        right=f"{right:.3g}",
        top=f"{top:.2g}",
        real=any(not run.rehearsed for run in session.shown_runs),
        history=_history(session),
        people=PEOPLE,
        on=compared.on if compared is not None else "" if session.another is None else session.another.name,
    )


def _run_dot(run: StudioRun, loss: str) -> dict[str, Any]:
    risk = run.facts["risk"] if run.facts["risk"] is not None else run.facts["chance"] or 0.0
    found = run.facts["loss"].get(loss)
    asked = {name: typed(value) for name, value in run.recipe.asked.items() if isinstance(value, _PLAIN)}
    return {
        "name": run.letter,
        "letter": run.letter,
        "words": run.settings_words,
        "loss": found,
        "risk": risk,
        "frontier": False,
        "rehearsed": run.rehearsed,
        "on": run.on,
        "settings": {"method": run.recipe.method, **asked},
        "note": "" if found is None else f"loss {found:.3g}, re-identified {risk:.3g}%",
    }


def _compared_dot(dot: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": dot["words"],
        "letter": "",
        "words": dot["words"],
        "loss": dot["loss"]["mean"],
        "risk": 0.0 if dot["risk"] is None else dot["risk"]["mean"],
        "frontier": dot["frontier"],
        "rehearsed": False,
        "on": "",
        "settings": {name: dot[name] for name in ("method", "k") if name in dot},
        "note": f"loss {dot['loss_words']}, re-identified {dot['risk_words']}%",
    }


def _apart(dots: list[dict[str, Any]]) -> None:
    """Move labels of close points apart; leave out labels without space."""
    taken: list[float] = []
    for dot in sorted(dots, key=lambda dot: float(dot["y"])):
        place = max([float(dot["y"]), *(other + _LINE for other in taken if abs(other - dot["y"]) < _LINE)])
        dot["apart"] = place if place <= _LOWEST else None
        taken.append(place)


def _history(session: StudioSession) -> list[dict[str, Any]]:
    found, before = [], None
    for run in session.shown_runs:
        found.append({"run": run, "changes": [] if before is None else _changes(before, run)})
        before = run
    return found


def _before(session: StudioSession, run: StudioRun) -> list[str]:
    return next((entry["changes"] for entry in _history(session) if entry["run"] is run), [])


def _changes(before: StudioRun, after: StudioRun) -> list[str]:
    first = {"method": before.recipe.method, **before.recipe.asked}
    second = {"method": after.recipe.method, **after.recipe.asked}
    names: Sequence[str] = tuple(dict.fromkeys((*first, *second)))
    return [
        f"{name}: {first.get(name, 'none')} → {second.get(name, 'none')}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def publish(session: StudioSession) -> str:
    run = session.to_publish
    if run is None:
        return render("publish_empty.html", session=session)
    checks = publishing.checklist(run)
    name = session.source.name if session.source is not None else "the table"
    return render(
        "publish.html",
        session=session,
        run=run,
        facts=run.facts,
        checks=checks,
        blocked=publishing.blocked(checks) and not run.override,
        texts=publishing.texts(run, name),
        analysts=publishing.for_analysts(run),
        files=publishing.contents(run.bundle),
        folder=publishing.release_name(run),
        recipe=(run.bundle / "method.toml").read_text("utf-8"),
        command=command_text(name, run.dataset),
        script=script_text(name, run.dataset),
    )


STEPS: Mapping[str, str] = {
    "data": "Data",
    "columns": "Columns",
    "guarantee": "Guarantee",
    "judge": "Judge",
    "publish": "Publish",
}
Payload = Annotated[dict[str, Any], Body(default_factory=dict)]


def page() -> str:
    return render("page.html", steps=STEPS)


def step_fragments(session: StudioSession, name: str, limit: int = 0) -> str:
    """A whole step, with everything around it."""
    main = column_views.data(session, limit) if name == "data" else _STEPS[name](session)
    return fragment("#main", main) + around(session, name)


def around(session: StudioSession, name: str) -> str:
    """The list of steps, the foot and the strip."""
    places = list(STEPS)
    reached = places.index(name) if name in places else 0
    after = places[reached + 1] if reached + 1 < len(places) else ""
    steps = render("steps.html", steps=STEPS, now=name, reached=reached, ready=session.table is not None)
    left = column_views.unsettled(session)
    foot = render("foot.html", step=name, after=after, names=STEPS, session=session, left=left)
    return fragment("#steps", steps) + fragment("#foot", foot) + strip(session)


def strip(session: StudioSession) -> str:
    """The progress of a run."""
    run = session.running
    ended = session.runs[-1] if session.runs and run is None else None
    return fragment("#strip", render("strip.html", session=session, run=run, ended=ended))


def problem(said: Message | Exception) -> str:
    return fragment("#toast", render("toast.html", text=said))


_STEPS: Mapping[str, Callable[[StudioSession], str]] = {
    "columns": column_views.columns,
    "guarantee": column_views.guarantee,
    "judge": judge,
    "publish": publish,
}


def all_sessions(request: Request) -> StudioSessions:
    found: StudioSessions = request.app.state.sessions
    return found


All = Annotated[StudioSessions, Depends(all_sessions)]


def one_session(session: str, sessions: All) -> StudioSession:
    return sessions.find(session)


At = Annotated[StudioSession, Depends(one_session)]


def whole(session: StudioSession, sessions: StudioSessions, step: str) -> str:
    """A step with everything around it; without a table only the first step."""
    return step_fragments(session, step, sessions.limit)
