"""What `evaluate` returns: measures come in as plain numbers, a dictionary, JSON or a terminal table leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import summaries
from shoal.columns.kinds import KIND_FACTS
from shoal.display import displayed
from shoal.evaluation.five import five
from shoal.evaluation.measures import MEASURES
from shoal.text import Message

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_ATTRIBUTE = (
    ("sse", "SSE"),
    ("normalised_sse", "norm. SSE"),
    ("mean_variation", "mean"),
    ("variance_variation", "variance"),
    ("wasserstein", "Wass.-1"),
)
_NOMINAL = (("semantic_sse", "semantic SSE"), ("scaled_sse", "scaled SSE"), ("total_variation", "total var."))


@displayed(summaries.of_evaluation)
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Utility lost and risk left. Facts about the original data: for the internal report, not for publication.

    Attributes:
        utility: measures of loss by name; `attributes` holds those of each column.
        risk: record linkage with its interval, and the k actually reached.
        columns: the columns measured.
        rows_matched: whether rows could be compared one by one; if not, row measures are None.
        matching: how rows that were drawn were given to records of their cluster: none, rank or assignment; None
            where rows were not drawn.
        rows: number of rows of the original (those that were protected) and of the released table.
        missing: number of missing values of each measured column in both tables.
        unmeasured: columns that were not measured, and why; `skipped` has it in words.
        learning: how well a classifier learns from the release; None without a target.
        estimates: survey estimates with their errors, before and after; None without a weight.
        synthetic: the released rows were drawn and are nobody's.
        told: what was not measured, or not exactly, because the tables were never in memory; `remarks` has it in words.
    """

    utility: dict[str, Any]
    risk: dict[str, Any]
    columns: tuple[str, ...]
    rows_matched: bool
    rows: dict[str, int]
    missing: dict[str, dict[str, int]]
    unmeasured: dict[str, Message]
    learning: dict[str, Any] | None = None
    matching: str | None = None
    estimates: dict[str, Any] | None = None
    synthetic: bool = False
    told: tuple[Message, ...] = ()

    @property
    def skipped(self) -> dict[str, str]:
        return {name: str(why) for name, why in self.unmeasured.items()}

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(map(str, self.told))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values that JSON can hold; what does not exist is None."""
        return {
            "columns": list(self.columns),
            "rows_matched": self.rows_matched,
            "matching": self.matching,
            "rows": plain(self.rows),
            "missing": plain(self.missing),
            "skipped": self.skipped,
            "utility": plain(self.utility),
            "risk": plain(self.risk),
            "learning": plain(self.learning),
            "estimates": plain(self.estimates),
            "synthetic": self.synthetic,
            "remarks": list(self.remarks),
        }

    def summary(self, about: str = "internal: facts about the original data") -> Table:
        """Five measures that need no explanation, each with a word of judgement."""
        out = _empty_table(f"What changed ({about})")
        for title in ("", "", "judgement"):
            out.add_column(title)
        for line in five(self.to_dict()):
            out.add_row(line.title, line.words, line.judgement)
        return out

    def table(self) -> Table:
        """The measures of the whole table with one line of explanation each, for a terminal of 80 columns."""
        out = _empty_table("Evaluation (internal: facts about the original data)")
        out.add_column("measure", no_wrap=True)
        out.add_column("value", justify="right", no_wrap=True)
        out.add_column("good", no_wrap=True)
        out.add_column("meaning")
        for part, values in (("utility", self.utility), ("risk", self.risk)):
            for measure in MEASURES.values():
                if measure.part == part and values.get(measure.name) is not None:
                    out.add_row(measure.title, _shown(values[measure.name]), measure.good, measure.meaning)
            out.add_section()
        if not self.rows_matched:
            out.caption = "Rows have no known order: SSE, SAE and record linkage do not exist."
        elif self.matching is not None:
            out.caption = f"Rows were drawn; which one stands for which record: match={self.matching}."
        return out

    def attribute_table(self) -> Table | None:
        """The measures of each column with an order; None without one."""
        return self._by_attribute("By attribute", _ATTRIBUTE, nominal=False)

    def nominal_table(self) -> Table | None:
        """The measures of each nominal column; None without one."""
        return self._by_attribute("By nominal attribute", _NOMINAL, nominal=True)

    def _by_attribute(
        self, title: str, measures: Sequence[tuple[str, str]], *, nominal: bool
    ) -> Table | None:
        from rich.markup import escape

        attributes: Mapping[str, Mapping[str, Any]] = self.utility["attributes"]
        lines = {
            name: line for name, line in attributes.items() if KIND_FACTS[line["kind"]].ordered is not nominal
        }
        if not lines:
            return None
        k: Mapping[str, int] = self.risk["actual_k_per_attribute"]
        shown = [pair for pair in measures if any(line[pair[0]] is not None for line in lines.values())]
        out = _empty_table(title)
        out.add_column("attribute", overflow="fold")
        for _, heading in shown:
            out.add_column(heading, justify="right", no_wrap=True)
        out.add_column("k", justify="right", no_wrap=True)
        for name, line in lines.items():
            size = f"{k[name]}" if name in k else "-"
            out.add_row(escape(name), *(_shown(line[key]) for key, _ in shown), size)
        return out

    def learning_table(self) -> Table | None:
        """Accuracy and F-measures of a classifier, beside its bounds; None without a target."""
        if self.learning is None:
            return None
        from rich.markup import escape

        found = self.learning
        out = _empty_table(f"Learning {escape(found['target'])} (random forest)")
        out.add_column("measure", overflow="fold")
        for title in ("release", "95% interval", "original", "majority class"):
            out.add_column(title, justify="right", no_wrap=True)
        sources = [found[source] for source in ("released", "original", "majority")]
        for name in (None, *found["classes"]):
            means = [part["accuracy"] if name is None else part["f"][name] for part in sources]
            interval = sources[0]["accuracy_interval"] if name is None else sources[0]["f_interval"][name]
            title = "accuracy" if name is None else f"F, {escape(name)}"
            out.add_row(title, _shown(means[0]), _shown(interval), *(_shown(mean) for mean in means[1:]))
        classes = (
            "as released" if found["labels"] == "released" else "the true ones, as if published unmasked"
        )
        out.caption = (
            f"{found['how']} Classes in training: {classes}. Intervals are over {found['runs']} runs."
        )
        return out

    def estimates_table(self) -> Table | None:
        """Survey estimates before and after, with the difference in standard errors; None without a weight."""
        if self.estimates is None or not self.estimates["rows"]:
            return None
        from rich.markup import escape

        out = _empty_table("Survey estimates (internal: facts about the original data)")
        out.add_column("estimate", overflow="fold")
        for title in ("before", "error", "after", "error", "moved, in errors"):
            out.add_column(title, justify="right", no_wrap=True)
        for line in self.estimates["rows"]:
            found = (line[key] for key in ("before", "error_before", "after", "error_after", "moved"))
            out.add_row(escape(f"{line['column']}: {line['what']}"), *(_shown(value) for value in found))
        out.caption = self.estimates["about"]
        return out

    def __rich__(self) -> Group:
        from rich.console import Group

        tables = (
            self.table(),
            self.attribute_table(),
            self.nominal_table(),
            self.learning_table(),
            self.estimates_table(),
        )
        return Group(*(table for table in tables if table is not None))


def plain(value: Any) -> Any:
    """A value as plain Python: no numpy types; NaN and infinities become None.

    >>> plain({"a": (np.float64(1.5), float("nan")), "b": np.int64(3)})
    {'a': [1.5, None], 'b': 3}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _empty_table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (tuple, list)):
        return " - ".join(f"{item:.3g}" for item in value)
    if isinstance(value, int):
        return f"{value}"
    return f"{value:.4g}"
