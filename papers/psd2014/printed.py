"""Published values of PSD-2014, from printed.toml."""

from __future__ import annotations

from collections.abc import Mapping

from papers.texts import rows

_PRINTED = rows("psd2014/printed")
ADULT_2 = ("age", "hours_per_week")
PAPER_RUNS: int = _PRINTED["paper_runs"]
# ε and k -> log10(SSE/m)
FIGURE: Mapping[tuple[str, int], str] = {(epsilon, k): text for epsilon, k, text in _PRINTED["figure"]}
# k and remainder -> log10(SSE/m) without noise
ALONE: Mapping[tuple[int, str], str] = {(k, remainder): text for k, remainder, text in _PRINTED["alone"]}
WIDTHS: Mapping[str, str] = _PRINTED["widths"]
FARTHEST_FIRST: str = _PRINTED["farthest_first"]
