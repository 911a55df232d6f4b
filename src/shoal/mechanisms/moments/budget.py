"""How ε is shared over statistics: a method and its attribute groups come in, exact shares of each kind leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from shoal.columns.describe import Described
from shoal.errors import OptionError
from shoal.mechanisms.moments.methods import CrossMoment
from shoal.mechanisms.moments.statistics import Summary
from shoal.noise.families import NOISES
from shoal.privacy.budget import Plan, split_budget
from shoal.text import Message

KINDS = ("means", "covariances", "coskewnesses")


def kind_of(kind: str, group: Sequence[str]) -> str:
    """What ε is reserved for and spent on: one of `KINDS`, of an attribute group."""
    return f"{kind} of the clusters of {', '.join(group)}"


def all_of(group: Sequence[str]) -> str:
    """The same for all statistics, where they share ε in proportions that the records settle."""
    return f"all statistics of the clusters of {', '.join(group)}, together"


@dataclass(frozen=True, slots=True)
class GroupBudget:
    """What one attribute group may spend.

    Attributes:
        parts: ε of the means, of the covariance part and of the coskewness part; None where all statistics of a cluster
            share `epsilon` in proportions that its own records settle (the eigen form masked jointly).
        means: ε of each attribute's means; the eigen form masked jointly has no such thing, and gives a guess.
    """

    summary: Summary
    epsilon: Fraction
    parts: tuple[Fraction, ...] | None
    means: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class MomentPlan(Plan):
    """A plan with the shares of every statistic.

    Attributes:
        budgets: by attribute group; empty where nothing is masked.
    """

    budgets: Mapping[tuple[str, ...], GroupBudget] | None = None


def summary_of(method: CrossMoment, attributes: int) -> Summary:
    """The statistics that a method keeps of so many attributes."""
    return Summary(attributes, method.moments, method.covariance, method.coskewness, method.form)


def plan(method: CrossMoment, described: Described) -> MomentPlan:
    """Share ε over attribute groups, and in each group over its statistics.

    Masked jointly (Algorithm 1), every statistic of a group has the same share, because all of them have the same
    sensitivity once attributes are divided by their widths. Masked separately (Algorithm 2), the kinds of statistics
    have the shares that `weights` give them. Attribute groups compose (Algorithm 3).

    Reference:
        the cross-moment paper, section 4.3.
    """
    names = described.columns
    groups = method.resolve_groups(names)
    for group in groups:
        summary_of(method, len(group))
    if method.sensitivity == "none":
        return MomentPlan({}, {})
    if NOISES[method.noise].joint:
        raise OptionError(
            "noise-cluster-sums-method-keeps-more",
            option="noise",
            noise=method.noise,
            method=method.name,
            others=tuple(name for name, family in NOISES.items() if not family.joint),
        )
    widths = [described.lattices[name].width for name in names]
    split = method.split if isinstance(method.split, str) else dict(method.split)
    shares = dict(zip(names, split_budget(method.budget, names, widths, split), strict=True))
    budgets = {group: _group_budget(method, group, shares) for group in groups}
    spending: dict[str, Fraction] = {}
    for group, budget in budgets.items():
        if budget.parts is None:
            spending[all_of(group)] = budget.epsilon
            continue
        for kind, part in zip(KINDS, budget.parts, strict=False):
            spending[kind_of(kind, group)] = part
    if method.moments == 0:
        return MomentPlan(spending, shares, budgets=budgets)
    # the statistics of a group meet in its rows, so that no attribute has less than the ε of its group
    stated = {name: budget.epsilon for group, budget in budgets.items() for name in group}
    together = (Message("grouped-share-epsilon"),) if max(len(group) for group in groups) > 1 else ()
    return MomentPlan(spending, stated, together, budgets=budgets)


def _group_budget(method: CrossMoment, group: tuple[str, ...], shares: Mapping[str, Fraction]) -> GroupBudget:
    summary = summary_of(method, len(group))
    epsilon = sum((shares[name] for name in group), Fraction(0))
    weights = _weights(method, summary)
    if weights is None:
        return GroupBudget(summary, epsilon, None, (epsilon / len(group),) * len(group))
    total = sum(weights)
    parts = tuple(epsilon * weight / total for weight in weights)
    if summary.order == 0:
        return GroupBudget(summary, epsilon, parts, tuple(shares[name] for name in group))
    return GroupBudget(summary, epsilon, parts, (parts[0] / len(group),) * len(group))


def _weights(method: CrossMoment, summary: Summary) -> tuple[Fraction, ...] | None:
    if method.weights is None or method.moments == 0:
        if method.form == "eigen":
            return None
        counts = (summary.means, summary.covariances, summary.coskewnesses)
        return tuple(Fraction(count) for count in counts[: summary.order + 1])
    if len(method.weights) != summary.order + 1:
        raise OptionError(
            "weights-have-entry-each",
            option="weights",
            kinds=KINDS[: summary.order + 1],
            found=len(method.weights),
        )
    return method.weights
