"""The methods of the cross-moment paper by its own numbers, `xm-1` to `xm-26` and the baselines `xm-b1` to `xm-b8`.

All are configurations of one class, `CrossMoment`; each column of the grids in the paper's Figures 4 and 5 becomes a
subclass with its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

from shoal.errors import OptionError
from shoal.mechanisms import parameter_fields
from shoal.mechanisms.cluster_methods import PartitionMethod
from shoal.mechanisms.method import Method
from shoal.mechanisms.parameter_fields import parameter, shared, words
from shoal.privacy import BY_STABILITY, Case, Claim
from shoal.text import Message


class CrossMoment(PartitionMethod):
    """Noise on moments of clusters, and rows drawn from the noisy moments.

    Attributes:
        moments: the paper's m: 0 for means, 1 for covariances, 2 for coskewnesses as well.
        covariance: `all` entries or the `variances` only.
        form: moments as `coefficients`, or as eigenvalues and eigenvectors (`eigen`).
    """

    mechanism: ClassVar[str] = "moments"
    work: ClassVar[str] = "shoal.mechanisms.moments.mechanism"
    statistics: ClassVar[bool] = True
    partitions: ClassVar[tuple[str, ...]] = ("mdav", "vmdav", "ranking", "optimal", "insensitive", "given")
    covariance: ClassVar[str] = "all"
    form: ClassVar[str] = "coefficients"
    claims: ClassVar[Claim] = Claim(
        (
            Case("none", Message("because-no-noise"), {"sensitivity": ("none",)}),
            Case("idp-given-partition", Message("because-eigenvectors-move"), {"form": ("eigen",)}),
            # covariances of rank groups do not telescope as their sums do
            Case("dp-given-partition", Message("because-moments-given-clusters"), {"moments": (1, 2)}),
            *BY_STABILITY,
        ),
        proofs=("moments",),
    )

    weights = cast("tuple[Fraction, ...] | None", None)
    coskewness = "marginal"
    match = "none"

    @classmethod
    def of(cls, number: str) -> type[CrossMoment]:
        """The class of one method of the paper.

        >>> CrossMoment.of("6").name
        'xm-6'
        """
        return cast("type[CrossMoment]", globals()[_class_name(number)])

    @classmethod
    def configure(cls, **options: Any) -> Method:
        """The method with its parameters.

        A private tree has boxes, noise and a claim of its own. Moments on top of it are sums and sums of
        squares in the boxes, so a method with partition=tree becomes `tree-dp`, which keeps them.

        >>> CrossMoment.of("6").configure(epsilon=1, partition="tree").name
        'tree-dp'
        """
        if options.get("partition") != "tree":
            return super().configure(**options)
        if cls.moments > 1 or cls.form != "coefficients" or cls.sensitivity == "none":
            raise OptionError("method-cannot-have-partition-tree", name=cls.name)
        if options.get("k") is not None:
            raise OptionError("partition-tree-no-k")
        from shoal.mechanisms.tree.method import TreeDP

        settings = {option: value for option, value in options.items() if option != "partition"}
        return TreeDP.configure(**{"rebuild": "normal" if cls.moments else "centroid", **settings})

    @property
    def in_parts(self) -> str:
        return "by_moments" if self.columnwise else ""

    @property
    def matching(self) -> str | None:
        return self.match if self.moments else None


_STRATEGIES = {
    (1, 1): ("0.5", "0.5"),
    (1, 2): ("0.75", "0.25"),
    (2, 1): ("0.5", "0.3", "0.2"),
    (2, 2): ("0.75", "0.15", "0.1"),
}
_MOMENTS = ("means", "means and {second}", "means, {second} and coskewnesses")
_SPECTRA = (
    "means",
    "means, eigenvalues and eigenvectors of {second}",
    "means, coskewnesses, eigenvalues and eigenvectors of {second}",
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A column of Figure 4 or 5.

    Attributes:
        number: number of the method; baselines have a B before it.
        moments: the paper's m.
        form: C for coefficients, E for eigenvalues and eigenvectors.
        partition: M for MDAV, I for individual ranking.
        masking: J for all statistics jointly, S for each kind separately; a dash for no noise.
        entries: P for all covariances, V for the variances only.
        strategy: the weights of a separate masking.
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

    def method(self) -> type[CrossMoment]:
        """The class of this column, bound to a name of this module so that its instances can be pickled."""
        eigen = self.form == "E"
        facts = {
            "__module__": __name__,
            "__doc__": f"{self._about()[0].upper()}{self._about()[1:]} ({self._paper()}).",
            "name": f"xm-{self.number}",
            "paper": self._paper(),
            "about": self._about(),
            "sensitivity": "none" if not self.masked else "local" if eigen else "global",
            "moments": self.moments,
            "covariance": "all" if self.entries == "P" else "variances",
            "form": "eigen" if eigen else "coefficients",
        }
        parameters = self._parameters()
        annotations = dict.fromkeys(parameters, Any)
        body = {**facts, **parameters, "__annotations__": annotations}
        return cast("type[CrossMoment]", type(_class_name(self.number), (CrossMoment,), body))

    def _paper(self) -> str:
        return f"the cross-moment paper, {'method' if self.masked else 'baseline'} {self.number.upper()}"

    def _weights(self) -> tuple[Fraction, ...] | None:
        if not self.strategy:
            return None
        return tuple(Fraction(weight) for weight in _STRATEGIES[self.moments, self.strategy])

    def _parameters(self) -> dict[str, Any]:
        found = {"epsilon": shared("epsilon")} if self.masked else {}
        found |= {
            "clip": shared("clip"),
            "k": shared("k", default=50),
            "groups": shared("groups"),
            "partition": shared("partition", default="ranking" if self.partition == "I" else "mdav"),
        }
        found |= {name: shared(name) for name in ("normalise", "gamma", "remainder", "split", "strata")}
        if self.masked and self.form == "C":
            found |= {"noise": shared("noise"), "optimise": shared("optimise")}
        if self.strategy:
            found["weights"] = parameter(
                parameter_fields.WEIGHTS,
                "shares of ε for means, covariances and coskewnesses, for example [0.5, 0.3, 0.2]",
                default=self._weights(),
                kinds=("numeric",),
                after="corners",
            )
        if self.moments:
            found["match"] = parameter(
                parameter_fields.CHOICE,
                "how synthetic records are matched to original records when errors are measured",
                choices=words("none", "rank", "assignment"),
                default="none",
                kinds=("numeric",),
                after="corners",
            )
        if self.moments == 2:
            found["coskewness"] = parameter(
                parameter_fields.CHOICE,
                "coskewnesses in the published statistics",
                choices={"marginal": "those that records are drawn from", "full": ""},
                default="marginal",
                kinds=("numeric",),
                after="weights",
            )
        return found

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


def _class_name(number: str) -> str:
    return f"Xm{number.upper()}"


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

NUMBERS = tuple(line.number for line in _GRID)
globals().update({_class_name(line.number): line.method() for line in _GRID})
