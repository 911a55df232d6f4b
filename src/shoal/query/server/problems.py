"""Everything the server can say no with: a reason comes in, a constant text and status leave.

No text depends on a record. What a refusal adds (a sentence about the question, amounts of budget) is computed from the
question, the public facts and the ledger before any record is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    """A kind of refusal."""

    code: str
    status: int
    message: str


REASONS = {
    reason.code: reason
    for reason in (
        Reason("bad_question", 422, "The question cannot be asked like this."),
        Reason("bad_request", 422, "The request is not what the description of this server asks for."),
        Reason("not_json", 400, "The body is not a JSON object."),
        Reason("no_token", 401, "A valid token is needed: Authorization: Bearer TOKEN."),
        Reason("not_allowed", 403, "This token does not allow that."),
        Reason("overdrawn", 403, "The budget does not allow this question. Nothing was spent."),
        Reason("full", 403, "What is stored under this name takes all the room it may. Nothing was spent."),
        Reason("not_found", 404, "There is no such data set or page."),
        Reason("bad_method", 405, "This page does not take that method."),
        Reason("key_reused", 409, "This idempotency key was used for another question."),
        Reason("too_large", 413, "The request is too large."),
        Reason("too_many", 429, "Too many requests: wait and try again."),
        Reason("failed", 500, "The question could not be answered. What was charged stays charged."),
        Reason("busy", 503, "The server is busy. Nothing was spent; try again later."),
        Reason(
            "late", 503, "The answer is not ready. Ask again with the same idempotency key; it is paid once."
        ),
        Reason("closed", 503, "The ledger cannot be used, so nothing is answered."),
    )
}


class Problem(Exception):  # noqa: N818
    """A request that ends with a refusal.

    Attributes:
        code: one of `REASONS`.
        detail: public particulars.
        headers: of the response.
    """

    def __init__(
        self, code: str, detail: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code)
        self.code, self.detail, self.headers = code, dict(detail or {}), dict(headers or {})

    @property
    def status(self) -> int:
        return REASONS[self.code].status

    def body(self) -> dict[str, Any]:
        return {"error": self.code, "message": REASONS[self.code].message, **self.detail}
