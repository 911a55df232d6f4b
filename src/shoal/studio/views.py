"""From a desk to HTML: what a template shows is computed here, and nothing is decided.

An answer is a list of fragments, each with the place on the page that it replaces. What somebody is just typing into is
never replaced by what it caused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from shoal.columns.attribute import MISSING_VALUE, RECORDS, SOURCES, Attribute
from shoal.columns.kinds import KIND_FACTS
from shoal.columns.missing import POLICIES
from shoal.columns.name_words import common_range
from shoal.io import FORMATS, titles
from shoal.method.models import MODELS
from shoal.method.presets import PRESETS
from shoal.method.settings import DECLARATIONS, SETTINGS, Setting
from shoal.method.verdict import DECISIONS
from shoal.studio import facts, publishing
from shoal.studio.desk import PEOPLE, Desk
from shoal.studio.editing import KINDS, ROLES, TYPES, range_words, source_of
from shoal.studio.looking import spoiled
from shoal.studio.preview import command_text, script_text
from shoal.studio.promises import CARDS, SLIDERS, offers
from shoal.studio.recipe import OFF, ON, typed
from shoal.studio.runs import Run

HERE = Path(__file__).parent
STEPS: Mapping[str, str] = {
    "data": "Data",
    "columns": "Columns",
    "promise": "Promise",
    "judge": "Judge",
    "publish": "Publish",
}
WINDOW = 40
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16")
SEPARATORS: Mapping[str, str] = {"": "by itself", ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
DECIMALS: Mapping[str, str] = {"": "by itself", ".": "point", ",": "comma"}
LIGHTS: Mapping[str, str] = {"green": "good", "amber": "warn", "red": "bad"}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    made.filters["cap"] = lambda text: f"{text[:1].upper()}{text[1:]}"
    made.filters["light"] = lambda level: LIGHTS[level]
    made.globals.update(
        ROLES=ROLES, KINDS=KINDS, TYPES=TYPES, SOURCES=SOURCES, POLICIES=POLICIES, ON=ON, OFF=OFF
    )
    made.globals.update(DECISIONS=DECISIONS, RECORDS=RECORDS)
    return made


def render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def fragment(into: str, html: str) -> str:
    """A piece of a page and the place that it replaces."""
    return f'<template data-into="{into}">{html}</template>'


def page() -> str:
    return render("page.html", steps=STEPS)


def step(desk: Desk, name: str, limit: int = 0) -> str:
    """A whole step, with everything around it."""
    main = data(desk, limit) if name == "data" else _STEPS[name](desk)
    return fragment("#main", main) + around(desk, name)


def around(desk: Desk, name: str) -> str:
    """The list of steps, the foot and the strip."""
    places = list(STEPS)
    reached = places.index(name) if name in places else 0
    after = places[reached + 1] if reached + 1 < len(places) else ""
    return "".join(
        (
            fragment(
                "#steps",
                render("steps.html", steps=STEPS, now=name, reached=reached, ready=desk.table is not None),
            ),
            fragment(
                "#foot", render("foot.html", step=name, after=after, names=STEPS, desk=desk, left=_left(desk))
            ),
            strip(desk),
        )
    )


def strip(desk: Desk) -> str:
    """Where the work of a run stands."""
    run = desk.running
    ended = desk.runs[-1] if desk.runs and run is None else None
    return fragment("#strip", render("strip.html", desk=desk, run=run, ended=ended))


def problem(text: str) -> str:
    return fragment("#toast", render("toast.html", text=text))


# 1 data


def data(desk: Desk, limit: int = 0) -> str:
    if desk.table is None or desk.source is None:
        return render(
            "start.html", desk=desk, formats=titles(), accept=_accept(), limit=_bytes(limit), people=PEOPLE
        )
    table = desk.table
    schema = desk.recipe.schema
    missing = [attribute.name for attribute in schema.attributes if desk.gaps(attribute)]
    written = FORMATS[table.format]
    return render(
        "data.html",
        desk=desk,
        rows=table.n,
        names=table.names,
        size=_bytes(desk.source.size),
        missing=missing,
        text=written.text,
        told=schema.file,
        encodings=ENCODINGS,
        separators=SEPARATORS,
        decimals=DECIMALS,
        doubts=list(table.doubts.values()),
        window=Markup(window(desk, 0, WINDOW)),
    )


def window(desk: Desk, start: int, count: int) -> str:
    """Some rows of the table."""
    table = desk.sheet
    first = max(min(start, table.n - 1), 0)
    part = table.frame[first : first + min(count, 200), :]
    columns = [[_cell(value) for value in part.get_column(name).to_list()] for name in table.names]
    return render("rows.html", first=first, rows=list(zip(*columns, strict=True)))


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _accept() -> str:
    return ",".join(suffix for known in FORMATS.values() for suffix in known.suffixes)


def _bytes(count: int) -> str:
    if count >= 10**9:
        return f"{count / 1e9:.3g} GB"
    return f"{count / 1e6:.1f} MB" if count >= 10**5 else f"{max(count / 1e3, 0.1):.1f} kB"


def too_large(desk: Desk, name: str, size: int, limit: int) -> str:
    return (
        f"'{name}' has {_bytes(size)}, and up to {_bytes(limit)} are copied: start with 'shoal studio FILE' to read it "
        "in place."
    )


# 2 columns


def columns(desk: Desk) -> str:
    attributes = desk.recipe.schema.attributes
    if not desk.open_column:
        unsettled = (a.name for a in attributes if desk.recipe.publishes(a) and status(desk, a)[0] != "good")
        desk.open_column = next(unsettled, attributes[0].name)
    return render(
        "columns.html",
        desk=desk,
        rows=[row(desk, number) for number in range(len(attributes))],
        inspector=Markup(inspector(desk)),
        left=_left(desk),
        looked=all(a.name in desk.looks.columns for a in attributes),
        vouchable=[source for source in SOURCES if source != RECORDS],
    )


def row(desk: Desk, number: int) -> Markup:
    """One line of the table of columns."""
    attribute = desk.column(number)
    draft = desk.drafts.get(attribute.name)
    lo, hi = range_words(attribute)
    if draft is not None and draft.typed:
        lo, hi = draft.typed.get("lo", lo), draft.typed.get("hi", hi)
    looked = attribute.name in desk.looks.columns
    ends = common_range(attribute.name) if attribute.kind_facts.measured and attribute.lo is None else None
    return Markup(
        render(
            "column_row.html",
            number=number,
            attribute=attribute,
            facts=attribute.kind_facts,
            published=desk.recipe.publishes(attribute),
            ticked=attribute.name not in desk.recipe.left_out,
            gaps=desk.gaps(attribute),
            bars=_spark(desk, attribute) if looked else None,
            lo=lo,
            hi=hi,
            ends=ends if not lo and not hi else None,
            draft=draft,
            listed=_listed_words(desk, attribute),
            status=status(desk, attribute),
            open=desk.open_column == attribute.name,
        )
    )


def _spark(desk: Desk, attribute: Attribute) -> list[dict[str, Any]]:
    if attribute.kind_facts.ranged:
        found: list[dict[str, Any]] = facts.histogram(desk.sheet, attribute).get("bars", [])
        return found
    made: list[dict[str, Any]] = desk.listed(attribute)["bars"]
    return made


def _listed_words(desk: Desk, attribute: Attribute) -> str:
    if attribute.kind_facts.ranged:
        return ""
    if attribute.kind_facts.listed:
        return f"{len(attribute.ordered)} values in order" if attribute.ordered else "Put its values in order"
    if attribute.taxonomy is not None:
        return f"taxonomy of {len(attribute.taxonomy.values)} values"
    if attribute.tree is not None:
        count = len([value for value in attribute.tree.values if value != MISSING_VALUE])
        return f"{count} values, confirmed"
    return f"Confirm {desk.listed(attribute)['different']} values"


def status(desk: Desk, attribute: Attribute) -> tuple[str, str]:
    """How far a column is settled: a level and a few words."""
    if not desk.recipe.publishes(attribute):
        if (
            attribute.role == "unit"
            and attribute.max_rows is None
            and attribute.name not in desk.recipe.left_out
        ):
            return "warn", "needs a number of rows"
        return "off", "left out"
    draft = desk.drafts.get(attribute.name)
    if draft is not None:
        return "bad", draft.short
    kind = attribute.kind_facts
    if kind.ranged and attribute.lo is None:
        return "warn", "needs a range"
    if kind.listed and not attribute.ordered:
        return "warn", "needs an order"
    if not kind.ordered and attribute.tree is None and attribute.type != "boolean":
        return "warn", "needs a list"
    outside = _outside(desk, attribute)
    if outside:
        return "bad", f"{outside:,} value{'s' if outside > 1 else ''} outside"
    origin = source_of(attribute)
    if origin == RECORDS:
        return "warn", "from the data"
    if not attribute.source.get("domain"):
        return "warn", "needs a source"
    return "good", "ready"


def _outside(desk: Desk, attribute: Attribute) -> int:
    """How many values lie outside what is declared; told only to who asked to see the values."""
    if attribute.name not in desk.looks.columns:
        return 0
    if attribute.kind_facts.ranged:
        return int(facts.histogram(desk.sheet, attribute).get("outside", 0))
    return sum(entry["count"] for entry in desk.listed(attribute)["strange"])


def _left(desk: Desk) -> int:
    """How many columns are not settled."""
    if desk.table is None:
        return 0
    return sum(
        status(desk, attribute)[0] in ("warn", "bad")
        for attribute in desk.recipe.schema.attributes
        if desk.recipe.publishes(attribute)
    )


def inspector(desk: Desk) -> str:
    """All about one column."""
    names = desk.recipe.schema.names
    if desk.open_column not in names:
        return render("inspector_empty.html")
    number = names.index(desk.open_column)
    attribute = desk.column(number)
    looked = attribute.name in desk.looks.columns
    ranged = attribute.kind_facts.ranged
    return render(
        "inspector.html",
        number=number,
        attribute=attribute,
        facts=attribute.kind_facts,
        about=attribute.kind_facts.about,
        gaps=desk.gaps(attribute),
        looked=looked,
        picture=facts.histogram(desk.sheet, attribute) if ranged and looked else None,
        listed=None if ranged or not looked else desk.listed(attribute),
        values=attribute.ordered or (attribute.tree.values if attribute.tree is not None else ()),
        types=[name for name in TYPES if attribute.kind_facts.takes(name)],  # type: ignore[arg-type]
        chosen=source_of(attribute),
        step="" if attribute.step is None else typed(attribute.step),
        draft=desk.drafts.get(attribute.name),
        status=status(desk, attribute),
        dropped=not desk.recipe.publishes(attribute),
    )


def column_changed(desk: Desk, number: int, *, whole: bool) -> str:
    """What one change of a column changes on the page."""
    attribute = desk.column(number)
    parts = [
        fragment(f"#row-{number}", row(desk, number))
        if whole
        else fragment(f"#status-{number}", render("status.html", status=status(desk, attribute))),
        fragment("#inspector", inspector(desk)),
        fragment("#unsettled", render("unsettled.html", left=_left(desk))),
        fragment("#foot-note", render("foot_note.html", step="columns", left=_left(desk), desk=desk)),
    ]
    return "".join(parts)


# 3 promise


def promise(desk: Desk) -> str:
    return render(
        "promise.html",
        desk=desk,
        recipe=desk.recipe,
        cards=[card for card in CARDS if not card.folded],
        folded=[card for card in CARDS if card.folded],
        strength=Markup(strength(desk)),
        noise=Markup(noise(desk)),
        statement=Markup(statement(desk)),
        same=Markup(same(desk)),
    )


def promised(desk: Desk, *, method: bool = False, moved: str = "", by: str = "") -> str:
    """What a setting changes on the page: all that depends on it, and not the control itself.

    Args:
        method: the promise or the method changed, and with it the controls.
        moved, by: the setting, and which of its two controls was used.
    """
    parts = [
        fragment("#noise", noise(desk)),
        fragment("#statement", statement(desk)),
        fragment("#same", same(desk)),
        fragment("#sheet", render("sheet.html", desk=desk, ahead=desk.look_ahead())),
    ]
    if method:
        parts.insert(0, fragment("#strength", strength(desk)))
    elif moved in SLIDERS:
        other = "typed" if by == "slider" else "slider"
        control = render(f"{other}.html", setting=_slider(desk, moved))
        parts.insert(0, fragment(f"#{other}-{moved}", control))
    return "".join(parts)


def strength(desk: Desk) -> str:
    recipe = desk.recipe
    preset = PRESETS[recipe.method]
    kinds = [attribute.kind for attribute in recipe.wanted]
    shown = [name for name in SLIDERS if name in preset.adjustable and _shown(desk, name)]
    rest = [name for name in preset.adjustable if name not in shown and name not in ("link", "t", "delta")]
    left_out = [a.name for a in recipe.wanted if a.kind not in preset.kinds]
    return render(
        "strength.html",
        desk=desk,
        recipe=recipe,
        method=preset,
        offers=offers(recipe.promise, len(kinds), kinds.count("nominal"), desk.sheet.n),
        sliders=[_slider(desk, name) for name in shown],
        neighbours=_field(desk, SETTINGS["neighbours"]) if "neighbours" in preset.adjustable else None,
        fields=[_field(desk, SETTINGS[name]) for name in rest if name != "neighbours"],
        odd=[_field(desk, DECLARATIONS[name]) for name in ("outside", "missing")],
        left_out=left_out,
        can_buy=desk.can_buy,
        ledger=any(MODELS[model].budgeted for model in recipe.promise.models),
    )


def _shown(desk: Desk, name: str) -> bool:
    """Sliders of what a promise has; δ and t belong to their own cards."""
    if name in ("delta", "t"):
        return name in desk.recipe.settings
    return True


def _slider(desk: Desk, name: str) -> dict[str, Any]:
    slider, setting = SLIDERS[name], SETTINGS[name]
    value = desk.recipe.settings.get(name, "")
    try:
        place = slider.place(float(value), desk.sheet.n) if value else 0
    except (ValueError, OverflowError):
        place = 0
    return {
        "name": name,
        "title": slider.title,
        "low": slider.low,
        "high": slider.high,
        "about": _sentence(setting.sentence()),
        "range": setting.range,
        "value": value,
        "place": place,
        "optional": PRESETS[desk.recipe.method].k is None if name == "k" else name == "l",
    }


def _field(desk: Desk, setting: Setting) -> dict[str, Any]:
    """A setting as a form asks for it; its record says all about it."""
    recipe = desk.recipe
    own = getattr(PRESETS[recipe.method], setting.name, setting.default)
    value = (
        getattr(recipe, setting.name)
        if setting.name in ("missing", "outside")
        else recipe.settings.get(setting.name, "")
    )
    return {
        "name": setting.name,
        "about": _sentence(setting.about.format(on="on", off="off")),
        "range": setting.range,
        "choices": {
            word: meaning if isinstance(meaning, str) else meaning.about
            for word, meaning in setting.choices.items()
        }
        if not setting.form.keyed
        else {},
        "switch": setting.form.typed is bool,
        "besides": bool(setting.form.besides),
        "default": typed(own) if isinstance(own, (str, int, float, bool)) or own is None else "",
        "placeholder": setting.form.placeholder,
        "value": value,
        "kinds": [facts.about for kind, facts in KIND_FACTS.items() if kind in setting.kinds]
        if len(setting.kinds) < len(KIND_FACTS)
        else [],
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def noise(desk: Desk) -> str:
    return render("noise.html", ahead=desk.look_ahead(), recipe=desk.recipe)


def statement(desk: Desk) -> str:
    """The promise as readers will read it."""
    ahead = desk.look_ahead()
    return render(
        "statement.html",
        desk=desk,
        ahead=ahead,
        card=desk.recipe.promise,
        tuned=desk.tuned,
        spoiled=spoiled(desk.recipe),
        sealed=desk.sealed_run,
        column_numbers={name: number for number, name in enumerate(desk.recipe.schema.names)},
    )


def same(desk: Desk) -> str:
    """The same as a command."""
    name = desk.source.name if desk.source is not None else "DATA"
    return render(
        "same.html", recipe=desk.look_ahead().recipe, command=command_text(name), script=script_text(name)
    )


# 4 judge


def judge(desk: Desk, letter: str = "", column: str = "", tab: str = "distributions", row: int = 17) -> str:
    run = desk.judge(letter)
    if run is None:
        return render("judge_empty.html", desk=desk)
    return render(
        "judge.html",
        desk=desk,
        run=run,
        facts=run.facts,
        runs=desk.releases,
        before=_before(desk, run),
        part=Markup(judge_part(desk, run, tab, column)),
        tab=tab,
        person=Markup(person(run, row)),
        frontier=Markup(frontier(desk)),
        statement=run.facts["statement"],
    )


def judge_part(desk: Desk, run: Run, tab: str, column: str = "") -> str:
    """One of the tabs: distributions, relations, groups or learning."""
    shown = run.facts["columns"]
    wanted = next((one for one in shown if one["name"] == column), shown[0])
    compared = [one for one in desk.releases if one is not run and one.rehearsed == run.rehearsed][:3]
    return render(
        f"judge_{tab}.html",
        desk=desk,
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


def _same_column(run: Run, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same column of another run, where it can be drawn into the same picture."""
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
        picks = [0, count // 4, count // 2, 3 * count // 4, count]
        ticks = [(round(pick * width, 2), _tick(column, edges[pick])) for pick in picks]
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


def _tick(column: Mapping[str, Any], value: float) -> str:
    from shoal.columns.dates import day_text
    from shoal.report.compare import number_words

    if KIND_FACTS[column["kind"]].days:
        return str(day_text(round(value)))
    return number_words(float(f"{value:.3g}"))


def _levels(top: float) -> list[float]:
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        if top / step <= 5:
            return [step * number for number in range(int(top / step) + 1)]
    return [0.0, 0.5, 1.0]


def person(run: Run, number: int) -> str:
    from shoal.io import read

    original, release = run.kept
    quasi = [a.name for a in run.recipe.taken if a.role == "quasi-identifier"]
    of_table = MODELS[run.facts["statement"]["model"]].of_the_table
    table = read(original, strict=False)
    found = facts.person(table, release, number, quasi if of_table else ())
    return render("person.html", person=found, run=run, rows=table.n)


def frontier(desk: Desk) -> str:
    """All runs and compared settings: loss over risk."""
    compared = next((run for run in reversed(desk.runs) if run.kind == "compare"), None)
    loss = compared.loss if compared is not None and compared.loss else "total_variation"
    dots = [
        {
            "letter": run.letter,
            "words": run.settings_words,
            "loss": run.facts["loss"].get(loss),
            "risk": run.facts["risk"] if run.facts["risk"] is not None else run.facts["chance"] or 0.0,
            "frontier": False,
            "rehearsed": run.rehearsed,
        }
        for run in desk.releases
    ]
    if compared is not None:
        dots += [
            {
                "letter": "",
                "words": dot["words"],
                "loss": None if dot["loss"] is None else dot["loss"]["mean"],
                "risk": 0.0 if dot["risk"] is None else dot["risk"]["mean"],
                "frontier": dot["frontier"],
                "rehearsed": False,
                "settings": {name: dot[name] for name in ("method", "k") if name in dot},
                "note": f"loss {dot['loss_words']}, traced back {dot['risk_words']}%",
            }
            for dot in compared.dots
        ]
    dots = [dot for dot in dots if dot["loss"] is not None]
    top = max((dot["loss"] for dot in dots), default=0.0) * 1.15 or 1.0
    right = max((dot["risk"] for dot in dots), default=0.0) * 1.15 or 1.0
    for dot in dots:
        dot["x"], dot["y"] = round(100 * dot["risk"] / right, 2), round(100 - 100 * dot["loss"] / top, 2)
    edge = sorted((dot for dot in dots if dot["frontier"]), key=lambda dot: dot["x"])
    return render(
        "frontier.html",
        desk=desk,
        dots=dots,
        line=" ".join(f"{dot['x']},{dot['y']}" for dot in edge) if len(edge) > 1 else "",
        loss=loss.replace("_", " "),
        right=f"{right:.2g}",
        top=f"{top:.2g}",
        compared=compared,
        real=desk.looks.judged,
        spoiled=spoiled(desk.recipe),
        history=_history(desk),
        people=PEOPLE,
    )


def _history(desk: Desk) -> list[dict[str, Any]]:
    found, before = [], None
    for run in desk.releases:
        found.append({"run": run, "changes": [] if before is None else _changes(before, run)})
        before = run
    return found


def _before(desk: Desk, run: Run) -> list[str]:
    return next((entry["changes"] for entry in _history(desk) if entry["run"] is run), [])


def _changes(before: Run, after: Run) -> list[str]:
    first = {"method": before.recipe.method, **before.recipe.asked}
    second = {"method": after.recipe.method, **after.recipe.asked}
    names: Sequence[str] = tuple(dict.fromkeys((*first, *second)))
    return [
        f"{name}: {first.get(name, 'none')} → {second.get(name, 'none')}"
        for name in names
        if first.get(name) != second.get(name)
    ]


# 5 publish


def publish(desk: Desk) -> str:
    run = desk.to_publish
    if run is None:
        return render("publish_empty.html", desk=desk)
    checks = publishing.checklist(run)
    name = desk.source.name if desk.source is not None else "the table"
    return render(
        "publish.html",
        desk=desk,
        run=run,
        facts=run.facts,
        checks=checks,
        blocked=publishing.blocked(checks) and not run.override,
        texts=publishing.texts(run, name),
        files=publishing.contents(run.bundle),
        folder=publishing.release_name(run),
        recipe=(run.bundle / "method.toml").read_text("utf-8"),
        command=command_text(name),
        script=script_text(name),
    )


_STEPS: Mapping[str, Callable[[Desk], str]] = {
    "columns": columns,
    "promise": promise,
    "judge": judge,
    "publish": publish,
}
