"""What stands beside the recomputed numbers of PSD-2014: printed values, and those of a throw-away prototype.

The text copy of the paper has its figure as a caption only. A throw-away prototype, written before this library and
without its code, drew it; its values stand in for the missing axis.
"""

from __future__ import annotations

from collections.abc import Mapping

ADULT_2 = ("age", "hours_per_week")
# runs that a printed point is the mean of; the prototype's number is not recorded and taken to be the same
PAPER_RUNS = 5

# ε, k -> log10(SSE/m); k = 1 is plain noise; groups of k with the remainder last, scale m·W/(|C|·ε), clipped
FIGURE: Mapping[tuple[str, int], str] = {
    ("0.1", 1): "8.26",
    ("0.1", 100): "7.49",
    ("1", 1): "8.17",
    ("1", 10): "7.48",
    ("1", 100): "5.71",
    ("10", 1): "7.49",
    ("10", 10): "5.68",
    ("10", 100): "4.06",
}
# k, remainder -> log10(SSE/m) without noise
ALONE: Mapping[tuple[int, str], str] = {
    (2, "last"): "1.36",
    (10, "last"): "2.26",
    (100, "last"): "3.82",
    (10, "middle"): "2.24",
    (100, "middle"): "3.54",
}
# 0 to 1.5 times the maximum of each attribute
WIDTHS: Mapping[str, str] = {"age": "135", "hours_per_week": "148.5"}

# how far a variant that starts at the farther end exceeded the bound of Lemma 1
FARTHEST_FIRST = "1.46"
