"""A method is data: which partition, noise, budget split and rebuild, with which settings. No behaviour here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from shoal import summaries
from shoal.display import displayed
from shoal.errors import OptionError, closest
from shoal.method.models import Adjacency
from shoal.method.settings import SETTINGS, known_setting
from shoal.method.stages import PARTITIONS, Stability
from shoal.noise.concentrated import rho_from
from shoal.noise.families import NOISES
from shoal.noise.staircase_shape import OPTIMISE
from shoal.sensitivity.local import CALIBRATIONS
from shoal.text import Message

_DEFAULTS: Mapping[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}


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
        as_tree: partition=tree stands for `tree-dp`, which keeps noisy means and variances too.
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
    split: str | tuple[tuple[str, Fraction], ...] = _DEFAULTS["split"]
    normalise: str = _DEFAULTS["normalise"]
    gamma: Fraction = _DEFAULTS["gamma"]
    remainder: str = _DEFAULTS["remainder"]
    mechanism: str = "clusters"
    summary: str = "mean"
    sensitivity: str = "global"
    floor: Fraction | tuple[tuple[str, Fraction], ...] | None = None
    composition: str = _DEFAULTS["composition"]
    order: str = _DEFAULTS["order"]
    corners: str = _DEFAULTS["corners"]
    partitions: tuple[str, ...] = ("mdav", "vmdav", "given")
    as_tree: bool = False
    moments: int = 0
    covariance: str = "all"
    coskewness: str = _DEFAULTS["coskewness"]
    form: str = "coefficients"
    weights: tuple[Fraction, ...] | None = None
    match: str = _DEFAULTS["match"]
    noise: str = _DEFAULTS["noise"]
    optimise: str | None = None
    rebuild: str = _DEFAULTS["rebuild"]
    link: bool = _DEFAULTS["link"]
    clip: bool = _DEFAULTS["clip"]
    generalise: bool = _DEFAULTS["generalise"]
    groups: tuple[tuple[str, ...], ...] | None = None
    k: int | None = None
    epsilon: Fraction | None = None
    delta: Fraction = _DEFAULTS["delta"]
    cuts: int | None = None
    depth: int | None = None
    shares: tuple[tuple[str, Fraction], ...] | None = None
    neighbours: str = _DEFAULTS["neighbours"]
    rows: int | None = None
    target: str | None = None
    triples: bool = _DEFAULTS["triples"]
    sizes: tuple[tuple[str, int], ...] | None = None
    l: int | None = None  # noqa: E741
    t_emd: Fraction | None = None
    t: int | None = None
    intruder: str = _DEFAULTS["intruder"]
    group_by: str = _DEFAULTS["group_by"]
    strata: tuple[str, ...] | None = None
    risk: Fraction | None = None
    combinations: tuple[tuple[str, int], ...] | None = None
    importance: tuple[tuple[str, Fraction], ...] | None = None
    missing_as: str = _DEFAULTS["missing_as"]
    alpha: Fraction = _DEFAULTS["alpha"]
    kinds: tuple[str, ...] = ("numeric",)

    @property
    def adjacency(self) -> Adjacency:
        """Which change of the table its claim hides."""
        return Adjacency(self.neighbours)

    @property
    def stability(self) -> Stability:
        """What one replaced record does to the clusters. Clusters of one never involve another record."""
        stage = PARTITIONS[self.partition]
        return "record" if self.k == 1 and not stage.unbounded else stage.stability

    @property
    def columnwise(self) -> bool:
        """Every attribute is treated by itself, so one column in memory is enough."""
        return self.groups is None and not self.strata and PARTITIONS[self.partition].columnwise

    @property
    def size(self) -> int:
        """The minimum cluster size, once configured."""
        return 1 if self.k is None else self.k

    @property
    def smallest(self) -> int:
        """The smallest cluster that has the statistics of this method at all."""
        return max(CALIBRATIONS[self.sensitivity].smallest, self.moments + 1)

    @property
    def budget(self) -> Fraction:
        """The privacy budget, once configured."""
        if self.epsilon is None:
            raise OptionError("epsilon-is-missing", option="epsilon")
        return self.epsilon

    @property
    def pure(self) -> bool:
        """Whether the claim has no δ."""
        return self.delta == 0

    @property
    def rho(self) -> Fraction | None:
        """The budget of a row in zero-concentrated differential privacy, from (ε, δ); None for a pure claim."""
        return None if self.pure else rho_from(self.budget, self.delta)

    def configure(self, **options: Any) -> Method:
        """The method with settings filled in; unknown or unfitting ones are errors that say what fits."""
        changes: dict[str, Any] = {}
        for name, value in options.items():
            if value is None:
                continue
            setting = known_setting(name)
            if name == "delta" and name not in self.adjustable and "epsilon" in self.adjustable:
                if setting.read(value) == 0:
                    continue
                raise OptionError("method-makes-pure-claim-without-delta", name=self.name)
            if name == "k" and name not in self.adjustable:
                raise OptionError("method-no-groups-so-no-k", name=self.name)
            if name == "strata" and name not in self.adjustable and "epsilon" in self.adjustable:
                raise OptionError("strata-not-method-whose-promise-does", option="strata", name=self.name)
            if name == "strata" and name not in self.adjustable and self.t is not None:
                raise OptionError("strata-not-method-compares-every-group", option="strata", name=self.name)
            if name not in self.adjustable:
                raise OptionError(
                    "method-no-option-takes", name=self.name, name_2=name, adjustable=tuple(self.adjustable)
                )
            changes[name] = setting.read(value)
            if name == "partition":
                self._check_partition(changes[name])
        configured = replace(self, **changes)
        if "epsilon" in self.adjustable:
            _ = configured.budget
        configured = configured._with_joint_groups(changes)
        least = CALIBRATIONS[configured.sensitivity].smallest
        if configured.size < least:
            raise OptionError(
                "method-needs-k-least", option="method", name=self.name, least=least, found=configured.size
            )
        if configured.size <= configured.moments:
            raise OptionError(
                "k-too-small-for-variance" if configured.moments == 1 else "k-too-small-for-skewness",
                option="method",
                method=self.name,
                least=configured.moments + 1,
                found=configured.size,
            )
        shaped = [family for family, facts in NOISES.items() if facts.shaped]
        if configured.noise not in shaped and configured.optimise is not None:
            raise OptionError(
                "optimise-not-for-noise",
                option="optimise",
                allowed=[Message.of("noise-option", noise=family) for family in shaped],
                found=configured.noise,
            )
        if configured.noise in shaped and configured.optimise is None:
            configured = replace(configured, optimise=OPTIMISE[0])
        if configured.rows is not None and not configured.adjacency.hides_size:
            raise OptionError("rows-neighbours-add-remove", option="rows")
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
                "unknown-partition",
                option="partition",
                name=name,
                allowed=tuple(known),
                hint=closest(name, known),
            )

    def resolve_groups(self, columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The attribute groups, in order; together they cover every column once."""
        if self.groups is None:
            return (tuple(columns),) if self.grouping == "joint" else tuple((column,) for column in columns)
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

    def settings(self) -> dict[str, Any]:
        """The adjustable settings as plain values, for a recipe file."""
        values = {name: getattr(self, name) for name in self.adjustable}
        if not isinstance(self.split, str) and "split" in values:
            values["split"] = dict(self.split)
        if isinstance(self.floor, tuple) and "floor" in values:
            values["floor"] = dict(self.floor)
        for name in ("shares", "sizes", "combinations", "importance"):
            if values.get(name) is not None:
                values[name] = dict(values[name])
        return {name: value for name, value in values.items() if value is not None}


assert set(SETTINGS) <= {field.name for field in fields(Method)}
