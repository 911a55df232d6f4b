"""`shoal redo`: repeat a release on another table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.cli import options, protect
from shoal.cli.command import Flag


def flags() -> tuple[Flag, ...]:
    """The options of `shoal redo`: where things go, because what is done stands in the log."""
    log = Flag("log", "The log.toml of a release, or its folder.", "input", Path, argument=True, common=True)
    kept = (
        "out",
        "format",
        "internal",
        "evaluate",
        "ledger",
        "dataset",
        "same_records",
        "not_same_records",
        "engine",
        "everything",
        "dry_run",
        "json",
    )
    own = [flag for flag in protect.flags() if flag.name in kept]
    return (log, options.data(), *own)


def redo(typed: Mapping[str, Any]) -> None:
    """Repeat a release on another table, such as next year's: the same steps, settings and sources.

    LOG is the log.toml of a release, or its folder. A seed is not repeated, bounds keep their sources, and the new
    release is charged by itself: name the --ledger and the --dataset of the people whom DATA is about.

    Examples:

      shoal redo release/log.toml people-2027.csv --out release-2027

      shoal redo release people-2027.csv --out release-2027 --ledger budget.db --dataset people-2027
    """
    from shoal.mechanisms.recipe import log_path

    everything = {flag.name: flag.default for flag in protect.flags()}
    protect.protect({**everything, **typed, "config": log_path(typed["log"])})
