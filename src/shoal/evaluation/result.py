"""What `evaluate` returns: measures come in as plain numbers, a dictionary, JSON or a terminal table leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

# key, name, explanation; every explanation fits beside its value in 80 columns
_UTILITY = (
    ("sse", "SSE", "sum of squared errors; 0 = unchanged"),
    ("sae", "SAE", "sum of absolute errors; 0 = unchanged"),
    ("log10_sse", "log10 SSE", "the same on a log scale"),
    ("log2_sse", "log2 SSE", "the same on a log scale"),
    ("normalised_sse", "normalised SSE", "squared error / variance; 1 = as bad as the mean"),
    ("mean_variation", "mean variation", "relative change of the means; 0 = kept"),
    ("variance_variation", "variance variation", "relative change of the variances; 0 = kept"),
    ("correlation_difference", "correlation diff.", "mean |change| of pair correlations, 0 to 2"),
    ("wasserstein", "Wasserstein-1", "shift of the values in std. deviations; 0 = kept"),
)
_RISK = (
    ("record_linkage", "record linkage %", "rows linked to their own record; low = private"),
    ("record_linkage_interval", "  95% interval", "Wilson interval of the line above"),
    ("record_linkage_chance", "  by guessing %", "what picking any record would link"),
    ("actual_k", "actual k", "smallest group of identical rows; high = private"),
    ("unique_share", "unique rows", "share of rows equal to no other, 0 to 1"),
)
_ATTRIBUTE = (
    ("sse", "SSE"),
    ("normalised_sse", "norm. SSE"),
    ("mean_variation", "mean"),
    ("variance_variation", "variance"),
    ("wasserstein", "Wass.-1"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Utility lost and risk left. Facts about the original data: for the internal report, not for publication.

    Attributes:
        utility: measures of loss by name; `attributes` holds those of each column.
        risk: record linkage with its interval, and the k actually reached.
        columns: the numeric columns measured.
        rows_matched: whether rows could be compared one by one; if not, row measures are None.
        rows: number of rows of the original (those that were protected) and of the released table.
        missing: number of missing values of each measured column in both tables.
        skipped: columns that were not measured, and why.
    """

    utility: dict[str, Any]
    risk: dict[str, Any]
    columns: tuple[str, ...]
    rows_matched: bool
    rows: dict[str, int]
    missing: dict[str, dict[str, int]]
    skipped: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values that JSON can hold; what does not exist is None."""
        return {
            "columns": list(self.columns),
            "rows_matched": self.rows_matched,
            "rows": plain(self.rows),
            "missing": plain(self.missing),
            "skipped": plain(self.skipped),
            "utility": plain(self.utility),
            "risk": plain(self.risk),
        }

    def table(self) -> Table:
        """The measures of the whole table with one line of explanation each, for a terminal of 80 columns."""
        from rich.table import Table

        out = Table(title="Evaluation (internal: facts about the original data)", title_justify="left")
        out.add_column("measure", no_wrap=True)
        out.add_column("value", justify="right", no_wrap=True)
        out.add_column("meaning", no_wrap=True)
        for values, lines in ((self.utility, _UTILITY), (self.risk, _RISK)):
            for key, name, meaning in lines:
                if values.get(key) is not None:
                    out.add_row(name, _shown(values[key]), meaning)
            out.add_section()
        if not self.rows_matched:
            out.caption = "Rows have no known order: SSE, SAE and record linkage do not exist."
        return out

    def attribute_table(self) -> Table:
        """The measures of each column."""
        from rich.markup import escape
        from rich.table import Table

        attributes: Mapping[str, Mapping[str, Any]] = self.utility["attributes"]
        k: Mapping[str, int] = self.risk["actual_k_per_attribute"]
        shown = [
            pair for pair in _ATTRIBUTE if any(line[pair[0]] is not None for line in attributes.values())
        ]
        out = Table(title="By attribute", title_justify="left")
        out.add_column("attribute", no_wrap=True, overflow="ellipsis", max_width=22)
        for _, title in shown:
            out.add_column(title, justify="right", no_wrap=True)
        out.add_column("k", justify="right", no_wrap=True)
        for name, line in attributes.items():
            size = f"{k[name]}" if name in k else "-"
            out.add_row(escape(name), *(_shown(line[key]) for key, _ in shown), size)
        return out

    def __rich__(self) -> Group:
        from rich.console import Group

        return Group(self.table(), self.attribute_table())


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


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (tuple, list)):
        return " .. ".join(_shown(item) for item in value)
    if isinstance(value, int):
        return f"{value}"
    return f"{value:.4g}"
