"""A method is data: which partition, noise, budget split and rebuild, with which settings. No behaviour here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from shoal import summaries
from shoal.decimals import exact
from shoal.display import displayed
from shoal.errors import OptionError, did_you_mean
from shoal.method.budget import SPLITS
from shoal.method.stages import PARTITIONS, Stability
from shoal.noise import parse_epsilon
from shoal.noise.staircase_shape import OPTIMISE
from shoal.partition.corners import CORNER_RULES
from shoal.partition.insensitive import ORDERS

# how drawn rows can be given to records, and which coskewnesses can be kept
MATCHES = ("none", "rank", "assignment")
COSKEWNESSES = ("marginal", "full")

CHOICES: Mapping[str, tuple[str, ...]] = {
    "remainder": ("middle", "last", "first"),
    "normalise": ("none", "domain", "zscore"),
    "split": SPLITS,
    "rebuild": ("uniform", "centroid", "normal"),
    "neighbours": ("replace-one", "add-remove"),
    "noise": ("laplace", "staircase", "box"),
    "optimise": OPTIMISE,
    "composition": ("strict", "parallel"),
    "order": ORDERS,
    "corners": tuple(CORNER_RULES),
    "coskewness": COSKEWNESSES,
    "match": MATCHES,
    "intruder": ("informed", "uninformed"),
    "group_by": ("quasi", "confidential"),
}
_SWITCHES = ("link", "clip", "generalise")

OPTIONS: Mapping[str, str] = {
    "epsilon": "the privacy budget; smaller is stronger",
    "k": "minimum number of records that share one released value",
    "split": "how ε is shared over attributes: equal, proportional, optimal, or weights by column",
    "groups": "attribute groups that are partitioned separately, for example [['a', 'b'], ['c']]",
    "partition": "how records are grouped: mdav, vmdav (clusters of varying size), given (by labels=); for xm-* also "
    "ranking, optimal, insensitive, and tree (which is tree-dp, without k)",
    "gamma": "with partition=vmdav: how readily a cluster takes one more record",
    "remainder": "which rank group takes the records left over: middle, last, first",
    "normalise": "scaling before distances: domain (public), none, zscore (looks at the data)",
    "link": "False shuffles every released column by itself: marginals only, a stronger claim",
    "noise": "laplace, staircase (least variance for one sum), box (one ε for all sums of a cluster)",
    "floor": "least scale of the noise on a cluster's mean, in the column's units; a number, or one by column",
    "optimise": "with noise=staircase or box: variance (the default) or interval, the shortest one of 95%",
    "generalise": "True lets groups of values (inner concepts of a taxonomy) stand for a cluster of a nominal column",
    "clip": "False leaves noisy values outside the public domain (experiments only)",
    "composition": "strict (ε pays for every cluster one record can change) or parallel (as published, no guarantee)",
    "order": "corners (clusters taken from the corners of the domain in turn) or single (from both ends of one order)",
    "corners": "with order=corners: alternate (a corner and its opposite, counting up) or hamming (the thesis' rule)",
    "weights": "shares of means, covariances and coskewnesses in ε, for example [0.5, 0.3, 0.2]",
    "coskewness": "marginal (what rows are drawn from) or full, for the published statistics",
    "match": "which drawn row stands for which record when errors are measured: none, rank, assignment",
    "cuts": "levels of cut points of each attribute, 2^cuts intervals; by default as many as pay off",
    "depth": "levels of the tree over all attributes; by default as many as pay off",
    "shares": "weights of cuts, intervals, leaves and means in the budget; by default from the depth",
    "rebuild": "how rows are drawn in a box: uniform, centroid, normal",
    "neighbours": "replace-one (the number of records is public) or add-remove (it is private)",
    "rows": "with neighbours=add-remove: the declared number of rows to release; a noisy one by default",
    "sizes": "minimum group size by column, where it differs from k, for example {'income': 50}",
    "l": "least number of different confidential values in every group; groups are joined until they have them",
    "t_emd": "largest earth mover's distance of a group to the table; groups are joined until they are within it",
    "t": "largest factor, a whole number, between a bucket's share in a group and in the table",
    "intruder": "informed (knows all columns but one) or uninformed (knows what is not confidential)",
    "group_by": "quasi (groups are close in what an intruder may know) or confidential (close in what is hidden)",
}


@displayed(summaries.of_method)
@dataclass(frozen=True, slots=True)
class Method:
    """The recipe of all stages. Presets are values of this class; `configure` fills in the settings.

    Attributes:
        mechanism: an entry of `shoal.mechanisms.MECHANISMS`.
        partition: a stage of `shoal.method.stages.PARTITIONS`.
        grouping: `joint` partitions all attributes together, `each` one attribute at a time.
        sensitivity: what the noise is calibrated to: `global` (the public width), `local` (the change one record
            of the actual table can make), `cluster` (the same, for cluster means without their extremes) or `none`
            (no noise at all).
        partitions: the stages that the caller may choose from, where `partition` is adjustable.
        moments: how many central moments of a cluster are kept besides its mean: 0, 1 (covariance), 2 (coskewness).
        covariance: `all` entries or the `variances` only.
        form: moments as `coefficients`, or as eigenvalues and eigenvectors (`eigen`).
        adjustable: the settings a caller may change; everything else belongs to the method.
    """

    name: str
    paper: str
    about: str
    partition: str
    grouping: str
    adjustable: tuple[str, ...]
    split: str | tuple[tuple[str, Fraction], ...] = "equal"
    normalise: str = "domain"
    gamma: Fraction = Fraction(1, 5)
    remainder: str = "middle"
    mechanism: str = "clusters"
    summary: str = "mean"
    sensitivity: str = "global"
    floor: Fraction | tuple[tuple[str, Fraction], ...] | None = None
    composition: str = "strict"
    order: str = "corners"
    corners: str = "alternate"
    partitions: tuple[str, ...] = ("mdav", "vmdav", "given")
    moments: int = 0
    covariance: str = "all"
    coskewness: str = "marginal"
    form: str = "coefficients"
    weights: tuple[Fraction, ...] | None = None
    match: str = "none"
    noise: str = "laplace"
    optimise: str | None = None
    rebuild: str = "centroid"
    link: bool = True
    clip: bool = True
    generalise: bool = False
    groups: tuple[tuple[str, ...], ...] | None = None
    k: int | None = None
    epsilon: Fraction | None = None
    cuts: int | None = None
    depth: int | None = None
    shares: tuple[tuple[str, Fraction], ...] | None = None
    neighbours: str = "replace-one"
    rows: int | None = None
    sizes: tuple[tuple[str, int], ...] | None = None
    l: int | None = None  # noqa: E741
    t_emd: Fraction | None = None
    t: int | None = None
    intruder: str = "informed"
    group_by: str = "quasi"
    kinds: tuple[str, ...] = ("numeric",)

    @property
    def stability(self) -> Stability:
        """What one replaced record does to the clusters. Clusters of one never involve another record."""
        stage = PARTITIONS[self.partition]
        return "record" if self.k == 1 and not stage.unbounded else stage.stability

    @property
    def columnwise(self) -> bool:
        """Every attribute is treated by itself, so one column in memory is enough."""
        return self.groups is None and PARTITIONS[self.partition].columnwise

    @property
    def size(self) -> int:
        """The minimum cluster size, once configured."""
        return 1 if self.k is None else self.k

    @property
    def smallest(self) -> int:
        """The smallest cluster that has the statistics of this method at all."""
        return 3 if self.sensitivity == "cluster" else self.moments + 1

    @property
    def budget(self) -> Fraction:
        """The privacy budget, once configured."""
        if self.epsilon is None:
            raise OptionError("epsilon is missing: give the privacy budget, for example 1.")
        return self.epsilon

    def configure(self, **options: Any) -> Method:
        """The method with settings filled in; unknown or unfitting ones are errors that say what fits."""
        changes: dict[str, Any] = {}
        for name, value in options.items():
            if value is None:
                continue
            if name not in OPTIONS:
                known = [
                    *OPTIONS,
                    "labels",
                    "columns",
                    "domains",
                    "domain_from_data",
                    "outside",
                    "missing",
                    "na",
                    "seed",
                ]
                raise OptionError(f"there is no option '{name}'.{did_you_mean(name, known)}")
            if name not in self.adjustable:
                raise OptionError(
                    f"method '{self.name}' has no option '{name}'; it takes {', '.join(self.adjustable)}."
                )
            changes[name] = _READERS.get(name, _choice)(name, value)
            if name == "partition":
                self._check_partition(changes[name])
        configured = replace(self, **changes)
        if "epsilon" in self.adjustable:
            _ = configured.budget
        configured = configured._with_joint_groups(changes)
        if configured.sensitivity == "cluster" and configured.size < 3:
            raise OptionError(
                f"method '{self.name}' needs k of at least 3, got {configured.size}: it sets aside the smallest and "
                "the largest value of a cluster."
            )
        if configured.size <= configured.moments:
            raise OptionError(
                f"method '{self.name}' needs k of at least {configured.moments + 1}, got {configured.size}: smaller "
                f"clusters have no {'variance' if configured.moments == 1 else 'skewness'}."
            )
        if configured.noise == "laplace" and configured.optimise is not None:
            raise OptionError(
                "optimise is for noise=staircase or noise=box: Laplace noise has one shape only."
            )
        if configured.noise != "laplace" and configured.optimise is None:
            configured = replace(configured, optimise=OPTIMISE[0])
        if configured.rows is not None and configured.neighbours == "replace-one":
            raise OptionError(
                "rows is for neighbours=add-remove: with replace-one as many rows are released as there are records."
            )
        return configured

    def _with_joint_groups(self, changes: Mapping[str, Any]) -> Method:
        """Attribute groups need a partition of several attributes; such a partition takes all of them by default."""
        if "groups" in changes and PARTITIONS[self.partition].columnwise:
            return replace(self, partition="mdav")
        if "partition" in changes:
            return replace(self, grouping="each" if PARTITIONS[self.partition].columnwise else "joint")
        return self

    def _check_partition(self, name: str) -> None:
        # a recipe names the method's own partition too
        known = tuple(dict.fromkeys((self.partition, *self.partitions)))
        if name not in known:
            raise OptionError(
                f"partition '{name}' is not one of {', '.join(known)}.{did_you_mean(name, known)}"
            )

    def resolve_groups(self, columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The attribute groups, in order; together they cover every column once."""
        if self.groups is None:
            return (tuple(columns),) if self.grouping == "joint" else tuple((column,) for column in columns)
        named = [column for group in self.groups for column in group]
        for column in named:
            if column not in columns:
                raise OptionError(
                    f"groups names column '{column}', which is not protected.{did_you_mean(column, columns)}"
                )
            if named.count(column) > 1:
                raise OptionError(f"groups names column '{column}' twice: groups must be disjoint.")
        left_out = [column for column in columns if column not in named]
        if left_out:
            raise OptionError(
                f"groups leaves out column '{left_out[0]}': put every protected column into one."
            )
        return self.groups

    def settings(self) -> dict[str, Any]:
        """The adjustable settings as plain values, for a recipe file."""
        values = {name: getattr(self, name) for name in self.adjustable}
        if not isinstance(self.split, str) and "split" in values:
            values["split"] = dict(self.split)
        if isinstance(self.floor, tuple) and "floor" in values:
            values["floor"] = dict(self.floor)
        for name in ("shares", "sizes"):
            if values.get(name) is not None:
                values[name] = dict(values[name])
        return {name: value for name, value in values.items() if value is not None}


def _choice(name: str, value: Any) -> str:
    if value not in CHOICES[name]:
        hint = did_you_mean(str(value), CHOICES[name])
        raise OptionError(f"{name} '{value}' is not one of {', '.join(CHOICES[name])}.{hint}")
    return str(value)


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, got {value!r}.")
    return value


def _whole(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name} must be a whole number, got {value!r}.") from None
    if isinstance(value, bool) or number != value or number < 1:
        raise OptionError(f"{name} must be a whole number, at least 1, got {value!r}.")
    return number


def _split(name: str, value: Any) -> str | tuple[tuple[str, Fraction], ...]:
    if isinstance(value, str):
        return _choice(name, value)
    if not isinstance(value, Mapping):
        raise OptionError(f"split must be one of {', '.join(SPLITS)} or weights by column, got {value!r}.")
    return tuple(
        (str(column), exact(weight, f"split weight of column '{column}'")) for column, weight in value.items()
    )


def _levels(name: str, value: Any) -> int:
    return 0 if type(value) is int and value == 0 else _whole(name, value)


def _shares(name: str, value: Any) -> tuple[tuple[str, Fraction], ...]:
    stages = ("cuts", "intervals", "leaves", "means")
    if not isinstance(value, Mapping) or set(value) != set(stages):
        raise OptionError(f"shares must give a weight to each of {', '.join(stages)}, got {value!r}.")
    weights = tuple((stage, exact(value[stage], f"the share of {stage}")) for stage in stages)
    if min(weight for _, weight in weights) <= 0:
        raise OptionError(f"every weight in shares must be above 0, got {value!r}.")
    return weights


def _groups(name: str, value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(group, list | tuple) and group for group in value
    ):
        raise OptionError(
            "groups must be a list of non-empty lists of column names, such as [['a', 'b'], ['c']]."
        )
    return tuple(tuple(str(column) for column in group) for group in value)


def _weights(name: str, value: Any) -> tuple[Fraction, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionError(f"weights must be a list of numbers, such as [0.5, 0.3, 0.2], got {value!r}.")
    weights = tuple(exact(weight, "a weight") for weight in value)
    if not weights or min(weights) <= 0:
        raise OptionError(f"every weight must be above 0, got {[float(weight) for weight in weights]}.")
    return weights


def _not_negative(name: str, value: Any) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise OptionError(f"{name} must be at least 0, got {value}.")
    return number


def _distance(name: str, value: Any) -> Fraction:
    number = _not_negative(name, value)
    if number > 1:
        raise OptionError(f"{name} must be from 0 to 1, got {value}.")
    return number


def _sizes(name: str, value: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, Mapping) or not value:
        raise OptionError(f"sizes must give a group size by column, such as {{'income': 50}}, got {value!r}.")
    return tuple(
        (str(column), _whole(f"the size of column '{column}'", size)) for column, size in value.items()
    )


def _floor(name: str, value: Any) -> Fraction | tuple[tuple[str, Fraction], ...]:
    if not isinstance(value, Mapping):
        return _not_negative(name, value)
    return tuple(
        (str(column), _not_negative(f"the floor of column '{column}'", least))
        for column, least in value.items()
    )


_READERS = {
    "floor": _floor,
    "gamma": _not_negative,
    "epsilon": lambda name, value: parse_epsilon(value),
    "k": _whole,
    "split": _split,
    "groups": _groups,
    "partition": lambda name, value: str(value),
    "weights": _weights,
    "cuts": _levels,
    "depth": _levels,
    "shares": _shares,
    "rows": _whole,
    "sizes": _sizes,
    "l": _whole,
    "t_emd": _distance,
    "t": _whole,
    **dict.fromkeys(_SWITCHES, _switch),
}
assert set(OPTIONS) <= {field.name for field in fields(Method)}
