"""Client of the query server: ask questions and read budgets from Python.

Needs httpx, which comes with the extra `server`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from shoal.errors import InputError, OptionError, ShoalError, needs_extra
from shoal.numbers import decimal_text
from shoal.text import Flag, Message, capital

if TYPE_CHECKING:
    import httpx

_RETRIED = (429, 502, 503, 504)


class RefusedError(ShoalError):
    """A refusal by the server.

    Attributes:
        code: the server's short name for the reason, such as "overdrawn".
        detail: the complete explanation.
    """

    def __init__(self, status: int, detail: Mapping[str, Any]) -> None:
        self.status, self.detail = status, dict(detail)
        words = [str(detail.get("message", Message.of("server-status", status=status)))]
        if "reason" in detail:
            words.append(capital(str(detail["reason"])))
        if "missing" in detail:
            amounts = {
                key: decimal_text(Fraction(detail[key])) for key in ("requested", "remaining", "missing")
            }
            words.append(str(Message.of("refused-amounts", of=detail["of"], **amounts)))
        super().__init__(str(detail.get("error", status)), words=" ".join(words))

    def rendered(self, flag: Flag | None = None) -> str:
        """The server's message, in its own words rather than those of this version."""
        return str(self.facts["words"])

    @property
    def fix(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as received.

    Attributes:
        value: the noisy answer.
        cost: the amount it added to the total of the data set.
        statement: the guarantee of the answer.
        error: its expected error.
        receipt: number of the charge and head of the ledger; keep the head to verify later that no entries were lost.
        question: the question as the server understood it.
    """

    value: Any
    cost: Fraction
    statement: Mapping[str, Any]
    error: Mapping[str, Any]
    receipt: Mapping[str, Any]
    question: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Reply:
        answer, receipt = body["answer"], body["receipt"]
        return cls(
            answer["value"],
            Fraction(receipt["added"]),
            answer["statement"],
            answer["error"],
            receipt,
            answer["query"],
        )


class Client:
    """A connection to a query server.

    Args:
        url: address of the server, such as "http://127.0.0.1:8200".
        token: created by `shoal token new`.
        retries: how often a question is sent again when the connection breaks or the server is busy. It keeps its
            idempotency key, so it is charged once and gets one answer.
        timeout: seconds to wait for an answer.
        transport: replaces the network, for tests.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        retries: int = 4,
        timeout: float = 60.0,
        transport: Any = None,
    ) -> None:
        with needs_extra("server", "the client needs"):
            import httpx
        self._retries = retries
        headers = {"Authorization": f"Bearer {token}"}
        try:
            self._http: httpx.Client = httpx.Client(
                base_url=url.rstrip("/") + "/v1/",
                headers=headers,
                timeout=timeout,
                transport=transport,
                # reading the certificates takes longer than a question; without https they are not used
                verify=url.lower().startswith("https"),
            )
        except (httpx.InvalidURL, UnicodeEncodeError):
            raise OptionError("not-address-server-token-not", url=url) from None

    def datasets(self) -> list[str]:
        """The data sets that the token gives access to."""
        return list(self._get("datasets")["datasets"])

    def describe(self, dataset: str) -> dict[str, Any]:
        """Public facts about a data set."""
        return self._get(f"datasets/{dataset}")

    def preview(self, dataset: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Preview the cost of a question and the accuracy of its answer; free."""
        return self._send("POST", f"datasets/{dataset}/preview", json=question)

    def ask(self, dataset: str, question: Mapping[str, Any], *, key: str | None = None) -> Reply:
        """Ask a question; its cost is charged.

        Args:
            dataset: name of the data set.
            question: for example `{"kind": "mean", "column": "income", "epsilon": "0.5"}`.
            key: identifies this question; repeat it to get the same answer again without a charge.

        Raises:
            RefusedError: the budget does not allow it, or the question is not valid.
        """
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return Reply.of(self._send("POST", f"datasets/{dataset}/answers", json=question, headers=headers))

    def ask_many(
        self, dataset: str, questions: Sequence[Mapping[str, Any]], *, key: str | None = None
    ) -> list[Reply | RefusedError]:
        """Ask up to 100 questions in one request; each is charged and answered, or refused, separately.

        Args:
            dataset: name of the data set.
            questions: in the order in which they are charged.
            key: identifies this list of questions.
        """
        body = self._send(
            "POST",
            f"datasets/{dataset}/batches",
            json={"questions": [dict(question) for question in questions]},
            headers={"Idempotency-Key": key or uuid.uuid4().hex},
        )
        return [
            Reply.of(result) if "answer" in result else RefusedError(200, result)
            for result in body["results"]
        ]

    def answers(self, dataset: str, *, at_once: int = 100) -> Iterator[dict[str, Any]]:
        """Earlier questions asked under this name with their answers, oldest first; fetched `at_once` at a time."""
        after: int | None = 0
        while after is not None:
            page = self._get(f"datasets/{dataset}/answers", params={"after": after, "limit": at_once})
            yield from page["answers"]
            after = page["next"]

    def budget(self, dataset: str) -> dict[str, Any]:
        """The budget used and remaining."""
        return self._get(f"datasets/{dataset}/budget")

    def ledger(self, dataset: str) -> dict[str, Any]:
        """For custodians: the budget used by everyone, and the head of the ledger."""
        return self._get(f"datasets/{dataset}/ledger")

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, path: str, **more: Any) -> dict[str, Any]:
        return self._send("GET", path, **more)

    def _send(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """Send a request; every request can safely be repeated, questions because of their key."""
        import httpx

        for left in range(self._retries, -1, -1):
            pause = 0.1 * 2 ** (self._retries - left)
            try:
                response = self._http.request(method, path, **more)
            except httpx.HTTPError as error:
                if not left:
                    where = self._http.base_url
                    raise InputError("server-cannot-reached", where=where, reason=error) from None
                time.sleep(pause)
                continue
            if response.status_code in _RETRIED and left:
                time.sleep(_pause_of(response, pause))
                continue
            return _body(response)
        raise AssertionError("unreachable: the last try returns or raises")


def _pause_of(response: httpx.Response, otherwise: float) -> float:
    """How long the server asks to wait, up to a limit."""
    text = response.headers.get("retry-after", "")
    return min(float(text), 30.0) if text.isdigit() else otherwise


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise InputError("what-answers-not-shoal-query-server", url=response.request.url)
    if response.status_code != 200:
        raise RefusedError(response.status_code, body)
    return body
