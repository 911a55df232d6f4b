"""`redo`: repeat the steps and settings of a release on another table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.mechanisms.recipe import load_log
from shoal.progress import Cancel, Progress
from shoal.release.opening import Engine
from shoal.release.publish import Published, publish


def redo(
    log: str | Path,
    data: Any,
    *,
    out: str | Path,
    internal: str | Path | None = None,
    format: str | None = None,
    evaluate: bool = False,
    ledger: str | None = None,
    dataset: str | None = None,
    same_records: str | Sequence[str] | None = None,
    not_same_records: str | Sequence[str] | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Published:
    """Repeat a release on another table, such as next year's: the same steps, method, settings and sources.

    A log holds no seed, so the noise is drawn anew and the new release is judged by its own statement. What the log
    says was chosen on the records stays a choice on records. The new release costs its own budget: name the ledger and
    the data set of the people whom the new table is about.

    Args:
        log: the `log.toml` of a release, or its folder.
        data: the new table, with the same columns.
        out: a new folder for the bundle, as for `shoal.publish`, like all other arguments.

    Raises:
        InputError, OptionError: the log cannot be read; parameters of a step or a domain were taken from the records
            of the first release, and are not in the log; or the new table does not fit.
    """
    recipe = load_log(log)
    return publish(
        data,
        **recipe,
        out=out,
        internal=internal,
        format=format,
        evaluate=evaluate,
        ledger=ledger,
        dataset=dataset,
        same_records=same_records,
        not_same_records=not_same_records,
        engine=engine,
        progress=progress,
        cancel=cancel,
    )
