"""How far one record can move a statistic: public widths and budgets come in, noise scales leave."""

from __future__ import annotations

from fractions import Fraction

from shoal.noise.families import laplace_scale


def cluster_sum_scale(steps: int, epsilon: Fraction) -> Fraction:
    """Scale, in lattice steps, of the Laplace noise on every cluster sum of one attribute.

    Dividing a sum with noise of this scale by |C| afterwards is the same as noise of scale W/(|C|·ε) on the
    mean, and stays exact on integers.

    Guarantee:
        Replacing one record changes the sums of one attribute by at most W = `steps` in L1 norm, over all
        clusters together, in three situations: the clusters are held fixed (one sum moves by at most W); every
        record is a cluster of its own; the clusters are intervals of ranks fixed in advance (the changes
        telescope). Discrete Laplace noise of scale W/ε then costs at most ε. Proof: docs/proofs/sums.md.

    Reference:
        MDAI-2017, Proposition 2; PSD-2014, Lemma 1.

    >>> cluster_sum_scale(12000, Fraction(1, 2))
    Fraction(24000, 1)
    """
    return laplace_scale(steps, epsilon)
