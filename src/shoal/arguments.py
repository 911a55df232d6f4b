"""Argument handling of public functions: single names accepted as lists, and deprecated argument names."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from shoal.errors import OptionError
from shoal.text import Message

Taken = ParamSpec("Taken")
Returned = TypeVar("Returned")
Value = TypeVar("Value")


@overload
def as_names(names: str | Iterable[str]) -> tuple[str, ...]: ...
@overload
def as_names(names: None) -> None: ...
def as_names(names: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Names as a tuple; None stays None, and a single name becomes a list of one.

    >>> as_names("age"), as_names(["age", "sex"]), as_names(None)
    (('age',), ('age', 'sex'), None)
    """
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)


def renamed_arguments(
    **words: str,
) -> Callable[[Callable[Taken, Returned]], Callable[Taken, Returned]]:
    """Let a function also take arguments by their old names, with a DeprecationWarning that gives the new ones.

    Args:
        words: the new name of each old one.

    >>> @renamed_arguments(keys="columns")
    ... def first(columns: str) -> str:
    ...     return columns[0]
    >>> inspect.signature(first).parameters["columns"].name
    'columns'
    >>> first(columns="ab", keys="ab")
    Traceback (most recent call last):
    shoal.errors.OptionError: first got both 'columns' and 'keys', its old name: give 'columns' alone.
    """

    def decorate(function: Callable[Taken, Returned]) -> Callable[Taken, Returned]:
        @functools.wraps(function)
        def taken(*args: Taken.args, **kwargs: Taken.kwargs) -> Returned:
            if not words.keys().isdisjoint(kwargs):
                _rename(function, words, args, kwargs)
            return function(*args, **kwargs)

        return taken

    return decorate


def _rename(
    function: Callable[..., Any], words: Mapping[str, str], args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Replace old argument names by the new ones, and warn the caller."""
    called = function.__qualname__.removesuffix(".__init__")
    by_place = tuple(inspect.signature(function).parameters)[: len(args)]
    for old, new in words.items():
        if old not in kwargs:
            continue
        if new in kwargs or new in by_place:
            raise OptionError("argument-by-both-names", option=new, called=called, new=new, old=old)
        kwargs[new] = kwargs.pop(old)
        said = Message.of("argument-renamed", called=called, old=old, new=new)
        warnings.warn(str(said), DeprecationWarning, stacklevel=3)


def warn_of_renamed(cls: type, old: str, new: str, stacklevel: int) -> None:
    """Warn that an attribute of a class has been renamed."""
    said = Message.of("attribute-renamed", of=cls.__name__, old=old, new=new)
    warnings.warn(str(said), DeprecationWarning, stacklevel)


class _RenamedAttribute:
    """Read an attribute by its old name, with a DeprecationWarning that gives the new one."""

    def __init__(self, new: str) -> None:
        self._new, self._old = new, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: object, owner: type) -> Any:
        warn_of_renamed(owner, self._old, self._new, stacklevel=3)
        found: Any = owner if instance is None else instance
        for name in self._new.split("."):
            found = None if found is None else getattr(found, name)
        return found


def renamed_attribute(new: str) -> Any:
    """A deprecated alias: the attribute assigned here reads the attribute `new`.

    Args:
        new: the new name; dots reach into nested attributes, and the result is None where one of them is.
    """
    return _RenamedAttribute(new)


def renamed_attributes(**words: str) -> Callable[[type[Value]], type[Value]]:
    """Let a class also take arguments, and expose attributes, by their old names.

    Args:
        words: the new name of each old one.
    """

    def decorate(cls: type[Value]) -> type[Value]:
        cls.__init__ = renamed_arguments(**words)(cls.__init__)  # type: ignore[method-assign]
        for old, new in words.items():
            attribute = _RenamedAttribute(new)
            attribute.__set_name__(cls, old)
            setattr(cls, old, attribute)
        return cls

    return decorate
