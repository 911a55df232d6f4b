"""Views of data, columns and guarantees."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from shoal.columns import (
    KIND_FACTS,
    MISSING_VALUE,
    RECORDS,
    Attribute,
    Order,
    Rule,
    applied_rules,
    common_range,
    with_steps,
)
from shoal.columns import preview as step_lines
from shoal.errors import OptionError, ShoalError
from shoal.io import FORMATS, titles
from shoal.mechanisms import DECLARATIONS, Parameter, method_class, names_in
from shoal.numbers import decimal_text, exact_text
from shoal.privacy import DATA_DEPENDENT, MODELS
from shoal.studio import facts, weighing
from shoal.studio.edit import RULE_FIELDS, RULE_KINDS, RULE_SIGNS, TYPES, in_rule, range_words, source_of
from shoal.studio.guarantee import CARDS, PLACES, RAKED, SLIDERS, Recipe, offers, typed
from shoal.studio.preview import command_text, fragment, render, waiting
from shoal.studio.session import PEOPLE, StudioSession
from shoal.studio.starting import Cost
from shoal.text import Message, capital, counted, listed

WINDOW = 40
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16")
SEPARATORS: Mapping[str, str] = {"": "automatic", ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
DECIMALS: Mapping[str, str] = {"": "automatic", ".": "point", ",": "comma"}


def data(session: StudioSession, limit: int = 0) -> str:
    if session.table is None or session.source is None:
        return render(
            "start.html",
            session=session,
            formats=listed(titles(), "or"),
            accept=accepted(),
            limit=_bytes(limit),
            people=PEOPLE,
        )
    table = session.table
    schema = session.recipe.schema
    viewed = [a for a in schema.attributes if session.rows_shown or a.name in session.viewed]
    written = FORMATS[table.format]
    return render(
        "data.html",
        session=session,
        rows=table.n,
        names=table.names,
        size=_bytes(session.source.size),
        missing=[attribute.name for attribute in viewed if session.seen.gaps(attribute)],
        viewed=bool(viewed),
        text=written.text,
        told=schema.file,
        encodings=ENCODINGS,
        separators=SEPARATORS,
        decimals=DECIMALS,
        doubts=list(table.doubts.values()),
        window=Markup(window(session, 0, WINDOW)) if session.rows_shown else None,
    )


def window(session: StudioSession, start: int, count: int) -> str:
    """Some rows of the table, once the user asked to see them.

    Raises:
        OptionError: the user has not asked.
    """
    if not session.rows_shown:
        raise OptionError("rows-table-shown-request")
    table = session.sheet
    first = max(min(start, table.n - 1), 0)
    part = table.frame[first : first + min(count, 200), :]
    columns = [[_cell(value) for value in part.get_column(name).to_list()] for name in table.names]
    return render("rows.html", first=first, rows=list(zip(*columns, strict=True)))


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def accepted() -> str:
    """The file extensions that can be read, for a browser."""
    return ",".join(suffix for known in FORMATS.values() for suffix in known.suffixes)


def _bytes(count: int) -> str:
    if count >= 10**9:
        return f"{count / 1e9:.3g} GB"
    return f"{count / 1e6:.1f} MB" if count >= 10**5 else f"{max(count / 1e3, 0.1):.1f} kB"


def too_large(name: str, size: int, limit: int) -> Message:
    return Message.of("too-large-to-copy", name=name, size=_bytes(size), most=_bytes(limit))


def columns(session: StudioSession) -> str:
    attributes = session.recipe.schema.attributes
    if not session.open_column:
        waiting = (
            a.name for a in attributes if session.recipe.publishes(a) and status(session, a)[0] != "good"
        )
        session.open_column = next(waiting, attributes[0].name)
    return render(
        "columns.html",
        session=session,
        rows=[row(session, number) for number in range(len(attributes))],
        open=session.recipe.schema.names.index(session.open_column),
        inspector=Markup(inspector(session)),
        rules=Markup(_rules(session)),
        rule_form=Markup(_rule_form(session)),
        left=unsettled(session),
        viewed=all(a.name in session.viewed for a in attributes),
    )


def row(session: StudioSession, number: int) -> Markup:
    """One line of the table of columns."""
    attribute = session.column(number)
    draft = session.drafts.get(attribute.name)
    lo, hi = _ends(session, attribute)
    viewed = attribute.name in session.viewed
    ends = common_range(attribute.name) if attribute.kind_facts.measured and attribute.lo is None else None
    return Markup(
        render(
            "column_row.html",
            number=number,
            attribute=attribute,
            facts=attribute.kind_facts,
            published=session.recipe.publishes(attribute),
            gaps=session.seen.gaps(attribute) if viewed else None,
            chosen=source_of(attribute),
            bars=_seen(session, attribute).get("bars") if viewed else None,
            different=_seen(session, attribute)["different"] if viewed else None,
            lo=lo,
            hi=hi,
            ends=ends if not lo and not hi else None,
            draft=draft,
            listed=_listed_words(session, attribute),
            status=status(session, attribute),
        )
    )


def _ends(session: StudioSession, attribute: Attribute) -> tuple[str, str]:
    """The ends of a range as typed."""
    lo, hi = range_words(attribute)
    draft = session.drafts.get(attribute.name)
    return (lo, hi) if draft is None else (draft.typed.get("lo", lo), draft.typed.get("hi", hi))


def _seen(session: StudioSession, attribute: Attribute) -> dict[str, Any]:
    return (session.seen.picture if attribute.kind_facts.ranged else session.seen.listed)(attribute)


def _listed_words(session: StudioSession, attribute: Attribute) -> str:
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


def status(session: StudioSession, attribute: Attribute) -> tuple[str, str]:
    """The state of a column's declaration: a level and a few words."""
    if attribute.role == "weight" and (draft := session.drafts.get(attribute.name)) is not None:
        return "bad", draft.short
    if session.recipe.raking == attribute.name:
        return "warn", "needs public totals"
    if attribute.release == RAKED:
        return "good", "raked"
    if not session.recipe.publishes(attribute):
        if attribute.role == "unit" and attribute.name not in session.recipe.left_out:
            return _status_of_unit(attribute)
        return "off", "left out"
    draft = session.drafts.get(attribute.name)
    if draft is not None:
        return "bad", draft.short
    kind = attribute.kind_facts
    if kind.ranged and attribute.lo is None:
        return "warn", "needs a range"
    if kind.listed and not attribute.ordered:
        return "warn", "needs an order"
    if not kind.ordered and attribute.tree is None and attribute.type != "boolean":
        return "warn", "needs a list"
    if count := outside(session, attribute):
        return "bad", f"{counted(count, 'value')} outside"
    origin = source_of(attribute)
    if origin == RECORDS:
        return "warn", "from the data"
    if not attribute.source.get("domain"):
        return "warn", "needs a source"
    return "good", "ready"


def _status_of_unit(attribute: Attribute) -> tuple[str, str]:
    if attribute.max_rows is None and attribute.bound is None:
        return "warn", "needs a number of rows"
    origin = source_of(attribute)
    if origin == RECORDS:
        return "warn", "from the data"
    return ("good", "unit") if origin else ("warn", "needs a source")


def outside(session: StudioSession, attribute: Attribute) -> int:
    """Number of values outside the declared range; shown only after the user asked to see the values."""
    if attribute.name not in session.viewed:
        return 0
    if attribute.kind_facts.ranged:
        return int(session.seen.picture(attribute).get("outside", 0))
    return sum(entry["count"] for entry in session.seen.listed(attribute)["strange"])


def unsettled(session: StudioSession) -> int:
    """Number of columns whose declaration is incomplete."""
    if session.table is None:
        return 0
    return sum(
        status(session, attribute)[0] in ("warn", "bad")
        for attribute in session.recipe.schema.attributes
        if session.recipe.publishes(attribute) or attribute.role in ("weight", "unit")
    )


def inspector(session: StudioSession) -> str:
    """The panel for one column."""
    names = session.recipe.schema.names
    if session.open_column not in names:
        return render("inspector_empty.html")
    return render("inspector.html", **_about(session, names.index(session.open_column)))


def _about(session: StudioSession, number: int) -> dict[str, Any]:
    """The values shown in the panel of a column."""
    attribute = session.column(number)
    viewed = attribute.name in session.viewed
    ranged = attribute.kind_facts.ranged
    tree = attribute.taxonomy
    return {
        "number": number,
        "attribute": attribute,
        "facts": attribute.kind_facts,
        "about": attribute.kind_facts.about,
        "gaps": session.seen.gaps(attribute) if viewed else None,
        "viewed": viewed,
        "picture": session.seen.picture(attribute) if ranged and viewed else None,
        "sliders": _sliders(session, attribute) if ranged else [],
        "listed": None if ranged or not viewed else session.seen.listed(attribute),
        "values": attribute.ordered or (attribute.tree.values if attribute.tree is not None else ()),
        "types": [name for name in TYPES if attribute.kind_facts.takes(name)],  # type: ignore[arg-type]
        "chosen": source_of(attribute),
        "step": "" if attribute.step is None else typed(attribute.step),
        "steps": _steps(session, attribute),
        "levels": range(1, max((line["depth"] for line in facts.tree_lines(tree, {})), default=0))
        if tree is not None
        else (),
        "weight": _weight(session, attribute) if attribute.role == "weight" else None,
        "draft": session.drafts.get(attribute.name),
        "status": status(session, attribute),
        "dropped": not session.recipe.publishes(attribute),
    }


def _weight(session: StudioSession, attribute: Attribute) -> dict[str, Any]:
    """The treatment of a survey weight, and the totals that it is raked to."""
    waits = session.recipe.raking == attribute.name
    chosen = RAKED if waits else attribute.release or "dropped"
    return {
        "releases": weighing.RELEASES,
        "chosen": chosen,
        "waits": [problem.sentence for problem in waiting(session.recipe)] if waits else [],
        "words": weighing.words(session.recipe, attribute),
        "totals": weighing.totals_of(session.recipe, session.drafts.get(attribute.name))
        if chosen == RAKED
        else None,
    }


def _sliders(session: StudioSession, attribute: Attribute) -> list[dict[str, Any]]:
    """Sliders for both ends of a range; none until a declared or shown value determines the scale."""
    scale = session.seen.scale(attribute)
    if scale is None:
        return []
    draft = session.drafts.get(attribute.name)
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
    """A number with thousands separators; anything else stays as typed."""
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.lstrip("-").isdigit() else text


def _steps(session: StudioSession, attribute: Attribute) -> list[dict[str, Any]]:
    """The preprocessing steps of a column, and their effect if the user asked to see its values."""
    schema = session.recipe.schema
    own = [(place, step) for place, step in enumerate(schema.steps) if step.column == attribute.name]
    if not own:
        return []
    done: list[str] = []
    if attribute.name in session.viewed:
        only = replace(schema, steps=tuple(step for _, step in own))
        try:
            done = [str(line) for line in step_lines(only, with_steps(session.sheet, only))]
        except ShoalError as error:
            done = [str(error)] * len(own)
    lines = done or [f"{step.words}; source: {step.source or 'none declared'}" for _, step in own]
    return [{"place": place, "words": line} for (place, _), line in zip(own, lines, strict=True)]


def column_changed(session: StudioSession, number: int, *, whole: bool) -> str:
    """The parts of the page that change with a column."""
    attribute = session.column(number)
    parts = [
        fragment(f"#row-{number}", row(session, number))
        if whole
        else fragment(f"#status-{number}", render("status.html", status=status(session, attribute)))
        + fragment(f"#known-{number}", _known(number, attribute)),
        fragment("#inspector", inspector(session)),
        *_settled(session),
    ]
    return "".join(parts)


def _known(number: int, attribute: Attribute) -> str:
    return render("known.html", number=number, attribute=attribute, chosen=source_of(attribute))


def column_slid(session: StudioSession, number: int) -> str:
    """The parts of the page that change with a range slider, except the slider."""
    about = _about(session, number)
    lo, hi = _ends(session, session.column(number))
    parts = [
        fragment(f"#ends-{number}", render("ends.html", lo=lo, hi=hi, **about)),
        fragment(f"#status-{number}", render("status.html", status=about["status"])),
        fragment("#inspector-problem", render("inspector_problem.html", **about)),
        fragment("#inspector-picture", render("inspector_picture.html", **about)),
        fragment(f"#known-{number}", _known(number, session.column(number))),
        *(fragment(f"#slid-{one['end']}", one["words"]) for one in about["sliders"]),
        *_settled(session),
    ]
    return "".join(parts)


def ruled(session: StudioSession) -> str:
    """The parts of the page that change with a rule."""
    return fragment("#rule-form", _rule_form(session)) + "".join(_settled(session))


def _rules(session: StudioSession) -> str:
    """The rules with what is known about each, and why no row satisfies them all."""
    recipe = session.recipe
    released = {attribute.name for attribute in recipe.taken}
    open_columns = {attribute.name for attribute in recipe.taken if not attribute.has_domain}
    problem = contradiction(recipe)
    named = () if problem is None else rules_named(problem)
    broken = next(
        (run.facts["rules"] for run in reversed(session.releases) if run.rehearsed and not run.on), ()
    )
    lines = [
        {
            "number": number,
            "rule": rule,
            "title": RULE_KINDS[rule.kind].title,
            "bad": number in named,
            "left_out": [name for name in rule.named if name not in released],
            "waits": [name for name in rule.named if name in open_columns],
            "rehearsed": next((one["released"] for one in broken if one["rule"] == rule.words), None),
        }
        for number, rule in enumerate(recipe.schema.rules, 1)
    ]
    kept = method_class(recipe.method).keeps_rules or not lines
    return render(
        "rules.html",
        lines=lines,
        problem=problem,
        named=named,
        ignored=None if kept else Message.of("rules-not-kept", method=recipe.method),
        change=session.rule.typed.get("place", ""),
    )


def _rule_form(session: StudioSession) -> str:
    """The form of a rule, with the fields and the columns that its kind takes."""
    draft, attributes = session.rule, session.recipe.wanted
    ranged = [attribute.name for attribute in attributes if attribute.kind_facts.ranged]
    ordered = [attribute.name for attribute in attributes if attribute.kind_facts.ordered]
    kind = draft.typed["kind"]
    return render(
        "rule_form.html",
        kinds=RULE_KINDS,
        kind=kind,
        about=RULE_KINDS[kind],
        signs=RULE_SIGNS,
        typed={**dict.fromkeys(RULE_FIELDS, ""), "sign": "<=", **draft.typed},
        fitting={"order": ordered, "derived": ranged}.get(kind, [attribute.name for attribute in attributes]),
        spelled=[in_rule(attribute.name) for attribute in attributes],
        problem=draft.problem,
    )


def contradiction(recipe: Recipe) -> ShoalError | None:
    """Why no row satisfies the rules, from declared values alone; None if some row does, or as far as is known yet."""
    policy = "category" if recipe.missing == "category" else None
    known = [replace(one.with_declared_type(), missing=one.missing or policy) for one in recipe.taken]
    return _contradiction(recipe.schema.rules, tuple(known))


@lru_cache(maxsize=64)
def _contradiction(rules: tuple[Rule, ...], attributes: tuple[Attribute, ...]) -> ShoalError | None:
    if found := _refusal(rules, attributes):
        return found
    # orders without differences contradict each other whatever the ranges are
    plain = [number for number, rule in enumerate(rules, 1) if _is_plain_order(rule)]
    ranged = tuple(
        replace(one, lo=_ANYWHERE[0], hi=_ANYWHERE[1]) for one in attributes if one.kind_facts.ranged
    )
    found = _refusal([rules[number - 1] for number in plain], ranged)
    if found is None or found.code != "rules-contradict":
        return None
    first, second = (plain[number - 1] for number in rules_named(found))
    return OptionError(found.code, number=first, other=second)


_ANYWHERE = (Fraction(0), Fraction(10**4))


def _is_plain_order(rule: Rule) -> bool:
    meaning = rule.meaning
    return isinstance(meaning, Order) and meaning.least == 0 and meaning.most is None


def _refusal(rules: Sequence[Rule], attributes: Sequence[Attribute]) -> ShoalError | None:
    """What the library refuses about the rules of columns whose values are declared."""
    integers = [one.name for one in attributes if one.type == "integer"]
    lattices = {}
    for one in attributes:
        with contextlib.suppress(ShoalError):
            lattices[one.name] = one.lattice(integer=one.name in integers)
    try:
        applied_rules(rules, [one for one in attributes if one.name in lattices], lattices, integers)
    except ShoalError as error:
        return error
    return None


def rules_named(error: ShoalError) -> tuple[int, ...]:
    """The numbers of the rules that an error names."""
    facts = error.facts
    found = [facts[name] for name in ("number", "other") if isinstance(facts.get(name), int)]
    return tuple(sorted({*found, *facts.get("numbers", ())}))


def _settled(session: StudioSession) -> list[str]:
    left = unsettled(session)
    return [
        fragment("#rules", _rules(session)),
        fragment("#unsettled", render("unsettled.html", left=left)),
        fragment("#foot-note", render("foot_note.html", step="columns", left=left, session=session)),
    ]


def guarantee(session: StudioSession) -> str:
    return render(
        "guarantee.html",
        session=session,
        recipe=session.recipe,
        cards=[card for card in CARDS if not card.folded],
        folded=[card for card in CARDS if card.folded],
        known=[a.name for a in session.recipe.wanted if a.role == "quasi-identifier"],
        strength=Markup(strength(session)),
        noise=Markup(noise(session)),
        units=Markup(units(session)),
        statement=Markup(statement(session)),
        same=Markup(same(session)),
        people=Markup(_people(session)),
        wrong=_wrong(session),
    )


def people(session: StudioSession) -> str:
    """The data used for rehearsals."""
    return fragment("#people", _people(session))


def _people(session: StudioSession) -> str:
    return render(
        "people.html", session=session, another=session.another, accept=accepted(), wrong=_wrong(session)
    )


def _wrong(session: StudioSession) -> tuple[Message, ...]:
    """Why a rehearsal cannot use the other table at present; problems of both tables are shown elsewhere."""
    if session.another is None or not session.look_ahead().ready:
        return ()
    return session.another.problems(session.recipe)


def guaranteed(session: StudioSession, *, method: bool = False, moved: str = "", by: str = "") -> str:
    """The parts of the page that change with a setting, except the control itself.

    Args:
        method: the guarantee or the method changed, and with it the controls.
        moved, by: the setting, and which of its two controls was used.
    """
    parts = [
        fragment("#noise", noise(session)),
        fragment("#units", units(session)),
        fragment("#statement", statement(session)),
        fragment("#same", same(session)),
        fragment("#people-problem", render("people_problem.html", session=session, wrong=_wrong(session))),
        fragment(
            "#sheet", render("sheet.html", session=session, ahead=session.look_ahead(), wrong=_wrong(session))
        ),
    ]
    if method:
        parts.insert(0, fragment("#strength", strength(session)))
    elif moved in SLIDERS:
        other = "typed" if by == "slider" else "slider"
        control = render(f"{other}.html", setting=_slider(session, moved))
        parts.insert(0, fragment(f"#{other}-{moved}", control))
    return "".join(parts)


def strength(session: StudioSession) -> str:
    recipe = session.recipe
    method = method_class(recipe.method)
    own = method.parameters()
    kinds = [attribute.kind for attribute in recipe.wanted]
    shown = [name for name in SLIDERS if name in own and _shown(session, name)]
    elsewhere = ("link", "t", "delta", *_OF_UNITS, *(("split",) if len(recipe.taken) > 1 else ()))
    rest = [name for name in own if name not in shown and name not in elsewhere]
    left_out = [a.name for a in recipe.wanted if a.kind not in method.kinds]
    return render(
        "strength.html",
        session=session,
        recipe=recipe,
        method=method,
        offers=offers(recipe.guarantee, len(kinds), kinds.count("nominal"), session.sheet.n),
        sliders=[_slider(session, name) for name in shown],
        neighbours=_field(session, own["neighbours"]) if "neighbours" in own else None,
        fields=[_field(session, own[name]) for name in rest if name != "neighbours"],
        odd=[_field(session, DECLARATIONS[name]) for name in ("outside", "missing")],
        left_out=left_out,
        can_buy=session.can_buy,
        ledger=recipe.guarantee.budgeted,
    )


def _shown(session: StudioSession, name: str) -> bool:
    """Sliders for the parameters of a guarantee; δ and t belong to their own cards."""
    if name in ("delta", "t"):
        return name in session.recipe.settings
    return True


def _slider(session: StudioSession, name: str) -> dict[str, Any]:
    slider, setting = SLIDERS[name], method_class(session.recipe.method).parameters()[name]
    value = session.recipe.settings.get(name, "")
    try:
        place = slider.place(float(value), session.sheet.n) if value else 0
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


def _field(session: StudioSession, setting: Parameter) -> dict[str, Any]:
    """A parameter as a form field, from its declaration."""
    recipe = session.recipe
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


def noise(session: StudioSession) -> str:
    """The expected noise, and the split of ε where the method can share it."""
    shared = method_class(session.recipe.method).parameters().get("split")
    split = _field(session, shared) if shared is not None and len(session.recipe.taken) > 1 else None
    return render("noise.html", ahead=session.look_ahead(), recipe=session.recipe, split=split)


# parameters that a panel of its own shows
_OF_UNITS = ("strata", "unit_columns", "membership")


def units(session: StudioSession) -> str:
    """The unit of protection with its price, the bound on its rows, and strata."""
    recipe, ahead = session.recipe, session.look_ahead()
    own = method_class(recipe.method).parameters()
    unit = recipe.schema.unit
    listed = [a.name for a in recipe.wanted if not a.kind_facts.ranged and "," not in a.name]
    everything = [a.name for a in recipe.wanted if "," not in a.name]
    strata, together = (names_in(recipe.settings.get(name, "")) for name in ("strata", "unit_columns"))
    shown = [("strata", "Strata", dict.fromkeys([*listed, *strata]), strata)] if "strata" in own else []
    if "unit_columns" in own and unit is not None:
        shown.append(
            ("unit_columns", "Attributes of the unit", dict.fromkeys([*everything, *together]), together)
        )
    return render(
        "units.html",
        unit=unit,
        draft=None if unit is None else session.drafts.get(unit.name),
        price=_price(session),
        bounds=ahead.bounds,
        rows=None if ahead.prepared is None else ahead.prepared.described.provenance.rows_per_unit,
        choices=[
            {
                "name": name,
                "title": title,
                "about": _sentence(own[name].about),
                "columns": columns,
                "chosen": chosen,
            }
            for name, title, columns, chosen in shown
        ],
        membership=_field(session, own["membership"])
        if "membership" in own and (strata or recipe.settings.get("membership"))
        else None,
    )


def _price(session: StudioSession) -> dict[str, str] | None:
    """What the release costs one unit, in the words of the statement; None where there is no ε that composes."""
    prepared = session.look_ahead().prepared
    if prepared is None:
        return None
    stated, rows = prepared.statement, prepared.described.provenance.rows_per_unit
    if not MODELS[stated.model].budgeted or stated.epsilon is None:
        return None
    shared = rows > 1 and not stated.delta
    return {
        "epsilon": exact_text(stated.epsilon),
        "delta": decimal_text(stated.delta) if stated.delta else "",
        "unit": stated.unit,
        "row": exact_text(stated.epsilon / rows) if shared else "",
    }


def ask_cost(cost: Cost, kind: str, price: str) -> str:
    """Ask for confirmation of a run's cost; the answer carries what was shown, so that it confirms nothing else."""
    sent = {"confirmed": asdict(cost), **({"price": price} if price else {})}
    return fragment("#ask", render("cost.html", cost=cost, kind=kind, sent=sent))


def expected(session: StudioSession) -> str:
    """The expected time of a run, if known; the page need not ask again."""
    return fragment("#expected", render("expected.html", session=session, asked=True))


def statement(session: StudioSession) -> str:
    """The guarantee in the words of the statement."""
    ahead = session.look_ahead()
    return render(
        "statement.html",
        session=session,
        ahead=ahead,
        card=session.recipe.guarantee,
        recorded=() if ahead.statement is None else recorded_codes(ahead.statement),
        first=session.first_measured,
        asked=False,
        another=session.another,
        wrong=_wrong(session),
        people=PEOPLE,
        outside=_outside(session),
        column_numbers={name: number for number, name in enumerate(session.recipe.schema.names)},
    )


def _outside(session: StudioSession) -> dict[str, int | None]:
    """Number of values outside their range, by column; None until the user asked to see that column."""
    return {
        problem.column: outside(session, session.recipe.schema[problem.column])
        if problem.column in session.viewed
        else None
        for problem in session.look_ahead().problems
        if problem.code == "outside-domain"
    }


def recorded_codes(statement: Mapping[str, Any]) -> tuple[str, ...]:
    """The uses in the journal that affect the declarations, by code."""
    return tuple(one["code"] for one in statement["recorded"] if one["code"] != DATA_DEPENDENT)


def same(session: StudioSession) -> str:
    """The same release as a command."""
    name = session.source.name if session.source is not None else "DATA"
    return render(
        "same.html", recipe=session.look_ahead().recipe, command=command_text(name, session.dataset)
    )
