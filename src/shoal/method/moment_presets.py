"""The methods of the cross-moment paper by its own numbers: the grids of its Figures 4 and 5 come in, presets leave."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shoal.method.method import Method

_STRATEGIES = {
    (1, 1): ("0.5", "0.5"),
    (1, 2): ("0.75", "0.25"),
    (2, 1): ("0.5", "0.3", "0.2"),
    (2, 2): ("0.75", "0.15", "0.1"),
}
_REBUILDS = ("centroid", "normal", "skew-normal")
_MOMENTS = ("means", "means and {second}", "means, {second} and coskewnesses")
_SPECTRA = (
    "means",
    "means, eigenvalues and eigenvectors of {second}",
    "means, coskewnesses, eigenvalues and eigenvectors of {second}",
)
_PARTITIONS = ("mdav", "vmdav", "ranking", "optimal", "insensitive", "given")


@dataclass(frozen=True, slots=True)
class _Line:
    """A column of Figure 4 or 5.

    Attributes:
        number: of the method; baselines have a B before it.
        moments: the paper's m.
        form: C for coefficients, E for eigenvalues and eigenvectors.
        partition: M for MDAV, I for individual ranking.
        masking: J for all statistics jointly, S for each kind separately; a dash for no noise.
        entries: P for all covariances, V for the variances only.
        strategy: which weights a separate masking uses.
    """

    number: str
    moments: int
    form: str
    partition: str
    masking: str
    entries: str
    strategy: int = 0

    @property
    def masked(self) -> bool:
        return not self.number.startswith("b")

    def method(self) -> Method:
        ranked, eigen = self.partition == "I", self.form == "E"
        return Method(
            name=f"xm-{self.number}",
            paper=f"the cross-moment paper, {'method' if self.masked else 'baseline'} {self.number.upper()}",
            about=self._about(),
            partition="ranking" if ranked else "mdav",
            partitions=_PARTITIONS,
            grouping="each" if ranked else "joint",
            mechanism="moments",
            sensitivity="none" if not self.masked else "local" if eigen else "global",
            as_tree=True,
            moments=self.moments,
            covariance="all" if self.entries == "P" else "variances",
            form="eigen" if eigen else "coefficients",
            weights=self._weights(),
            rebuild=_REBUILDS[self.moments],
            k=50,
            adjustable=self._adjustable(),
        )

    def _weights(self) -> tuple[Fraction, ...] | None:
        if not self.strategy:
            return None
        return tuple(Fraction(weight) for weight in _STRATEGIES[self.moments, self.strategy])

    def _adjustable(self) -> tuple[str, ...]:
        found = ["clip", "k", "groups", "partition", "normalise", "gamma", "remainder", "split", "strata"]
        if self.masked:
            found.insert(0, "epsilon")
            found += ["noise", "optimise"] if self.form == "C" else []
        found += ["weights"] if self.strategy else []
        found += ["match"] if self.moments else []
        found += ["coskewness"] if self.moments == 2 else []
        return tuple(found)

    def _about(self) -> str:
        second = "variances" if self.entries == "V" else "covariances"
        what = (_SPECTRA if self.form == "E" else _MOMENTS)[self.moments].format(second=second)
        clusters = "rank groups of each attribute" if self.partition == "I" else "clusters"
        if not self.masked:
            return f"{what} of {clusters}, without noise"
        weights = self._weights()
        shared = "" if weights is None else f", shares {' : '.join(f'{float(w):g}' for w in weights)} of ε"
        together = ", masked together" if self.masking == "J" and self.moments else ""
        return f"noisy {what} of {clusters}{together}{shared}"


_GRID = (
    _Line("1", 0, "C", "M", "J", "P"),
    _Line("2", 1, "C", "M", "J", "P"),
    _Line("3", 1, "C", "M", "J", "V"),
    _Line("4", 1, "C", "M", "S", "P", 1),
    _Line("5", 1, "C", "M", "S", "P", 2),
    _Line("6", 1, "C", "M", "S", "V", 1),
    _Line("7", 1, "C", "M", "S", "V", 2),
    _Line("8", 2, "C", "M", "J", "P"),
    _Line("9", 2, "C", "M", "J", "V"),
    _Line("10", 2, "C", "M", "S", "P", 1),
    _Line("11", 2, "C", "M", "S", "P", 2),
    _Line("12", 2, "C", "M", "S", "V", 1),
    _Line("13", 2, "C", "M", "S", "V", 2),
    _Line("14", 1, "E", "M", "J", "P"),
    _Line("15", 1, "E", "M", "S", "P", 1),
    _Line("16", 1, "E", "M", "S", "P", 2),
    _Line("17", 2, "E", "M", "J", "P"),
    _Line("18", 2, "E", "M", "S", "P", 1),
    _Line("19", 2, "E", "M", "S", "P", 2),
    _Line("20", 0, "C", "I", "J", "V"),
    _Line("21", 1, "C", "I", "J", "V"),
    _Line("22", 1, "C", "I", "S", "V", 1),
    _Line("23", 1, "C", "I", "S", "V", 2),
    _Line("24", 2, "C", "I", "J", "V"),
    _Line("25", 2, "C", "I", "S", "V", 1),
    _Line("26", 2, "C", "I", "S", "V", 2),
    _Line("b1", 0, "C", "M", "-", "P"),
    _Line("b2", 1, "C", "M", "-", "P"),
    _Line("b3", 1, "C", "M", "-", "V"),
    _Line("b4", 2, "C", "M", "-", "P"),
    _Line("b5", 2, "C", "M", "-", "V"),
    _Line("b6", 0, "C", "I", "-", "V"),
    _Line("b7", 1, "C", "I", "-", "V"),
    _Line("b8", 2, "C", "I", "-", "V"),
)

MOMENT_PRESETS: tuple[Method, ...] = tuple(line.method() for line in _GRID)
