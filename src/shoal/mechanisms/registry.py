"""Methods by name: Shoal's own, registered ones, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal._version import __version__
from shoal.errors import InputError, OptionError, closest
from shoal.io import dumps, load
from shoal.mechanisms.method import Method
from shoal.mechanisms.parameter_fields import DECLARATIONS, SHARED, Parameter
from shoal.noise import MOST_EPSILON, parse_epsilon
from shoal.numbers import decimal_text
from shoal.privacy import SPLITS, Adjacency, Currency, Model, unit_price
from shoal.text import Message, listed

if TYPE_CHECKING:
    from shoal.columns import Declaration, Described, Schema
    from shoal.privacy import PrivacyStatement
    from shoal.release import Release

# the tables of a schema, which a recipe includes; a log additionally has one entry for each action
_SCHEMA = ("attribute", "file", "publication", "step", "margin", "rule")
_LOGGED = "done"
# present where a unit can have several rows; recipes of version 0.1 lack it, and state the ε of a row
_EPSILON_PER = "epsilon_per"
_HEADER = "# The recipe of a release. Repeat it with: shoal protect DATA --config method.toml --out DIR\n"


def recipe_text(release: Release) -> str:
    """The recipe as TOML. A seed is omitted: with it, the noise could be removed."""
    return settled_text(release.method, release.schema, release.declared, release.columns)


def settled_text(method: Method, schema: Schema, declared: Declaration, columns: tuple[str, ...]) -> str:
    """The recipe of a release that was prepared but perhaps not made."""
    return _HEADER + dumps(_document(method, schema, declared, columns))


def recipe_document(release: Release) -> dict[str, Any]:
    """The recipe as plain values."""
    return _document(release.method, release.schema, release.declared, release.columns)


def _document(
    method: Method, schema: Schema, declared: Declaration, columns: tuple[str, ...]
) -> dict[str, Any]:
    settings = method.settings()
    tables = {name: value for name, value in settings.items() if isinstance(value, dict)}
    plain = {name: value for name, value in settings.items() if name not in tables}
    document: dict[str, Any] = {
        "shoal": __version__,
        "method": method.name,
        **plain,
        "columns": list(columns),
    }
    document |= {"outside": declared.outside, "missing": declared.missing}
    if declared.na:
        document["na"] = list(declared.na)
    if declared.tuned is not None:
        document["tuned"] = declared.tuned.text
        if declared.tuned.epsilon is not None:
            document["tuned_epsilon"] = declared.tuned.epsilon
    if method.unit_rows > 1 and method.epsilon is not None:
        document[_EPSILON_PER] = "unit"
    if declared.most_epsilon != MOST_EPSILON:
        document["most_epsilon"] = declared.most_epsilon
    if declared.domain_from_data is not None:
        document["domain_from_data"] = declared.domain_from_data
    document |= tables
    if declared.tuned is not None and declared.tuned.choice:
        document["tuned_choice"] = [choice.to_dict() for choice in declared.tuned.choice]
    return document | schema.to_dict()


def load_recipe(path: str | Path) -> dict[str, Any]:
    """The keyword arguments of `shoal.protect` from a recipe file."""
    # schemas need tables, which names of methods do not
    from shoal.columns import Schema

    path = Path(path)
    raw = load(path, "toml-recipe")
    # domains are stored with their attributes
    known = {"shoal", "method", _LOGGED, _EPSILON_PER, *_SCHEMA, *DECLARATIONS, *parameters()} - {"domains"}
    for key in raw:
        if key not in known:
            raise OptionError("recipe-unknown-key", path=path, key=key)
    if "method" not in raw:
        raise OptionError("recipe-names-no-method", path=path)
    apart = ("shoal", _LOGGED, _EPSILON_PER, *_SCHEMA)
    arguments = {key: value for key, value in raw.items() if key not in apart}
    if not isinstance(raw["method"], str):
        raise OptionError("recipe-method-name-method", path=path, found=raw["method"])
    if "attribute" in raw:
        if _LOGGED in raw and isinstance(told := raw.get("publication"), Mapping):
            # a repeated release is published on another day
            raw["publication"] = {key: told[key] for key in told if key not in ("date", "review_by")}
        arguments["schema"] = Schema.from_dict(raw)
        if raw.get(_EPSILON_PER, "row" if "shoal" in raw else "unit") == "row":
            arguments |= _of_units(arguments, arguments["schema"])
    return arguments


def _of_units(arguments: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The budgets of a recipe of version 0.1, which are those of a row, as the budgets of a unit.

    >>> from shoal.columns import Schema
    >>> unit = Schema.from_dict({"attribute": [{"name": "who", "role": "unit", "max_rows": 3}]})
    >>> _of_units({"epsilon": 0.5, "k": 5}, unit)
    {'epsilon': Fraction(3, 2)}
    """
    rows = 1 if schema.unit is None else schema.unit.unit_rows
    if rows == 1:
        return {}
    from shoal.noise import epsilon_from, parse_delta, rho_from

    found = {
        name: unit_price(parse_epsilon(arguments[name]), rows)
        for name in ("epsilon", "tuned_epsilon")
        if name in arguments
    }
    delta = parse_delta(arguments.get("delta", 0))
    if delta and "epsilon" in found:
        of_row = rho_from(parse_epsilon(arguments["epsilon"]), delta)
        found["epsilon"] = epsilon_from(unit_price(of_row, rows, Currency.RHO), delta)
    return found


LOG = "log.toml"
_LOG_HEADER = (
    "# What was done, in order, and the recipe. Repeat it with: shoal redo log.toml DATA --out DIR\n"
)


def log_text(release: Release) -> str:
    """The log as TOML. A seed is omitted: a repetition draws new noise."""
    return _LOG_HEADER + dumps({"done": log_entries(release), **recipe_document(release)})


def log_entries(release: Release) -> list[dict[str, str]]:
    """The actions, one entry each: action, column if any, description, and source of the parameters."""
    return entries_of(
        release.schema, release.statement, tuple(release.columns), verified=release.verify is not None
    )


def entries_of(
    schema: Schema, statement: PrivacyStatement, columns: tuple[str, ...], *, verified: bool
) -> list[dict[str, str]]:
    """The entries of a release that was prepared but perhaps not made."""
    done = [_entry("read")]
    for step in schema.declared.steps:
        known = {"source": step.source} if step.source else {}
        done.append({"do": step.do, "column": step.column, "words": step.words, **known})
    done.append(_entry("choose", columns=columns))
    settings = tuple(
        Message.of("fact-named", name=name, value=value) for name, value in statement.settings.items()
    )
    words = Message.of(
        "log-protect-with" if settings else "log-protect", method=statement.method, settings=settings
    )
    done.append({"do": "protect", "words": str(words)})
    if statement.entropy == "seed":
        done.append(_entry("seed"))
    done.append(_entry("shuffle"))
    weight = schema.weight
    if weight is not None and weight.release == "raked":
        for margin in schema.margins:
            raked = _entry("rake", weight=weight.name, column=margin.column)
            done.append({"do": "rake", "column": margin.column, **raked, "source": margin.source})
    if verified:
        done.append(_entry("verify"))
    return done


def _entry(do: str, **facts: Any) -> dict[str, str]:
    return {"do": do, "words": str(Message(f"log-{do}", facts))}


def log_path(log: str | Path) -> Path:
    """The log file itself, or that in the folder of a release.

    Raises:
        InputError: there is no log.
    """
    path = Path(log)
    if path.is_dir():
        path = path / LOG
    if not path.is_file():
        raise InputError("there-no-log", path=path)
    return path


def load_log(log: str | Path) -> dict[str, Any]:
    """The keyword arguments of `shoal.publish` that repeat a log.

    Raises:
        InputError, OptionError: it is not a log, or its parameters were taken from the records and are not in it.
    """
    return load_recipe(log_path(log))


def done_in(path: Path) -> tuple[Mapping[str, str], ...]:
    """The entries of a log on disk; empty if there is no log."""
    if not path.is_file():
        return ()
    raw = load(path, "toml-log").get("done", [])
    if not isinstance(raw, list) or not all(isinstance(entry, Mapping) and "words" in entry for entry in raw):
        raise InputError("the-log-is-damaged", path=path)
    return tuple(raw)


# settings that a private choice can be of: by `shoal tune --private`, and by `shoal.choose_bound`
BOUGHT = ("k", "split", "bound")

# public facts, besides the settings of a method, that can be taken from the records
_FACTS = ("columns", "domains")

# the domain of a single column
_ONE_DOMAIN = "domain:"


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting of a private choice: its name, the chosen value, and all candidates."""

    setting: str
    chosen: int | str
    candidates: tuple[int | str, ...]

    @classmethod
    def of(cls, raw: object) -> Choice:
        """A checked entry `tuned_choice` of a recipe.

        >>> Choice.of({"setting": "k", "chosen": 20, "candidates": [10, 20]})
        Choice(setting='k', chosen=20, candidates=(10, 20))
        """
        if isinstance(raw, Choice):
            return raw
        if not isinstance(raw, Mapping) or set(raw) != {"setting", "chosen", "candidates"}:
            raise OptionError("entry-tuned-choice-setting-chosen-candidates", found=raw)
        name, chosen, candidates = raw["setting"], raw["chosen"], raw["candidates"]
        if name not in BOUGHT:
            raise OptionError("not-chosen-privately", found=name, allowed=BOUGHT)
        if not isinstance(candidates, (list, tuple)) or not all(_possible(name, one) for one in candidates):
            what = Message.of("some-of", allowed=SPLITS) if name == "split" else Message("sizes-such-as")
            raise OptionError("tuned-choice-candidates", name=name, what=what, found=candidates)
        if chosen not in candidates or len(set(candidates)) < max(2, len(candidates)):
            raise OptionError(
                "tuned-choice-least-two-different-candidates",
                name=name,
                chosen=chosen,
                found=tuple(map(str, candidates)),
            )
        return cls(name, chosen, tuple(candidates))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "candidates": list(self.candidates)}


@dataclass(frozen=True, slots=True)
class Tuned:
    """The data-dependent choices, and their cost.

    Attributes:
        what: names of settings, including `method`, and of facts: `columns`, `domains`, `domain:NAME`.
        epsilon: the cost of a private choice; None if nothing was charged.
        choice: the values chosen under this budget. Everything else in `what` was not charged, and taints a statement.
    """

    what: tuple[str, ...]
    epsilon: Fraction | None = None
    choice: tuple[Choice, ...] = ()

    @property
    def text(self) -> str | list[str]:
        """The names as a recipe stores them: a list if a column's name has a comma."""
        return list(self.what) if any("," in name for name in self.what) else ", ".join(self.what)

    @property
    def words(self) -> str:
        """The names as a phrase.

        >>> Tuned(("method", "k", "split")).words
        'method, k and split'
        """
        return listed(self.what, "and")

    def purchase(self, method: Method) -> Tuned | None:
        """The part that was charged for; None if nothing was, or if other values are used than those chosen.

        >>> from shoal.mechanisms.registry import configured
        >>> bought = Tuned(("k", "domains"), Fraction(1, 10), (Choice("k", 20, (10, 20)),))
        >>> bought.purchase(configured("ranking-dp", epsilon=1, k=20)).what
        ('k',)
        >>> bought.purchase(configured("ranking-dp", epsilon=1, k=30)) is None
        True
        """
        if self.epsilon is None or not self.choice or self._otherwise(method):
            return None
        return Tuned(tuple(choice.setting for choice in self.choice), self.epsilon, self.choice)

    def taints(self, method: Method) -> tuple[Message, ...]:
        """Data-dependent choices for a statement; empty for a choice that was charged.

        >>> from shoal.mechanisms.registry import configured
        >>> used = configured("ranking-dp", epsilon=1, k=30)
        >>> print(*Tuned(("k",)).taints(used))
        k was chosen based on the records (shoal tune).
        >>> str(Tuned(("k",), Fraction(1, 10), (Choice("k", 20, (10, 20)),)).taints(used)[0])[:46]
        'k was chosen privately as 20, but 30 is used: '
        """
        paid = tuple(choice.setting for choice in self.choice)
        settings = tuple(name for name in self.what if name not in paid and not _is_fact(name))
        facts = tuple(_fact(name) for name in self.what if _is_fact(name))
        found = list(self._otherwise(method))
        if settings:
            code = "tuned-by-looking" if self.epsilon is None or self.choice else "tuned-unbought"
            several = "-several" if len(settings) > 1 else ""
            price = decimal_text(self.epsilon or Fraction(0))
            found.append(Message.of(f"{code}{several}", names=settings, epsilon=price))
        if len(facts) == 1 and facts[0].code == "the-domain":
            found.append(Message("domain-by-looking", facts[0].facts))
        elif facts:
            found.append(Message.of("facts-by-looking", facts=facts))
        return tuple(found)

    @property
    def adjacency(self) -> Adjacency:
        """The adjacency of a choice that was charged."""
        bounds = any(choice.setting == "bound" for choice in self.choice)
        return Adjacency.ADD_REMOVE if bounds else Adjacency.REPLACE_ONE

    def condition(self, unit: str) -> Message:
        """The statement message about a choice that was charged.

        Args:
            unit: what its ε is stated for.
        """
        choices = tuple(
            Message("chosen-also" if place else "chosen-from", choice.to_dict())
            for place, choice in enumerate(self.choice)
        )
        from shoal.columns import ROW

        facts = {"choices": choices, "epsilon": decimal_text(self.epsilon or Fraction(0))}
        if unit == ROW:
            return Message("tuned-privately", facts)
        return Message("tuned-privately-of-unit", {**facts, "unit": unit, "adjacency": str(self.adjacency)})

    def tuned_domains(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Those of the columns whose domains were chosen by looking at the records.

        Raises:
            OptionError: it names the domain of a column that is not released.
        """
        for name in self.what:
            column = name.removeprefix(_ONE_DOMAIN)
            if name.startswith(_ONE_DOMAIN) and column not in columns:
                raise OptionError(
                    "tuned-names-domain-no-released-column",
                    column=column,
                    option="tuned",
                    hint=closest(column, columns),
                )
        return tuple(
            column for column in columns if "domains" in self.what or f"{_ONE_DOMAIN}{column}" in self.what
        )

    def _otherwise(self, method: Method) -> tuple[Message, ...]:
        """Settings of a release that differ from the chosen values."""
        settings = {**method.settings(), "bound": method.unit_rows}
        used = {choice.setting: settings.get(choice.setting) for choice in self.choice}
        bought = tuple(choice.chosen for choice in self.choice)
        price = decimal_text(self.epsilon or Fraction(0))
        return tuple(
            Message.of(
                "bought-otherwise",
                setting=choice.setting,
                chosen=choice.chosen,
                used=_shown(used[choice.setting]),
                epsilon=price,
                bought=bought,
            )
            for choice in self.choice
            if used[choice.setting] != choice.chosen
        )


def tuned_settings(
    tuned: str | Sequence[str] | Tuned | None, epsilon: Any = None, choice: Iterable[Any] | None = None
) -> Tuned | None:
    """The data-dependent choices declared by a caller or a recipe.

    Raises:
        OptionError: a name is not a setting, or a budget is given for something it cannot have covered.

    >>> tuned_settings("method, k"), tuned_settings(None)
    (Tuned(what=('method', 'k'), epsilon=None, choice=()), None)
    """
    if isinstance(tuned, Tuned):
        return _merged(tuned, epsilon, choice)
    names = tuned.split(",") if isinstance(tuned, str) else () if tuned is None else tuned
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise OptionError("tuned-name-settings-were-chosen-records", option="tuned", found=tuned)
    bought = _choices(choice)
    what = tuple(
        dict.fromkeys([name.strip() for name in names if name.strip()] + [one.setting for one in bought])
    )
    known = ("method", "bound", *parameters(), *_FACTS)
    for name in what:
        if name not in known and not (name.startswith(_ONE_DOMAIN) and name != _ONE_DOMAIN):
            raise OptionError(
                "tuned-names-no-setting-nor-columns", option="tuned", name=name, hint=closest(name, known)
            )
    if bought and epsilon is None:
        raise OptionError("tuned-choice-names-what-private-choice", option="tuned_choice")
    if epsilon is not None and not bought and (not what or not set(what) <= set(BOUGHT)):
        raise OptionError("price-of-no-choice", option="tuned_epsilon", allowed=BOUGHT, found=what)
    return Tuned(what, None if epsilon is None else parse_epsilon(epsilon), bought) if what else None


def together(first: Tuned | None, second: Tuned | None) -> Tuned | None:
    """Both combined; the cost is that of the second.

    >>> together(Tuned(("domains",)), Tuned(("k",))).words
    'domains and k'
    """
    if first is None or second is None:
        return first or second
    return replace(second, what=tuple(dict.fromkeys((*first.what, *second.what))))


def with_tuning(described: Described, tuned: Tuned | None, method: Method) -> Described:
    """A described table, with the choices made on its records added to its provenance."""
    if tuned is None:
        return described
    before = described.provenance
    # a bound that somebody took from the records is as private as one that Shoal took from them
    private = (*before.private_domains, *tuned.tuned_domains(described.columns))
    provenance = replace(
        before,
        data_dependent=before.data_dependent + tuned.taints(method),
        private_domains=tuple(dict.fromkeys(private)),
        bought=tuned.purchase(method),
    )
    return replace(described, provenance=provenance)


def _merged(tuned: Tuned, epsilon: Any, choice: Iterable[Any] | None) -> Tuned:
    if epsilon is not None or choice is not None:
        raise OptionError("tuned-holds-price-values-choice-already")
    return tuned


def _choices(choice: Iterable[Any] | None) -> tuple[Choice, ...]:
    if choice is None:
        return ()
    if isinstance(choice, (str, Mapping)) or not isinstance(choice, Iterable):
        raise OptionError("tuned-choice-list-what-chosen", option="tuned_choice", found=choice)
    found = tuple(Choice.of(one) for one in choice)
    if len({one.setting for one in found}) < len(found):
        raise OptionError("tuned-choice-names-setting-twice", option="tuned_choice")
    return found


def _possible(setting: str, value: object) -> bool:
    if setting != "split":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return value in SPLITS


def _is_fact(name: str) -> bool:
    return name in _FACTS or name.startswith(_ONE_DOMAIN)


def _fact(name: str) -> Message:
    if name.startswith(_ONE_DOMAIN):
        return Message.of("the-domain", column=name.removeprefix(_ONE_DOMAIN))
    return Message(f"the-{name}")


def _shown(value: object) -> object:
    if isinstance(value, Mapping):
        return Message("weights-by-column")
    return Message("no-value") if value is None else value


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
    "pram": ("pram.method", "Pram"),
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
