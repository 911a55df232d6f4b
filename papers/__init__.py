"""Reproduce a paper's tables, figures and claims next to the published values."""

from __future__ import annotations

import datetime
import importlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from papers import overview, page
from papers.desk import Desk, Progress
from papers.study import Claim, Erratum, Figure, Number, Section, Series, Study, tally
from shoal.errors import Extra, OptionError, OutputError, closest, needs_extra
from shoal.workers import available_cores, machine_words
from tools.public_data import data_folder
from tools.results import RESULTS, write_summaries

# every module has `study(desk) -> Study`; they load scipy, numba and scikit-learn, hence on demand
PAPERS: Mapping[str, str] = {
    "mdai2017": "papers.mdai2017",
    "psd2014": "papers.psd2014",
    "idp": "papers.idp",
    "cross-moment": "papers.cross_moment",
    "thesis": "papers.thesis",
}
# what a paper needs beside the core: forests
_EXTRAS: Mapping[str, tuple[Extra, str]] = {"idp": ("learn", "sklearn")}


@dataclass(frozen=True)
class Reproduced:
    """A paper's study and where it was written."""

    paper: str
    study: Study
    page: Path


def reproduce(
    paper: str,
    out: str | Path = "reproduction",
    *,
    quick: bool = False,
    data: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Reproduced]:
    """Recompute a paper, or "all", and write a page with its CSV files and figures for each into the folder `out`.

    An interrupted run goes on where it was when called again.

    Args:
        paper: A name in `PAPERS`, or "all".
        out: Folder for the pages; made if it is not there.
        quick: Fewer settings and runs.
        data: Folder of the data sets; default those of the repository.
        workers: Processes; default all cores.
        progress: Called with what is going on, how much is done, and of how much.
    """
    names = list(PAPERS) if paper == "all" else [paper]
    if names[0] not in PAPERS:
        near = closest(paper, [*PAPERS, "all"])
        guess = f" Did you mean '{near}'?" if near else ""
        raise OptionError(f"there is no paper '{paper}'. Known: {', '.join(PAPERS)}, all.{guess}")
    for name in names:
        if name in _EXTRAS:
            extra, module = _EXTRAS[name]
            with needs_extra(extra, f"the paper '{name}' needs"):
                importlib.import_module(module)
    folder = Path(out)
    # the folder itself is made by the first thing that is written into it: an error leaves nothing behind
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"'{folder}' is not a folder: name another with --out.")
    desk = Desk(
        data=data_folder() if data is None else Path(data),
        quick=quick,
        workers=available_cores() if workers is None else workers,
    )
    if progress is not None:
        desk = replace(desk, progress=progress)
    return [_one(name, folder, desk) for name in names]


def _one(name: str, folder: Path, desk: Desk) -> Reproduced:
    keep = folder / f".{name}{'-quick' if desk.quick else ''}.points.jsonl"
    started, busy = time.monotonic(), _processor_seconds()
    study: Study = _module(name).study(replace(desk, keep=keep))
    elapsed, busy = time.monotonic() - started, _processor_seconds() - busy
    command = f"shoal reproduce {name}" + (" --quick" if desk.quick else "")
    head = (
        f"Written by `{command}` on {datetime.date.today()}, {machine_words()}: {_minutes(elapsed)} with "
        f"{_processes(desk.workers)}, {_minutes(busy)} of processor time. Real data, seeds 0, 1, 2, ...: an "
        "experiment, not a release."
    )
    page.write(folder, page.files(name, study, head))
    page.write(folder, {"index.md": overview.page(folder, list(PAPERS))})
    if folder.resolve() == RESULTS / "reproduction":
        write_summaries()
    keep.unlink(missing_ok=True)
    return Reproduced(name, study, folder / f"{name}.md")


def _module(name: str) -> Any:
    return importlib.import_module(PAPERS[name])


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _processes(workers: int) -> str:
    return "one process" if workers == 1 else f"{workers} processes"


def _minutes(seconds: float) -> str:
    """Seconds in words.

    >>> _minutes(42), _minutes(600)
    ('42 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


__all__ = [
    "PAPERS",
    "Claim",
    "Desk",
    "Erratum",
    "Figure",
    "Number",
    "Reproduced",
    "Section",
    "Series",
    "Study",
    "reproduce",
    "tally",
]
