"""Options of a tuning: what the caller asked for comes in, an error with the reason leaves, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, get_args

from shoal.errors import ClaimError, OptionError, closest
from shoal.io import Table
from shoal.method.models import Model
from shoal.method.registry import known_parameter, method_class
from shoal.noise import parse_epsilon
from shoal.tuning.choose import check_utility
from shoal.tuning.grid import Setting
from shoal.tuning.private import METHOD

# what has a list of its own, or an argument
_COMPARED = ("k", "split", "noise", "delta", "epsilon")


def check_comparison(
    seeds: int,
    fast: bool,
    target: str | None,
    utility: str | None,
    max_risk: float | None,
    claim: str | None,
    workers: int | None,
    table: Table,
) -> None:
    for name, number in (("seeds", seeds), ("workers", 1 if workers is None else workers)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise OptionError("checks-option-whole-number-least-1", option=name, found=number)
    check_utility(utility, target)
    if target is not None:
        from shoal.evaluation.learning import check_target

        check_target(target, table)
    if claim is not None and claim not in get_args(Model):
        raise OptionError(
            "unknown-claim",
            option="claim",
            claim=claim,
            allowed=tuple(get_args(Model)),
            hint=closest(claim, get_args(Model)),
        )
    if max_risk is not None and not 0 <= max_risk <= 100:
        raise OptionError("max-risk-percentage-from-0-100", option="max_risk", found=max_risk)
    for option, given in (("max_risk", max_risk), ("target", target)):
        if fast and given is not None:
            raise OptionError("option-takes-runs", option=option)
    if fast and utility not in (None, "normalised_sse", "scaled_sse"):
        raise OptionError("utility-no-closed-form", utility=utility)


def check_private(
    methods: Sequence[str] | None,
    utility: str | None,
    target: str | None,
    max_risk: float | None,
    noises: Sequence[str] | None,
    deltas: Sequence[Any] | None = None,
) -> None:
    if methods is not None and list(methods) != [METHOD]:
        raise ClaimError("private-chooses-only-not", method=METHOD, methods=tuple(methods))
    asked = {"utility": utility, "target": target, "max_risk": max_risk, "noises": noises, "deltas": deltas}
    for option, given in asked.items():
        if given is not None:
            raise ClaimError("private-scores-squared-error-groups-fixed", option=option)


def private_epsilon(private: Any) -> Fraction:
    """The budget of a private choice.

    Raises:
        OptionError: it is no budget; the message names this option and not that of the release.
    """
    try:
        return parse_epsilon(private)
    except OptionError as error:
        raise OptionError("private-budget-own", reason=error) from None


def check_options(options: Mapping[str, Any], grid: Sequence[Setting]) -> None:
    """Every shared setting must be one of some compared method, and none of those that are compared."""
    taken = {name for setting in grid for name in method_class(setting.method).parameters()}
    for name in options:
        known_parameter(name)
        if name in _COMPARED:
            plural = name if name == "epsilon" else f"{name}s"
            raise OptionError("is-compared", name=name, plural=plural)
        if name not in taken:
            raise OptionError("no-compared-method-option", name=name)
