"""Problem documents: errors of the server as JSON.

No text depends on a record. What a refusal adds (a sentence about the question, amounts of budget) is computed from the
question, the public facts and the ledger before any record is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.text import Message


@dataclass(frozen=True, slots=True)
class Reason:
    """A kind of refusal: its name on the wire, and the status."""

    code: str
    status: int

    @property
    def message(self) -> str:
        return str(Message(f"refusal-{self.code.replace('_', '-')}"))


REASONS = {
    code: Reason(code, status)
    for code, status in (
        ("bad_question", 422),
        ("bad_request", 422),
        ("not_json", 400),
        ("no_token", 401),
        ("not_allowed", 403),
        ("overdrawn", 403),
        ("full", 403),
        ("not_found", 404),
        ("bad_method", 405),
        ("key_reused", 409),
        ("too_large", 413),
        ("too_many", 429),
        ("failed", 500),
        ("busy", 503),
        ("late", 503),
        ("closed", 503),
    )
}


class Problem(Exception):  # noqa: N818
    """A request that ends with a refusal.

    Attributes:
        code: one of `REASONS`.
        detail: public particulars; a message among them is rendered last.
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
        detail = {name: str(one) if isinstance(one, Message) else one for name, one in self.detail.items()}
        return {"error": self.code, "message": REASONS[self.code].message, **detail}
