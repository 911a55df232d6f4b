"""What Studio says of a release after an earlier one of the same records was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.release.protect import Preparation

SELECTED = (
    "Selected after looking: this table was released before, what that release lost or risked was shown, and this run "
    "repeats it."
)


def after_looking(prepared: Preparation) -> Preparation:
    """The same release, whose statement says that it was selected after looking."""
    described = prepared.described
    before = described.circumstances
    if SELECTED in before.data_dependent:
        return prepared
    told = replace(before, data_dependent=(*before.data_dependent, SELECTED))
    return prepared.stated(replace(described, circumstances=told))
