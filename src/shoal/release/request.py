"""What can be asked of a release, by keyword: the arguments of `protect`, `publish` and `prepare`, listed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from numpy.typing import ArrayLike

from shoal.columns.schema import Schema
from shoal.io import Conventions
from shoal.method.tuned import Tuned


class Declared(TypedDict, total=False):
    """What is said about the table; `shoal.protect` says what each of it means."""

    columns: Sequence[str] | None
    domains: Mapping[str, Any] | None
    domain_from_data: float | None
    outside: Literal["error", "clip"]
    missing: Literal["error", "drop", "category", "separate"]
    na: Sequence[str]
    types: Mapping[str, str] | None
    file: Conventions | Mapping[str, Any] | None
    labels: ArrayLike | None
    tuned: str | Sequence[str] | Tuned | None
    tuned_epsilon: Any
    tuned_choice: Sequence[Any] | None
    most_epsilon: Any
    override: str | None


class Options(Declared, total=False):
    """The same with the settings of methods; `shoal.methods()` says which method has which."""

    delta: Any
    partition: str
    groups: Sequence[Sequence[str]]
    split: str | Mapping[str, Any]
    gamma: Any
    remainder: str
    normalise: str
    link: bool
    noise: str
    optimise: str
    floor: Any
    generalise: bool
    clip: bool
    composition: str
    order: str
    corners: str
    weights: Sequence[Any]
    coskewness: str
    match: str
    cuts: int
    depth: int
    shares: Mapping[str, Any]
    rebuild: str
    neighbours: str
    rows: int
    target: str
    triples: bool
    sizes: Mapping[str, int]
    l: int  # noqa: E741
    t_emd: Any
    t: int
    intruder: str
    group_by: str
    strata: str | Sequence[str]
    risk: Any
    combinations: Mapping[str, int]
    importance: Mapping[str, Any]
    missing_as: str
    alpha: Any


class Request(Options, total=False):
    """All arguments but the table itself."""

    schema: Schema | None
    method: str
    epsilon: Any
    k: int | None
    seed: int | None
