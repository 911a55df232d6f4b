"""`shoal ledger`, `ask` and `journal`: budgets, queries and the journal of use."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.command import Commands, complain, messages, print_json, results
from shoal.errors import InputError, OptionError, OutputError
from shoal.text import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.ledger import Ledger, LedgerEntry, Standing
    from shoal.query import Client, Reply


ledger = typer.Typer(
    name="ledger", cls=Commands, help="Manage the privacy budget ledger: open, show, verify, export, unit."
)
Address = Annotated[
    str,
    typer.Argument(
        help="Path of the ledger, or a postgresql:// address.", metavar="LEDGER", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@ledger.command()
def show(address: Address, as_json: AsJson = False) -> None:
    """Show the privacy budget used and remaining, by data set and analyst.

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
    epsilon: Annotated[str | None, typer.Option(help="Ceiling of the total ε.", metavar="E")] = None,
    delta: Annotated[
        str, typer.Option(help="Keep the budget in ρ, converted from (ε, δ) at this δ.", metavar="D")
    ] = "0",
    rho: Annotated[
        str | None, typer.Option(help="Ceiling of the total ρ, instead of ε.", metavar="R")
    ] = None,
    neighbours: Annotated[str, typer.Option(help="Adjacency: replace-one or add-remove.")] = "replace-one",
    unit: Annotated[
        str | None, typer.Option(help="Column that identifies the person; default: the budget is per row.")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(help="Largest number of rows of one unit.", min=1)] = None,
    called: Annotated[
        str | None, typer.Option(help="Word for one unit, as in the schema: household.", metavar="WORD")
    ] = None,
) -> None:
    """Open the privacy budget of a data set, or change its ceiling: in ε, or in ρ with the δ of the conversion.

    Examples:

      shoal ledger open ledger.sqlite people --epsilon 2

      shoal ledger open ledger.sqlite people --epsilon 2 --delta 1e-6 --neighbours add-remove
    """
    from shoal.ledger import SYMBOLS, open_ledger, opened_budget
    from shoal.numbers import decimal_text

    wanted = opened_budget(dataset, neighbours, epsilon, delta, rho, unit, max_rows, called)
    opened = open_ledger(address)
    try:
        opened.register(wanted)
    finally:
        opened.close()
    ceiling = "no ceiling" if wanted.ceiling is None else f"at most {decimal_text(wanted.ceiling)}"
    at = f", converted at δ = {decimal_text(wanted.delta_ceiling)}" if wanted.currency == "rho" else ""
    results().print(
        f"The budget of {dataset} is in {SYMBOLS[wanted.currency]}, {ceiling}{at}; {wanted.adjacency}, per "
        f"{wanted.unit}.",
        markup=False,
    )


@ledger.command()
def unit(
    address: Address,
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", show_default=False)],
    what: Annotated[
        str,
        typer.Argument(
            help="row, or the column that identifies the person.", metavar="UNIT", show_default=False
        ),
    ],
    max_rows: Annotated[int | None, typer.Option(help="Largest number of rows of one unit.", min=1)] = None,
    called: Annotated[
        str | None, typer.Option(help="Word for one unit, as in the schema: household.", metavar="WORD")
    ] = None,
) -> None:
    """Declare once whether a data set's budget is per row or per person, for ledgers that did not record it.

    Examples:

      shoal ledger unit ledger.sqlite people row

      shoal ledger unit ledger.sqlite visits person_id --max-rows 12
    """
    from shoal.columns import ROW, unit_words
    from shoal.errors import OptionError
    from shoal.ledger import declare_unit, open_ledger

    if what == ROW and (max_rows is not None or called is not None):
        raise OptionError("max-rows-persons-who-values-column")
    words = ROW if what == ROW else unit_words(what, max_rows or 1, called)
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
        typer.Option(
            help="Hash of an entry that must exist (checkpoint), from an answer or 'show'; repeatable."
        ),
    ] = None,
    heads: Annotated[
        Path | None,
        typer.Option(
            help="File with ledger checkpoints; default: that of the served folder, next to the ledger."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify the ledger: its database, hashes, amounts and ceilings, and that no entry up to a checkpoint is lost.

    Example: shoal ledger verify shoal-served/ledger.sqlite --head 2c26b46b68ff...
    """
    from shoal.ledger import LedgerError, examine
    from shoal.query import HeadFile

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
            f"{standing.dataset}: {standing.number} entries, no problem found. Last hash {standing.head}",
            markup=False,
        )
    if head:
        results().print("Every named checkpoint is in the ledger.", markup=False)


@ledger.command()
def export(
    address: Address,
    out: Annotated[Path | None, typer.Option(help="Write to this file; default: standard output.")] = None,
) -> None:
    """Export all entries, one JSON line each. They contain requests and answers: keep them internal.

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
    """The private choices that were charged, as text."""
    from shoal.ledger import SYMBOLS, choice_words
    from shoal.numbers import decimal_text

    for charge, answer in opened.answers(dataset, ""):
        words = choice_words(charge.content, None if answer is None else answer.content)
        if words is not None:
            symbol = SYMBOLS[opened.standing(dataset).terms.currency]
            yield f"chosen {charge.at[:10]} privately: {words} ({symbol} {decimal_text(charge.added)})"


def _say(standing: Standing, noted: list[LedgerEntry], choices: list[str]) -> None:
    from shoal.ledger import SYMBOLS
    from shoal.numbers import decimal_text

    console, terms = results(), standing.terms
    symbol = SYMBOLS[terms.currency]
    console.print(f"{standing.dataset} ({terms.adjacency}): {standing.words}", markup=False)
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
    console.print(f"  {standing.number} entries, last hash {standing.head}", markup=False)


def ask(
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", metavar="DATASET")],
    question: Annotated[
        str | None,
        typer.Argument(
            help="Kind of query (count, mean, ...) with options, or a query as JSON.", metavar="QUESTION"
        ),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Privacy budget ε to spend on the answer.")] = None,
    column: Annotated[str | None, typer.Option(help="Column to query.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Use only records that meet this condition, 'age>=30' or JSON; repeatable."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="Further option of the query, name=value, where the value may be JSON; repeatable."
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show the cost of the query without asking it.")
    ] = False,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: a query with the same key is charged once.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Address of the server; default: SHOAL_URL or http://127.0.0.1:8200.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token; default: the token in SHOAL_TOKEN.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's full reply as JSON.")] = False,
) -> None:
    """Send a query to a query server. Without a query: show the data set's public facts and the remaining budget.

    Examples:

      shoal ask survey --token-file shoal-served/analyst.token

      shoal ask survey mean --column income --epsilon 0.5

      shoal ask survey count --where 'age>=65' --where region==North --epsilon 0.1

      shoal ask survey '{"kind": "quantile", "column": "income", "q": "0.5", "epsilon": "0.5"}'
    """
    from shoal.query import Client

    address = url or os.environ.get("SHOAL_URL") or "http://127.0.0.1:8200"
    asked = None
    if question is not None:
        asked = _question(question, epsilon, column, where or [], option or [])
    with Client(address, _token(token_file)) as client:
        if asked is None:
            _describe(client, dataset, as_json)
        elif preview:
            _preview(client.preview(dataset, asked), as_json)
        else:
            reply = client.ask(dataset, asked, key=key)
            _say_answer(reply, as_json)


def _token(path: Path | None) -> str:
    if path is None:
        text = os.environ.get("SHOAL_TOKEN", "")
    else:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError("token-file-cannot-read", path=path) from None
    if not text.strip():
        raise OptionError("there-no-token")
    return text.strip()


def _question(
    text: str, epsilon: str | None, column: str | None, where: list[str], options: list[str]
) -> dict[str, Any]:
    """The question in the server's form, from JSON or from options."""
    asked: dict[str, Any] = (
        _json(Message("the-question"), text) if text.lstrip().startswith("{") else {"kind": text}
    )
    if epsilon is not None:
        asked["epsilon"] = epsilon
    if column is not None:
        asked["column"] = column
    conditions = [_condition(one) for one in where]
    if conditions:
        asked["where"] = conditions[0] if len(conditions) == 1 else {"and": conditions}
    for one in options:
        name, equals, value = one.partition("=")
        if not equals:
            raise OptionError("option-not-form-name-value", one=one)
        asked[name] = _json(Message.of("flag-option", name=name), value) if value[:1] in ("{", "[") else value
    return asked


def _condition(text: str) -> dict[str, Any]:
    """A condition as JSON or as `column op value`.

    >>> _condition("age>=30")
    {'column': 'age', 'op': '>=', 'value': '30'}
    """
    if text.lstrip().startswith("{"):
        written: dict[str, Any] = _json(Message("flag-where"), text)
        return written
    found = [(text.find(op), -len(op), op) for op in ("==", "!=", "<=", ">=", "<", ">", "=") if op in text]
    if not found:
        raise OptionError("where-no-condition", text=text)
    at, _, op = min(found)
    column, value = text[:at].strip(), text[at + len(op) :].strip()
    return {"column": column, "op": "==" if op == "=" else op, "value": value}


def _json(what: Message, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError("starts-like-json-but-not", what=what, reason=error) from None


def _describe(client: Client, dataset: str, as_json: bool) -> None:
    described, budget = client.describe(dataset), client.budget(dataset)
    if as_json:
        print_json({**described, "budget": budget})
        return
    console, facts = results(), described["facts"]
    rows = "" if facts["rows"] is None else f", {facts['rows']} records"
    console.print(
        f"{dataset}: {described['description'] or 'no description'} ({facts['relation']}{rows})", markup=False
    )
    for column in facts["columns"]:
        domain = f", {column['lo']} to {column['hi']}" if "lo" in column else ""
        console.print(f"  {column['name']} ({column['kind']}{domain})", markup=False)
    console.print(f"Kinds of query: {', '.join(described['kinds'])}.", markup=False)
    own = budget["yours"]
    console.print(
        f"ε you have spent: {_short(own['spent'])}; ε you have left: {_short(own['remaining'])}.",
        markup=False,
    )


def _preview(body: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(body)
        return
    preview = body["preview"]
    console = results()
    adds = "more than is left" if body["adds"] is None else f"adds {_short(body['adds'])} to what you spent"
    console.print(f"Costs ε {_short(preview['cost'])}, {adds}.", markup=False)
    _say_error(preview["error"])


def _say_answer(reply: Reply, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "value": reply.value,
                "error": dict(reply.error),
                "question": dict(reply.question),
                "statement": dict(reply.statement),
                "receipt": dict(reply.receipt),
            }
        )
        return
    console = results()
    if isinstance(reply.value, dict | list):
        print_json(reply.value)
    else:
        console.print(str(reply.value), markup=False)
    _say_error(reply.error)
    statement = reply.statement
    console.print(
        f"ε-differential privacy of {statement['target']}, ε = {_short(statement['epsilon'])} per {statement['unit']} "
        f"({statement['neighbours']}).",
        markup=False,
    )
    messages().print(
        f"Charge {reply.receipt['charge']}, ε {_short(reply.receipt['added'])} added; "
        f"last hash {reply.receipt['head']}",
        markup=False,
        style="dim",
    )


def _say_error(error: Any) -> None:
    if "interval_95" in error and isinstance(error["interval_95"], int | float):
        results().print(
            f"Within ±{error['interval_95']:.6g} of the true answer with probability 95%.", markup=False
        )


def _short(text: str | None) -> str:
    """An exact fraction in readable form."""
    from fractions import Fraction

    from shoal.numbers import decimal_text

    return "unlimited" if text is None else decimal_text(Fraction(text))


def journal(
    what: Annotated[str, typer.Argument(help="show or clear.", metavar="[show|clear]")] = "show",
    dataset: Annotated[
        str | None,
        typer.Option(
            *options.DATASET.typed, help="Show or clear only the entries of this data set.", metavar="NAME"
        ),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Also use the journal next to this ledger.", metavar="ADDRESS")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show or clear the journal of how records were used on this machine; Shoal never sends it anywhere.

    A statement includes the uses recorded under the name of its data set. Times, paths and hashes stay here.

    Examples:

      shoal journal

      shoal journal --dataset people

      shoal journal clear --dataset people
    """
    from shoal.journal import Journal

    opened = Journal.open(ledger=ledger)
    if what == "clear":
        try:
            count = opened.clear(dataset)
        except OSError as error:
            raise OutputError("journal-cannot-cleared", reason=error.strerror or error) from None
        entries = "entry" if count == 1 else "entries"
        results().print(f"{count} {entries} cleared.", markup=False)
        return
    if what != "show":
        raise OptionError("not-show-clear", what=what)
    found = opened.entries(dataset)
    if as_json:
        print_json([entry.to_dict() for entry in found])
    else:
        for entry in found:
            results().print(entry.words, markup=False)
        if not found:
            results().print("The journal has no entries.", markup=False)
    if opened.problem:
        complain(f"{opened.problem}.")
