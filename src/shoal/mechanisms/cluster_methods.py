"""Methods that add noise to cluster means: `laplace`, `mdav-dp`, `ranking-dp`, `optimal-dp`, the iDP methods, and
`insensitive-dp`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from shoal.columns import KINDS, ORDERED_KINDS
from shoal.errors import OptionError, closest
from shoal.mechanisms import parameter_fields
from shoal.mechanisms.method import Expected, Method, Output
from shoal.mechanisms.parameter_fields import Exact, parameter, shared
from shoal.mechanisms.partition_stage import check_stage
from shoal.mechanisms.sensitivity import CALIBRATIONS, Calibration
from shoal.noise import NOISES, OPTIMISE
from shoal.origin import Outside
from shoal.partition import CORNER_RULES, ORDERS
from shoal.privacy import BY_STABILITY, Case, Claim, MethodTerms
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Described
    from shoal.privacy import Plan


class PartitionMethod(Method):
    """Methods that group records by a partition stage and add noise to statistics of the groups.

    Parameters that a method of the family does not offer have the defaults of this class.

    Attributes:
        partitions: the stages a caller may choose from, if `partition` is a parameter.
        sensitivity: what noise is calibrated to, of `shoal.mechanisms.sensitivity.CALIBRATIONS`: `global` (the
            public width), `local` (the change one record of the actual table can cause), `cluster` (the same, for means
            without their extremes), `none` (no noise at all).
        moments: number of central moments of a cluster kept besides its mean.
    """

    partitions: ClassVar[tuple[str, ...]] = ("mdav", "vmdav", "given")
    sensitivity: ClassVar[str] = "global"
    moments: ClassVar[int] = 0
    freezes: ClassVar[bool] = True

    partition = "mdav"
    split = cast("Any", "equal")
    groups = cast("tuple[tuple[str, ...], ...] | None", None)
    normalise = "domain"
    gamma = cast("Any", Fraction(1, 5))
    remainder = "middle"
    order = "corners"
    corners = "alternate"
    noise = "laplace"
    optimise = cast("str | None", None)
    floor = cast("Any", None)
    link = True
    clip = True
    generalise = False

    def check(self) -> None:
        check_stage(self.partition, type(self).partition, self.partitions)
        if self.groups is not None and self.stage.columnwise:
            # groups of attributes need a partition of several attributes
            object.__setattr__(self, "partition", "mdav")
        least = self.calibration.smallest
        if self.size < least:
            raise OptionError(
                "method-needs-k-least", option="method", name=self.name, least=least, found=self.size
            )
        if self.size <= self.moments:
            raise OptionError(
                "k-too-small-for-variance" if self.moments == 1 else "k-too-small-for-skewness",
                option="method",
                method=self.name,
                least=self.moments + 1,
                found=self.size,
            )
        shaped = [family for family, facts in NOISES.items() if facts.shaped]
        if self.noise not in shaped and self.optimise is not None:
            raise OptionError(
                "optimise-not-for-noise",
                option="optimise",
                allowed=[Message.of("noise-option", noise=family) for family in shaped],
                found=self.noise,
            )
        if self.noise in shaped and self.optimise is None:
            object.__setattr__(self, "optimise", OPTIMISE[0])

    @property
    def calibration(self) -> Calibration:
        """The summed quantity of a cluster, and its sensitivity to one record."""
        return CALIBRATIONS[self.sensitivity]

    @property
    def smallest(self) -> int:
        """The smallest cluster for which the statistics of this method are defined."""
        return max(self.calibration.smallest, self.moments + 1)

    @property
    def columnwise(self) -> bool:
        """Every attribute is treated separately, so one column in memory is enough."""
        return self.groups is None and not self.strata and self.stage.columnwise

    @property
    def additive(self) -> bool:
        return self.calibration.additive

    @property
    def output(self) -> Output:
        return Output(self.link, self.clip, self.generalise)

    def resolve_groups(self, columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The attribute groups, in order; together they cover every column once."""
        if self.groups is None:
            return tuple((column,) for column in columns) if self.stage.columnwise else (tuple(columns),)
        named = [column for group in self.groups for column in group]
        for column in named:
            if column not in columns:
                raise OptionError(
                    "groups-names-column-not-protected",
                    column=column,
                    option="groups",
                    hint=closest(column, columns),
                )
            if named.count(column) > 1:
                raise OptionError("groups-names-column-twice", column=column, option="groups")
        left_out = [column for column in columns if column not in named]
        if left_out:
            raise OptionError("groups-leaves-out-column", column=left_out[0], option="groups")
        return self.groups

    def terms(self, attributes: int) -> MethodTerms:
        stage, calibration = self.stage, self.calibration
        clusters = Message.of("clusters-from-records", how=stage.about)
        noise: tuple[Message, ...] = ()
        if not calibration.public:
            vanishing = (Message("no-spread-no-noise"),) if calibration.can_vanish else ()
            floor = (Message("noise-has-floor"),) if self.floor else vanishing
            noise = (Message("noise-from-records"), *floor)
        alone = not self.moments and self.size > 1 and stage.columnwise and attributes > 1
        scaled = self.normalise == "zscore" and stage.scaled
        return MethodTerms(
            Message("clusters-from-caller") if self.stability == "caller" else clusters,
            noise,
            (Message("no-joint-k"),) if alone else (),
            (Message("distances-by-records"),) if scaled else (),
            noise_can_vanish=calibration.can_vanish and not self.floor,
            shares_follow_widths=self.split in ("proportional", "optimal"),
        )

    def stages_from_outside(self) -> Iterator[tuple[Message, Outside]]:
        yield from super().stages_from_outside()
        outside = NOISES[self.noise].outside
        if outside is not None:
            yield Message.of("the-noise", name=self.noise), outside

    def allow_noise(self, attributes: int) -> None:
        """Refuse noise that would break the claim for this many attributes.

        Guarantee:
            Any change of a block (the sums of one cluster), however small, costs the whole ε of staircase
            and box noise. They are allowed only where a record affects a single block of each attribute group: clusters
            of one record, and clusters that the claim takes as fixed; or where every block has a separate ε and the
            budget covers all of them: insensitive clusters. Laplace noise is measured in L1 norm over all blocks and is
            always allowed.

        Reference:
            docs/proofs/noise.md#staircase, sections 3 and 4.
        """
        if not NOISES[self.noise].blockwise or self.stability in ("record", "each"):
            return
        if self.model(attributes) == "dp":
            raise OptionError(
                "noise-breaks-claim-of-a-column" if attributes == 1 else "noise-breaks-claim-without-link",
                option="noise",
                found=self.noise,
                method=self.name,
            )


class ClusterMethod(PartitionMethod):
    """Noise on the means of clusters."""

    mechanism: ClassVar[str] = "clusters"
    work: ClassVar[str] = "shoal.mechanisms.clusters"
    claims: ClassVar[Claim] = Claim(BY_STABILITY, proofs=("sums", "individual", "missing"))

    @property
    def in_parts(self) -> str:
        if self.groups is not None or self.strata:
            return ""
        return "by_record" if self.stability == "record" else self.stage.in_parts

    def sum_shares(self, n: int, plan: Plan) -> Mapping[str, Fraction] | None:
        return plan.shares

    @property
    def likelihood(self) -> bool:
        """Whether a likelihood ratio of the released means is known: Laplace noise with the share of the column."""
        return NOISES[self.noise].closed_form and self.clip

    def expected(self, described: Described, plan: Plan | None) -> Expected:
        """The noise on the mean of a smallest cluster, by column."""
        facts = {"noise": self.noise}
        if not self.calibration.public:
            return Expected(unknown="follows-records", facts=facts)
        family = NOISES[self.noise]
        if family.variances is None:
            return Expected(unknown="variance-unknown", facts=facts)
        shares = None if plan is None else self.sum_shares(described.n, plan)
        if shares is None:
            return Expected(facts=facts)
        found: dict[str, float] = {}
        for group in self.resolve_groups(described.columns):
            ordered = [name for name in group if name not in described.nominal]
            for together in [ordered] if family.joint else [[name] for name in ordered]:
                if not together:
                    continue
                lattices = [described.lattices[name] for name in together]
                steps = tuple(lattice.steps for lattice in lattices)
                variances = family.variances(steps, shares[together[0]], self.optimise or "variance")
                for name, lattice, variance in zip(together, lattices, variances, strict=True):
                    found[name] = math.sqrt(variance) * float(lattice.step) / self.size
        return Expected(found, facts=facts)


class Laplace(ClusterMethod):
    """Independent noise on every value: the baseline.

    Guarantee: ε-DP of the records.
    """

    name: ClassVar[str] = "laplace"
    paper: ClassVar[str] = "the baseline of MDAI-2017 and PSD-2014"
    about: ClassVar[str] = "independent noise on every value, no clusters"
    intervals: ClassVar[str] = "unclipped"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    partition = "alone"

    epsilon: Exact = shared("epsilon")
    clip: bool = shared("clip")
    generalise: bool = shared("generalise")
    split: Any = shared("split")

    def resolve_groups(self, columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        return (tuple(columns),)


class MdavDP(ClusterMethod):
    """Clusters of similar records (MDAV), noise on the cluster means.

    Guarantee: ε-DP given the partition: not of the records.
    """

    name: ClassVar[str] = "mdav-dp"
    paper: ClassVar[str] = "MDAI-2017, MDAV+DP"
    about: ClassVar[str] = "clusters of similar records, noise on the cluster means"
    kinds: ClassVar[tuple[str, ...]] = KINDS

    epsilon: Exact = shared("epsilon")
    clip: bool = shared("clip")
    generalise: bool = shared("generalise")
    k: int = shared("k", default=50)
    split: Any = shared("split")
    groups: Any = shared("groups")
    normalise: str = shared("normalise")
    partition: str = shared("partition", default="mdav")
    gamma: Exact = shared("gamma")
    strata: Any = shared("strata")
    noise: str = shared("noise")
    optimise: str | None = shared("optimise")


class RankingDP(ClusterMethod):
    """Each attribute ranked separately, noise on the means of k consecutive values.

    Guarantee: ε-DP of the records for one column, and for several with `link=False`; otherwise given the partition.
    """

    name: ClassVar[str] = "ranking-dp"
    paper: ClassVar[str] = "MDAI-2017, IR_MDAV+DP; PSD-2014"
    about: ClassVar[str] = "individual ranking of each attribute, noise on the means of k consecutive values"
    intervals: ClassVar[str] = "single"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    partition = "ranking"

    epsilon: Exact = shared("epsilon")
    clip: bool = shared("clip")
    generalise: bool = shared("generalise")
    k: int = shared("k", default=50)
    split: Any = shared("split")
    remainder: str = shared("remainder")
    link: bool = shared("link")
    strata: Any = shared("strata")
    noise: str = shared("noise")
    optimise: str | None = shared("optimise")


class OptimalDP(ClusterMethod):
    """Each attribute divided into runs of values with minimum expected error, noise on their means.

    Guarantee: ε-DP given the partition: not of the records.
    """

    name: ClassVar[str] = "optimal-dp"
    paper: ClassVar[str] = "ours, the variable sizes left open by MDAI-2017"
    about: ClassVar[str] = (
        "each attribute divided into runs of values with the smallest expected error, noise on their means"
    )
    kinds: ClassVar[tuple[str, ...]] = ORDERED_KINDS
    partition = "optimal"

    epsilon: Exact = shared("epsilon")
    clip: bool = shared("clip")
    k: int = shared("k", default=3)
    split: Any = shared("split")
    link: bool = shared("link")
    strata: Any = shared("strata")
    noise: str = shared("noise")
    optimise: str | None = shared("optimise")


class IdpLS(ClusterMethod):
    """Each attribute ranked separately, noise calibrated to the change of a mean by one record of the actual table.

    Guarantee: individual ε-DP given the partition, which is not differential privacy.
    """

    name: ClassVar[str] = "idp-ls"
    paper: ClassVar[str] = "the iDP paper, iDP-LS"
    about: ClassVar[str] = (
        "individual ranking of each attribute, noise scaled to the local sensitivity of each cluster mean"
    )
    kinds: ClassVar[tuple[str, ...]] = ORDERED_KINDS
    sensitivity: ClassVar[str] = "local"

    epsilon: Exact = shared("epsilon")
    clip: bool = shared("clip")
    k: int = shared("k", default=50)
    split: Any = shared("split")
    remainder: str = shared("remainder")
    floor: Any = shared("floor")
    groups: Any = shared("groups")
    partition: str = shared("partition", default="ranking")
    normalise: str = shared("normalise")
    gamma: Exact = shared("gamma")
    strata: Any = shared("strata")


class IdpCBLS(IdpLS):
    """Like `IdpLS`, without the extremes of a cluster, so that noise follows the spread inside it.

    Guarantee: individual ε-DP given the partition, which is not differential privacy.
    """

    name: ClassVar[str] = "idp-cbls"
    paper: ClassVar[str] = "the iDP paper, iDP-CBLS"
    about: ClassVar[str] = (
        "individual ranking without the extremes of a cluster, noise scaled to the spread inside it"
    )
    sensitivity: ClassVar[str] = "cluster"

    k: int = shared("k", default=15)


class InsensitiveDP(ClusterMethod):
    """Clusters that each change by at most one record when one is replaced, noise on all their means.

    Guarantee: ε-DP of the records, none with `composition="parallel"`; docs/proofs/clusters.md#insensitive.
    """

    name: ClassVar[str] = "insensitive-dp"
    paper: ClassVar[str] = "the thesis, chapter 6, its composition corrected"
    about: ClassVar[str] = (
        "insensitive clusters: replacing a record changes at most one record in each; noise on all their means"
    )
    mechanism: ClassVar[str] = "insensitive"
    work: ClassVar[str] = "shoal.mechanisms.insensitive"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    claims: ClassVar[Claim] = Claim(
        (
            Case("none", Message("because-one-cluster-paid"), {"composition": ("parallel",)}),
            Case("dp", Message("because-all-clusters-paid")),
        ),
        proofs=("insensitive",),
    )
    partition = "insensitive"

    epsilon: Exact = shared("epsilon")
    clip: bool = shared("clip")
    generalise: bool = shared("generalise")
    k: int | None = shared("k")
    split: Any = shared("split")
    composition: str = parameter(
        parameter_fields.CHOICE,
        "which clusters ε has to cover",
        group="guarantee",
        choices={
            "strict": "every cluster that one record can change",
            "parallel": "as published, no guarantee",
        },
        default="strict",
        after="clip",
    )
    order: str = parameter(
        parameter_fields.CHOICE,
        "where clusters start",
        choices={ORDERS[0]: "the corners of the domain in turn", ORDERS[1]: "both ends of one order"},
        default="corners",
    )
    corners: str = parameter(
        parameter_fields.CHOICE,
        "with order=corners: the sequence of corners",
        choices=dict(
            zip(CORNER_RULES, ("a corner and its opposite, counting up", "the thesis' rule"), strict=True)
        ),
        default="alternate",
    )
    noise: str = shared("noise")
    optimise: str | None = shared("optimise")

    @property
    def in_parts(self) -> str:
        return ""

    @property
    def likelihood(self) -> bool:
        return False

    def sum_shares(self, n: int, plan: Plan) -> Mapping[str, Fraction] | None:
        if self.composition != "strict":
            return None
        return cast("Mapping[str, Fraction]", self._do("shares_of", n, plan))

    def expected(self, described: Described, plan: Plan | None) -> Expected:
        if self.composition != "strict":
            return Expected(unknown="own-noise", facts={"noise": self.noise})
        return super().expected(described, plan)
