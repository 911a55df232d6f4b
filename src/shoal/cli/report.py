"""`shoal report`: write a page about a release that works offline."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import options
from shoal.cli.interrupt import interruptibly
from shoal.cli.output import complain, progress_bar, results, say_verdict
from shoal.errors import OptionError, OutputError

if TYPE_CHECKING:
    from shoal.engines.runner import Runner
    from shoal.io import Table

_FLAGS = {flag.name: flag for flag in options.ENGINE}


def report(
    bundle: Annotated[
        Path, typer.Argument(help="The folder that 'shoal protect' wrote.", show_default=False)
    ],
    original: Annotated[
        Path | None, typer.Option(help="The table that was protected: adds facts that must not be published.")
    ] = None,
    target: Annotated[str | None, typer.Option(help=options.TARGET.help)] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="New file for the page; default BUNDLE-report.html.", show_default=False),
    ] = None,
    engine: Annotated[str | None, typer.Option(help=_FLAGS["engine"].help)] = None,
    master: Annotated[str | None, typer.Option(help=_FLAGS["master"].help, metavar="URL")] = None,
    conf: Annotated[list[str] | None, typer.Option(help=_FLAGS["conf"].help, metavar="KEY=VALUE")] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help=f"With --original: {options.NOTED[0].help.lower()}", metavar="ADDRESS"),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(*options.DATASET.typed, help=options.NOTED[1].help, metavar="NAME")
    ] = None,
) -> None:
    """Write a page about a release for people: what is promised, what was lost, what risk remains.

    One HTML file with everything inside, which opens without a network. Without --original it holds only what follows
    from the bundle and may be published with it. With --original it compares both tables, attacks the release, and
    must stay inside.

    Parquet files too large for memory, or folders of them, are worked through in parts: distributions and correlations
    of all rows, attacks and two-way tables on the same samples.

    Examples:

      shoal report release

      shoal report release --original people.csv --target 'income>30000' --out internal.html
    """
    from shoal.columns.declaration import read_declared
    from shoal.privacy.verdict import public_verdict
    from shoal.release.measure import in_memory_because
    from shoal.release.report_in_parts import report_in_parts
    from shoal.report import bundle_report
    from shoal.report.findings import of_bundle

    private = original is not None
    if target is not None and not private:
        raise OptionError("target-compares-original-table")
    if (ledger or dataset) and not private:
        raise OptionError("ledger-dataset-about-original-table")
    place = out or Path(f"{bundle.resolve().name}-{'internal' if private else 'report'}.html")
    check_place(place, bundle if private else None)

    where = options.where({"engine": engine, "master": master, "conf": conf})
    subject = of_bundle(bundle, on_disk=True)
    tables = [subject.table.path] if original is None else [original, subject.table.path]
    runners = where.runners(tables, in_memory_because({"target": target}))
    records: Table | Runner | None = None if original is None or runners is None else runners[0]

    def work() -> str:
        nonlocal records
        with progress_bar() as progress:
            if runners is not None:
                return report_in_parts(subject, bundle, runners, progress)
            if original is not None:
                progress("reading the table", 0, 1)
                records = read_declared(original, subject.schema, na=subject.na)
            return bundle_report(bundle, records, target, progress)

    page = interruptibly(work)
    if records is not None:
        noted = {"ledger": ledger, "dataset": dataset}
        shown = ["histogram"]
        options.note_use(noted, "measured", records, subject.columns, "report", released=bundle, views=shown)
    size = write_page(place, page, private=private)
    say_verdict(public_verdict(subject.statement))
    results().print(f"Written to {place}: one page, {size / 1e6:.1f} MB, which works offline.", markup=False)
    if private:
        complain(f"'{place}' holds facts about the original data: do not publish it.")


def check_place(place: Path, bundle: Path | None = None) -> None:
    """Refuse, before any work is done, what could not be written at the end: nothing private into a bundle."""
    if place.is_dir():
        raise OutputError("is-a-folder-not-file", place=place)
    if place.exists():
        raise OutputError("report-exists-already", place=place)
    if bundle is not None and bundle.resolve() in place.resolve().parents:
        raise OutputError("would-lie-inside-published-folder-holds", place=place, bundle=bundle)
    parent = place.absolute().parent
    if not parent.is_dir():
        raise OutputError("there-no-folder", parent=parent, place=place.name)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError("no-permission-write", parent=parent)


def write_page(place: Path, page: str, *, private: bool = True) -> int:
    """Write aside and rename, so that an interruption leaves no half page; the number of bytes.

    Args:
        private: it holds facts about the original records, and only its owner may read it.
    """
    content = page.encode()
    number, aside = tempfile.mkstemp(prefix=f".{place.name}.partial-", dir=place.absolute().parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        if not private:
            Path(aside).chmod(0o644)
        if place.exists():
            raise OutputError("appeared-meanwhile", place=place)
        os.rename(aside, place)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
    return len(content)
