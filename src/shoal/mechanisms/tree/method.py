"""`tree-dp`: synthetic records from noisy counts and means in the boxes of a private partition tree."""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.columns import KINDS
from shoal.errors import OptionError
from shoal.mechanisms import forms
from shoal.mechanisms.method import Method, Output
from shoal.mechanisms.parameter_fields import Exact, parameter, shared, words
from shoal.privacy import BY_STABILITY, Claim


class TreeDP(Method):
    """Synthetic records from noisy counts and means of boxes, whose cuts are private medians.

    Guarantee: ε-DP of the records; docs/proofs/trees.md#tree.
    """

    name: ClassVar[str] = "tree-dp"
    paper: ClassVar[str] = "ours, the differential privacy the papers were after"
    about: ClassVar[str] = (
        "boxes of a tree of private medians, synthetic records drawn from noisy counts and means"
    )
    mechanism: ClassVar[str] = "tree"
    work: ClassVar[str] = "shoal.mechanisms.tree.mechanism"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    synthetic: ClassVar[bool] = True
    keeps_rules: ClassVar[bool] = True
    claims: ClassVar[Claim] = Claim(BY_STABILITY, proofs=("tree", "missing"))
    partition = "boxes"
    # noise is calibrated to public widths
    sensitivity = "global"

    epsilon: Exact = shared("epsilon")
    generalise: bool = shared("generalise")
    cuts: int | None = parameter(
        forms.WHOLE,
        "levels of cut points of each attribute, 2^cuts intervals; default: as many as pay off",
        least=0,
        after="corners",
    )
    depth: int | None = parameter(
        forms.WHOLE, "levels of the tree over all attributes; default: as many as pay off", least=0
    )
    shares: Any = parameter(
        forms.SHARES,
        "weights of the parts of the privacy budget, by default from the depth",
        choices=words("cuts", "intervals", "leaves", "means"),
    )
    rebuild: str = parameter(
        forms.CHOICE,
        "distribution of the synthetic records in a box",
        choices=words("uniform", "centroid", "normal"),
        default="uniform",
    )
    neighbours: str = shared("neighbours")
    rows: int | None = shared("rows")

    def check(self) -> None:
        if self.rows is not None and not self.adjacency.hides_size:
            raise OptionError("rows-neighbours-add-remove", option="rows")

    @property
    def output(self) -> Output:
        return Output(generalise=self.generalise)

    @property
    def in_parts(self) -> str:
        return "by_tree"
