"""Parameters of methods: declarations, checks, and the parameters shared by several methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from shoal.columns import KINDS, MOST_EPSILON, ORDERED_KINDS, OUTSIDE, POLICIES
from shoal.errors import OptionError, closest
from shoal.mechanisms import forms
from shoal.mechanisms.forms import Form
from shoal.noise import LARGEST, NOISES, OPTIMISE, SMALLEST
from shoal.numbers import decimal_text
from shoal.privacy import SPLITS

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
        forms.BUDGET,
        "privacy budget ε; a smaller ε gives a stronger guarantee",
        "guarantee",
        least=SMALLEST,
        most=LARGEST,
        common=True,
        required=True,
    ),
    Parameter(
        "k",
        forms.WHOLE,
        "minimum number of records that share one released value",
        "guarantee",
        least=1,
        common=True,
    ),
    Parameter(
        "split",
        forms.SPLIT,
        "how ε is split among the attributes",
        choices=words(*SPLITS),
        default="equal",
        common=True,
    ),
    Parameter(
        "groups",
        forms.GROUPS,
        "attribute groups to partition separately, for example [['a', 'b'], ['c']]",
    ),
    Parameter(
        "partition",
        forms.NAME,
        "partition method: mdav, vmdav (clusters of varying size), given (by labels=); for xm-* also "
        "ranking, optimal, insensitive, and tree (which is tree-dp, without k)",
    ),
    Parameter(
        "gamma",
        forms.NUMBER,
        "with partition=vmdav: gain factor γ, how readily a cluster takes one more record",
        least=0,
        default=Fraction(1, 5),
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "remainder",
        forms.CHOICE,
        "which rank group takes the remaining records",
        choices=words("middle", "last", "first"),
        default="middle",
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "normalise",
        forms.CHOICE,
        "scaling of columns before distances are computed",
        choices={"none": "", "domain": "public", "zscore": "data-dependent"},
        default="domain",
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "link",
        forms.SWITCH,
        "{off} shuffles every released column separately: marginals only, a stronger guarantee",
        "guarantee",
        default=True,
    ),
    Parameter(
        "noise",
        forms.CHOICE,
        "noise distribution",
        choices=NOISES,
        default="laplace",
        kinds=ORDERED_KINDS,
        common=True,
    ),
    Parameter(
        "floor",
        forms.FLOOR,
        "smallest scale of the noise on a cluster mean, in the column's units; a number, or one per column",
        least=0,
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "optimise",
        forms.CHOICE,
        "with noise=staircase or box: what its shape minimises",
        choices={OPTIMISE[0]: "the default", OPTIMISE[1]: "the length of the 95% interval"},
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "generalise",
        forms.SWITCH,
        "{on} lets groups of values (inner concepts of a taxonomy) represent a cluster of a nominal column",
        default=False,
        kinds=("nominal",),
    ),
    Parameter(
        "clip",
        forms.SWITCH,
        "{off} keeps noisy values beyond the public domain (experiments only)",
        default=True,
        kinds=ORDERED_KINDS,
    ),
    Parameter(
        "neighbours",
        forms.CHOICE,
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
        forms.WHOLE,
        "with neighbours=add-remove: declared number of rows to release; default: a noisy number",
        least=1,
    ),
    Parameter(
        "sizes",
        forms.SIZES,
        "minimum group size per column, where it differs from k, for example {{'income': 50}}",
        "guarantee",
        least=1,
    ),
    Parameter(
        "l",
        forms.WHOLE,
        "minimum number of distinct sensitive values in every group; groups are merged until they reach it",
        "guarantee",
        least=1,
    ),
    Parameter(
        "t_emd",
        forms.NUMBER,
        "largest earth mover's distance of a group to the table; groups are merged until they are within it",
        "guarantee",
        least=0,
        most=1,
    ),
    Parameter(
        "t",
        forms.WHOLE,
        "largest ratio, an integer, between a bucket's share in a group and in the table",
        "guarantee",
        least=1,
    ),
    Parameter(
        "strata",
        forms.COLUMNS,
        "columns whose values divide the table into strata, each of which is protected separately",
    ),
    Parameter(
        "unit_columns",
        forms.COLUMNS,
        "attributes of a unit of several rows, such as a household: equal in all its rows of a release",
    ),
    Parameter(
        "unit_order",
        forms.NAME,
        "with unit_columns: released column that orders the rows of a unit; by default they are in random order",
    ),
    Parameter(
        "membership",
        forms.CHOICE,
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
        Parameter(
            "columns", forms.NAMES, "columns to release, a,b,c; others are left out", "input", common=True
        ),
        Parameter("domains", forms.NAME, "public range of a column, or its values", "input", common=True),
        Parameter(
            "outside",
            forms.CHOICE,
            "values outside their domain",
            "odd values",
            choices=words(*OUTSIDE),
            default="error",
            common=True,
        ),
        Parameter(
            "missing",
            forms.CHOICE,
            "missing values",
            "odd values",
            choices=words(*POLICIES),
            default="error",
            common=True,
        ),
        Parameter(
            "na", forms.NAMES, "text that marks a missing value, such as '?'", "odd values", common=True
        ),
        Parameter(
            "domain_from_data",
            forms.NUMBER,
            "experiments only: domains from 0 to this multiple of the maximum; the statement says so",
            "odd values",
            least=1,
        ),
        Parameter(
            "tuned",
            forms.NAMES,
            "data-dependent choices made from these records: k,split,..., columns, domains or domain:NAME",
            "guarantee",
        ),
        Parameter("tuned_epsilon", forms.BUDGET, "privacy budget used by a private choice", "guarantee"),
        Parameter("tuned_choice", forms.NAMES, "settings chosen by a private choice", "guarantee"),
        Parameter(
            "most_epsilon",
            forms.NUMBER,
            "ε per person above which the verdict is 'do not publish'",
            "guarantee",
            least=0,
            default=MOST_EPSILON,
        ),
        Parameter(
            "bound",
            forms.NAME,
            "largest number of rows of each unit that take part: rows=3",
            "guarantee",
        ),
        Parameter(
            "override",
            forms.NAME,
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
        form: how a value is written and read, one of `shoal.mechanisms.forms`.
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
