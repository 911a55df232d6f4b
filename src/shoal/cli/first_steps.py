"""`shoal demo`, `schema`, `methods` and `reproduce`: the commands for first steps."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.command import (
    Flag,
    complain,
    flag,
    messages,
    print_json,
    print_table,
    progress_bar,
    results,
    say_promise,
    say_verdict,
)
from shoal.errors import OptionError, OutputError

if TYPE_CHECKING:
    from shoal.columns import Schema
    from shoal.evaluation import Evaluation
    from shoal.io import Table
    from shoal.release import Release


def schema_flags() -> tuple[Flag, ...]:
    """The options of `shoal schema`."""
    shown = "Show the effect of the recoding steps of --schema; uses no privacy budget."
    looked = "List what still has to be decided, in --schema or in the draft."
    return (
        options.data(),
        options.TYPES,
        *options.ABOUT_FILES,
        replace(options.DATASET, help="With --preview: name of the data set, for the journal."),
        Flag(
            "out",
            "Write the draft here instead of printing it.",
            "output",
            Path,
            common=True,
            placeholder="FILE",
        ),
        Flag("check", looked, "output", bool, default=False, common=True),
        Flag("preview", shown, "output", bool, default=False, common=True),
        Flag(
            "schema",
            "With --check and --preview: the schema to examine.",
            "input",
            Path,
            common=True,
            placeholder="FILE",
        ),
    )


def schema(typed: Mapping[str, Any]) -> None:
    """Draft a schema: guess kinds, types and roles, and leave the domains for you to fill in.

    Every entry names these records as its source: no guarantee holds until you have checked the entries and named
    another source.

    Value labels of a Stata or SPSS file become the values of their column: check that they are public.

    With --preview, Shoal runs the recoding steps and shows their effect. This shows facts about the records: keep
    them internal. It uses no privacy budget.

    With --check, Shoal drafts nothing: it lists what the schema still lacks for a guarantee, and exits with status 1
    if it lacks anything.

    Examples:

      shoal schema people.csv --out people.toml

      shoal schema people.csv --schema people.toml --check

      shoal schema people.csv --schema people.toml --preview
    """
    from shoal.cli.options import parse_types
    from shoal.columns import Schema, draft_text, read_declared, unsettled

    told = options.file_arguments(typed)
    types = {**told.pop("types", {}), **parse_types(typed["types"] or ())}
    na = typed["na"] or ()
    if typed["schema"] is not None and not (typed["check"] or typed["preview"]):
        raise OptionError("schema-check-preview")
    if typed["preview"] and typed["schema"] is None:
        raise OptionError("preview-shows-steps-schema")
    known = None if typed["schema"] is None else Schema.load(typed["schema"])
    table = read_declared(typed["data"], known, na=na, types=types, file=told.get("file"))
    if typed["preview"] and known is not None:
        options.note_use(typed, "viewed", table, known.names, "schema", views=["values"])
        _preview(known, table)
        return
    made = Schema.draft(table, {**told.get("file", {}), **({"na": list(na)} if na else {})})
    if typed["check"]:
        open_questions = unsettled(known or made, table)
        for line in open_questions:
            print(line.rendered(flag))
        if open_questions:
            raise typer.Exit(1)
        messages().print("Nothing is left to decide.", markup=False)
        return
    if typed["out"] is None:
        print(draft_text(made), end="")
    else:
        _save(made, typed["out"])
    for line in table.doubts.values():
        complain(line.rendered(flag))
    unit = made.unit
    if unit is not None:
        complain(
            f"values of column '{unit.name}' repeat, in up to {unit.max_rows} rows each: the draft makes it the unit, "
            "so that a guarantee is about persons and not about rows; declare max_rows as it is known from elsewhere."
        )


def _preview(known: Schema, table: Table) -> None:
    """Print each preprocessing step, and the columns after all of them."""
    from shoal.columns import preview

    found = preview(known, table)
    if not found:
        messages().print(
            "The schema declares no recoding steps: Shoal protects the table as it is read.", markup=False
        )
    for number, line in enumerate(found, start=1):
        print(f"{number}. {line}")
    if found:
        complain("the effect of the steps is a fact about the records: do not publish it.")


def _save(made: Schema, out: Path) -> None:
    if out.exists():
        raise OutputError("schema-exists-already", out=out)
    try:
        made.save(out)
    except OSError as error:
        raise OutputError("schema-cannot-write", out=out, reason=error.strerror) from None
    messages().print(
        f"Draft written to {out}. Fill in lo and hi of every numeric column, check kinds, types and roles, and state "
        "in source where you know them from.",
        markup=False,
    )


_COLUMNS = ("age", "sex", "region", "education", "hours per week", "income", "rent")
# the strongest claim first; it is the one that is written
_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pairs-dp", {}),
    ("tree-dp", {}),
    ("laplace", {}),
    ("ranking-dp", {"k": 250}),
    ("mdav-dp", {"k": 250}),
)


def demo(
    out: Annotated[Path | None, typer.Option(help="New folder for the results; default: shoal-demo.")] = None,
    people: Annotated[
        int, typer.Option(help="Number of people in the synthetic survey.", min=500, max=100_000)
    ] = 5000,
) -> None:
    """Protect a synthetic survey, say whether it may be published, and compare other methods.

    Example: shoal demo
    """
    from shoal.evaluation import evaluate, verdict
    from shoal.io import check_output, staged, write
    from shoal.release import protect
    from shoal.survey import survey, survey_schema

    folder = out if out is not None else _free_name(Path("shoal-demo"))
    check_output(folder)
    console = results()
    table, schema = survey(people), survey_schema()
    console.print(
        f"A synthetic survey of {people:,} people: {', '.join(table.column_names)}.\n"
        f"Protected: {', '.join(_COLUMNS)}.\n",
        markup=False,
    )
    releases, measured = [], []
    with progress_bar() as progress:
        for step, (method, options) in enumerate(_RUNS):
            progress("protecting and measuring", step, len(_RUNS))
            release = protect(table, schema, method, epsilon="1", columns=_COLUMNS, **options)
            releases.append(release)
            measured.append(evaluate(table, release))
    chosen, found = releases[0], verdict(releases[0], measured[0])
    with staged(folder) as aside:
        write(table, aside / "survey.csv")
        schema.save(aside / "survey.toml")
        chosen.save(
            aside / "release", aside / "internal.html", format="csv", evaluation=measured[0], original=table
        )
    console.print(f"Released with {chosen.method.name}:", markup=False)
    say_promise(chosen.statement)
    console.print(measured[0].summary())
    say_verdict(found)
    console.print("\nOther methods on the same records, for comparison only:")
    console.print(_comparison(releases, measured))
    console.print(
        f"\nWritten to {folder}: survey.csv and survey.toml (the input), release (may be published), internal.html "
        "(must not be).\n"
        "To do the same yourself:\n"
        f"  shoal protect {folder}/survey.csv --schema {folder}/survey.toml --epsilon 1 "
        f"--columns '{','.join(_COLUMNS)}' --out my-release",
        markup=False,
    )


_CLAIMS = {
    "dp": "of the original records",
    "dp-given-partition": "of averages of fixed groups",
}


def _comparison(releases: list[Release], measured: list[Evaluation]) -> Any:
    """The guarantee and the usefulness of each method."""
    from rich.table import Table

    from shoal.evaluation import USE_WORDS, verdict
    from shoal.text import roughly

    heads = ("method", "guarantee, ε = 1", "re-identified", "averages move", "relations kept", "usefulness")
    table = Table(*heads, box=None, pad_edge=False)
    for (method, given), release, evaluation in zip(_RUNS, releases, measured, strict=True):
        words = " ".join(f"{key}={value}" for key, value in given.items())
        use = verdict(release, evaluation).measured.usefulness
        linked, lost = evaluation.risk["record_linkage"], evaluation.utility
        table.add_row(
            f"{method} {words}".strip(),
            _CLAIMS.get(release.statement.model, release.statement.model),
            "synthetic rows" if linked is None else f"{linked:.1f}%",
            roughly(lost["mean_shift_max"]),
            f"{lost['rank_correlations_kept']} of {lost['rank_correlations']}",
            "" if use is None else USE_WORDS[use.level],
        )
    return table


def _free_name(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, ... that does not exist yet."""
    number = 1
    candidate = folder
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate


_HELP = """Reproduce a paper's tables, figures and claims next to the published values.

    Papers: mdai2017, psd2014, idp, cross-moment, thesis, or all. Every published number gets a verdict (equal,
    within Monte Carlo error, differs: why), and so does every claim in the text (holds, holds partly, fails). Shoal
    writes one page per paper to the folder --out, with CSV files and figures next to it. To continue an interrupted
    run, run the same command again.

    The papers are not part of the installed package: run this command in a clone of Shoal's repository, where
    `python -m papers` does the same.

    The public data sets are in 'datasets/' of the clone; --data names a folder with other copies.

    Examples:

      shoal reproduce mdai2017 --quick

      shoal reproduce all --out results/reproduction
    """


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="mdai2017, psd2014, idp, cross-moment, thesis or all.", show_default=False)
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer settings and runs: takes minutes.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the pages.")] = Path("reproduction"),
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the data sets; default: datasets/ of the clone.", show_default=False),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; default: all cores.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    papers = _papers()
    try:
        with progress_bar() as progress:
            done = papers.reproduce(paper, out, quick=quick, data=data, workers=workers, progress=progress)
    except KeyboardInterrupt:
        complain(
            f"interrupted; finished measurements are kept in '{out}', and the same command continues from there."
        )
        raise typer.Exit(130) from None
    counted = [
        {
            "paper": one.paper,
            "page": str(one.page),
            "numbers": papers.tally(number.verdict for number in one.study.numbers),
            "claims": papers.tally(claim.verdict for claim in one.study.claims),
        }
        for one in done
    ]
    if as_json:
        print_json(counted)
        return
    for one in counted:
        results().print(
            f"{one['paper']}: numbers {one['numbers'] or 'none printed'}; claims {one['claims']}."
        )
    messages().print(f"Written to '{out}'.")


def _papers() -> Any:
    """The folder `papers/` of the checkout that contains this file, as a package."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "papers" / "__main__.py").exists():
        raise OptionError("recomputed-papers-not-part-installed-package")
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return importlib.import_module("papers")


# the docstring is the help text; typer reads it from here
reproduce.__doc__ = inspect.cleandoc(_HELP)


def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method with its options.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the methods: name, purpose, claim and paper.

    Example: shoal methods ranking-dp
    """
    from shoal.mechanisms import method_class
    from shoal.mechanisms import methods as known

    if name is not None:
        method_class(name)
    chosen = [info for info in known() if name in (None, info.name)]
    if json:
        print_json([info.to_dict() for info in chosen])
        return
    print_table(
        ("name", "what it does", "claim", "paper"),
        [(info.name, info.about, info.claim, info.paper) for info in chosen],
    )
    if name is None:
        print("\nOptions of a method: shoal methods NAME.")
        return
    print()
    print_table(
        ("option", "meaning"),
        [(f"--{option.replace('_', '-')}", meaning) for option, meaning in chosen[0].parameters.items()],
    )
