"""A promise, a method and its settings are chosen: a recipe and a choice come in, the next recipe leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shoal.errors import OptionError
from shoal.method.registry import method_class, names
from shoal.studio.promises import BY_NAME, offered
from shoal.studio.recipe import Recipe, typed

# settings that belong to a claim and go with it
_OF_THE_CLAIM = ("link", "delta", "t")


def with_promise(recipe: Recipe, rows: int, card: str | None = None, method: str | None = None) -> Recipe:
    """A promise and the columns settle which methods there are; settings that belong to the claim are filled in.

    Args:
        rows: of the table, which is public here.
        card: the promise; that of the recipe by default.
        method: the method; that of the recipe by default, as long as the promise stays.

    Raises:
        OptionError: there is no such promise, or no method keeps it on these columns.
    """
    if card is not None and card not in BY_NAME:
        raise OptionError("there-no-promise", card=card)
    wanted = BY_NAME[card or recipe.card]
    kinds = [attribute.kind for attribute in recipe.wanted]
    offer = offered(wanted, kinds, rows, method or (recipe.method if card is None else None))
    if offer is None:
        raise OptionError("no-method-keeps-promise-these-columns", title=wanted.title)
    settings = {name: value for name, value in recipe.settings.items() if name not in _OF_THE_CLAIM}
    settings |= {name: typed(value) for name, value in offer.fixed.items()}
    if method is not None or card is not None:
        # sizes that are usual for one method are none for another
        settings.pop("k", None)
    own = offer.method.parameters()
    if "k" in own and own["k"].default is not None:
        settings.setdefault("k", typed(own["k"].default))
    if "t" in own and "t-closeness" in wanted.models:
        settings.setdefault("t", typed(own["t"].default or 2))
    settings.setdefault("epsilon", "1")
    return replace(recipe, card=wanted.name, method=offer.name, settings=settings, bought={})


def with_setting(recipe: Recipe, name: str, value: str) -> Recipe:
    """A setting as it was typed; nothing typed is the method's own.

    Raises:
        OptionError: the method has no such option.
    """
    if name == "missing":
        return replace(recipe, missing=value)
    if name == "outside":
        return replace(recipe, outside=value)
    if name not in method_class(recipe.method).parameters():
        raise OptionError("method-no-option", method=recipe.method, name=name)
    return replace(recipe, settings={**recipe.settings, name: value})


def with_settings_of(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """The method and settings of a run, or of settings that were compared.

    Raises:
        OptionError: there is no such method.
    """
    method = str(settings["method"])
    if method not in names():
        raise OptionError("there-no-method", method=method)
    known = method_class(method).parameters()
    chosen = {name: typed(value) for name, value in settings.items() if name in known and value is not None}
    return replace(recipe, method=method, settings={**recipe.settings, **chosen}, bought={})
