"""`shoal ask`: a question and a token go to a query server, its answer with what is promised about it is printed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.output import messages, print_json, results
from shoal.errors import InputError, OptionError
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.query.client import Client, Reply


def ask(
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", metavar="DATASET")],
    question: Annotated[
        str | None,
        typer.Argument(
            help="A kind (count, mean, ...) with options, or a question as JSON.", metavar="QUESTION"
        ),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="What the answer may cost.")] = None,
    column: Annotated[str | None, typer.Option(help="The column that is asked about.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only records with this, as 'age>=30' or JSON; repeat it for several."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Another option of the question, as name=value; values may be JSON."),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what it would cost.")] = False,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key pays once.")] = None,
    url: Annotated[
        str | None, typer.Option(help="Where the server is; default: SHOAL_URL or http://127.0.0.1:8200.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token; default: the token in SHOAL_TOKEN.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything the server said.")] = False,
) -> None:
    """Ask a query server. Without a question: what is public about the data set, and what is left of the budget.

    Examples:

      shoal ask survey --token-file shoal-served/analyst.token

      shoal ask survey mean --column income --epsilon 0.5

      shoal ask survey count --where 'age>=65' --where region==North --epsilon 0.1

      shoal ask survey '{"kind": "quantile", "column": "income", "q": "0.5", "epsilon": "0.5"}'
    """
    from shoal.query.client import Client

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
            _say(reply, as_json)


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
    """The question as the server reads it, from JSON or from words."""
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
    console.print(f"Questions: {', '.join(described['kinds'])}.", markup=False)
    own = budget["yours"]
    console.print(
        f"ε spent by you: {_short(own['spent'])}; left for you: {_short(own['remaining'])}.", markup=False
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


def _say(reply: Reply, as_json: bool) -> None:
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
        f"Charge {reply.receipt['charge']}, ε {_short(reply.receipt['added'])} added; head {reply.receipt['head']}",
        markup=False,
        style="dim",
    )


def _say_error(error: Any) -> None:
    if "interval_95" in error and isinstance(error["interval_95"], int | float):
        results().print(f"Within ±{error['interval_95']:.6g} of the truth, 95 times in 100.", markup=False)


def _short(text: str | None) -> str:
    """An exact fraction as a reader wants it."""
    from fractions import Fraction

    from shoal.decimals import decimal_text

    return "unlimited" if text is None else decimal_text(Fraction(text))
