"""What `shoal.risk` returns: measures of each record come in, figures, a terminal table or a per-record table leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.disclosure.diversity import Diversity
from shoal.evaluation.disclosure.frequencies import RULE_WORDS
from shoal.evaluation.disclosure.individual import HIGH_RISK, endangered, risk_threshold
from shoal.evaluation.disclosure.keys import Coded, Floats
from shoal.evaluation.disclosure.loglinear import PopulationUniques
from shoal.evaluation.disclosure.suda import Suda
from shoal.evaluation.result import plain

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

TOLERATED = 0.01
# the mark of a file about records, in its first column
INTERNAL = "internal, not for publication"
_FORM_WORDS: Mapping[str, str] = {
    "approximate": "closed forms (Benedetti-Franconi)",
    "exact": "exact form (Benedetti-Franconi)",
}


@internal(".to_dict() or .table()")
@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """Disclosure risk of a table by what an intruder may know, record by record. Internal: never published.

    Attributes:
        keys: the columns that an intruder may know.
        weight: the column of sampling weights; None where everybody is in the table.
        household_column: the column that says who lives together.
        missing: how missing key values count in fk and Fk: `wildcard` or `category`.
        alpha: what a match by wildcard counts.
        form: of the individual risk.
        fk: number of records that fit each record's keys.
        Fk: sum of their weights: the estimated number of such people in the population.
        individual: chance that a record is found again, given that its keys fit.
        household: chance that at least one member of a record's household is; None without a household column.
        special: minimal sample uniques and their scores; None where they were not asked for.
        population: expected uniques of the population, by a log-linear model.
        diversity: l-diversity of each sensitive column.
        tolerated: the global risk that a threshold was asked for.
        levels: the keys as codes, for contributions of their levels.
    """

    keys: tuple[str, ...]
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
        return float(self.individual.sum())

    @property
    def global_risk(self) -> float:
        """The same as a share of the records."""
        return self.expected / self.rows

    @property
    def household_expected(self) -> float | None:
        """Expected number of records in a household of which somebody is found."""
        return None if self.household is None else float(self.household.sum())

    @property
    def household_risk(self) -> float | None:
        """The same as a share of the records."""
        return None if self.household_expected is None else self.household_expected / self.rows

    @property
    def uniques(self) -> int:
        """Number of records with fk = 1."""
        return int((self.fk == 1).sum())

    @property
    def pairs(self) -> int:
        """Number of records with fk = 2."""
        return int((self.fk == 2).sum())

    @property
    def high(self) -> int:
        """Number of records whose risk is above 0.1 and stands out."""
        return endangered(self.individual)

    def below(self, k: int) -> int:
        """Number of records that fewer than k records fit."""
        return int((self.fk < k).sum())

    def threshold(self, tolerated: float = TOLERATED) -> float | None:
        """The risk above which records need protection for a global risk below `tolerated`.

        None where the table is below already, 0 where no threshold does.
        """
        return risk_threshold(self.individual, tolerated)

    def key_contributions(self) -> dict[str, float]:
        """Share of all scores by minimal sample uniques with each key, in percent; the shares overlap."""
        if self.special is None:
            return {}
        return dict(zip(self.keys, self.special.key_contributions.tolist(), strict=True))

    def level_contributions(self) -> dict[str, dict[Any, float]]:
        """Which levels of a key have its part of the scores, in percent; 100 for each key."""
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
            for place, (name, key) in enumerate(zip(self.keys, self.levels, strict=True))
        }

    @property
    def missing_words(self) -> str:
        """The rule for missing keys, in words."""
        part = f", such a match counting {self.alpha:g}" if self.alpha != 1 else ""
        return f"{RULE_WORDS[self.missing]}{part}"

    def to_dict(self) -> dict[str, Any]:
        """The figures of the whole table as plain values for JSON; nothing about a single record."""
        found: dict[str, Any] = {
            "rows": self.rows,
            "keys": self.keys,
            "weight": self.weight,
            "household": self.household_column,
            "missing": self.missing,
            "missing_words": self.missing_words,
            "alpha": self.alpha,
            "form": self.form,
            "uniques": self.uniques,
            "pairs": self.pairs,
            "below_3": self.below(3),
            "below_5": self.below(5),
            "expected": self.expected,
            "global_risk": self.global_risk,
            "largest": float(self.individual.max()),
            "high": self.high,
            "tolerated": self.tolerated,
            "threshold": self.threshold(self.tolerated),
            "household_expected": self.household_expected,
            "household_risk": self.household_risk,
            "population": {
                "sample_uniques": self.population.sample_uniques,
                "tau1": self.population.tau1,
                "tau2": self.population.tau2,
            },
            "suda": None,
            "diversity": {name: self._least(one) for name, one in self.diversity.items()},
        }
        if self.special is not None:
            found["suda"] = {
                "records": int((self.special.scores > 0).sum()),
                "score": float(self.special.scores.sum()),
                "dis": float(self.special.dis.sum()),
                "largest_dis": float(self.special.dis.max()),
                "msu_sizes": self.special.sizes,
                "key_contributions": self.key_contributions(),
            }
        return dict(plain(found))

    @staticmethod
    def _least(found: Diversity) -> dict[str, float]:
        return {
            "distinct": int(found.distinct.min()),
            "entropy": float(found.entropy.min()),
            "recursive": int(found.recursive.min()),
        }

    def lines(self) -> list[tuple[str, str, str]]:
        """Name, value and meaning of every figure, for a page or a terminal."""
        found = [
            ("sample uniques", f"{self.uniques:,}", "records that no other record's keys fit (fk = 1)"),
            ("fk below 3", f"{self.below(3):,}", "records that at most one other fits"),
            ("expected found", f"{self.expected:.4g}", "re-identifications, sum of the individual risks"),
            ("global risk", f"{self.global_risk:.4%}", "the same as a share of the records"),
            ("largest risk", f"{self.individual.max():.4g}", "of one record"),
            ("high risk", f"{self.high:,}", f"records that stand out, risk above {HIGH_RISK:g}"),
            ("threshold", _threshold_words(self.threshold(self.tolerated)), self._threshold_meaning()),
        ]
        if self.household_expected is not None:
            found += [
                (
                    "by households",
                    f"{self.household_expected:.4g}",
                    "records of whose household one is found",
                ),
                ("household risk", f"{self.household_risk:.4%}", "the same as a share of the records"),
            ]
        # without weights the sample is the population, and every unique is one of it
        if self.weight is not None:
            found += [
                ("tau1", f"{self.population.tau1:.4g}", "uniques expected unique in the population"),
                ("tau2", f"{self.population.tau2:.4g}", "uniques expected to be matched correctly"),
            ]
        if self.special is not None:
            special = int((self.special.scores > 0).sum())
            found += [
                ("special uniques", f"{special:,}", "records with a minimal sample unique (SUDA2)"),
                ("largest DIS", f"{self.special.dis.max():.4g}", "chance that a match is correct (DIS-SUDA)"),
            ]
        for name, one in self.diversity.items():
            least = self._least(one)
            found.append(
                (
                    f"l of {name}",
                    f"{least['distinct']} / {least['entropy']:.3g} / {least['recursive']}",
                    "distinct, entropy and recursive, least over groups",
                )
            )
        return found

    def _threshold_meaning(self) -> str:
        return f"protect records above it for a global risk below {self.tolerated:g}"

    def table(self) -> Table:
        """The figures of the whole table with one line of explanation each, for a terminal of 80 columns."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table

        out = Table(
            title=escape(f"Risk of {self.rows:,} records by {', '.join(self.keys)} (internal)"),
            title_justify="left",
            caption_justify="left",
            box=SIMPLE_HEAD,
            pad_edge=False,
        )
        out.add_column("measure", overflow="fold")
        out.add_column("value", justify="right", no_wrap=True)
        out.add_column("meaning")
        for line in self.lines():
            out.add_row(*(escape(part) for part in line))
        out.caption = escape(self.conditions)
        return out

    @property
    def conditions(self) -> str:
        """What the figures rest on, in one line."""
        sampled = (
            "No weights: the table is taken for the whole population."
            if self.weight is None
            else f"Weights: {self.weight}."
        )
        return (
            f"Missing: {self.missing_words}. {sampled} Individual risk: {_FORM_WORDS[self.form]}. In SUDA2, τ and l a "
            "missing key is no match for a value."
        )

    def __rich__(self) -> Table:
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
            columns |= _named("contribution", self.keys, shares.T)
        for name, one in self.diversity.items():
            columns |= {
                f"distinct {name}": one.distinct,
                f"entropy {name}": one.entropy,
                f"recursive {name}": one.recursive,
            }
        return pa.table(columns)


def _threshold_words(threshold: float | None) -> str:
    return "not needed" if threshold is None else f"{threshold:.4g}"


def _whole(values: Floats) -> NDArray[Any]:
    """As whole numbers where they are."""
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values


def _named(what: str, names: Sequence[str], values: Floats) -> dict[str, Floats]:
    return {f"{what} {name}": column for name, column in zip(names, values, strict=True)}
