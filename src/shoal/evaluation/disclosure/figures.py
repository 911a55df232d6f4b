"""The risk of a whole table in figures: one line each for a terminal or a page, plain values for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shoal.display import internal
from shoal.evaluation.disclosure.individual import HIGH_RISK
from shoal.evaluation.result import plain
from shoal.text import Message

_RULES: Mapping[str, Message] = {
    "wildcard": Message.of("rule-wildcard"),
    "category": Message.of("rule-category"),
}
_FORMS: Mapping[str, Message] = {
    "approximate": Message.of("form-approximate"),
    "exact": Message.of("form-exact"),
}


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class Special:
    """Special uniques of a table, in figures.

    Attributes:
        records: records with a minimal sample unique.
        score: sum of their scores.
        dis: sum of their DIS scores.
        largest_dis: of one record.
        msu_sizes: number of minimal sample uniques by their number of keys, from 1.
        key_contributions: share of all scores by sets with each key, in percent; the shares overlap.
    """

    records: int
    score: float
    dis: float
    largest_dis: float
    msu_sizes: tuple[int, ...]
    key_contributions: Mapping[str, float]


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class RiskFigures:
    """The risk of a table without a word about a single record. Facts about the records all the same.

    Attributes:
        rows: number of records.
        keys: the columns that an intruder may know.
        weight: the column of weights; None where the table is taken for the population.
        household: the column that says who lives together.
        missing: how missing keys count in fk and Fk.
        alpha: what a match by wildcard counts.
        form: of the individual risk.
        uniques, pairs, below_3, below_5: records with fk = 1, = 2, < 3, < 5.
        expected: re-identifications, the sum of the individual risks.
        global_risk: the same as a share of the records.
        largest: the largest individual risk.
        high: records whose risk is above 0.1 and stands out.
        tolerated: a global risk.
        threshold: the risk above which records need protection to get below it; None where none does.
        household_expected: records in a household of which somebody is found.
        household_risk: the same as a share of the records.
        sample_uniques: records whose keys no other has, missing counted as a value.
        tau1: how many of those are expected to be unique in the population.
        tau2: how many of those are expected to be matched correctly.
        suda: special uniques; None where they were not searched.
        diversity: least distinct, entropy and recursive l of each sensitive column.
        unit: the column that says whose record it is. Where there is one, all that is said above of records is said of
            persons, who have a risk if one of their records has it.
        persons: how many persons the records belong to; None without such a column.
    """

    rows: int
    keys: tuple[str, ...]
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
        """The rule for missing keys, in words."""
        return str(self._rule)

    @property
    def _rule(self) -> Message:
        rule = _RULES[self.missing]
        return rule if self.alpha == 1 else Message.of("rule-counting", rule=rule, alpha=self.alpha)

    @property
    def conditions(self) -> str:
        """What the figures rest on, in one line."""
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
        who, one = ("records", "record") if self.unit is None else ("persons", "person")
        found = [
            ("sample uniques", f"{self.uniques:,}", f"{who} that no other fits (fk = 1)"),
            ("fk below 3", f"{self.below_3:,}", f"{who} that at most one other fits"),
            ("expected found", f"{self.expected:.4g}", f"{who} found again, sum of individual risks"),
            ("global risk", f"{self.global_risk:.4%}", f"the same as a share of the {who}"),
            ("largest risk", f"{self.largest:.4g}", f"of one {one}"),
            ("high risk", f"{self.high:,}", f"{who} that stand out, risk above {HIGH_RISK:g}"),
            (
                "threshold",
                "not needed" if self.threshold is None else f"{self.threshold:.4g}",
                f"protect risks above it for a global risk below {self.tolerated:g}",
            ),
        ]
        if self.household_expected is not None:
            found += [
                ("by households", f"{self.household_expected:.4g}", f"{who} with somebody found at home"),
                ("household risk", f"{self.household_risk:.4%}", f"the same as a share of the {who}"),
            ]
        # without weights the sample is the population, and every unique is one of it
        if self.weight is not None:
            found += [
                ("tau1", f"{self.tau1:.4g}", "uniques expected unique in the population"),
                ("tau2", f"{self.tau2:.4g}", "uniques expected to be matched correctly"),
            ]
        if self.suda is not None:
            found += [
                ("special uniques", f"{self.suda.records:,}", f"{who} with a minimal sample unique (SUDA2)"),
                ("largest DIS", f"{self.suda.largest_dis:.4g}", "chance that a match is right (DIS-SUDA)"),
            ]
        for name, least in self.diversity.items():
            value = f"{least['distinct']} / {least['entropy']:.3g} / {least['recursive']}"
            found.append((f"l of {name}", value, "distinct, entropy, recursive; least group"))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = asdict(self)
        if self.unit is None:
            del found["unit"], found["persons"]
        return dict(plain({**found, "missing_words": self.missing_words}))
