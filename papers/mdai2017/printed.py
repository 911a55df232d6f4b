"""Published values of MDAI-2017, from printed.toml."""

from __future__ import annotations

from collections.abc import Mapping

from papers.texts import rows

_PRINTED = rows("mdai2017/printed")
CENSUS_4: tuple[str, ...] = tuple(_PRINTED["census_4"])
EIA_11: tuple[str, ...] = tuple(_PRINTED["eia_11"])

# method, split, ε, k
Case = tuple[str, str, int, int]
PROTOTYPE_RUNS: int = _PRINTED["prototype_runs"]
SSE_FIGURES: Mapping[Case, str] = {
    (method, split, epsilon, k): text for method, split, epsilon, k, text in _PRINTED["figure_3"]
}
SAE_FIGURES: Mapping[Case, str] = {
    (method, split, epsilon, k): text for method, split, epsilon, k, text in _PRINTED["figure_4"]
}
# 100·SSE/SST of MDAV on z-scores by file and k
REFERENCE_LOSS: Mapping[tuple[str, int], str] = {
    (file, k): text for file, k, text in _PRINTED["information_loss"]
}
NOISE_FACTORS: Mapping[str, str] = _PRINTED["noise_factors"]
REPLACEMENTS: int = _PRINTED["replacements"]
REPLACEMENTS_THAT_REGROUP: Mapping[str, int] = _PRINTED["replacements_that_regroup"]
OPTIMAL_GAINS: Mapping[str, str] = _PRINTED["optimal_gains"]
