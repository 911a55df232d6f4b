"""Views of data, columns and guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from markupsafe import Markup

from shoal.columns import KIND_FACTS, MISSING_VALUE, RECORDS, Attribute, common_range, with_steps
from shoal.columns import preview as step_lines
from shoal.errors import OptionError, ShoalError
from shoal.io import FORMATS, titles
from shoal.mechanisms import DECLARATIONS, Parameter, method_class
from shoal.privacy import DATA_DEPENDENT
from shoal.studio import facts, weighing
from shoal.studio.edit import TYPES, range_words, source_of
from shoal.studio.guarantee import CARDS, PLACES, RAKED, SLIDERS, offers, typed
from shoal.studio.preview import command_text, fragment, render, waiting
from shoal.studio.session import PEOPLE, Desk
from shoal.studio.starting import Cost
from shoal.text import Message, capital, counted, listed

WINDOW = 40
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16")
SEPARATORS: Mapping[str, str] = {"": "automatic", ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
DECIMALS: Mapping[str, str] = {"": "automatic", ".": "point", ",": "comma"}


def data(desk: Desk, limit: int = 0) -> str:
    if desk.table is None or desk.source is None:
        return render(
            "start.html",
            desk=desk,
            formats=listed(titles(), "or"),
            accept=accepted(),
            limit=_bytes(limit),
            people=PEOPLE,
        )
    table = desk.table
    schema = desk.recipe.schema
    viewed = [a for a in schema.attributes if desk.rows_shown or a.name in desk.viewed]
    written = FORMATS[table.format]
    return render(
        "data.html",
        desk=desk,
        rows=table.n,
        names=table.names,
        size=_bytes(desk.source.size),
        missing=[attribute.name for attribute in viewed if desk.seen.gaps(attribute)],
        viewed=bool(viewed),
        text=written.text,
        told=schema.file,
        encodings=ENCODINGS,
        separators=SEPARATORS,
        decimals=DECIMALS,
        doubts=list(table.doubts.values()),
        window=Markup(window(desk, 0, WINDOW)) if desk.rows_shown else None,
    )


def window(desk: Desk, start: int, count: int) -> str:
    """Some rows of the table, once somebody asked to see them.

    Raises:
        OptionError: nobody did.
    """
    if not desk.rows_shown:
        raise OptionError("rows-table-shown-request")
    table = desk.sheet
    first = max(min(start, table.n - 1), 0)
    part = table.frame[first : first + min(count, 200), :]
    columns = [[_cell(value) for value in part.get_column(name).to_list()] for name in table.names]
    return render("rows.html", first=first, rows=list(zip(*columns, strict=True)))


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def accepted() -> str:
    """The endings of files that can be read, for a browser."""
    return ",".join(suffix for known in FORMATS.values() for suffix in known.suffixes)


def _bytes(count: int) -> str:
    if count >= 10**9:
        return f"{count / 1e9:.3g} GB"
    return f"{count / 1e6:.1f} MB" if count >= 10**5 else f"{max(count / 1e3, 0.1):.1f} kB"


def too_large(name: str, size: int, limit: int) -> Message:
    return Message.of("too-large-to-copy", name=name, size=_bytes(size), most=_bytes(limit))


def columns(desk: Desk) -> str:
    attributes = desk.recipe.schema.attributes
    if not desk.open_column:
        waiting = (a.name for a in attributes if desk.recipe.publishes(a) and status(desk, a)[0] != "good")
        desk.open_column = next(waiting, attributes[0].name)
    return render(
        "columns.html",
        desk=desk,
        rows=[row(desk, number) for number in range(len(attributes))],
        open=desk.recipe.schema.names.index(desk.open_column),
        inspector=Markup(inspector(desk)),
        left=unsettled(desk),
        looked=all(a.name in desk.viewed for a in attributes),
    )


def row(desk: Desk, number: int) -> Markup:
    """One line of the table of columns."""
    attribute = desk.column(number)
    draft = desk.drafts.get(attribute.name)
    lo, hi = _ends(desk, attribute)
    looked = attribute.name in desk.viewed
    ends = common_range(attribute.name) if attribute.kind_facts.measured and attribute.lo is None else None
    return Markup(
        render(
            "column_row.html",
            number=number,
            attribute=attribute,
            facts=attribute.kind_facts,
            published=desk.recipe.publishes(attribute),
            gaps=desk.seen.gaps(attribute) if looked else None,
            chosen=source_of(attribute),
            bars=_seen(desk, attribute).get("bars") if looked else None,
            different=_seen(desk, attribute)["different"] if looked else None,
            lo=lo,
            hi=hi,
            ends=ends if not lo and not hi else None,
            draft=draft,
            listed=_listed_words(desk, attribute),
            status=status(desk, attribute),
        )
    )


def _ends(desk: Desk, attribute: Attribute) -> tuple[str, str]:
    """The ends of a range as they were typed."""
    lo, hi = range_words(attribute)
    draft = desk.drafts.get(attribute.name)
    return (lo, hi) if draft is None else (draft.typed.get("lo", lo), draft.typed.get("hi", hi))


def _seen(desk: Desk, attribute: Attribute) -> dict[str, Any]:
    return (desk.seen.picture if attribute.kind_facts.ranged else desk.seen.listed)(attribute)


def _listed_words(desk: Desk, attribute: Attribute) -> str:
    if attribute.kind_facts.ranged or attribute.dropped:
        return ""
    if attribute.kind_facts.listed:
        return f"{len(attribute.ordered)} values in order" if attribute.ordered else "Put its values in order"
    if attribute.taxonomy is not None:
        return f"taxonomy of {len(attribute.taxonomy.values)} values"
    if attribute.tree is not None:
        count = len([value for value in attribute.tree.values if value != MISSING_VALUE])
        return f"{count} values, confirmed"
    return "List its values"


def status(desk: Desk, attribute: Attribute) -> tuple[str, str]:
    """How far a column is settled: a level and a few words."""
    if attribute.role == "weight" and (draft := desk.drafts.get(attribute.name)) is not None:
        return "bad", draft.short
    if desk.recipe.raking == attribute.name:
        return "warn", "needs public totals"
    if attribute.release == RAKED:
        return "good", "raked"
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
    if count := outside(desk, attribute):
        return "bad", f"{counted(count, 'value')} outside"
    origin = source_of(attribute)
    if origin == RECORDS:
        return "warn", "from the data"
    if not attribute.source.get("domain"):
        return "warn", "needs a source"
    return "good", "ready"


def outside(desk: Desk, attribute: Attribute) -> int:
    """How many values lie outside what is declared; told only to who asked to see the values."""
    if attribute.name not in desk.viewed:
        return 0
    if attribute.kind_facts.ranged:
        return int(desk.seen.picture(attribute).get("outside", 0))
    return sum(entry["count"] for entry in desk.seen.listed(attribute)["strange"])


def unsettled(desk: Desk) -> int:
    """How many columns are not settled."""
    if desk.table is None:
        return 0
    return sum(
        status(desk, attribute)[0] in ("warn", "bad")
        for attribute in desk.recipe.schema.attributes
        if desk.recipe.publishes(attribute) or attribute.role == "weight"
    )


def inspector(desk: Desk) -> str:
    """All about one column."""
    names = desk.recipe.schema.names
    if desk.open_column not in names:
        return render("inspector_empty.html")
    return render("inspector.html", **_about(desk, names.index(desk.open_column)))


def _about(desk: Desk, number: int) -> dict[str, Any]:
    """What the inspector shows of a column."""
    attribute = desk.column(number)
    looked = attribute.name in desk.viewed
    ranged = attribute.kind_facts.ranged
    tree = attribute.taxonomy
    return {
        "number": number,
        "attribute": attribute,
        "facts": attribute.kind_facts,
        "about": attribute.kind_facts.about,
        "gaps": desk.seen.gaps(attribute) if looked else None,
        "looked": looked,
        "picture": desk.seen.picture(attribute) if ranged and looked else None,
        "sliders": _sliders(desk, attribute) if ranged else [],
        "listed": None if ranged or not looked else desk.seen.listed(attribute),
        "values": attribute.ordered or (attribute.tree.values if attribute.tree is not None else ()),
        "types": [name for name in TYPES if attribute.kind_facts.takes(name)],  # type: ignore[arg-type]
        "chosen": source_of(attribute),
        "step": "" if attribute.step is None else typed(attribute.step),
        "steps": _steps(desk, attribute),
        "levels": range(1, max((line["depth"] for line in facts.tree_lines(tree, {})), default=0))
        if tree is not None
        else (),
        "weight": _weight(desk, attribute) if attribute.role == "weight" else None,
        "draft": desk.drafts.get(attribute.name),
        "status": status(desk, attribute),
        "dropped": not desk.recipe.publishes(attribute),
    }


def _weight(desk: Desk, attribute: Attribute) -> dict[str, Any]:
    """What becomes of a survey weight, and the totals that it is raked to."""
    waits = desk.recipe.raking == attribute.name
    chosen = RAKED if waits else attribute.release or "dropped"
    return {
        "releases": weighing.RELEASES,
        "chosen": chosen,
        "waits": [problem.sentence for problem in waiting(desk.recipe)] if waits else [],
        "words": weighing.words(desk.recipe, attribute),
        "totals": weighing.totals_of(desk.recipe, desk.drafts.get(attribute.name))
        if chosen == RAKED
        else None,
    }


def _sliders(desk: Desk, attribute: Attribute) -> list[dict[str, Any]]:
    """Both ends of a range on its scale; none as long as nothing public or shown says where it lies."""
    scale = desk.seen.scale(attribute)
    if scale is None:
        return []
    draft = desk.drafts.get(attribute.name)
    found = []
    for end, title, value, word in (
        ("lo", "Lowest", attribute.lo, range_words(attribute)[0]),
        ("hi", "Highest", attribute.hi, range_words(attribute)[1]),
    ):
        place = scale.place(float(value)) if value is not None else 0 if end == "lo" else PLACES
        shown = draft.typed.get(end, word) if draft is not None else word
        found.append({"end": end, "title": title, "place": place, "words": _thousands(shown) or "not set"})
    return found


def _thousands(text: str) -> str:
    """A number as it is read; what is none stays as it was typed."""
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.lstrip("-").isdigit() else text


def _steps(desk: Desk, attribute: Attribute) -> list[dict[str, Any]]:
    """The steps before protection of a column, and what they do to it, for who asked to see its values."""
    schema = desk.recipe.schema
    own = [(place, step) for place, step in enumerate(schema.steps) if step.column == attribute.name]
    if not own:
        return []
    done: list[str] = []
    if attribute.name in desk.viewed:
        only = replace(schema, steps=tuple(step for _, step in own))
        try:
            done = [str(line) for line in step_lines(only, with_steps(desk.sheet, only))]
        except ShoalError as error:
            done = [str(error)] * len(own)
    lines = done or [f"{step.words}; source: {step.source or 'none declared'}" for _, step in own]
    return [{"place": place, "words": line} for (place, _), line in zip(own, lines, strict=True)]


def column_changed(desk: Desk, number: int, *, whole: bool) -> str:
    """What one change of a column changes on the page."""
    attribute = desk.column(number)
    parts = [
        fragment(f"#row-{number}", row(desk, number))
        if whole
        else fragment(f"#status-{number}", render("status.html", status=status(desk, attribute)))
        + fragment(f"#known-{number}", _known(number, attribute)),
        fragment("#inspector", inspector(desk)),
        *_settled(desk),
    ]
    return "".join(parts)


def _known(number: int, attribute: Attribute) -> str:
    return render("known.html", number=number, attribute=attribute, chosen=source_of(attribute))


def column_slid(desk: Desk, number: int) -> str:
    """What a slider of a range changes: all that depends on it, and not the slider."""
    about = _about(desk, number)
    lo, hi = _ends(desk, desk.column(number))
    parts = [
        fragment(f"#ends-{number}", render("ends.html", lo=lo, hi=hi, **about)),
        fragment(f"#status-{number}", render("status.html", status=about["status"])),
        fragment("#inspector-problem", render("inspector_problem.html", **about)),
        fragment("#inspector-picture", render("inspector_picture.html", **about)),
        fragment(f"#known-{number}", _known(number, desk.column(number))),
        *(fragment(f"#slid-{one['end']}", one["words"]) for one in about["sliders"]),
        *_settled(desk),
    ]
    return "".join(parts)


def _settled(desk: Desk) -> list[str]:
    left = unsettled(desk)
    return [
        fragment("#unsettled", render("unsettled.html", left=left)),
        fragment("#foot-note", render("foot_note.html", step="columns", left=left, desk=desk)),
    ]


def promise(desk: Desk) -> str:
    return render(
        "promise.html",
        desk=desk,
        recipe=desk.recipe,
        cards=[card for card in CARDS if not card.folded],
        folded=[card for card in CARDS if card.folded],
        known=[a.name for a in desk.recipe.wanted if a.role == "quasi-identifier"],
        strength=Markup(strength(desk)),
        noise=Markup(noise(desk)),
        statement=Markup(statement(desk)),
        same=Markup(same(desk)),
        people=Markup(_people(desk)),
        wrong=_wrong(desk),
    )


def people(desk: Desk) -> str:
    """Who is rehearsed on."""
    return fragment("#people", _people(desk))


def _people(desk: Desk) -> str:
    return render("people.html", desk=desk, another=desk.another, accept=accepted(), wrong=_wrong(desk))


def _wrong(desk: Desk) -> tuple[Message, ...]:
    """Why a rehearsal cannot use the other table as things stand; what is wrong with both is said elsewhere."""
    if desk.another is None or not desk.look_ahead().ready:
        return ()
    return desk.another.problems(desk.recipe)


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
        fragment("#people-problem", render("people_problem.html", desk=desk, wrong=_wrong(desk))),
        fragment("#sheet", render("sheet.html", desk=desk, ahead=desk.look_ahead(), wrong=_wrong(desk))),
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
    method = method_class(recipe.method)
    own = method.parameters()
    kinds = [attribute.kind for attribute in recipe.wanted]
    shown = [name for name in SLIDERS if name in own and _shown(desk, name)]
    elsewhere = ("link", "t", "delta", *(("split",) if len(recipe.taken) > 1 else ()))
    rest = [name for name in own if name not in shown and name not in elsewhere]
    left_out = [a.name for a in recipe.wanted if a.kind not in method.kinds]
    return render(
        "strength.html",
        desk=desk,
        recipe=recipe,
        method=method,
        offers=offers(recipe.promise, len(kinds), kinds.count("nominal"), desk.sheet.n),
        sliders=[_slider(desk, name) for name in shown],
        neighbours=_field(desk, own["neighbours"]) if "neighbours" in own else None,
        fields=[_field(desk, own[name]) for name in rest if name != "neighbours"],
        odd=[_field(desk, DECLARATIONS[name]) for name in ("outside", "missing")],
        left_out=left_out,
        can_buy=desk.can_buy,
        ledger=recipe.promise.budgeted,
    )


def _shown(desk: Desk, name: str) -> bool:
    """Sliders of what a promise has; δ and t belong to their own cards."""
    if name in ("delta", "t"):
        return name in desk.recipe.settings
    return True


def _slider(desk: Desk, name: str) -> dict[str, Any]:
    slider, setting = SLIDERS[name], method_class(desk.recipe.method).parameters()[name]
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
        "optional": setting.default is None if name == "k" else name == "l",
    }


def _field(desk: Desk, setting: Parameter) -> dict[str, Any]:
    """A parameter as a form asks for it; its declaration says all about it."""
    recipe = desk.recipe
    own = setting.default
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
    return f"{capital(text)}."


def noise(desk: Desk) -> str:
    """What the noise will do, and how ε is shared, where the method can share it."""
    shared = method_class(desk.recipe.method).parameters().get("split")
    split = _field(desk, shared) if shared is not None and len(desk.recipe.taken) > 1 else None
    return render("noise.html", ahead=desk.look_ahead(), recipe=desk.recipe, split=split)


def ask_cost(cost: Cost, kind: str, price: str) -> str:
    """Ask whether a run may spend what it costs; the answer carries what was shown, so that it fits nothing else."""
    sent = {"confirmed": asdict(cost), **({"price": price} if price else {})}
    return fragment("#ask", render("cost.html", cost=cost, kind=kind, sent=sent))


def expected(desk: Desk) -> str:
    """How long a run would take, as far as it is known; who asked need not ask again."""
    return fragment("#expected", render("expected.html", desk=desk, asked=True))


def statement(desk: Desk) -> str:
    """The promise as readers will read it."""
    ahead = desk.look_ahead()
    return render(
        "statement.html",
        desk=desk,
        ahead=ahead,
        card=desk.recipe.promise,
        recorded=() if ahead.statement is None else recorded_codes(ahead.statement),
        first=desk.first_measured,
        asked=False,
        another=desk.another,
        wrong=_wrong(desk),
        people=PEOPLE,
        outside=_outside(desk),
        column_numbers={name: number for number, name in enumerate(desk.recipe.schema.names)},
    )


def _outside(desk: Desk) -> dict[str, int | None]:
    """How many values lie outside their range, by column; None as long as nobody asked to see that column."""
    return {
        problem.column: outside(desk, desk.recipe.schema[problem.column])
        if problem.column in desk.viewed
        else None
        for problem in desk.look_ahead().problems
        if problem.code == "outside-domain"
    }


def recorded_codes(statement: Mapping[str, Any]) -> tuple[str, ...]:
    """What the journal of use knows that bears on the declarations, by code."""
    return tuple(one["code"] for one in statement["recorded"] if one["code"] != DATA_DEPENDENT)


def same(desk: Desk) -> str:
    """The same as a command."""
    name = desk.source.name if desk.source is not None else "DATA"
    return render("same.html", recipe=desk.look_ahead().recipe, command=command_text(name, desk.dataset))
