"""Reading and pricing questions: from a JSON body to a charge for the ledger and a function that answers.

Everything here works on the public facts of a data set; only the function that is handed out touches its records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from shoal.decimals import decimal_text
from shoal.errors import OptionError, ShoalError
from shoal.ledger import Charge
from shoal.ledger.entry import canonical, rounded_up
from shoal.noise.scale import shown
from shoal.query.composition import charge as price
from shoal.query.composition import protocol_1_total
from shoal.query.effort import effort
from shoal.query.server.folder import Served
from shoal.query.server.problems import Problem
from shoal.query.spec import Query, answer, parse, preview
from shoal.text import Message

# Protocol 1 of the thesis: questions with the same noise are priced by their joint sensitivity.
_TOGETHER = "protocol-1"
_QUICK_BYTES = 2048
_STATEMENT_BYTES, _CELL_BYTES = 1500, 40
MOST_AT_ONCE = 100
# does the pricing of questions that are priced together, which can take long, and counts the time
Meter = Callable[[Callable[[], Fraction]], Fraction]


def _plainly(work: Callable[[], Fraction]) -> Fraction:
    return work()


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A question that was understood.

    Attributes:
        charge: what it costs, and whom it is charged to.
        seconds: of CPU that it takes at worst, from public facts.
        answer: computes the answer from the records with the system's entropy.
        preview: what can be said before paying.
    """

    charge: Charge
    seconds: float
    answer: Callable[[], dict[str, Any]]
    preview: Callable[[], dict[str, Any]]


def understand(body: bytes, served: Served, analyst: str, key: str, meter: Meter = _plainly) -> Question:
    """Read and price a question; `meter` does the pricing that comes later.

    Raises:
        Problem: it is not JSON, or cannot be asked; the reason is computed from public facts alone.
    """
    return _priced(_document(body), served, analyst, key, meter)


def understand_many(
    body: bytes, served: Served, analyst: str, key: str, meter: Meter = _plainly
) -> list[Question | Problem]:
    """Read and price several questions; the key of each is that of the request with its place.

    Raises:
        Problem: it is not a list of questions.
    """
    document = _document(body)
    questions = document.get("questions")
    if (
        set(document) != {"questions"}
        or not isinstance(questions, list)
        or not 1 <= len(questions) <= MOST_AT_ONCE
    ):
        reason = Message.of("questions-not-list", most=MOST_AT_ONCE)
        raise Problem("bad_question", {"reason": reason})
    found: list[Question | Problem] = []
    for place, question in enumerate(questions):
        try:
            found.append(_priced(question, served, analyst, f"{key}:{place}" if key else "", meter))
        except Problem as problem:
            found.append(problem)
    return found


def _priced(document: Any, served: Served, analyst: str, key: str, meter: Meter) -> Question:
    facts = served.table.facts
    try:
        query = parse(document, facts)
        cost = price(query, facts)
        _not_too_little(cost.epsilon, served.settings.least_epsilon)
        content = canonical(query.to_dict())
    except ShoalError as error:
        raise Problem("bad_question", {"reason": error.message}) from None
    together = query.kind == _TOGETHER
    return Question(
        Charge(
            served.name,
            analyst,
            content,
            cost.epsilon,
            cost.delta,
            key,
            person=cost.person,
            family=_TOGETHER if together else "",
            joint=(lambda contents: meter(lambda: _joint(served)(contents))) if together else None,
            room=served.settings.most_bytes,
            size=len(content) + _answer_bytes(query),
        ),
        effort(query, served.public_rows),
        lambda: answer(query, served.table).to_dict(),
        lambda: preview(query, facts),
    )


def _not_too_little(epsilon: Fraction, least: Fraction) -> None:
    """Whoever asks for next to nothing may ask for ever; what is public is free."""
    if 0 < epsilon < least:
        raise OptionError(
            "question-costs-least-here", least=decimal_text(least), epsilon=decimal_text(rounded_up(epsilon))
        )


def _answer_bytes(query: Query) -> int:
    """About how long the answer will be: statement, and a name and a number for each cell."""
    inner = query.options.get("query", query.options)
    cells = len(inner.get("edges", ())) + len(inner.get("cells", ()))
    return _STATEMENT_BYTES + _CELL_BYTES * cells


@lru_cache(maxsize=64)
def _joint(served: Served) -> Callable[[Sequence[str]], Fraction]:
    """The price of several questions together, from the texts that the ledger keeps."""
    facts = served.table.facts

    @lru_cache(maxsize=1024)
    def known(content: str) -> Query:
        return parse(json.loads(content), facts)

    return lambda contents: protocol_1_total([known(content) for content in contents], facts)


def quick(body: bytes) -> bool:
    """Whether a question can be read at once; a long one, or a prior to be computed, would keep others waiting."""
    return len(body) <= _QUICK_BYTES and b"prior" not in body


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_once_each)
    except OptionError as error:
        raise Problem("bad_question", {"reason": error.message}) from None
    except (ValueError, RecursionError):
        raise Problem("not_json") from None
    if not isinstance(document, dict):
        raise Problem("not_json")
    return document


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are there once: two readers could take others for two questions."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise OptionError("key-there-twice", key=shown(key))
        found[key] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
