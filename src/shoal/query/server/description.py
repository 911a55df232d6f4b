"""The OpenAPI description of the server, and its health check."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from shoal.ledger import GroupCommit, Ledger
from shoal.query.server.answers import MOST_AT_ONCE
from shoal.query.server.guard import REASONS, warn
from shoal.query.spec import KINDS

_AMOUNT = r"^\d+/\d+$"
_HASH = r"^[0-9a-f]{64}$"
_EPSILON = {
    "anyOf": [{"type": "string", "maxLength": 200}, {"type": "number"}],
    "description": 'Privacy budget; decimal text such as "0.5" is exact.',
}
_SHAPES: dict[str, dict[str, Any]] = {
    "epsilon": _EPSILON,
    "scale": _EPSILON | {"description": "Scale of the Laplace noise, in units of the answer."},
    "where": {
        "type": "object",
        "description": 'A condition: {"column": "age", "op": ">=", "value": 30}, {"and": [...]} or {"or": [...]}.',
    },
    "bound": {
        "type": "object",
        "description": 'The largest contribution of a unit to a sum, whose own sum is clipped: {"sum": 1000}.',
    },
    "query": {"type": "object", "description": "A query without its epsilon."},
    "key": {
        "type": "object",
        "description": 'The person to ask about: {"column": "person_id", "value": "17"}.',
    },
    "prior": {"type": "object", "description": "Prior distribution of the answer."},
    "edges": {"type": "array", "description": "Increasing edges of the cells."},
    "cells": {"type": "array", "description": "Values to count."},
    "columns": {"type": "array"},
    "statistics": {"type": "array"},
}
_OLDEST_SECONDS = 1.0
_PATIENCE_SECONDS = 3.0
# how long one failed transaction counts against the database; the next question finds out whether it still fails
_FAILED_SECONDS = 10.0


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProblemBody(BaseModel):
    """The reason for a refusal."""

    model_config = ConfigDict(extra="allow")

    error: str = Field(json_schema_extra={"enum": list(REASONS)})
    message: str


class HealthOperation(Strict):
    status: str = Field(json_schema_extra={"enum": ["ok"]})
    version: str


class Status(Strict):
    """For the custodian: whether answers are sent on time."""

    answers: int
    late: int
    analysts: int
    pace: float
    timing: str = Field(json_schema_extra={"enum": ["holds", "lapsed", "none"]})
    faults: int
    last_fault: str | None


class DatasetNames(Strict):
    datasets: list[str]


class Dataset(Strict):
    """Public facts about a data set."""

    dataset: str
    description: str
    facts: dict[str, Any]
    kinds: list[str]


class ReceiptBody(Strict):
    """The charge for an answer. Keep `head` as a checkpoint, to verify later that the ledger has lost no entries."""

    dataset: str
    charge: int
    added: str = Field(pattern=_AMOUNT)
    repeated: bool
    head: str = Field(pattern=_HASH)


class AnswerBody(Strict):
    """The answer with its statement, and the receipt."""

    answer: dict[str, Any]
    receipt: ReceiptBody


class BatchBody(Strict):
    """One result per query, in order: an answer with its receipt, or a refusal."""

    results: list[AnswerBody | ProblemBody]


class PreviewBody(Strict):
    """The cost of a query, the accuracy of its answer, and whether the analyst's own privacy budget allows it.

    Nothing here depends on the queries or spending of others.
    """

    preview: dict[str, Any]
    allowed: bool
    adds: str | None = Field(pattern=_AMOUNT)


class OwnBudget(Strict):
    ceiling: str | None
    spent: str
    remaining: str | None
    decimal: dict[str, str | None]


class BudgetBody(Strict):
    """The privacy budget used and remaining, as exact fractions and as decimals; null if there is no ceiling."""

    dataset: str
    neighbours: str
    ceiling: str | None
    spent: str
    remaining: str | None
    delta_ceiling: str
    delta_spent: str
    decimal: dict[str, str | None]
    yours: OwnBudget


class OwnAnswer(Strict):
    """An earlier query; without an answer if the server was interrupted, until it is repeated with the same key."""

    charge: int
    at: str
    key: str
    question: dict[str, Any]
    added: str
    answer: dict[str, Any] | None
    head: str


class OwnAnswers(Strict):
    answers: list[OwnAnswer]
    next: int | None


class LedgerBody(BaseModel):
    """For the custodian: the privacy budget used by everyone."""

    dataset: str
    entries: int
    head: str
    terms: dict[str, Any]
    spent: str
    delta_spent: str
    remaining: str | None
    decimal: dict[str, str | None]
    analysts: dict[str, str]
    unanswered: int


def question_schema() -> dict[str, Any]:
    """A query of any kind, with the options of that kind."""
    kinds = []
    for name, kind in KINDS.items():
        paid = () if name == "protocol-1" else ("epsilon",)
        required = ("kind", *paid, *kind.required)
        properties: dict[str, Any] = {"kind": {"const": name}}
        for option in (*paid, *kind.required, *kind.optional):
            properties[option] = _SHAPES.get(option, {})
        kinds.append(
            {
                "title": name,
                "type": "object",
                "properties": properties,
                "required": list(required),
                "additionalProperties": False,
            }
        )
    return {"oneOf": kinds}


def questions_schema() -> dict[str, Any]:
    """Several queries in one request."""
    return {
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "items": {"type": "object"},
                "minItems": 1,
                "maxItems": MOST_AT_ONCE,
            }
        },
        "required": ["questions"],
        "additionalProperties": False,
    }


def refusals(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The refusals of an operation that needs a token, by status."""
    general = ("bad_request", "no_token", "not_allowed", "too_large", "too_many", "failed", "closed")
    return only(*codes, *general)


def only(*codes: str) -> dict[int | str, dict[str, Any]]:
    """These refusals, by status."""
    texts: dict[int, list[str]] = {}
    for reason in (REASONS[code] for code in dict.fromkeys(codes)):
        texts.setdefault(reason.status, []).append(f"`{reason.code}`: {reason.message}")
    return {status: {"model": ProblemBody, "description": " ".join(found)} for status, found in texts.items()}


class Health:
    """Checks the database, at most once per interval: the health page needs no token."""

    def __init__(self, ledger: Ledger, group: GroupCommit | None = None) -> None:
        self._ledger, self._group = ledger, group
        self._looked = float("-inf")
        self._alive = False
        self._looking: asyncio.Task[None] | None = None

    async def alive(self) -> bool:
        """Whether the ledger can be read, has free disk space, and had no recent write error."""
        if time.monotonic() - self._looked >= _OLDEST_SECONDS:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            try:
                await asyncio.wait_for(asyncio.shield(self._looking), _PATIENCE_SECONDS)
            except TimeoutError:
                return False
        return self._alive

    async def _look(self) -> None:
        try:
            await asyncio.to_thread(self._ledger.alive)
            self._alive = self._group is None or self._group.failed < time.monotonic() - _FAILED_SECONDS
        except Exception as error:
            # whatever the error is, questions would meet it too
            self._alive = False
            warn("ledger cannot be used", failure=type(error).__name__)
        self._looked = time.monotonic()
