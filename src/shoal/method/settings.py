"""The settings of methods, one record each: name, form, range or choices, default, kinds of column, one sentence.

`Method`, recipes, the options of the command line, `shoal methods`, docs/methods.md and the messages about a wrong
value all read this table. A new setting is one entry here and its name among the `adjustable` ones of a preset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from shoal.columns.circumstances import MOST_EPSILON
from shoal.columns.kinds import KINDS, ORDERED_KINDS
from shoal.columns.lattice import OUTSIDE
from shoal.columns.missing import POLICIES
from shoal.decimals import decimal_text
from shoal.errors import OptionError, closest
from shoal.method import forms
from shoal.method.budget import SPLITS
from shoal.method.forms import Form
from shoal.noise.epsilon import LARGEST, SMALLEST
from shoal.noise.families import NOISES
from shoal.noise.staircase_shape import OPTIMISE
from shoal.partition.corners import CORNER_RULES
from shoal.partition.insensitive import ORDERS

# where a setting stands in a help text: what comes in, what is promised, how it is done, what to do with odd values
Group = Literal["input", "promise", "method", "odd values"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: everything that anybody who asks for it, reads it, checks it or explains it has to know.

    Attributes:
        form: how a value is written and read.
        about: one plain sentence, without its end; `{on}` and `{off}` stand for the two values of a switch.
        choices: the words to choose from, with what each means; a table that grows is read when it is asked.
        least, most: ends of the range of numbers, themselves included.
        default: what holds where neither a preset nor a caller says anything; None if it follows from the rest.
        kinds: the kinds of column that it concerns.
        common: among the few that a first look shows.
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

    def read(self, value: Any) -> Any:
        """The value as a method keeps it.

        Raises:
            OptionError: it is none; the message names the setting, what was given and what fits.
        """
        return self.form.read(self, value)

    def parse(self, text: str) -> Any:
        """The value that somebody typed, for `read`."""
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
        """What it does, with its choices."""
        words = self.about.format(on=on, off=off)
        listed = [
            f"{name} ({meaning})" if meaning else name
            for name, entry in self.choices.items()
            for meaning in [entry if isinstance(entry, str) else entry.about]
        ]
        return f"{words}: {', '.join([*listed, *self.form.besides])}" if listed else words

    @property
    def range(self) -> str:
        """What values it takes, in words: those of a table of settings."""
        if self.choices and not self.form.keyed:
            return ", ".join([*self.choices, *self.form.besides])
        least = "" if self.least is None else decimal_text(Fraction(self.least))
        most = "" if self.most is None else decimal_text(Fraction(self.most))
        if least and most:
            return f"{self.form.words}, {least} to {most}"
        return f"{self.form.words}, at least {least}" if least else self.form.words


def _words(*names: str, **meanings: str) -> Mapping[str, str]:
    return {**dict.fromkeys(names, ""), **meanings}


_ALL = (
    Setting(
        "epsilon",
        forms.BUDGET,
        "the privacy budget; smaller is stronger",
        "promise",
        least=SMALLEST,
        most=LARGEST,
        common=True,
    ),
    Setting(
        "delta",
        forms.DELTA,
        "the probability with which the promise may fail; 0 for pure differential privacy",
        "promise",
        default=Fraction(0),
    ),
    Setting(
        "k",
        forms.WHOLE,
        "minimum number of records that share one released value",
        "promise",
        least=1,
        common=True,
    ),
    Setting(
        "split",
        forms.SPLIT,
        "how ε is shared over attributes",
        choices=_words(*SPLITS),
        default="equal",
        common=True,
    ),
    Setting(
        "groups",
        forms.GROUPS,
        "attribute groups that are partitioned separately, for example [['a', 'b'], ['c']]",
    ),
    Setting(
        "partition",
        forms.NAME,
        "how records are grouped: mdav, vmdav (clusters of varying size), given (by labels=); for xm-* also "
        "ranking, optimal, insensitive, and tree (which is tree-dp, without k)",
    ),
    Setting(
        "gamma",
        forms.NUMBER,
        "with partition=vmdav: how readily a cluster takes one more record",
        least=0,
        default=Fraction(1, 5),
        kinds=ORDERED_KINDS,
    ),
    Setting(
        "remainder",
        forms.CHOICE,
        "which rank group takes the records left over",
        choices=_words("middle", "last", "first"),
        default="middle",
        kinds=ORDERED_KINDS,
    ),
    Setting(
        "normalise",
        forms.CHOICE,
        "scaling before distances",
        choices={"none": "", "domain": "public", "zscore": "looks at the data"},
        default="domain",
        kinds=ORDERED_KINDS,
    ),
    Setting(
        "link",
        forms.SWITCH,
        "{off} shuffles every released column by itself: marginals only, a stronger claim",
        "promise",
        default=True,
    ),
    Setting(
        "noise",
        forms.CHOICE,
        "kind of noise",
        choices=NOISES,
        default="laplace",
        kinds=ORDERED_KINDS,
        common=True,
    ),
    Setting(
        "floor",
        forms.FLOOR,
        "least scale of the noise on a cluster's mean, in the column's units; a number, or one by column",
        least=0,
        kinds=ORDERED_KINDS,
    ),
    Setting(
        "optimise",
        forms.CHOICE,
        "with noise=staircase or box: what its shape is best for",
        choices={OPTIMISE[0]: "the default", OPTIMISE[1]: "the shortest one of 95%"},
        kinds=ORDERED_KINDS,
    ),
    Setting(
        "generalise",
        forms.SWITCH,
        "{on} lets groups of values (inner concepts of a taxonomy) stand for a cluster of a nominal column",
        default=False,
        kinds=("nominal",),
    ),
    Setting(
        "clip",
        forms.SWITCH,
        "{off} leaves noisy values outside the public domain (experiments only)",
        default=True,
        kinds=ORDERED_KINDS,
    ),
    Setting(
        "composition",
        forms.CHOICE,
        "what ε pays for",
        "promise",
        choices={
            "strict": "every cluster one record can change",
            "parallel": "as published, no guarantee",
        },
        default="strict",
    ),
    Setting(
        "order",
        forms.CHOICE,
        "where clusters are taken from",
        choices={
            ORDERS[0]: "the corners of the domain in turn",
            ORDERS[1]: "both ends of one order",
        },
        default="corners",
    ),
    Setting(
        "corners",
        forms.CHOICE,
        "with order=corners: which corner comes next",
        choices=dict(
            zip(CORNER_RULES, ("a corner and its opposite, counting up", "the thesis' rule"), strict=True)
        ),
        default="alternate",
    ),
    Setting(
        "weights",
        forms.WEIGHTS,
        "shares of means, covariances and coskewnesses in ε, for example [0.5, 0.3, 0.2]",
        kinds=("numeric",),
    ),
    Setting(
        "coskewness",
        forms.CHOICE,
        "which coskewnesses the published statistics have",
        choices={"marginal": "what rows are drawn from", "full": ""},
        default="marginal",
        kinds=("numeric",),
    ),
    Setting(
        "match",
        forms.CHOICE,
        "which drawn row stands for which record when errors are measured",
        choices=_words("none", "rank", "assignment"),
        default="none",
        kinds=("numeric",),
    ),
    Setting(
        "cuts",
        forms.WHOLE,
        "levels of cut points of each attribute, 2^cuts intervals; by default as many as pay off",
        least=0,
    ),
    Setting(
        "depth",
        forms.WHOLE,
        "levels of the tree over all attributes; by default as many as pay off",
        least=0,
    ),
    Setting(
        "shares",
        forms.SHARES,
        "weights of the parts of the budget, by default from the depth",
        choices=_words("cuts", "intervals", "leaves", "means"),
    ),
    Setting(
        "rebuild",
        forms.CHOICE,
        "how rows are drawn in a box",
        choices=_words("uniform", "centroid", "normal"),
        default="centroid",
    ),
    Setting(
        "neighbours",
        forms.CHOICE,
        "which tables are compared",
        "promise",
        choices={
            "replace-one": "the number of records is public",
            "add-remove": "it is private",
        },
        default="replace-one",
    ),
    Setting(
        "rows",
        forms.WHOLE,
        "with neighbours=add-remove: the declared number of rows to release; a noisy one by default",
        least=1,
    ),
    Setting(
        "target",
        forms.NAME,
        "the column that is to be learned from the others",
    ),
    Setting(
        "triples",
        forms.SWITCH,
        "{on} looks for structure of three columns, too, such as an exclusive or, for a part of the share of pairs",
        default=False,
    ),
    Setting(
        "sizes",
        forms.SIZES,
        "minimum group size by column, where it differs from k, for example {{'income': 50}}",
        "promise",
        least=1,
    ),
    Setting(
        "l",
        forms.WHOLE,
        "least number of different confidential values in every group; groups are joined until they have them",
        "promise",
        least=1,
    ),
    Setting(
        "t_emd",
        forms.NUMBER,
        "largest earth mover's distance of a group to the table; groups are joined until they are within it",
        "promise",
        least=0,
        most=1,
    ),
    Setting(
        "t",
        forms.WHOLE,
        "largest factor, a whole number, between a bucket's share in a group and in the table",
        "promise",
        least=1,
    ),
    Setting(
        "intruder",
        forms.CHOICE,
        "what an intruder knows",
        "promise",
        choices={"informed": "all columns but one", "uninformed": "what is not confidential"},
        default="informed",
    ),
    Setting(
        "group_by",
        forms.CHOICE,
        "what the records of a group are close in",
        choices={"quasi": "what an intruder may know", "confidential": "what is hidden"},
        default="quasi",
    ),
    Setting(
        "strata",
        forms.COLUMNS,
        "columns whose values divide the table: groups are made within each stratum, never across",
    ),
    Setting(
        "risk",
        forms.NUMBER,
        "largest risk of a record: 1/k where an empty cell is a value of its own, by weights where it fits any",
        "promise",
        least=Fraction(1, 1000),
        most=1,
    ),
    Setting(
        "combinations",
        forms.COMBINATIONS,
        "sets of quasi-identifiers with a k of their own, beside that of all of them, for example "
        "{{'age,sex': 10}}",
        "promise",
        least=1,
    ),
    Setting(
        "importance",
        forms.IMPORTANCE,
        "what an emptied cell of a column counts, 1 where nothing is said, for example {{'sex': 5}}",
        least=0,
    ),
    Setting(
        "missing_as",
        forms.CHOICE,
        "what an empty cell counts as",
        "promise",
        choices={
            "category": "a value of its own, which the claim needs",
            "wildcard": "it fits any value, no guarantee",
        },
        default="category",
    ),
    Setting(
        "alpha",
        forms.NUMBER,
        "with missing_as=wildcard: how much a row with an empty cell counts for the others, 0 to 1",
        least=0,
        most=1,
        default=Fraction(1),
    ),
)

# by name, in the order in which they are listed
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _ALL}

# What a caller says about the table and not about the method. They are read where tables are described
# (`shoal.columns.declaration`, `shoal.method.tuned`); names, words and choices stand here with all others.
DECLARATIONS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "columns", forms.NAMES, "the columns to release, a,b,c; others are left out", "input", common=True
        ),
        Setting("domains", forms.NAME, "public range of a column, or its values", "input", common=True),
        Setting(
            "outside",
            forms.CHOICE,
            "values outside their domain",
            "odd values",
            choices=_words(*OUTSIDE),
            default="error",
            common=True,
        ),
        Setting(
            "missing",
            forms.CHOICE,
            "missing values",
            "odd values",
            choices=_words(*POLICIES),
            default="error",
            common=True,
        ),
        Setting(
            "na", forms.NAMES, "text that stands for a missing value, such as '?'", "odd values", common=True
        ),
        Setting(
            "domain_from_data",
            forms.NUMBER,
            "experiments: domains 0 to this multiple of the maximum; taints the statement",
            "odd values",
            least=1,
        ),
        Setting(
            "tuned",
            forms.NAMES,
            "what was chosen by looking at these records: k,split,..., columns, domains or domain:NAME",
            "promise",
        ),
        Setting("tuned_epsilon", forms.BUDGET, "what a private choice cost", "promise"),
        Setting("tuned_choice", forms.NAMES, "what a private choice bought", "promise"),
        Setting(
            "most_epsilon",
            forms.NUMBER,
            "ε per person above which the verdict is 'do not publish'",
            "promise",
            least=0,
            default=MOST_EPSILON,
        ),
        Setting(
            "override",
            forms.NAME,
            "why a release with an ε above that is published all the same; stands in the bundle",
            "promise",
        ),
    )
}


def known_setting(name: str) -> Setting:
    """A setting of some method by its name."""
    if name not in SETTINGS:
        known = [*SETTINGS, *DECLARATIONS, "labels", "seed", "types"]
        raise OptionError("there-no-option", option=name, name=name, hint=closest(name, known))
    return SETTINGS[name]
