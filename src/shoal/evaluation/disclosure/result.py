"""The result of `risk`: figures for the whole table, and measures for each record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.arguments import as_names, renamed_arguments, renamed_attributes
from shoal.columns import Schema, read_declared
from shoal.display import internal
from shoal.errors import InputError, OptionError, OutputError
from shoal.evaluation.disclosure.record_risk import (
    FORMS,
    HIGH_RISK,
    MOST_KEYS,
    Diversity,
    Points,
    PopulationUniques,
    Suda,
    diversity,
    endangered,
    household_risks,
    population_uniques,
    risk_threshold,
    risks_of_units,
    suda,
)
from shoal.evaluation.pair import plain
from shoal.io import Table, read
from shoal.numbers import Floats, Integers
from shoal.partition import RULES, Coded, Form, MissingRule, coded, patterns
from shoal.progress import Progress, silent
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table as TextTable


_RULES: Mapping[str, Message] = {
    "wildcard": Message.of("rule-wildcard"),
    "category": Message.of("rule-category"),
}
_FORMS: Mapping[str, Message] = {
    "approximate": Message.of("form-approximate"),
    "exact": Message.of("form-exact"),
}
TOLERATED = 0.01
# the marker, in its first column, of a file about records
INTERNAL = "internal, not for publication"


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class Special:
    """Summary of a table's special uniques.

    Attributes:
        records: records with a minimal sample unique.
        score: sum of their scores.
        dis: sum of their DIS scores.
        largest_dis: the largest DIS score of a record.
        msu_sizes: number of minimal sample uniques by their number of keys, from 1.
        key_contributions: share of all scores by sets with each key, in percent; the shares overlap.
    """

    records: int
    score: float
    dis: float
    largest_dis: float
    msu_sizes: tuple[int, ...]
    key_contributions: Mapping[str, float]


@renamed_attributes(keys="quasi_identifiers")
@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class RiskFigures:
    """The risk figures of a table, without measures of single records. Still facts about the original records.

    Attributes:
        rows: number of records.
        quasi_identifiers: the columns that an intruder may know.
        weight: the column of weights; None where the table is taken as the population.
        household: the column that identifies the household.
        missing: how missing keys count in fk and Fk.
        alpha: the weight of a match by wildcard.
        form: of the individual risk.
        uniques, pairs, below_3, below_5: records with fk = 1, = 2, < 3, < 5.
        expected: re-identifications, the sum of the individual risks.
        global_risk: the same as a share of the records.
        largest: the largest individual risk.
        high: records whose risk is above 0.1 and stands out.
        tolerated: the tolerated global risk.
        threshold: the risk above which records need protection to get below it; None where none is needed.
        household_expected: records in a household of which at least one member is expected to be re-identified.
        household_risk: the same as a share of the records.
        sample_uniques: records whose keys no other has, missing counted as a value.
        tau1: how many of those are expected to be unique in the population.
        tau2: how many of those are expected to be matched correctly.
        suda: special uniques; None where they were not searched.
        diversity: least distinct, entropy and recursive l of each sensitive column.
        unit: the column that identifies the person. Where there is one, everything above counts persons, not records;
            a person counts if one of their records does.
        persons: number of persons that the records belong to; None without such a column.
    """

    rows: int
    quasi_identifiers: tuple[str, ...]
    weight: str | None
    household: str | None
    missing: str
    alpha: float
    form: str
    uniques: int
    pairs: int
    below_3: int
    below_5: int
    expected: float
    global_risk: float
    largest: float
    high: int
    tolerated: float
    threshold: float | None
    household_expected: float | None
    household_risk: float | None
    sample_uniques: int
    tau1: float
    tau2: float
    suda: Special | None
    diversity: Mapping[str, Mapping[str, float]]
    unit: str | None = None
    persons: int | None = None

    @property
    def missing_words(self) -> str:
        """The rule for missing keys, as text."""
        return str(self._rule)

    @property
    def _rule(self) -> Message:
        rule = _RULES[self.missing]
        return rule if self.alpha == 1 else Message.of("rule-counting", rule=rule, alpha=self.alpha)

    @property
    def conditions(self) -> str:
        """The assumptions behind the figures, in one line."""
        found = [Message.of("figures-rest-on", rule=self._rule, form=_FORMS[self.form])]
        weighted = self.weight is not None
        found.append(Message.of("figures-weights" if weighted else "figures-no-weights", weight=self.weight))
        if self.household is not None:
            found.append(Message.of("figures-households", household=self.household))
        if self.unit is not None:
            found.append(Message.of("figures-persons", unit=self.unit))
        found.append(Message.of("figures-missing-keys"))
        if self.suda is None:
            found.append(Message.of("figures-no-special"))
        return " ".join(map(str, found))

    def lines(self) -> list[tuple[str, str, str]]:
        """Name, value and meaning of every figure."""
        who, one = ("records", "record") if self.unit is None else ("units", "unit")
        found = [
            ("sample uniques", f"{self.uniques:,}", f"{who} that no other matches (fk = 1)"),
            ("fk below 3", f"{self.below_3:,}", f"{who} that at most one other matches"),
            ("expected re-identified", f"{self.expected:.4g}", f"{who}, sum of individual risks"),
            ("global risk", f"{self.global_risk:.4%}", f"the same as a share of the {who}"),
            ("largest risk", f"{self.largest:.4g}", f"of a single {one}"),
            ("high risk", f"{self.high:,}", f"{who} that stand out, with a risk above {HIGH_RISK:g}"),
            (
                "threshold",
                "not needed" if self.threshold is None else f"{self.threshold:.4g}",
                f"protect risks above it for a global risk below {self.tolerated:g}",
            ),
        ]
        if self.household_expected is not None:
            found += [
                (
                    "by households",
                    f"{self.household_expected:.4g}",
                    f"{who} with at least one re-identified household member",
                ),
                ("household risk", f"{self.household_risk:.4%}", f"the same as a share of the {who}"),
            ]
        # without weights the sample is the population: every sample unique is a population unique
        if self.weight is not None:
            found += [
                ("tau1", f"{self.tau1:.4g}", "uniques expected unique in the population"),
                ("tau2", f"{self.tau2:.4g}", "uniques expected to be matched correctly"),
            ]
        if self.suda is not None:
            found += [
                ("special uniques", f"{self.suda.records:,}", f"{who} with a minimal sample unique (SUDA2)"),
                ("largest DIS", f"{self.suda.largest_dis:.4g}", "chance that a match is correct (DIS-SUDA)"),
            ]
        for name, least in self.diversity.items():
            value = f"{least['distinct']} / {least['entropy']:.3g} / {least['recursive']}"
            found.append((f"l of {name}", value, "distinct, entropy, recursive; smallest group"))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = {
            "keys" if name == "quasi_identifiers" else name: value for name, value in asdict(self).items()
        }
        if self.unit is None:
            del found["unit"], found["persons"]
        return dict(plain({**found, "missing_words": self.missing_words}))


@renamed_attributes(keys="quasi_identifiers")
@internal(".to_dict() or .table()")
@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """Disclosure risk of a table from its quasi-identifiers, record by record. Internal: never published.

    Attributes:
        quasi_identifiers: the columns that an intruder may know.
        weight: the column of sampling weights; None where the table is the population.
        household_column: the column that identifies the household.
        missing: how missing key values count in fk and Fk: `wildcard` or `category`.
        alpha: the weight of a match by wildcard.
        form: of the individual risk.
        fk: number of records that match each record's keys.
        Fk: sum of their weights: the estimated number of such people in the population.
        individual: chance that a record is re-identified, given that its keys match.
        household: chance that at least one member of a record's household is re-identified; None without a household
            column.
        special: minimal sample uniques and their scores; None where not requested.
        population: expected uniques of the population, by a log-linear model.
        diversity: l-diversity of each sensitive column.
        tolerated: the tolerated global risk, for the threshold.
        levels: the keys as codes, for the contributions of their levels.
        unit: the column that identifies the person, where persons are counted instead of records.
        units: person number of each record.
    """

    quasi_identifiers: tuple[str, ...]
    weight: str | None
    household_column: str | None
    missing: str
    alpha: float
    form: str
    fk: Floats
    Fk: Floats
    individual: Floats
    household: Floats | None
    special: Suda | None
    population: PopulationUniques
    diversity: Mapping[str, Diversity]
    tolerated: float
    levels: tuple[Coded, ...]
    unit: str | None = None
    units: Integers | None = None

    @property
    def persons(self) -> int | None:
        """Number of persons that the records belong to; None where records are counted."""
        return None if self.units is None else int(self.units.max()) + 1

    @property
    def counted(self) -> int:
        """Number of persons where those are counted, otherwise of records."""
        return self.rows if self.persons is None else self.persons

    @property
    def _risks(self) -> Floats:
        """The individual risk of each person or record counted."""
        return self.individual if self.units is None else risks_of_units(self.individual, self.units)

    def _number(self, which: NDArray[np.bool_]) -> int:
        """Number of the given records, or of the persons who have one of them."""
        return int(which.sum() if self.units is None else np.unique(self.units[which]).size)

    @property
    def rows(self) -> int:
        return int(self.fk.size)

    @property
    def suda(self) -> Floats | None:
        """SUDA score of each record, 0 for one that is not unique."""
        return None if self.special is None else self.special.scores

    @property
    def dis(self) -> Floats | None:
        """DIS-SUDA score of each record."""
        return None if self.special is None else self.special.dis

    @property
    def contributions(self) -> Floats | None:
        """(records, keys), share of the score by minimal sample uniques with this key; shares overlap."""
        return None if self.special is None else self.special.contributions

    @property
    def expected(self) -> float:
        """Expected number of re-identifications: the sum of the individual risks."""
        return float(self._risks.sum())

    @property
    def global_risk(self) -> float:
        """The same as a share of the records, or of the persons."""
        return self.expected / self.counted

    @property
    def household_expected(self) -> float | None:
        """Expected number of records in a household of which somebody is re-identified."""
        if self.household is None:
            return None
        own = self.household if self.units is None else risks_of_units(self.household, self.units)
        return float(own.sum())

    @property
    def household_risk(self) -> float | None:
        """The same as a share of the records, or of the persons."""
        return None if self.household_expected is None else self.household_expected / self.counted

    @property
    def uniques(self) -> int:
        """Number of records with fk = 1, or of persons with such a record."""
        return self._number(self.fk == 1)

    @property
    def pairs(self) -> int:
        """Number of records with fk = 2, or of persons with such a record."""
        return self._number(self.fk == 2)

    @property
    def high(self) -> int:
        """Number of records, or of persons, whose risk is above 0.1 and stands out."""
        return endangered(self._risks)

    def below(self, k: int) -> int:
        """Number of records that fewer than k records fit, or of persons with one that fewer than k persons fit."""
        return self._number(self.fk < k)

    def threshold(self, tolerated: float = TOLERATED) -> float | None:
        """The risk above which records need protection for a global risk below `tolerated`.

        None where the table is already below, 0 where no threshold suffices.
        """
        return risk_threshold(self._risks, tolerated)

    def key_contributions(self) -> dict[str, float]:
        """Share of all scores by minimal sample uniques with each key, in percent; the shares overlap."""
        if self.special is None:
            return {}
        return dict(zip(self.quasi_identifiers, self.special.key_contributions.tolist(), strict=True))

    def level_contributions(self) -> dict[str, dict[Any, float]]:
        """Share of a key's scores that each of its levels contributes, in percent; 100 for each key."""
        if self.special is None:
            return {}
        return {
            name: dict(
                zip(
                    key.levels,
                    self.special.level_contributions(key.codes, place, len(key.levels)).tolist(),
                    strict=True,
                )
            )
            for place, (name, key) in enumerate(zip(self.quasi_identifiers, self.levels, strict=True))
        }

    @property
    def figures(self) -> RiskFigures:
        """The risk of the whole table."""
        return RiskFigures(
            rows=self.rows,
            quasi_identifiers=self.quasi_identifiers,
            weight=self.weight,
            household=self.household_column,
            missing=self.missing,
            alpha=self.alpha,
            form=self.form,
            uniques=self.uniques,
            pairs=self.pairs,
            below_3=self.below(3),
            below_5=self.below(5),
            expected=self.expected,
            global_risk=self.global_risk,
            largest=float(self.individual.max()),
            unit=self.unit,
            persons=self.persons,
            high=self.high,
            tolerated=self.tolerated,
            threshold=self.threshold(self.tolerated),
            household_expected=self.household_expected,
            household_risk=self.household_risk,
            sample_uniques=self.population.sample_uniques,
            tau1=self.population.tau1,
            tau2=self.population.tau2,
            suda=self._special(),
            diversity={
                name: {
                    "distinct": int(one.distinct.min()),
                    "entropy": float(one.entropy.min()),
                    "recursive": int(one.recursive.min()),
                }
                for name, one in self.diversity.items()
            },
        )

    def _special(self) -> Special | None:
        if self.special is None:
            return None
        return Special(
            records=self._number(self.special.scores > 0),
            score=float(self.special.scores.sum()),
            dis=float(self.special.dis.sum()),
            largest_dis=float(self.special.dis.max()),
            msu_sizes=self.special.sizes,
            key_contributions=self.key_contributions(),
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures of the whole table as plain values for JSON; nothing about single records."""
        return self.figures.to_dict()

    def table(self) -> TextTable:
        """The figures of the whole table with one line of explanation each, for a terminal of 80 columns."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table as TextTable

        out = TextTable(
            title=escape(f"Risk of {self._of_whom} by {', '.join(self.quasi_identifiers)} (internal)"),
            title_justify="left",
            caption_justify="left",
            box=SIMPLE_HEAD,
            pad_edge=False,
        )
        out.add_column("measure", overflow="fold")
        out.add_column("value", justify="right", no_wrap=True)
        out.add_column("meaning")
        figures = self.figures
        for line in figures.lines():
            out.add_row(*(escape(part) for part in line))
        out.caption = escape(figures.conditions)
        return out

    @property
    def _of_whom(self) -> str:
        records = f"{self.rows:,} records"
        return records if self.persons is None else f"{self.persons:,} persons with {records}"

    def __rich__(self) -> TextTable:
        return self.table()

    def records(self) -> pa.Table:
        """The measures of each record in input order, every row marked as internal."""
        import pyarrow as pa

        columns: dict[str, Any] = {
            "internal": pa.array([INTERNAL]).take(pa.array(np.zeros(self.rows, dtype=np.int64))),
            "row": np.arange(1, self.rows + 1),
            "fk": _whole(self.fk),
            "Fk": self.Fk,
            "individual": self.individual,
        }
        if self.household is not None:
            columns["household"] = self.household
        if self.special is not None:
            columns |= {"suda": self.special.scores, "dis": self.special.dis}
            shares = self.special.contributions
            columns |= _named("contribution", self.quasi_identifiers, shares.T)
        for name, one in self.diversity.items():
            columns |= {
                f"distinct {name}": one.distinct,
                f"entropy {name}": one.entropy,
                f"recursive {name}": one.recursive,
            }
        return pa.table(columns)

    def save(self, path: str | Path) -> None:
        """Write the measures of each record to a new file, in the format of its extension.

        Raises:
            OutputError: the file exists, is in the folder of a release, or cannot be written.
        """
        from shoal.io import private_file, write

        target = Path(path)
        if target.exists():
            raise OutputError("result-exists-already", target=target)
        if (target.parent / "statement.json").exists():
            raise OutputError("would-lie-folder-release-risk-single", target=target)
        aside = target.with_name(f".partial-{target.name}")
        try:
            write(self.records(), private_file(aside))
            aside.replace(target)
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError("result-cannot-write", target=target, reason=error.strerror or error) from None
        finally:
            aside.unlink(missing_ok=True)


def _whole(values: Floats) -> NDArray[Any]:
    """Convert to integers where all values are whole."""
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values


def _named(what: str, names: Sequence[str], values: Floats) -> dict[str, Floats]:
    return {f"{what} {name}": column for name, column in zip(names, values, strict=True)}


# with more keys than this special uniques are searched only on request; with more than the smaller number only if
# records times key sets are not too many: a record can have hundreds of minimal sample uniques
SEARCHED_KEYS, ALWAYS_SEARCHED = 12, 8
_SEARCHED_SETS = 1 << 24


@renamed_arguments(keys="quasi_identifiers")
def risk(
    table: Any,
    quasi_identifiers: str | Sequence[str] | None = None,
    weight: str | None = None,
    household: str | None = None,
    *,
    unit: str | None = None,
    schema: Schema | None = None,
    sensitive: str | Sequence[str] = (),
    missing: MissingRule = "wildcard",
    alpha: float = 1.0,
    form: Form = "approximate",
    tolerated: float = TOLERATED,
    special: bool | None = None,
    fraction: float = 0.01,
    points: Points = "original",
    interactions: Sequence[str | Sequence[str]] = (),
    c: float = 2.0,
    progress: Progress | None = None,
) -> Risk:
    """`shoal.risk` without an entry in the journal of use; its arguments are documented there."""
    data = read(table) if schema is None else read_declared(table, schema)
    schema = None if schema is None else schema.stepped
    if data.n == 0:
        raise InputError("no-risk-to-measure")
    known = _keys(data, quasi_identifiers, schema)
    weight = weight if weight is not None else _by_role(data, schema, "weight")
    unit = unit if unit is not None else _by_role(data, schema, "unit")
    units = None if unit is None else units_of(data, unit)
    _check_options(missing, alpha, form, tolerated, fraction, points, c)
    if special and len(known) > MOST_KEYS:
        raise OptionError(
            "special-uniques-can-searched-among-most",
            option="special",
            most_keys=MOST_KEYS,
            number_of_known=len(known),
        )
    tell = progress or silent
    tell("counting combinations of keys", 0, 1)
    columns = tuple(coded(data, name) for name in known)
    weights = None if weight is None else _weights(data, weight)
    found = patterns([column.codes for column in columns], weights, units)
    levels = [len(column.levels) for column in columns]
    fk, population = RULES[missing](found, alpha)
    individual = FORMS[form](fk, population)[found.labels]
    tell("searching special uniques", 0, 1)
    searched = _by_default(len(known), int((found.counts == 1).sum())) if special is None else special
    return Risk(
        quasi_identifiers=known,
        weight=weight,
        household_column=household,
        missing=missing,
        alpha=alpha,
        form=form,
        fk=fk[found.labels],
        Fk=population[found.labels],
        individual=individual,
        household=None
        if household is None
        else household_risks(individual, _households(data, household), units),
        special=suda(found, levels, fraction, points) if searched else None,
        population=population_uniques(
            found, levels, None if weights is None else found.weights, _margins(known, interactions)
        ),
        diversity={
            name: diversity(found.labels, coded(data, name).codes, c, units)
            for name in dict.fromkeys(as_names(sensitive))
        },
        tolerated=tolerated,
        levels=columns,
        unit=unit,
        units=units,
    )


def _keys(table: Table, named: str | Sequence[str] | None, schema: Schema | None) -> tuple[str, ...]:
    if named is None and schema is not None:
        named = [a.name for a in schema.attributes if a.role == "quasi-identifier" and a.name in table.names]
    if not named:
        raise OptionError("there-no-keys", option="quasi_identifiers")
    return tuple(table.known(name) for name in dict.fromkeys(as_names(named)))


def _by_default(keys: int, uniques: int) -> bool:
    """Whether special uniques are searched by default."""
    return keys <= ALWAYS_SEARCHED or (keys <= SEARCHED_KEYS and uniques << keys <= _SEARCHED_SETS)


def _by_role(table: Table, schema: Schema | None, role: str) -> str | None:
    """The single column of a role, if the table has it."""
    if schema is None:
        return None
    return next((a.name for a in schema.attributes if a.role == role and a.name in table.names), None)


def _weights(table: Table, name: str) -> Floats:
    weights = table.numeric(name)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if bad.size:
        row, value = int(bad[0]) + 1, float(weights[bad[0]])
        code = "weight-missing" if math.isnan(value) else "weight-not-above-0"
        raise InputError(code, column=name, row=row, found=value)
    return weights


def units_of(table: Table, name: str) -> Integers:
    """The person of each record, numbered from 0.

    Raises:
        InputError: the column is unknown, or a record has no person.
    """
    column = coded(table, table.known(name))
    alone = column.codes < 0
    if alone.any():
        raise InputError("row-without-person", column=name, row=int(np.argmax(alone)) + 1)
    return column.codes


def _households(table: Table, name: str) -> Integers:
    """Households by number; a record without one is a household by itself."""
    column = coded(table, name)
    alone = column.codes < 0
    numbers = column.codes.copy()
    numbers[alone] = len(column.levels) + np.arange(int(alone.sum()))
    return numbers


def _margins(keys: Sequence[str], interactions: Sequence[str | Sequence[str]]) -> list[list[int]]:
    margins = [as_names(margin) for margin in interactions]
    for margin in margins:
        for name in margin:
            if name not in keys:
                raise OptionError(
                    "interactions-names-not-keys", option="interactions", name=name, keys=tuple(keys)
                )
    return [[keys.index(name) for name in margin] for margin in margins]


def _check_options(
    missing: str, alpha: float, form: str, tolerated: float, fraction: float, points: str, c: float
) -> None:
    for name, value, known in (
        ("missing", missing, tuple(RULES)),
        ("form", form, tuple(FORMS)),
        ("points", points, ("original", "ihsn")),
    ):
        if value not in known:
            raise OptionError("option-not-among-allowed", option=name, found=value, allowed=tuple(known))
    if not 0 <= alpha <= 1:
        raise OptionError("alpha-from-0-1", option="alpha", found=alpha)
    for name, share in (("tolerated", tolerated), ("fraction", fraction)):
        if not 0 < share < 1:
            raise OptionError("above-0-below-1", option=name, found=share)
    if not c > 0:
        raise OptionError("c-above-0", option="c", found=c)


def figures_of_sizes(
    keys: Sequence[str],
    sizes: Integers,
    groups: Integers,
    diversity: Mapping[str, Mapping[str, float]],
    form: Form = "approximate",
    tolerated: float = TOLERATED,
) -> RiskFigures:
    """Figures of a table without weights in which a missing key is a separate value.

    Args:
        sizes: the distinct sizes of groups of records with the same keys.
        groups: how many groups have each size.
        diversity: least distinct, entropy and recursive l of each sensitive column.

    >>> found = figures_of_sizes(["age"], np.array([1, 2]), np.array([2, 1]), {})
    >>> found.rows, found.uniques, found.expected
    (4, 2, 3.0)
    """
    records = sizes * groups
    exact = sizes.astype(np.float64)
    risks = FORMS[form](exact, exact)
    rows, uniques = int(records.sum()), int(groups[sizes == 1].sum())
    expected = float(np.sum(risks * records))
    return RiskFigures(
        rows=rows,
        quasi_identifiers=tuple(keys),
        weight=None,
        household=None,
        missing="category",
        alpha=1.0,
        form=form,
        uniques=uniques,
        pairs=int(records[sizes == 2].sum()),
        below_3=int(records[sizes < 3].sum()),
        below_5=int(records[sizes < 5].sum()),
        expected=expected,
        global_risk=expected / rows,
        largest=float(risks.max()),
        high=endangered(risks, records),
        tolerated=tolerated,
        threshold=risk_threshold(risks, tolerated, records),
        household_expected=None,
        household_risk=None,
        sample_uniques=uniques,
        # the table is the population: a sample unique is a population unique, and matched correctly
        tau1=float(uniques),
        tau2=float(uniques),
        suda=None,
        diversity=diversity,
    )
