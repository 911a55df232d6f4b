"""`shoal ledger`: what was spent. A ledger comes in; standings, checks or all of its entries leave."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.command import Commands
from shoal.cli.output import messages, print_json, results
from shoal.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.ledger import Entry, Ledger, Standing

ledger = typer.Typer(name="ledger", cls=Commands, help="The budget ledger: open, show, verify, export, unit.")
Address = Annotated[
    str,
    typer.Argument(
        help="Path of the ledger, or a postgresql:// address.", metavar="LEDGER", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@ledger.command()
def show(address: Address, as_json: AsJson = False) -> None:
    """Say what is spent and what is left, by data set and analyst.

    Example: shoal ledger show shoal-served/ledger.sqlite
    """
    from shoal.ledger import open_ledger

    opened = open_ledger(address, create=False)
    found = []
    for name in opened.datasets():
        noted = [entry for entry in opened.entries(name) if entry.kind in ("release", "look")]
        found.append((opened.standing(name), noted, list(_choices(opened, name))))
    opened.close()
    if as_json:
        kinds = {"releases": "release", "looks": "look"}
        print_json(
            [
                s.to_dict()
                | {key: [e.to_dict() for e in noted if e.kind == kind] for key, kind in kinds.items()}
                for s, noted, _ in found
            ]
        )
        return
    for standing, noted, choices in found:
        _say(standing, noted, choices)


@ledger.command("open")
def open_budget(
    address: Address,
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", show_default=False)],
    epsilon: Annotated[str | None, typer.Option(help="The most ε in total.", metavar="E")] = None,
    delta: Annotated[
        str, typer.Option(help="With it the budget is in ρ, which (ε, δ) give.", metavar="D")
    ] = "0",
    rho: Annotated[str | None, typer.Option(help="The most ρ in total, instead of ε.", metavar="R")] = None,
    neighbours: Annotated[str, typer.Option(help="replace-one or add-remove.")] = "replace-one",
    unit: Annotated[
        str | None, typer.Option(help="Column that names the person; default: the budget is per row.")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(help="The most rows of one person.", min=1)] = None,
) -> None:
    """Open the budget of a data set, or change its ceiling: in ε, or in ρ with the δ it is converted with.

    Examples:

      shoal ledger open ledger.sqlite people --epsilon 2

      shoal ledger open ledger.sqlite people --epsilon 2 --delta 1e-6 --neighbours add-remove
    """
    from shoal.decimals import decimal_text
    from shoal.ledger import open_ledger
    from shoal.ledger.entry import SYMBOLS
    from shoal.ledger.units import opened_budget

    wanted = opened_budget(dataset, neighbours, epsilon, delta, rho, unit, max_rows)
    opened = open_ledger(address)
    try:
        opened.register(wanted)
    finally:
        opened.close()
    ceiling = "no ceiling" if wanted.ceiling is None else f"at most {decimal_text(wanted.ceiling)}"
    at = f", converted at δ = {decimal_text(wanted.delta_ceiling)}" if wanted.currency == "rho" else ""
    results().print(
        f"The budget of {dataset} is in {SYMBOLS[wanted.currency]}, {ceiling}{at}; {wanted.neighbours}, per "
        f"{wanted.unit}.",
        markup=False,
    )


@ledger.command()
def unit(
    address: Address,
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", show_default=False)],
    what: Annotated[
        str,
        typer.Argument(help="row, or the column that names the person.", metavar="UNIT", show_default=False),
    ],
    max_rows: Annotated[int | None, typer.Option(help="The most rows of one person.", min=1)] = None,
) -> None:
    """Say whose budget a data set has, once, for ledgers that did not keep it: per row, or per person.

    Examples:

      shoal ledger unit ledger.sqlite people row

      shoal ledger unit ledger.sqlite visits person_id --max-rows 12
    """
    from shoal.columns.schema import ROW, unit_words
    from shoal.errors import OptionError
    from shoal.ledger import open_ledger
    from shoal.ledger.units import declare_unit

    if what == ROW and max_rows is not None:
        raise OptionError("max-rows-persons-who-values-column")
    words = ROW if what == ROW else unit_words(what, max_rows or 1)
    opened = open_ledger(address, create=False)
    try:
        declare_unit(opened, dataset, words)
    finally:
        opened.close()
    results().print(f"The budget of {dataset} is per {words}.", markup=False)


@ledger.command()
def verify(
    address: Address,
    head: Annotated[
        list[str] | None,
        typer.Option(help="Hash of an entry that must be there, from an answer or 'show'; repeat it."),
    ] = None,
    heads: Annotated[
        Path | None,
        typer.Option(help="File with noted heads; default: that of the served folder, beside the ledger."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the database and every entry: hashes, amounts, ceilings, and that no entry of a noted head is lost.

    Example: shoal ledger verify shoal-served/ledger.sqlite --head 2c26b46b68ff...
    """
    from shoal.ledger import LedgerError, examine
    from shoal.query.server.state import HeadFile

    if heads is not None and not heads.exists():
        raise InputError("there-no-file-heads", heads=heads)
    noted = HeadFile(heads or Path(address).with_suffix(".heads"))
    found = examine(address, (*(head or ()), *noted.heads()), noted.digest())
    if as_json:
        print_json(
            [finding.standing.to_dict() | {"heads": list(finding.heads)} for finding in found.findings]
        )
    for problem in found.problems[:-1]:
        messages().print(f"shoal: {problem}", markup=False, soft_wrap=True)
    if found.problems:
        raise LedgerError.saying(found.problems[-1])
    if as_json:
        return
    for finding in found.findings:
        standing = finding.standing
        results().print(
            f"{standing.dataset}: {standing.number} entries, all in order. Head {standing.head}", markup=False
        )
    if head:
        results().print("Every head that was named is there.", markup=False)


@ledger.command()
def export(
    address: Address,
    out: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
) -> None:
    """Write all entries, one line of JSON each. They hold requests and answers: keep them inside.

    Example: shoal ledger export shoal-served/ledger.sqlite --out ledger.jsonl
    """
    from shoal.ledger import open_ledger

    if out is not None and out.exists():
        raise OutputError("exists-name-new-file", out=out)
    opened = open_ledger(address, create=False)
    lines = (
        json.dumps(entry.to_dict(), ensure_ascii=False) + "\n"
        for name in opened.datasets()
        for entry in opened.entries(name)
    )
    if out is None:
        for line in lines:
            print(line, end="")
    else:
        aside = out.with_name(out.name + ".part")
        try:
            descriptor = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(lines)
            aside.rename(out)
        finally:
            aside.unlink(missing_ok=True)
    opened.close()


def _choices(opened: Ledger, dataset: str) -> Iterator[str]:
    """The private choices that were charged, in words."""
    from shoal.decimals import decimal_text
    from shoal.ledger.entry import SYMBOLS
    from shoal.ledger.releases import choice_words

    for charge, answer in opened.answers(dataset, ""):
        words = choice_words(charge.content, None if answer is None else answer.content)
        if words is not None:
            symbol = SYMBOLS[opened.standing(dataset).terms.currency]
            yield f"chosen {charge.at[:10]} privately: {words} ({symbol} {decimal_text(charge.added)})"


def _say(standing: Standing, noted: list[Entry], choices: list[str]) -> None:
    from shoal.decimals import decimal_text
    from shoal.ledger.entry import SYMBOLS

    console, terms = results(), standing.terms
    symbol = SYMBOLS[terms.currency]
    console.print(f"{standing.dataset} ({terms.neighbours}): {standing.words}", markup=False)
    console.print(f"  unit: {terms.unit or 'not noted'}", markup=False)
    if terms.currency == "rho":
        at = decimal_text(terms.delta_ceiling)
        console.print(f"  together ε {decimal_text(standing.epsilon)} at δ {at}", markup=False)
    elif terms.delta_ceiling or standing.delta_spent:
        console.print(
            f"  δ {decimal_text(standing.delta_spent)} spent, of {decimal_text(terms.delta_ceiling)}",
            markup=False,
        )
    for name, spent in standing.analysts.items():
        ceiling = terms.analyst_ceiling(name)
        own = "" if ceiling is None else f", of {decimal_text(ceiling)}"
        console.print(f"  {name or 'releases'}: {decimal_text(spent)}{own}", markup=False)
    for entry in noted:
        made = json.loads(entry.content)
        if entry.kind == "look":
            console.print(f"  measurements shown {entry.at[:10]} by 'shoal {made['look']}'", markup=False)
            continue
        counted = f"{symbol} {decimal_text(entry.added)}" if entry.added else "not counted"
        console.print(
            f"  released {entry.at[:10]} with {made['release']} ({made['model']}, {counted})", markup=False
        )
    for choice in choices:
        console.print(f"  {choice}", markup=False)
    if standing.unanswered:
        console.print(f"  {standing.unanswered} charged without a stored answer", markup=False)
    console.print(f"  {standing.number} entries, head {standing.head}", markup=False)
