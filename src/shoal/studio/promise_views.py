"""Promise as HTML: cards, controls made from the parameters of the method, noise, and the statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from shoal.columns.kinds import KIND_FACTS
from shoal.method.parameters import DECLARATIONS, Parameter
from shoal.method.registry import method_class
from shoal.method.verdict import DATA_DEPENDENT
from shoal.studio.column_views import accepted, outside
from shoal.studio.desk import PEOPLE, Desk
from shoal.studio.preview import command_text
from shoal.studio.promises import CARDS, SLIDERS, offers
from shoal.studio.recipe import typed
from shoal.studio.rendering import fragment, render
from shoal.studio.starting import Cost
from shoal.text import Message, capital


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
