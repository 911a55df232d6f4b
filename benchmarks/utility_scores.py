"""The utility scores of a released table against its original."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.utility_tables import LABEL, YES, Domain, Numbers

TREES = 100
# points of the quantile functions that the distance of two numeric columns is summed over
QUANTILES = 2000


def row_error(original: pa.Table, aligned: pa.Table, domains: Mapping[str, Domain]) -> float:
    """Mean over the numeric columns of squared error over squared distance from the mean, which would score 1."""
    found = []
    for name, domain in domains.items():
        if isinstance(domain, Numbers):
            x, y = _floats(original, name), _floats(aligned, name)
            found.append(((x - y) ** 2).sum() / ((x - x.mean()) ** 2).sum())
    return float(np.mean(found))


def labels_kept(original: pa.Table, aligned: pa.Table) -> float:
    """Share of the rows whose released label is that of their record: how far labels were protected at all."""
    return float((_yes(original) == _yes(aligned)).mean())


def marginal_error(original: pa.Table, released: pa.Table, domains: Mapping[str, Domain]) -> float:
    """Mean over the columns: Wasserstein distance over the width of the domain, total variation for names."""
    return float(np.mean([column_error(original, released, name, domains[name]) for name in domains]))


def column_error(original: pa.Table, released: pa.Table, name: str, domain: Domain) -> float:
    if isinstance(domain, Numbers):
        places = (np.arange(QUANTILES) + 0.5) / QUANTILES
        quantiles = [
            np.quantile(_floats(table, name), places, method="inverted_cdf") for table in (original, released)
        ]
        return float(np.abs(quantiles[0] - quantiles[1]).mean() / domain.width)
    shares = [_indicators(table, name, domain).mean(axis=0) for table in (original, released)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def mean_error(original: pa.Table, released: pa.Table, domains: Mapping[str, Domain]) -> float:
    """By how many standard deviations the mean of a column of numbers is off, of the column where that is most."""
    found = [0.0]
    for name, domain in domains.items():
        if isinstance(domain, Numbers):
            x = _floats(original, name)
            found.append(float(abs(x.mean() - _floats(released, name).mean()) / max(x.std(), 1e-12)))
    return max(found)


def correlation_error(original: pa.Table, released: pa.Table, domains: Mapping[str, Domain]) -> float:
    """Mean absolute difference of the correlations of all pairs from different columns.

    A name is one column of zeros and ones per value, without the first where there are two. What does not vary
    correlates with nothing.
    """
    before, owners = _coded(original, domains)
    after, _ = _coded(released, domains)
    pairs = owners[:, None] < owners[None, :]
    return float(np.abs(_correlations(before) - _correlations(after))[pairs].mean())


def rank_error(original: pa.Table, released: pa.Table, domains: Mapping[str, Domain]) -> float:
    """The same for correlations of ranks, which a heavy tail does not move."""
    before, owners = _coded(original, domains)
    after, _ = _coded(released, domains)
    pairs = owners[:, None] < owners[None, :]
    return float(np.abs(_correlations(_ranks(before)) - _correlations(_ranks(after)))[pairs].mean())


def triple_errors(
    original: pa.Table, released: pa.Table, domains: Mapping[str, Domain]
) -> NDArray[np.float64]:
    """How far mean products of three signs are off, by triple: above the original's median or not, or one of two names.

    What only three columns together show is in them, and what pairs show as well.
    """
    columns = [name for name, domain in domains.items() if isinstance(domain, Numbers) or len(domain) == 2]
    before, after = (
        np.stack([_signs(table, original, name, domains[name]) for name in columns])
        for table in (original, released)
    )
    places = np.array(list(combinations(range(len(columns)), 3))).T
    means = [np.prod(signs[places], axis=0).mean(axis=1) for signs in (before, after)]
    found: NDArray[np.float64] = np.abs(means[0] - means[1])
    return found


def _signs(table: pa.Table, original: pa.Table, name: str, domain: Domain) -> NDArray[np.float64]:
    if isinstance(domain, Numbers):
        return np.where(_floats(table, name) <= np.median(_floats(original, name)), 1.0, -1.0)
    return np.where(_indicators(table, name, domain)[:, 0] > 0, 1.0, -1.0)


def _ranks(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks in every column, those of equal values their mean."""
    found = np.empty_like(X)
    for number, column in enumerate(X.T):
        _, place, count = np.unique(column, return_inverse=True, return_counts=True)
        found[:, number] = (np.cumsum(count) - (count - 1) / 2)[place]
    return found


def f_measure(released: pa.Table, held_out: pa.Table, domains: Mapping[str, Domain], seed: int) -> float:
    """F of the class yes on records that were held out, of a random forest that saw the released rows and labels."""
    from sklearn.ensemble import RandomForestClassifier

    features = {name: domain for name, domain in domains.items() if name != LABEL}
    forest = RandomForestClassifier(n_estimators=TREES, random_state=seed, n_jobs=1)
    forest.fit(_coded(released, features)[0], _yes(released))
    return f_of(_yes(held_out), forest.predict(_coded(held_out, features)[0]))


def f_of(truth: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Harmonic mean of precision and recall; 0 if nothing was found."""
    either = int(truth.sum() + said.sum())
    return 2 * int((truth & said).sum()) / either if either else 0.0


def trivial_f(held_out: pa.Table) -> tuple[float, float]:
    """F of the one who always says what most are, and of the one who always says yes."""
    truth = _yes(held_out)
    always = np.ones_like(truth)
    return f_of(truth, always & (truth.mean() > 0.5)), f_of(truth, always)


def _yes(table: pa.Table) -> NDArray[np.bool_]:
    return np.array([value == YES for value in table[LABEL].to_pylist()])


def _floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    return np.asarray(table[name].to_numpy(), dtype=np.float64)


def _indicators(table: pa.Table, name: str, values: tuple[str, ...]) -> NDArray[np.float64]:
    column = np.array(table[name].to_pylist(), dtype=object)
    return np.stack([column == value for value in values], axis=1).astype(np.float64)


def _coded(table: pa.Table, domains: Mapping[str, Domain]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Numbers as they are, one column of zeros and ones per name; and which column each belongs to."""
    blocks = []
    for name, domain in domains.items():
        if isinstance(domain, Numbers):
            blocks.append(_floats(table, name)[:, None])
        else:
            # one of two values says all about the other
            blocks.append(_indicators(table, name, domain[1:] if len(domain) == 2 else domain))
    owners = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])
    return np.concatenate(blocks, axis=1), owners


def _correlations(X: NDArray[np.float64]) -> NDArray[np.float64]:
    X = X - X.mean(axis=0)
    length = np.sqrt((X**2).sum(axis=0))
    varies = length > 1e-12 * (1 + np.abs(X).max(axis=0, initial=0))
    unit = np.where(varies, X / np.where(varies, length, 1), 0.0)
    return unit.T @ unit
