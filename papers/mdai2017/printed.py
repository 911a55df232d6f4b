"""What stands beside the recomputed numbers of MDAI-2017: printed values, and those of a throw-away prototype.

The text copy of the paper has its figures as captions only. A throw-away prototype, written before this library and
without its code, drew them from 2,000 runs; its values stand in for the missing axes.
"""

from __future__ import annotations

from collections.abc import Mapping

# in file order; the paper names the same four
CENSUS_4 = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
# the columns of EIA that the literature uses: a number of the utility, then revenues and sales
EIA_11 = (
    "UTILITYID",
    "RESREVENUE",
    "RESSALES",
    "COMREVENUE",
    "COMSALES",
    "INDREVENUE",
    "INDSALES",
    "OTHREVENUE",
    "OTHRSALES",
    "TOTREVENUE",
    "TOTSALES",
)

# method, split, ε, k
Case = tuple[str, str, int, int]
PROTOTYPE_RUNS = 2000

# sum of squared errors of unrounded, clipped values on Census-4, domain 0 to 1.5 times the maximum
SSE_FIGURES: Mapping[Case, str] = {
    ("mdav-dp", "equal", 1, 50): "2.81e11",
    ("mdav-dp", "proportional", 1, 50): "1.78e11",
    ("mdav-dp", "optimal", 1, 50): "1.65e11",
    ("ranking-dp", "equal", 1, 50): "2.53e11",
    ("ranking-dp", "proportional", 1, 50): "1.50e11",
    ("ranking-dp", "optimal", 1, 50): "1.37e11",
    ("mdav-dp", "equal", 1, 100): "1.20e11",
    ("mdav-dp", "proportional", 1, 100): "1.01e11",
    ("mdav-dp", "optimal", 1, 100): "9.37e10",
    ("ranking-dp", "equal", 1, 100): "9.15e10",
    ("ranking-dp", "proportional", 1, 100): "7.04e10",
    ("ranking-dp", "optimal", 1, 100): "6.31e10",
    ("mdav-dp", "equal", 2, 100): "7.82e10",
    ("mdav-dp", "proportional", 2, 100): "7.35e10",
    ("mdav-dp", "optimal", 2, 100): "7.10e10",
    ("ranking-dp", "equal", 2, 100): "4.84e10",
    ("ranking-dp", "proportional", 2, 100): "4.33e10",
    ("ranking-dp", "optimal", 2, 100): "4.08e10",
}
# sum of absolute errors, likewise
SAE_FIGURES: Mapping[Case, str] = {
    ("mdav-dp", "equal", 1, 100): "1.16e7",
    ("mdav-dp", "proportional", 1, 100): "1.26e7",
    ("mdav-dp", "optimal", 1, 100): "1.13e7",
    ("ranking-dp", "equal", 1, 100): "9.12e6",
    ("ranking-dp", "proportional", 1, 100): "9.91e6",
    ("ranking-dp", "optimal", 1, 100): "8.62e6",
}

# 100·SSE/SST of MDAV on z-scores, the check that implementations of MDAV are compared by in the literature
REFERENCE_LOSS: Mapping[str, Mapping[int, str]] = {
    "census.csv": {3: "5.6922", 4: "7.4947", 5: "9.0884", 10: "14.1559"},
    "eia.csv": {3: "0.4829", 4: "0.6713", 5: "1.6667", 10: "3.8397"},
}

# Σ W²/ε² over the four attributes at ε = 1, times 1/2 the noise variance of k = 1 before clipping
NOISE_FACTORS: Mapping[str, str] = {"equal": "5.11e11", "proportional": "3.07e11", "optimal": "2.41e11"}

# of 60 replacements of one record, so many changed who is grouped with whom
REPLACEMENTS = 60
REPLACEMENTS_THAT_REGROUP: Mapping[str, int] = {"MDAV": 59, "individual ranking": 60}

# per cent by which clusters of the best sizes lower the expected error at ε = 1
OPTIMAL_GAINS: Mapping[str, str] = {
    "mean of 13 attributes, best fixed k": "25",
    "INTVAL, best fixed k": "64",
    "POTHVAL, best fixed k": "53",
    "mean of 13 attributes, k = 50": "54",
}
