"""A control group: a table comes in, two sets of rows leave, chosen by chance and by nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, closest
from shoal.io import Table
from shoal.noise import source


def divide(
    table: Table, share: float, unit: str | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to protect and rows to hold out, each in the order of the table.

    Args:
        share: of the persons (of the rows without a unit) that is held out.
        unit: column that names a person; all rows of one go the same way.

    Raises:
        InputError: there is no such column, or one of the groups would be empty.
    """
    persons: NDArray[np.int64] = np.arange(table.n, dtype=np.int64)
    if unit is not None:
        if unit not in table.names:
            raise InputError("there-no-column", column=unit, hint=closest(unit, table.names))
        values = np.array([str(value) for value in table.series(unit).to_list()])
        persons = np.unique(values, return_inverse=True)[1].astype(np.int64)
    number = int(persons.max(initial=-1)) + 1
    aside = round(share * number)
    if not 0 < aside < number:
        if unit is None:
            raise InputError("too-few-rows-for-share", rows=number, share=share)
        raise InputError("too-few-persons-for-share", persons=number, share=share)
    chosen = source(None).permutation(number)[:aside]
    held = np.isin(persons, chosen)
    return np.flatnonzero(~held), np.flatnonzero(held)
