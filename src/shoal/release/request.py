"""What a caller says about a table, by keyword: the same arguments for `protect`, `publish` and `prepare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from numpy.typing import ArrayLike

from shoal.io import Conventions
from shoal.mechanisms.recipe import Tuned


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
