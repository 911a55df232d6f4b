"""Base class of methods: fields are parameters; a method states its claim, plans its budget and runs.

A subclass is a method, an instance is a configured one. Subclasses automatically become frozen keyword-only
dataclasses; `shoal.mechanisms.registry` finds them by name. Other packages use only this interface; a method's own
parameters are read by the method itself.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from shoal import display
from shoal.arguments import renamed_attribute, warn_of_renamed
from shoal.columns import Declared
from shoal.display import displayed, internal
from shoal.errors import OptionError
from shoal.mechanisms.parameter_fields import Exact, Parameter, parameter, parameters_of, shared
from shoal.mechanisms.partition_stage import PARTITIONS, PartitionStage, Stability
from shoal.mechanisms.rules import broken_rules, ruled_plan, rules_withheld, under_rules
from shoal.noise import parse_delta, rho_from
from shoal.numbers import decimal_text
from shoal.origin import Outside
from shoal.partition import check_k
from shoal.privacy import (
    NO_NOISE,
    Accountant,
    Adjacency,
    AppliedClaim,
    Case,
    Claim,
    Currency,
    Measurements,
    MethodTerms,
    Model,
    row_budget,
    unit_price,
)
from shoal.text import Message

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from shoal.columns import Described
    from shoal.evaluation import Check
    from shoal.io import Table
    from shoal.mechanisms.pram.mechanism import CorrectedFrequency, Unmixed
    from shoal.noise import Source
    from shoal.partition import Partition
    from shoal.privacy import Plan
    from shoal.progress import Progress


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rebuilt:
    """The protected table before shuffling and rounding.

    Attributes:
        values: unrounded values of each released column.
        partitions: one partition per attribute group (empty if records have no clusters).
        aligned: row i of the values belongs to record i, so errors can be measured row by row.
        internal: private facts for the internal report.
        measured: the values on which errors are measured, if synthetic rows are matched to records; never published.
        statistics: columns of the table of cluster statistics, if the method keeps them; may be published.
        gaps: suppressed cells, by column, row by row, beyond those that were empty before.
        unchanged: columns with the records' original values, which keep all their decimals.
        conditions: what was measured and how finely, where that follows from outputs released on the way; may
            be published.
        measurements: the noisy numbers behind the values, if the method keeps them; may be published.
        units: the number of the unit of each row, from 0 on, if rows of a unit belong together; its rows are in order.
    """

    values: dict[str, NDArray[np.float64]]
    partitions: list[Partition]
    aligned: bool
    internal: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, NDArray[np.float64]] | None = None
    statistics: dict[str, Any] | None = None
    unchanged: frozenset[str] = frozenset()
    gaps: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    conditions: tuple[Message, ...] = ()
    measurements: Measurements | None = None
    units: NDArray[np.int64] | None = None


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a synthesiser learned from the records: noisy and charged, so rows can be drawn from it any number of times.

    Attributes:
        model: the object that the method draws from.
        rows: number of rows of a release.
        internal: private facts for the internal report.
        conditions, measurements: as for `Rebuilt`.
    """

    model: Any
    rows: int
    internal: dict[str, Any] = field(default_factory=dict)
    conditions: tuple[Message, ...] = ()
    measurements: Measurements | None = None

    def rebuilt(self, values: dict[str, NDArray[np.float64]]) -> Rebuilt:
        """The rows that were drawn, as the result of a run."""
        return Rebuilt(
            values,
            [],
            aligned=False,
            internal=self.internal,
            conditions=self.conditions,
            measurements=self.measurements,
        )


def noisy_numbers(
    described: Described,
    account: Accountant,
    rows: int,
    flagged: Sequence[str],
    bins: Sequence[Mapping[str, Any]],
) -> Measurements | None:
    """What a run paid for, as it may be published; None where a domain or a rule comes from the records.

    Positions on a lattice taken from the records would show its width, which is no output of the account. A rule read
    off the records is not published, and without it nobody knows which columns were measured.

    Args:
        rows: number of rows to release.
        flagged: columns whose missing-value flags are attributes of their own, after all columns.
        bins: how pairs divide the values of each attribute.
    """
    if _withheld(described):
        return None
    attributes: list[dict[str, Any]] = []
    for column in described.columns:
        lattice, tree = described.lattices[column], described.tree(column)
        under = under_rules(described, column)
        if tree is not None:
            values = [tree.labels[code] for code in tree.domain]
            attributes.append({"column": column, "values": values, **under})
            continue
        lo, step = decimal_text(lattice.lo), decimal_text(lattice.step)
        attributes.append({"column": column, "lo": lo, "step": step, "points": lattice.steps + 1, **under})
    attributes += [{"column": column, "missing": True} for column in flagged]
    counted = [one.sd for one in account.measured if one.kind == "rows"]
    return Measurements(
        rows,
        counted[0] if counted else 0.0,
        account.currency.value,
        tuple(attributes),
        tuple(bins),
        tuple(account.measured),
        publishable=not account.source.reproducible,
    )


def numbers_terms(described: Described) -> list[Message]:
    """Statement messages that the noisy numbers are published beside the rows, and that the rows are no sample."""
    published = [] if _withheld(described) else [Message("noisy-numbers-published")]
    return [*published, Message("rows-are-no-sample")]


def _withheld(described: Described) -> bool:
    return bool(described.provenance.private_domains) or rules_withheld(described)


def gap_terms(described: Described) -> list[Message]:
    """Statement messages about columns for which "missing" is a separate state."""
    return [Message.of("gaps-have-a-place", columns=described.flagged)] if described.flagged else []


@dataclass(frozen=True, slots=True)
class Output:
    """The form of released values.

    Attributes:
        linked: the columns of a row belong together; otherwise every column is shuffled separately.
        clip: values outside the public domain are moved to its ends.
        generalise: groups of values (inner concepts of a taxonomy) may replace values.
    """

    linked: bool = True
    clip: bool = True
    generalise: bool = False


@dataclass(frozen=True, slots=True)
class ShareNoise:
    """The expected noise on shares of the rows, where rows are drawn from noisy counts.

    Attributes:
        alone: by column: standard deviation of the share of rows below a typical threshold, or with one name.
        pairs: by two columns, in table order: standard deviation of the share of rows in the same half of both
            (with a name instead of a half where a column has names). Pairs that are not measured are omitted.
    """

    alone: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected noise, from public facts.

    Attributes:
        deviations: standard deviation of the noise on the mean of a smallest cluster, by column, in its own units.
        shares: the noise on shares of the rows, if these are drawn from noisy counts.
        unknown: why neither is known, as a code; empty if one is.
        facts: facts for the sentence of that code.
    """

    deviations: Mapping[str, float] = field(default_factory=dict)
    shares: ShareNoise | None = None
    unknown: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class _AdjacencyOfMethod:
    """The adjacency of a claim: that of the parameter `neighbours`, for methods that have it."""

    def __get__(self, method: Method | None, owner: type[Method]) -> Adjacency:
        if method is not None and "neighbours" in vars(method):
            return Adjacency(vars(method)["neighbours"])
        usual = inspect.getattr_static(owner, "neighbours")
        return Adjacency(usual) if isinstance(usual, str) else Adjacency.REPLACE_ONE


@displayed(display.of_method)
@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(parameter, shared))
@dataclass(frozen=True, kw_only=True, repr=False)
class Method:
    """Base of all methods.

    A caller's ε is that of a unit. While a method runs, its `epsilon` is the budget of a row: that of the unit divided
    by `unit_rows` (`for_units`). Its `settings` always state the unit's.

    Attributes:
        unit_rows: the largest number of rows of one unit of privacy.
        name: its name in `protect`, recipes and the command line.
        paper: the paper it comes from.
        about: one-line description.
        mechanism: the name of the mechanism in a statement.
        work: the module with the functions of one of Shoal's own methods (`plan`, `run`, `check` and others,
            each with the method as its first argument), imported when first needed. A third-party method overrides the
            methods of this class instead.
        kinds: the column kinds it supports.
        claims: its claim, case by case.
        adjacency: the adjacency of its claim; that of the parameter `neighbours`, or `replace-one`.
        partition: the stage that groups records, of `shoal.mechanisms.partition_stage.PARTITIONS`.
        outside: the third party that registered it, None for Shoal's own; set by registration.
        synthetic: its rows are synthetic records.
        intervals: the statistics that intervals from re-runs of its recipe were measured to hold for: `all`, `single`
            columns and means of groups, or none; `unclipped` if values cut at the ends of domains prevent them;
            `matrix` if intervals follow from the matrices that values passed.
        keeps_rules: its rows satisfy the rules of the schema.
        freezes: it makes clusters that a claim "given the partition" takes as fixed (`freeze`, `run_frozen`).
        statistics: masked statistics of every cluster can be published, too.
        by_frequency: its effect depends on how many rows are equal, which small tables do not represent well.
    """

    # computed for every subclass
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    name: ClassVar[str]
    about: ClassVar[str]
    paper: ClassVar[str] = ""
    mechanism: ClassVar[str] = ""
    work: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    claims: ClassVar[Claim] = Claim((Case("none", Message("because-no-noise")),))
    outside: ClassVar[Outside | None] = None
    synthetic: ClassVar[bool] = False
    intervals: ClassVar[str] = ""
    keeps_rules: ClassVar[bool] = False
    freezes: ClassVar[bool] = False
    statistics: ClassVar[bool] = False
    by_frequency: ClassVar[bool] = False

    unit_rows: int = 1

    # defaults for methods without such a parameter
    partition = "given"
    epsilon = cast("Exact", None)
    delta = cast("Exact", Fraction(0))
    neighbours = renamed_attribute("adjacency")
    adjacency = cast("Adjacency", _AdjacencyOfMethod())
    rows = cast("int | None", None)
    k = cast("int | None", None)
    strata = cast("tuple[str, ...] | None", None)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, kw_only=True, repr=False)(cls)
        if not cls.__module__.startswith("shoal."):
            # Shoal does not vouch for it, unless it is registered with an accounting
            cls.outside = Outside(cls.__module__)
        if "neighbours" in cls.__dict__ and "neighbours" not in cls.__dataclass_fields__:
            warn_of_renamed(cls, "neighbours", "adjacency", stacklevel=3)
        own = cls.__dict__.get("__doc__")
        if "name" in cls.__dict__ and own is not None and not own.startswith(f"{cls.__name__}("):
            cls.__doc__ = _documented(cls, own)

    # --- parameters

    def __post_init__(self) -> None:
        for name, known in self.parameters().items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, known.read(value))
            elif known.required:
                if name == "epsilon":
                    raise OptionError("epsilon-is-missing", option=name)
                raise OptionError(
                    "parameter-is-missing", option=name, method=self.name, about=known.sentence()
                )
        self.check()

    def check(self) -> None:
        """Refuse invalid combinations of parameters; ranges are checked from their declarations.

        Raises:
            OptionError: names valid combinations.
        """

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The parameters a caller may set, by name."""
        return parameters_of(cls)

    @classmethod
    def configure(cls, **options: Any) -> Method:
        """The method from options of a caller, a command line or a recipe; None means: not given.

        Raises:
            OptionError: an option is unknown, missing or out of range; the message says what is valid.
        """
        known = cls.parameters()
        given = {name: value for name, value in options.items() if value is not None}
        for name in [name for name in given if name not in known]:
            cls.refuse_option(name, given.pop(name))
        return cls(**given)

    @classmethod
    def refuse_option(cls, name: str, value: Any) -> None:
        """Explain why a method has no such option; values equivalent to None are ignored."""
        known = cls.parameters()
        if name == "delta" and "epsilon" in known:
            if parse_delta(value) == 0:
                return
            raise OptionError("method-makes-pure-claim-without-delta", name=cls.name)
        if name == "k":
            raise OptionError("method-no-groups-so-no-k", name=cls.name)
        if name == "strata" and "epsilon" in known:
            raise OptionError("strata-not-method-whose-promise-does", option="strata", name=cls.name)
        raise OptionError("method-no-option-takes", name=cls.name, name_2=name, adjustable=tuple(known))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn expects it."""
        return {name: getattr(self, name) for name in self.parameters()}

    def __sklearn_clone__(self) -> Self:
        # a method is frozen and holds nothing fitted
        return self

    @classmethod
    def example(cls, **settings: Any) -> Self:
        """The method with some value of each required parameter, for questions that do not depend on it."""
        some = {name: known.example for name, known in cls.parameters().items() if known.required}
        return cls(**{**some, **settings})

    def settings(self) -> dict[str, Any]:
        """Plain values for a recipe: `configure` makes the same method from them."""
        found = {name: known.plain(getattr(self, name)) for name, known in self.parameters().items()}
        if self.unit_rows > 1:
            found["epsilon"] = self.unit_epsilon
        return {name: value for name, value in found.items() if value is not None}

    # --- its claim

    def for_units(self, rows: int) -> Self:
        """The method as it runs where a unit has at most so many rows: its ε becomes that of a row.

        >>> from shoal.mechanisms import configured
        >>> running = configured("laplace", epsilon=1).for_units(3)
        >>> running.epsilon, running.settings()["epsilon"], running.for_units(1).epsilon
        (Fraction(1, 3), Fraction(1, 1), Fraction(1, 1))
        """
        if rows == self.unit_rows:
            return self
        # an ε that follows from other settings is known later, for a row as well
        changed: dict[str, Any] = {"unit_rows": rows}
        if self.unit_epsilon is not None:
            changed["epsilon"] = row_budget(self.unit_epsilon, 1 if self.measures_units else rows)
        return replace(self, **changed)

    @property
    def measures_units(self) -> bool:
        """Whether it measures whole units, so that its budget is that of a unit, not of a row."""
        return False

    @property
    def charged_rows(self) -> int:
        """The number of rows that share the budget of a unit."""
        return 1 if self.measures_units else self.unit_rows

    @property
    def rows_noise(self) -> float:
        """The size of the noise on a private number of rows; 0 where there is none."""
        function = self._function("rows_noise")
        return 0.0 if function is None else float(function(self))

    @property
    def unit_epsilon(self) -> Fraction | None:
        """The ε of a unit; None for a method without a budget."""
        return None if self.epsilon is None else unit_price(self.epsilon, self.charged_rows)

    @property
    def budget(self) -> Fraction:
        """The privacy budget of a row."""
        if self.epsilon is None:
            raise OptionError("epsilon-is-missing", option="epsilon")
        return cast("Fraction", self.epsilon)

    @property
    def pure(self) -> bool:
        """Whether the claim has no δ."""
        return bool(self.delta == 0)

    @property
    def rho(self) -> Fraction | None:
        """The budget per row in zero-concentrated differential privacy, from (ε, δ); None for a pure claim."""
        if self.pure:
            return None
        of_unit = rho_from(self.unit_epsilon or self.budget, self.delta)
        return row_budget(of_unit, self.charged_rows, Currency.RHO)

    @property
    def additive(self) -> bool:
        """Replacing several rows costs at most the sum of the separate costs, so that a person can own several."""
        return True

    def case(self, attributes: int, nominal: int = 0) -> Case:
        """The case of its claims that applies to this many attributes, so many of which are nominal."""
        linked = attributes > 1 and self.output.linked
        return self.claims.case(self, linked=linked, nominal=nominal > 0)

    def model(self, attributes: int, nominal: int = 0) -> Model:
        """The claim that holds for this many attributes, so many of which are nominal.

        A third-party stage without a passed accounting claims nothing.
        """
        if not all(stage.accounted for _, stage in self.stages_from_outside()):
            return "none"
        return self.case(attributes, nominal).model

    def applied_claim(self, attributes: int, nominal: int = 0) -> AppliedClaim:
        """The claim from which the statement of a release is computed."""
        outside = list(self.stages_from_outside())
        conditions = tuple(
            Message.of("stage-from-outside", stage=what, who=stage.who, pairs=stage.pairs)
            for what, stage in outside
            if stage.accounted
        )
        return AppliedClaim(self.model(attributes, nominal), self.claims.shows_gaps, conditions, not outside)

    def stages_from_outside(self) -> Iterator[tuple[Message, Outside]]:
        """The third-party parts of a method."""
        if self.outside is not None:
            yield Message.of("the-mechanism", name=self.name), self.outside
        if self.stage.outside is not None:
            yield Message.of("the-partition", name=self.partition), self.stage.outside

    def terms(self, attributes: int) -> MethodTerms:
        """Statement terms about how records are grouped and noise is calibrated."""
        return MethodTerms()

    @property
    def output(self) -> Output:
        """The form of released values."""
        return Output()

    # --- how records are grouped

    @property
    def stage(self) -> PartitionStage:
        """The stage that groups records."""
        return PARTITIONS[self.partition]

    @property
    def stability(self) -> Stability:
        """The effect of one replaced record on the clusters. Clusters of one never involve another record."""
        return "record" if self.k == 1 and not self.stage.unbounded else self.stage.stability

    @property
    def size(self) -> int:
        """The minimum number of records that share one released value."""
        return 1 if self.k is None else self.k

    @property
    def smallest(self) -> int:
        """The smallest group of records for which the kept statistics are defined."""
        return 1

    def allow_noise(self, attributes: int) -> None:
        """Refuse noise that would break the claim for this many attributes.

        Raises:
            OptionError: with the reason.
        """

    # --- what it does

    @property
    def in_parts(self) -> str:
        """How an engine runs it, a function of `shoal.release.in_parts.methods`; empty if none can."""
        return ""

    @property
    def not_in_parts(self) -> str:
        """Why a capable engine cannot run it with these parameters, the code of a message; empty if it can."""
        return ""

    def _function(self, name: str) -> Callable[..., Any] | None:
        """A function of the module of one of Shoal's own methods, None if there is none of that name."""
        found: Callable[..., Any] | None = (
            getattr(import_module(self.work), name, None) if self.work else None
        )
        return found

    def _do(self, name: str, *arguments: Any) -> Any:
        function = self._function(name)
        if function is None:
            raise NotImplementedError(f"{type(self).__name__}.{name}")
        return function(self, *arguments)

    def settle(self, described: Described) -> tuple[Self, tuple[Message, ...]]:
        """Derive settings from the public number of rows, with notes for the custodian."""
        function = self._function("settle")
        return (self, ()) if function is None else function(self, described)

    def plan(self, described: Described) -> Plan:
        """Reserve the budget by purpose, from public facts.

        Raises:
            OptionError: the parameters do not fit the columns.
        """
        if self.measures_units and described.rules and self.keeps_rules:
            raise OptionError("unit-columns-not-with-rules", option="unit_columns")
        found = cast("Plan", self._do("plan", self.ruled(described)))
        return ruled_plan(described, found, self.strata or ()) if self.keeps_rules else found

    def refuse(self, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
        """Raise now anything a run would raise for these records and labels.

        Once the budget is spent nothing may fail depending on records or draws, because rerunning until it
        succeeds is a different mechanism.
        """
        if not self.adjacency.hides_size:
            check_k(self.size, described.n)
        if described.rules and self.keeps_rules and self.output.generalise:
            raise OptionError("rules-need-values", option="generalise")
        if self._function("check") is not None:
            self._do("check", self.ruled(described), plan, labels)

    def account(self, plan: Plan, source: Source, unit: str = "row") -> Accountant:
        """The account of one release, with the reservations of its plan and no charges.

        Args:
            unit: the name of a declared unit of privacy.
        """
        rho = None if self.epsilon is None else self.rho
        return Accountant.of(
            plan.spending,
            self.epsilon if rho is None else rho,
            source,
            currency=Currency.EPSILON if rho is None else Currency.RHO,
            adjacency=self.adjacency,
            unit=unit,
        )

    def run(
        self,
        described: Described,
        plan: Plan,
        account: Accountant,
        progress: Progress,
        labels: ArrayLike | None = None,
    ) -> Rebuilt:
        """Spend the budget on the records."""
        here = self.ruled(described)
        made = cast("Rebuilt", self._do("run", here, plan, account, progress, labels))
        broken = broken_rules(described) if self.keeps_rules else {}
        return replace(made, internal={**made.internal, **broken})

    def learn(self, described: Described, plan: Plan, account: Accountant, progress: Progress) -> Learned:
        """Spend the budget of a synthesiser on the records, without drawing rows."""
        return cast("Learned", self._do("learn", self.ruled(described), plan, account, progress))

    def draw(
        self, learned: Learned, described: Described, rows: int, source: Source, progress: Progress
    ) -> dict[str, NDArray[np.float64]]:
        """Draw rows from what was learned: unrounded values of each column; no record is used."""
        return cast(
            "dict[str, NDArray[np.float64]]",
            self._do("draw", learned, self.ruled(described), rows, source, progress),
        )

    @property
    def learns(self) -> bool:
        """Whether it can be fitted once and sampled many times."""
        return self._function("learn") is not None

    @property
    def model_parts(self) -> tuple[type, ...]:
        """The classes of which a saved model consists."""
        return cast("tuple[type, ...]", getattr(import_module(self.work), "MODEL_PARTS", ()))

    def fit(self, data: Any, schema: Any = None, **options: Any) -> Any:
        """Spend the budget once, and return a model that rows can be sampled from; see `shoal.release.fit`."""
        return import_module("shoal.release").fit(self, data, schema, **options)

    def freeze(
        self, described: Described, plan: Plan, progress: Progress, labels: ArrayLike | None = None
    ) -> Any:
        """The fixed parts of a claim "given the partition": one object per attribute group, with its `partition`."""
        return self._do("freeze", described, plan, progress, labels)

    def run_frozen(
        self, described: Described, plan: Plan, account: Accountant, progress: Progress, frozen: Any
    ) -> Rebuilt:
        """Spend the budget on the records with the frozen parts, possibly on other records."""
        return cast("Rebuilt", self._do("run_frozen", described, plan, account, progress, frozen))

    def trial(
        self,
        described: Described,
        plan: Plan,
        account: Accountant,
        progress: Progress,
        labels: ArrayLike | None = None,
    ) -> tuple[Rebuilt, float]:
        """A run without some of the work whose duration does not depend on the number of rows, and the
        processor seconds of that work."""
        if self._function("trial") is None:
            return self.run(described, plan, account, progress, labels), 0.0
        return cast("tuple[Rebuilt, float]", self._do("trial", self.ruled(described), plan, account))

    # --- rules between columns

    def ruled(self, described: Described) -> Described:
        """The table as the method measures it: in the coordinates of its rules, if the method keeps rules.

        Strata have coordinates of their own.
        """
        if not described.rules or not self.keeps_rules or self.strata:
            return described
        from shoal.columns import coded

        return coded(described)

    def publish(
        self, described: Described, rebuilt: Rebuilt, source: Source
    ) -> tuple[Any, dict[str, Any]] | None:
        """The released table and further ones by name, if that is more than all columns in one random order."""
        function = self._function("publish")
        return None if function is None else function(self, described, rebuilt, source)

    def corrected(self, described: Described, column: str) -> CorrectedFrequency:
        """The counts of a column before its values were changed at random, from the released table.

        Raises:
            OptionError: the method changes no frequency in a known way.
        """
        if self._function("estimate") is None:
            raise OptionError("method-needs-no-correction", name=self.name)
        return cast("CorrectedFrequency", self._do("estimate", described, column))

    def unmixed(self, described: Described, columns: Sequence[str]) -> Unmixed:
        """The joint counts of columns before their values were changed at random, for methods whose `intervals` are
        `matrix`."""
        return cast("Unmixed", self._do("unmix", described, columns))

    def verify(
        self,
        described: Described,
        table: Table,
        linked: Mapping[str, Table],
        check: Callable[..., Check],
    ) -> None:
        """Raise if tables that were read back do not satisfy the statement.

        Args:
            check: measures anonymity levels of any table, as `shoal check` does.
        """
        if self._function("verify") is not None:
            self._do("verify", described, table, linked, check)

    @property
    def verifies(self) -> bool:
        """Whether a table alone can show that it satisfies the statement."""
        return type(self).verify is not Method.verify or self._function("verify") is not None

    # --- what is known beforehand

    @property
    def matching(self) -> str | None:
        """How synthetic rows are matched to records when errors are measured; None if nothing is matched."""
        return None

    def expected(self, described: Described, plan: Plan | None) -> Expected:
        """The expected noise, from public facts."""
        return Expected(unknown=NO_NOISE if self.epsilon is None else "drawn-anew")

    @property
    def likelihood(self) -> bool:
        """Whether the noise on a cluster's sum has the share of its column, so that a likelihood ratio is known."""
        return False

    def sum_shares(self, n: int, plan: Plan) -> Mapping[str, Fraction] | None:
        """The ε of one cluster's sum by column, if noisy cluster means are released; otherwise None."""
        return None

    @property
    def expects_shares(self) -> bool:
        """Whether the expected noise is on shares of the rows, because they are drawn from noisy counts."""
        return False

    def compares(self) -> bool:
        """Whether records are compared with each other, so that time may grow with the square of their number."""
        return False


def _documented(cls: type[Method], about: str) -> str:
    """The docstring of a method class, with its parameters."""
    lines = [about.rstrip(), "", "    Args:"]
    for name, known in cls.parameters().items():
        after = " Required." if known.required else f" Default: {known.usual}." if known.usual else ""
        said = f"{name}: {known.sentence()}.{after}"
        lines += textwrap.wrap(
            said, 100, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False
        )
    return "\n".join([*lines, "    "])


# --- settings of methods that measure strata, or whole units


def check_membership(method: Any) -> None:
    """Refuse combinations of settings that do not fit strata."""
    if method.membership is not None and (method.strata is None or method.adjacency.hides_size):
        raise OptionError("membership-needs-strata-under-replace-one", option="membership")
    if method.strata is not None and method.rows is not None:
        raise OptionError("rows-of-strata-are-drawn", option="rows")


def membership_terms(method: Any) -> MethodTerms:
    """What public membership makes public."""
    if method.membership is None:
        return MethodTerms()
    return MethodTerms(invariants=(Declared("sizes-of-strata", {"strata": list(method.strata or ())}),))


def check_unit_settings(method: Any) -> None:
    """Refuse combinations of settings that do not fit units of several rows."""
    if method.unit_columns is None:
        if method.unit_order is not None:
            raise OptionError("unit-order-needs-unit-columns", option="unit_order")
        return
    if not method.adjacency.hides_size:
        raise OptionError("unit-columns-need-add-remove", option="unit_columns", name=method.name)
    for name in ("strata", "rows"):
        if getattr(method, name) is not None:
            raise OptionError("unit-columns-without", option="unit_columns", other=name)
