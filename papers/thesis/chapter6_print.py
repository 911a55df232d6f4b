"""Tables 6.1 to 6.5 of the thesis, from chapter6-printed.toml. Every noisy number is the mean of ten runs."""

from __future__ import annotations

from collections.abc import Mapping

from papers.texts import rows

_PRINTED = rows("thesis/chapter6-printed")
RUNS: int = _PRINTED["runs"]
KS: tuple[int, ...] = tuple(_PRINTED["ks"])
STATISTICS = tuple(
    f"{what} of {name}" for what in ("mean", "variance") for name in ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
)
# k -> SSE and RL of MDAV, then SSE_f, RL_f and Score for each ε: Census, Adult
TABLE_6_1: Mapping[int, str] = {int(k): line for k, line in _PRINTED["table_6_1"].items()}
TABLE_6_3: Mapping[int, str] = {int(k): line for k, line in _PRINTED["table_6_3"].items()}
# ε -> SSE and RL of k = 1, then SSE_f, RL_f and Score for k = 5, 15, 30: Census, Adult
TABLE_6_2: Mapping[str, str] = _PRINTED["table_6_2"]
TABLE_6_4: Mapping[str, str] = _PRINTED["table_6_4"]
# statistic and k -> its variation for each ε, insensitive clusters alone and MDAV alone
TABLE_6_5: Mapping[tuple[str, int], list[str]] = {
    (statistic, k): line.split()
    for statistic, block in zip(STATISTICS, _PRINTED["table_6_5"].strip().split("\n\n"), strict=True)
    for k, line in zip((1, *KS), block.splitlines(), strict=True)
}
# SSE of insensitive clusters by k, which print only draws
PROTOTYPE_SSE: Mapping[int, str] = {int(k): text for k, text in _PRINTED["prototype_sse"].items()}
