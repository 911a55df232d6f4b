"""Methods by name: Shoal's own, registered ones, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from shoal.errors import OptionError, closest
from shoal.mechanisms.method import Method
from shoal.mechanisms.parameter_fields import DECLARATIONS, SHARED, Parameter
from shoal.privacy import Model
from shoal.text import Message

# the strongest claim that a complete table of any kind can have
DEFAULT_METHOD = "pairs-dp"

# the entry point group for methods of installed packages; each entry point is a function that registers them
PLUGINS = "shoal.methods"

# the module of each method's class, imported on demand
_PLACES: Mapping[str, tuple[str, str]] = {
    "pairs-dp": ("pairs.method", "PairsDP"),
    **{
        name: ("cluster_methods", cls)
        for name, cls in (
            ("laplace", "Laplace"),
            ("mdav-dp", "MdavDP"),
            ("ranking-dp", "RankingDP"),
            ("optimal-dp", "OptimalDP"),
            ("idp-ls", "IdpLS"),
            ("idp-cbls", "IdpCBLS"),
            ("insensitive-dp", "InsensitiveDP"),
        )
    },
    "tree-dp": ("tree.method", "TreeDP"),
    "k-anonymity": ("kanonymity.methods", "KAnonymity"),
    "swap-mdav": ("kanonymity.methods", "SwapMdav"),
    "swap-ranking": ("kanonymity.methods", "SwapRanking"),
    "suppress": ("suppression.method", "Suppress"),
    "t-closeness": ("kanonymity.methods", "TCloseness"),
    "anatomy": ("kanonymity.methods", "Anatomy"),
    **{f"xm-{number}": ("moments.methods", f"Xm{number}") for number in range(1, 27)},
    **{f"xm-b{number}": ("moments.methods", f"XmB{number}") for number in range(1, 9)},
}
_registered: dict[str, type[Method]] = {}
_plugins_loaded = False


def names() -> tuple[str, ...]:
    """The names of all methods, Shoal's own first."""
    _load_plugins()
    return (*_PLACES, *_registered)


def method_class(name: str) -> type[Method]:
    """The class of a method by its name.

    Raises:
        OptionError: there is no such method.
    """
    if name in _PLACES:
        module, attribute = _PLACES[name]
        found: type[Method] = getattr(import_module(f"shoal.mechanisms.{module}"), attribute)
        return found
    _load_plugins()
    if name not in _registered:
        raise OptionError("there-no-method-shoal-methods-lists", name=name, hint=closest(str(name), names()))
    return _registered[name]


def class_of(method: str | Method) -> type[Method]:
    """The class of a method, from its name or from a configured method."""
    return type(method) if isinstance(method, Method) else method_class(method)


def configured(name: str | Method, **options: Any) -> Method:
    """A method by its name with its parameters, or a configured one; None means: not given.

    Raises:
        OptionError: there is no such method, it does not accept these parameters, or they conflict with values
            it already has.

    >>> configured("xm-6", epsilon=1, partition="tree").name
    'tree-dp'
    """
    if isinstance(name, Method):
        has = name.settings()
        for option, value in options.items():
            if value is not None and has.get(option) != value:
                raise OptionError(
                    "method-configured-before",
                    option=option,
                    name=option,
                    method=name.name,
                    cls=type(name).__name__,
                )
        return name
    cls = method_class(name)
    own = cls.parameters()
    for option, value in options.items():
        if value is not None and option not in own:
            known_parameter(option)
    return cls.configure(**options)


def parameters() -> dict[str, Parameter]:
    """The parameters of all methods by name, shared ones first. For equal names, the first method's form counts."""
    found, order = dict(SHARED), list(SHARED)
    for name in names():
        before = ""
        for option, known in method_class(name).parameters().items():
            if option not in found:
                found[option] = known
                follows = known.after or before
                order.insert(order.index(follows) + 1 if follows in order else len(order), option)
            if option not in SHARED:
                before = option
    return {option: found[option] for option in order}


def known_parameter(name: str) -> Parameter:
    """A parameter of some method by its name.

    Raises:
        OptionError: no method has it.
    """
    found = parameters()
    if name not in found:
        known = [*found, *DECLARATIONS, "labels", "seed", "types"]
        raise OptionError("there-no-option", option=name, name=name, hint=closest(name, known))
    return found[name]


def taken_by(option: str, most: int = 3) -> tuple[str, ...]:
    """The methods that take a parameter, those of one paper abbreviated; empty if there are more than a few.

    >>> taken_by("cuts"), taken_by("match"), taken_by("epsilon")
    (('tree-dp',), ('xm-*',), ())
    """
    takers = [name for name in names() if option in method_class(name).parameters()]
    families = tuple(dict.fromkeys("xm-*" if name.startswith("xm-") else name for name in takers))
    return families if len(families) <= most else ()


def register(cls: type[Method]) -> None:
    """Register a class under its name; `shoal.extend.register_method` states what it may claim.

    Raises:
        OptionError: the name is taken.
    """
    if cls.name in (*_PLACES, *_registered):
        raise OptionError("there-is-a-already", what="method", name=cls.name)
    _registered[cls.name] = cls


def _load_plugins() -> None:
    global _plugins_loaded
    if not _plugins_loaded:
        _plugins_loaded = True
        for found in entry_points(group=PLUGINS):
            found.load()()


def claim_words(cls: type[Method]) -> str:
    """The claims a method can have as text, computed by the same rule as a statement."""
    known, usual = cls.parameters(), cls.example()
    one, several = usual.model(1), usual.model(2)
    unlinked = cls.example(link=False).model(2) if "link" in known else several
    if "composition" in known:
        return _claim("claim-with-composition", several, cls.example(composition="parallel").model(2))
    if "delta" in known and usual.pure:
        return _claim("claim-with-delta", several, cls.example(delta="0.000001").model(2))
    if "t" in known and known["t"].default is None:
        return _claim("claim-with-t", several, cls.example(t=2).model(2))
    if one == several == unlinked:
        return one
    code = "claim-for-one" if unlinked != one else "claim-for-one-or-unlinked"
    ordered = "nominal" in cls.kinds and usual.model(1, nominal=1) != one
    return _claim(f"{code}-ordered" if ordered else code, several, one)


def _claim(code: str, usual: Model, other: Model) -> str:
    return str(Message.of(code, usual=usual, other=other))


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """The entry of a method in `shoal methods`. The claim is computed from its class."""

    name: str
    paper: str
    about: str
    claim: str
    parameters: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "paper": self.paper,
            "about": self.about,
            "claim": self.claim,
            "parameters": dict(self.parameters),
        }


def methods() -> list[MethodInfo]:
    """Every method with its paper, claim and parameters.

    >>> [info.name for info in methods()][:8]
    ['pairs-dp', 'laplace', 'mdav-dp', 'ranking-dp', 'optimal-dp', 'idp-ls', 'idp-cbls', 'insensitive-dp']
    """
    return [
        MethodInfo(
            name=cls.name,
            paper=cls.paper,
            about=cls.about,
            claim=claim_words(cls),
            parameters={
                option: known.sentence() + ("" if known.default is None else f" (default {known.default})")
                for option, known in cls.parameters().items()
            },
        )
        for cls in map(method_class, names())
    ]
