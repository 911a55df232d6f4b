"""Parameters of methods: the forms of their values, declarations, and the parameters shared by several methods.

Typed text is parsed first (`parse`), for forms that need more than the text itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from shoal.columns import KINDS, ORDERED_KINDS, OUTSIDE, POLICIES
from shoal.errors import OptionError, closest
from shoal.noise import LARGEST, MOST_EPSILON, NOISES, OPTIMISE, SMALLEST, parse_delta, parse_epsilon
from shoal.numbers import What, decimal_text, exact, named
from shoal.privacy import SPLITS
from shoal.text import Message

ByColumn = tuple[tuple[str, Fraction], ...]
NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Form:
    """The notation of a setting's values.

    Attributes:
        words: description of a value: "an integer".
        placeholder: the placeholder for a value in a help text.
        read: checks a value, for a setting with its range and choices.
        parse: converts text to a value, for the setting of a given name.
        typed: the type to which a command line converts the text: str, int or bool.
        besides: accepted values besides the choices.
        keyed: the choices are keys, each of which gets a value.
        by_name: a value can be a mapping, which a method stores as pairs.
        plain: turns stored pairs into the mapping that a recipe stores, where that has more than one level.
    """

    words: str
    placeholder: str
    read: Callable[[Parameter, Any], Any]
    parse: Callable[[str, str], Any] = lambda name, text: text
    typed: type = str
    besides: tuple[str, ...] = ()
    keyed: bool = False
    by_name: bool = False
    plain: Callable[[Any], Any] = dict


def _text(name: str, text: str) -> str:
    return text


def _budget(setting: Parameter, value: Any) -> Fraction:
    return parse_epsilon(value)


def _delta(setting: Parameter, value: Any) -> Fraction:
    return parse_delta(value)


def _choice(setting: Parameter, value: Any) -> str:
    return setting.choose(value)


def _name(setting: Parameter, value: Any) -> str:
    return str(value)


def _switch(setting: Parameter, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionError("option-true-false", option=setting.name, found=value)
    return value


def _whole(setting: Parameter, value: Any) -> int:
    return whole(setting.name, value, int(setting.least or 0))


def whole(what: What, value: Any, least: int) -> int:
    """An integer that is large enough."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise OptionError("option-whole-number", **named(what), found=value) from None
    if isinstance(value, bool) or number != value or number < least:
        raise OptionError("option-whole-number-least", **named(what), least=least, found=value)
    return number


def _number(setting: Parameter, value: Any) -> Fraction:
    return _in_range(setting, setting.name, value)


def _in_range(setting: Parameter, what: What, value: Any) -> Fraction:
    number = exact(value, what)
    low, high = setting.least, setting.most
    if (low is not None and number < low) or (high is not None and number > high):
        code = "option-below" if high is None else "option-outside"
        raise OptionError(code, **named(what), least=low, most=high, found=value)
    return number


def _split(setting: Parameter, value: Any) -> str | ByColumn:
    if isinstance(value, str):
        return setting.choose(value)
    if not isinstance(value, Mapping):
        raise OptionError(
            "option-weights-column", option=setting.name, allowed=tuple(setting.choices), found=value
        )
    return tuple(
        (str(column), exact(weight, Message.of("weight-of-column", setting=setting.name, column=column)))
        for column, weight in value.items()
    )


def _shares(setting: Parameter, value: Any) -> ByColumn:
    parts, name = tuple(setting.choices), setting.name
    if not isinstance(value, Mapping) or set(value) != set(parts):
        raise OptionError("option-give-weight-each", option=name, parts=tuple(parts), found=value)
    weights = tuple((part, exact(value[part], Message.of("share-of-part", part=part))) for part in parts)
    if min(weight for _, weight in weights) <= 0:
        raise OptionError("every-weight-above-0", name=name, found=value)
    return weights


def _groups(setting: Parameter, value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(group, list | tuple) and group for group in value
    ):
        raise OptionError("option-list-non-empty-lists-column", option=setting.name)
    return tuple(tuple(str(column) for column in group) for group in value)


def _weights(setting: Parameter, value: Any) -> tuple[Fraction, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionError("option-list-numbers-such-0-5", option=setting.name, found=value)
    weights = tuple(exact(weight, Message("a-weight")) for weight in value)
    if not weights or min(weights) <= 0:
        raise OptionError("weights-not-above-0", found=[float(weight) for weight in weights])
    return weights


def _sizes(setting: Parameter, value: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, Mapping) or not value:
        raise OptionError("option-give-group-size-column-such", option=setting.name, found=value)
    return tuple(
        (str(column), whole(Message.of("size-of-column", column=column), size, int(setting.least or 0)))
        for column, size in value.items()
    )


def _floor(setting: Parameter, value: Any) -> Fraction | ByColumn:
    if not isinstance(value, Mapping):
        return _number(setting, value)
    return tuple(
        (
            str(column),
            _in_range(setting, Message.of("setting-of-column", setting=setting.name, column=column), least),
        )
        for column, least in value.items()
    )


def _columns(setting: Parameter, value: Any) -> tuple[str, ...]:
    names = tuple(str(name) for name in value) if isinstance(value, list | tuple) else (str(value),)
    if not names:
        raise OptionError("option-name-column", option=setting.name, found=value)
    for name in names:
        if names.count(name) > 1:
            raise OptionError("option-names-column-twice", option=setting.name, column=name)
    return names


def _combinations(setting: Parameter, value: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, Mapping) or not value:
        raise OptionError("option-give-k-columns-such-age", option=setting.name, found=value)
    return tuple(
        (str(names), whole(Message.of("k-of-combination", names=names), size, int(setting.least or 0)))
        for names, size in value.items()
    )


def _importance(setting: Parameter, value: Any) -> ByColumn:
    if not isinstance(value, Mapping) or not value:
        raise OptionError("option-give-weight-column-such-sex", option=setting.name, found=value)
    found = tuple(
        (str(column), exact(weight, Message.of("importance-of-column", column=column)))
        for column, weight in value.items()
    )
    for column, weight in found:
        if weight <= 0:
            raise OptionError("importance-column-above-0", column=column, found=value[column])
    return found


def columns_of_combination(text: str) -> tuple[str, ...]:
    """The columns of a combination: comma-separated words, or a JSON list.

    >>> columns_of_combination("age, sex"), columns_of_combination('["a,b", "c"]')
    (('age', 'sex'), ('a,b', 'c'))
    """
    if text.lstrip().startswith("["):
        return tuple(str(name) for name in from_json("combinations", text))
    return tuple(names_in(text))


def names_in(text: str) -> list[str]:
    """Comma-separated words.

    >>> names_in("a, b,,c")
    ['a', 'b', 'c']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def _listed(name: str, text: str) -> list[str]:
    return names_in(text)


def _by_column(name: str, text: str) -> Any:
    if text.lstrip().startswith("{"):
        return from_json(name, text)
    if "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {column.strip(): weight for column, _, weight in pairs}


def _sizes_by_column(name: str, text: str) -> Any:
    found = _by_column(name, text)
    if not isinstance(found, dict):
        return found
    return {column: int(size) if str(size).strip().isdigit() else size for column, size in found.items()}


def _combined(name: str, text: str) -> Any:
    if text.lstrip().startswith("{"):
        return from_json(name, text)
    pairs = [part.rpartition("=") for part in text.split(";")]
    return {names.strip(): int(k) if k.strip().isdigit() else k for names, _, k in pairs}


def _grouped(name: str, text: str) -> Any:
    if text.lstrip().startswith("["):
        return from_json(name, text)
    return [names_in(part) for part in text.split(";")]


def from_json(name: str, text: str) -> Any:
    """A value typed as JSON, which can hold names that contain separators."""
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise OptionError("forms-starts-like-json-but-not", name=name, reason=error) from None


BUDGET = Form("a number", "E", _budget)
DELTA = Form("0, or a number below 1", "D", _delta)
WHOLE = Form("an integer", "N", _whole, typed=int)
NUMBER = Form("a number", "X", _number)
CHOICE = Form("a word", "WORD", _choice)
SWITCH = Form("True or False", "", _switch, typed=bool)
NAME = Form("a name", "NAME", _name)
NAMES = Form("names", "NAMES", _name, _listed)
SPLIT = Form(
    "a word, or weights per column",
    "WORD|a=2,b=1",
    _split,
    _by_column,
    besides=("or weights per column",),
    by_name=True,
)
SHARES = Form("a weight for each part", "a=2,b=1", _shares, _by_column, keyed=True, by_name=True)
FLOOR = Form("a number, or one per column", "X|a=2,b=1", _floor, _by_column, by_name=True)
SIZES = Form("an integer per column", "a=50,b=20", _sizes, _sizes_by_column, by_name=True)
COLUMNS = Form("names of columns", "a,b", _columns, _listed)
COMBINATIONS = Form("an integer per set of columns", "'a,b=10;c=5'", _combinations, _combined, by_name=True)
IMPORTANCE = Form("a number per column", "a=5,b=2", _importance, _by_column, by_name=True)
GROUPS = Form("lists of columns", "'a,b;c'", _groups, _grouped)
WEIGHTS = Form("a list of numbers", "X,X,...", _weights, _listed)


# an exact number: any accepted notation (a decimal text, an integer, a fraction), stored as a Fraction
Exact = Any

# section of a help text: input, guarantee, how the method works, and the treatment of odd values
Group = Literal["input", "guarantee", "method", "odd values"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: how it is read, checked and explained.

    Attributes:
        form: how a value is written and read.
        about: one plain sentence, without its full stop; `{on}` and `{off}` stand for the two values of a switch.
        choices: the allowed words, each with its meaning; a table that can grow is read on access.
        least, most: bounds of a number, inclusive.
        default: the value if none is given; None if it follows from other parameters.
        required: it must be given.
        kinds: the column kinds it applies to.
        common: one of the few that short help shows.
        after: the parameter it follows in a list of all methods' parameters.
    """

    name: str
    form: Form
    about: str
    group: Group = "method"
    choices: Mapping[str, Any] = field(default_factory=dict)
    least: Fraction | int | None = None
    most: Fraction | int | None = None
    default: Any = None
    kinds: tuple[str, ...] = KINDS
    common: bool = False
    required: bool = False
    after: str = ""

    def read(self, value: Any) -> Any:
        """The value as a method stores it.

        Raises:
            OptionError: it is invalid; the message names the setting, the value given and what is valid.
        """
        # values already read are read again when a method is derived from another one
        if self.form.by_name and isinstance(value, tuple):
            value = dict(value)
        return self.form.read(self, value)

    def plain(self, value: Any) -> Any:
        """A value as a recipe stores it."""
        return self.form.plain(value) if self.form.by_name and isinstance(value, tuple) else value

    @property
    def example(self) -> Any:
        """Some valid value: the default, one of the choices, or a small number."""
        if self.default is not None:
            return self.default
        if self.choices and not self.form.keyed:
            return next(iter(self.choices))
        return 1 if self.least is None else max(1, self.least)

    def parse(self, text: str) -> Any:
        """The value of typed text, for `read`."""
        return self.form.parse(self.name, text)

    def choose(self, value: Any) -> str:
        """One of the choices."""
        if not isinstance(value, str) or value not in self.choices:
            hint = closest(str(value), self.choices)
            raise OptionError(
                "unknown-option",
                option=self.name,
                found=value,
                allowed=tuple(self.choices),
                hint=hint,
            )
        return value

    def sentence(self, on: str = "True", off: str = "False") -> str:
        """Description with the choices."""
        words = self.about.format(on=on, off=off)
        listed = [
            f"{name} ({meaning})" if meaning else name
            for name, entry in self.choices.items()
            for meaning in [entry if isinstance(entry, str) else entry.about]
        ]
        return f"{words}: {', '.join([*listed, *self.form.besides])}" if listed else words

    @property
    def usual(self) -> str:
        """The default as text; empty if it follows from other parameters."""
        values = self.default if isinstance(self.default, tuple) else (self.default,)
        return ", ".join(
            decimal_text(Fraction(value))
            if isinstance(value, int | Fraction) and not isinstance(value, bool)
            else str(value)
            for value in values
            if value is not None
        )

    @property
    def range(self) -> str:
        """The valid values as text, for a table of settings."""
        if self.choices and not self.form.keyed:
            return ", ".join([*self.choices, *self.form.besides])
        least = "" if self.least is None else decimal_text(Fraction(self.least))
        most = "" if self.most is None else decimal_text(Fraction(self.most))
        if least and most:
            return f"{self.form.words}, {least} to {most}"
        return f"{self.form.words}, at least {least}" if least else self.form.words


def words(*names: str, **meanings: str) -> Mapping[str, str]:
    return {**dict.fromkeys(names, ""), **meanings}


# parameters of several methods, in the order in which they are listed
_SHARED = (
    Parameter(
        "epsilon",
        BUDGET,
        "privacy budget ε; a smaller ε gives a stronger guarantee",
        "guarantee",
        least=SMALLEST,
        most=LARGEST,
        common=True,
        required=True,
    ),
    Parameter(
        "k",
        WHOLE,
        "minimum number of records that share one released value",
        "guarantee",
        least=1,
        common=True,
    ),
    Parameter(
        "split",
        SPLIT,
        "how ε is split among the attributes",
        choices=words(*SPLITS),
        default="equal",
        common=True,
    ),
    Parameter(
        "groups",
        GROUPS,
        "attribute groups to partition separately, for example [['a', 'b'], ['c']]",
    ),
    Parameter(
        "partition",
        NAME,
        "partition method: mdav, vmdav (clusters of varying size), given (by labels=); for xm-* also "
        "ranking, optimal, insensitive, and tree (which is tree-dp, without k)",
    ),
    Parameter(
        "gamma",
        NUMBER,
        "with partition=vmdav: gain factor γ, how readily a cluster takes one more record",
        least=0,
        default=Fraction(1, 5),
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "remainder",
        CHOICE,
        "which rank group takes the remaining records",
        choices=words("middle", "last", "first"),
        default="middle",
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "normalise",
        CHOICE,
        "scaling of columns before distances are computed",
        choices={"none": "", "domain": "public", "zscore": "data-dependent"},
        default="domain",
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "link",
        SWITCH,
        "{off} shuffles every released column separately: marginals only, a stronger guarantee",
        "guarantee",
        default=True,
    ),
    Parameter(
        "noise",
        CHOICE,
        "noise distribution",
        choices=NOISES,
        default="laplace",
        kinds=ORDERED_KINDS,
        common=True,
    ),
    Parameter(
        "floor",
        FLOOR,
        "smallest scale of the noise on a cluster mean, in the column's units; a number, or one per column",
        least=0,
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "optimise",
        CHOICE,
        "with noise=staircase or box: what its shape minimises",
        choices={OPTIMISE[0]: "the default", OPTIMISE[1]: "the length of the 95% interval"},
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "generalise",
        SWITCH,
        "{on} lets groups of values (inner concepts of a taxonomy) represent a cluster of a nominal column",
        default=False,
        kinds=("nominal",),
    ),
    Parameter(
        "clip",
        SWITCH,
        "{off} keeps noisy values beyond the public domain (experiments only)",
        default=True,
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "neighbours",
        CHOICE,
        "adjacency: what neighbouring data sets differ in",
        "guarantee",
        choices={
            "replace-one": "the number of records is public",
            "add-remove": "the number of records is private",
        },
        default="replace-one",
    ),
    Parameter(
        "rows",
        WHOLE,
        "with neighbours=add-remove: declared number of rows to release; default: a noisy number",
        least=1,
    ),
    Parameter(
        "sizes",
        SIZES,
        "minimum group size per column, where it differs from k, for example {{'income': 50}}",
        "guarantee",
        least=1,
    ),
    Parameter(
        "l",
        WHOLE,
        "minimum number of distinct sensitive values in every group; groups are merged until they reach it",
        "guarantee",
        least=1,
    ),
    Parameter(
        "t_emd",
        NUMBER,
        "largest earth mover's distance of a group to the table; groups are merged until they are within it",
        "guarantee",
        least=0,
        most=1,
    ),
    Parameter(
        "t",
        WHOLE,
        "largest ratio, an integer, between a bucket's share in a group and in the table",
        "guarantee",
        least=1,
    ),
    Parameter(
        "strata",
        COLUMNS,
        "columns whose values divide the table into strata, each of which is protected separately",
    ),
    Parameter(
        "unit_columns",
        COLUMNS,
        "attributes of a unit of several rows, such as a household: equal in all its rows of a release",
    ),
    Parameter(
        "unit_order",
        NAME,
        "with unit_columns: released column that orders the rows of a unit; by default they are in random order",
    ),
    Parameter(
        "membership",
        CHOICE,
        "with strata and neighbours=replace-one: whether the stratum of a record is private, which it is by default",
        "guarantee",
        choices={
            "public": "neighbouring data sets keep the stratum of every record, and sizes of strata are public"
        },
    ),
)
SHARED: Mapping[str, Parameter] = {parameter.name: parameter for parameter in _SHARED}

# Parameters that describe the table, not the method. They are read where tables are described
# (`shoal.columns.declaration`, `shoal.mechanisms.registry`); names, descriptions and choices are listed here with all
# others.
DECLARATIONS: Mapping[str, Parameter] = {
    setting.name: setting
    for setting in (
        Parameter("columns", NAMES, "columns to release, a,b,c; others are left out", "input", common=True),
        Parameter("domains", NAME, "public range of a column, or its values", "input", common=True),
        Parameter(
            "outside",
            CHOICE,
            "values outside their domain",
            "odd values",
            choices=words(*OUTSIDE),
            default="error",
            common=True,
        ),
        Parameter(
            "missing",
            CHOICE,
            "missing values",
            "odd values",
            choices=words(*POLICIES),
            default="error",
            common=True,
        ),
        Parameter("na", NAMES, "text that marks a missing value, such as '?'", "odd values", common=True),
        Parameter(
            "domain_from_data",
            NUMBER,
            "experiments only: domains from 0 to this multiple of the maximum; the statement says so",
            "odd values",
            least=1,
        ),
        Parameter(
            "tuned",
            NAMES,
            "data-dependent choices made from these records: k,split,..., columns, domains or domain:NAME",
            "guarantee",
        ),
        Parameter("tuned_epsilon", BUDGET, "privacy budget used by a private choice", "guarantee"),
        Parameter("tuned_choice", NAMES, "settings chosen by a private choice", "guarantee"),
        Parameter(
            "most_epsilon",
            NUMBER,
            "ε per person above which the verdict is 'do not publish'",
            "guarantee",
            least=0,
            default=MOST_EPSILON,
        ),
        Parameter(
            "bound",
            NAME,
            "largest number of rows of each unit that take part: rows=3",
            "guarantee",
        ),
        Parameter(
            "override",
            NAME,
            "reason for publishing a release with a larger ε all the same; it is published in the bundle",
            "guarantee",
        ),
    )
}


def parameter(
    form: Form,
    about: str,
    *,
    default: Any = None,
    group: Group = "method",
    choices: Mapping[str, Any] | None = None,
    least: Fraction | int | None = None,
    most: Fraction | int | None = None,
    kinds: tuple[str, ...] = KINDS,
    common: bool = False,
    required: bool = False,
    after: str = "",
) -> Any:
    """Declare a parameter of a method class.

    Args:
        form: how a value is written and read, one of `shoal.mechanisms.parameter_fields`.
        about: one plain sentence, without its full stop.
        default: the value if none is given; None if it follows from other parameters.
        group: its section in a help text.
        choices: the allowed words, each with its meaning.
        least, most: bounds of a number, inclusive.
        kinds: the column kinds it applies to.
        common: one of the few that short help shows.
        required: it must be given.
        after: the parameter it follows in a list of all methods' parameters; by default the previous one of the class.
    """
    made = Parameter(
        "", form, about, group, choices or {}, least, most, default, kinds, common, required, after
    )
    return field(default=default, kw_only=True, metadata={_MARK: made})


def shared(name: str, *, default: Any = None, required: bool = True) -> Any:
    """Declare a parameter shared by several methods, with its shared description.

    Args:
        default: the default for this method, if different.
        required: False if other parameters of this method can take the place of a required one.
    """
    found = SHARED[name]
    own = replace(
        found,
        default=found.default if default is None else default,
        required=found.required and required,
    )
    return field(default=own.default, kw_only=True, metadata={_MARK: own})


_MARK = "shoal parameter"


def parameters_of(cls: type) -> dict[str, Parameter]:
    """The parameters of a method class by name, in the order of the class."""
    return {one.name: one for one in _declared(cls)}


@cache
def _declared(cls: type) -> tuple[Parameter, ...]:
    return tuple(replace(one.metadata[_MARK], name=one.name) for one in fields(cls) if _MARK in one.metadata)
