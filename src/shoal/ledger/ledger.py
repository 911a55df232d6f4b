"""The ledger: decide operations and write them in one durable transaction, singly or in groups.

A charge is decided on totals read inside the transaction that writes it. So two requests can never both be granted a
budget that covers only one of them, across processes, threads and machines.

A commit waits for the disk. Operations that arrive meanwhile are written together by the next one, so that many
concurrent requests cost little more than one.
"""

from __future__ import annotations

import datetime
import math
import queue
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shoal.columns import same_unit
from shoal.errors import OptionError, needs_extra
from shoal.ledger.account import (
    Account,
    Balance,
    Charge,
    Deposit,
    KeyReusedError,
    Kind,
    LedgerEntry,
    LedgerError,
    Operation,
    QuotaError,
    Receipt,
    Register,
    Standing,
    Terms,
    UnpricedError,
    canonical,
    rounded_up,
    seal,
)
from shoal.text import Message

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from shoal.ledger.store import EntryStore


_NOTHING = Fraction(0)
# How often a price is recomputed because of concurrent requests.
_TRIES = 5
_Result = TypeVar("_Result")
Then = Callable[[Receipt | Exception], None]
_LARGEST_GROUP = 512


def open_ledger(address: str | Path, *, create: bool = True, check: bool = True) -> Ledger:
    """Open a ledger, creating it if necessary.

    Args:
        address: a path (SQLite), or `postgresql://user@host/database`.
        create: create the file if it does not exist.
        check: verify all chains now; otherwise each is verified at its first use.

    Guarantee:
        Granted charges stay within every ceiling, are on disk before they are granted, and are never given back.

    Cost:
        All entries are read once and their chain is verified; about 20 µs each.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_ledger(folder.name + "/ledger.sqlite")
    >>> ledger.register(Register("survey", "replace-one", ceiling=Fraction(1)))
    >>> ledger.charge(Charge("survey", "ada", '{"kind":"count"}', Fraction(3, 4))).added
    Fraction(3, 4)
    >>> ledger.charge(Charge("survey", "ada", '{"kind":"count"}', Fraction(1, 2)))
    Traceback (most recent call last):
    shoal.ledger.account.OverdrawnError: the privacy budget of the data set does not allow this: epsilon 0.5 \
was requested, but only 0.25 remains (short by 0.25).
    >>> ledger.close(); folder.cleanup()
    """
    with needs_extra("server", "the ledger needs"):
        from shoal.ledger.store import EntryStore

        store = EntryStore(address, create=create)  # loads the database driver
    ledger = Ledger(store)
    if check:
        ledger.refresh()
    return ledger


class Ledger:
    """An open ledger; safe to share between threads, and between processes that each open it."""

    def __init__(self, store: EntryStore) -> None:
        self.store = self._store = store
        self._accounts: dict[str, Account] = {}
        # the newest entry ever seen on disk, by data set: a ledger without it is a different ledger
        self._seen: dict[str, tuple[int, str]] = {}
        self._lock = threading.Lock()

    def commit(self, operations: Sequence[Operation]) -> list[Receipt | Exception]:
        """Decide and write several operations in order, in one transaction.

        Returns:
            One result each: a receipt, or the error that refuses it; a refusal does not affect the others.

        Raises:
            LedgerError: the ledger cannot be trusted; nothing was written.
        """
        datasets = sorted({operation.dataset for operation in operations})
        with self._lock:
            try:
                with self._store.writing(datasets) as connection:
                    work = {
                        name: _AccountWork(self._store, connection, self._caught_up(connection, name))
                        for name in datasets
                    }
                    for name in datasets:
                        work[name].look_up([o for o in operations if o.dataset == name])
                    results = [work[operation.dataset].carry_out(operation) for operation in operations]
                    for name in datasets:
                        self._store.append(connection, work[name].written)
            except BaseException:
                # the state in memory may include entries that were never written: read it again
                for name in datasets:
                    self._accounts.pop(name, None)
                raise
            for name in datasets:
                self._seen[name] = (self._accounts[name].number, self._accounts[name].head)
        return results

    def register(self, terms: Register) -> None:
        """Fix the terms of a data set; repeating the same terms changes nothing."""
        self._one(terms)

    def bound_key(self, dataset: str, proposed: bytes | None = None) -> bytes | None:
        """The key that orders the rows of each unit of a data set, so that releases and answers use the same rows.

        Args:
            proposed: stored as the key if there is none yet; without it, the result may be None.
        """
        with self._lock:
            if proposed is None:
                with self._store.reading() as connection:
                    found = self._store.bound_key(connection, dataset, None)
            else:
                with self._store.writing(()) as connection:
                    found = self._store.bound_key(connection, dataset, proposed.hex())
        return None if found is None else bytes.fromhex(found)

    def charge(self, charge: Charge) -> Receipt:
        """Spend, durably, before any data is read. Raises the error of a refusal."""
        return self._with_price(charge, self._one)

    def quote(self, charge: Charge) -> Fraction:
        """What a charge would add to the total of its analyst. Writes nothing.

        It depends only on the terms and this analyst's own charges, so it reveals nothing about other analysts.

        Raises:
            OverdrawnError: it would exceed a ceiling even if nobody else had spent anything.
        """
        with self._lock, self._store.reading() as connection:
            self._caught_up(connection, charge.dataset)
        priced = self.priced(charge, own=True)
        with self._lock:
            account = self._accounts[charge.dataset]
            try:
                return account.permit_own(account.in_currency(priced))
            except UnpricedError:
                return account.permit_own(account.in_currency(replace(charge, joint=None)))

    def priced(self, charge: Charge, *, own: bool = False) -> Charge:
        """The charge with the current price of its family, computed without blocking others.

        Args:
            charge: the charge to price.
            own: price it together with charges of its own analyst only.
        """
        if charge.joint is None:
            return charge
        with self._lock:
            account = self._accounts.get(charge.dataset) or Account(charge.dataset)
            balances = [account.analysts.get(charge.analyst, Balance())] + [account.total] * (not own)
            together = {(*one.family(charge.family)[0], charge.content) for one in balances}
        return replace(charge, prices={found: rounded_up(charge.joint(found)) for found in together})

    def _with_price(self, charge: Charge, work: Callable[[Charge], _Result]) -> _Result:
        """Do something with a charge once it is priced; after repeated interference, at its separate price."""
        for _ in range(_TRIES):
            try:
                return work(self.priced(charge))
            except UnpricedError:
                continue
        return work(replace(charge, joint=None))

    def deposit(self, answer: Deposit) -> Receipt:
        """Store an answer before it is sent; the receipt holds the authoritative one, which is the first."""
        return self._one(answer)

    def standing(self, dataset: str) -> Standing:
        """The current spent and remaining budget of a data set."""
        with self._lock, self._store.reading() as connection:
            return self._caught_up(connection, dataset).standing()

    def refresh(self) -> None:
        """Read all chains to their ends, verifying every new entry."""
        with self._lock, self._store.reading() as connection:
            for name in self._store.datasets(connection):
                self._caught_up(connection, name)

    def datasets(self) -> list[str]:
        with self._store.reading() as connection:
            return self._store.datasets(connection)

    def entries(self, dataset: str, first: int = 1) -> Iterator[LedgerEntry]:
        """The entries of a data set, oldest first."""
        with self._store.reading() as connection:
            yield from self._store.entries(connection, dataset, first)

    def answers(
        self, dataset: str, analyst: str, after: int = 0, limit: int = 100
    ) -> list[tuple[LedgerEntry, LedgerEntry | None]]:
        """An analyst's charges after a number with their answers, None if not stored."""
        return self.page(dataset, analyst, after, limit)[0]

    def page(
        self, dataset: str, analyst: str, after: int, limit: int, most_bytes: int | None = None
    ) -> tuple[list[tuple[LedgerEntry, LedgerEntry | None]], bool]:
        """The same, and whether there may be more.

        Args:
            dataset: the data set.
            analyst: the analyst who asked.
            after: return charges after this number.
            limit: maximum number of charges.
            most_bytes: maximum total length of the contents; the first charge is always included.
        """
        with self._store.reading() as connection:
            sizes = self._store.sizes_of_analyst(connection, dataset, analyst, after, limit)
            fitting = len(sizes)
            if most_bytes is not None and sizes:
                fitting = max(bisect_right(list(accumulate(size for _, size in sizes)), most_bytes), 1)
            charges = self._store.of_analyst(connection, dataset, analyst, after, fitting)
            stored = self._store.answers(connection, dataset, [charge.number for charge in charges])
        found = [(charge, stored.get(charge.number)) for charge in charges]
        return found, bool(found) and (fitting < len(sizes) or fitting == limit)

    def alive(self) -> None:
        """Raise if the ledger cannot be used: no database, a replaced file, or a full disk."""
        with self._store.reading() as connection:
            self._store.datasets(connection)
        self._store.check_room()

    def heads(self) -> dict[str, tuple[int, str]]:
        """The number and the hash of the newest entry this process has seen, by data set."""
        with self._lock:
            return dict(self._seen)

    def close(self) -> None:
        self._store.close()

    def _one(self, operation: Operation) -> Receipt:
        (result,) = self.commit([operation])
        if isinstance(result, Exception):
            raise result
        return result

    def _caught_up(self, connection: Connection, dataset: str) -> Account:
        """The account including everything written by other processes meanwhile; the caller holds the lock."""
        account = self._accounts.get(dataset) or Account(dataset)
        number, head = self._seen.get(dataset, (0, ""))
        entries = self._store.entries(connection, dataset, max(account.number, 1))
        there = number == 0
        if account.number:
            first = next(entries, None)
            there = first is not None and first.hash == head
        for entry in entries:
            account.follow(entry)
            there = there or (entry.number, entry.hash) == (number, head)
        if not there:
            self._accounts.pop(dataset, None)
            raise LedgerError("ledger-data-set-lost-entries-were", dataset=dataset)
        self._accounts[dataset] = account
        self._seen[dataset] = (account.number, account.head)
        return account


class _AccountWork:
    """The part of one transaction that concerns one data set."""

    def __init__(self, store: EntryStore, connection: Connection, account: Account) -> None:
        self._store, self._connection, self._account = store, connection, account
        self._by_key: dict[tuple[str, str], LedgerEntry] = {}
        self._answers: dict[int, LedgerEntry] = {}
        self._now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        self.written: list[LedgerEntry] = []

    def look_up(self, operations: Sequence[Operation]) -> None:
        """Read, at once, what earlier transactions stored about these operations."""
        keys = [o.key for o in operations if isinstance(o, Charge) and o.key]
        for entry in self._store.by_key(self._connection, self._account.dataset, keys):
            self._by_key[entry.analyst, entry.key] = entry
        charges = [entry.number for entry in self._by_key.values()]
        charges += [
            o.charge
            for o in operations
            if isinstance(o, Deposit) and o.charge not in self._account.unanswered
        ]
        self._answers = self._store.answers(self._connection, self._account.dataset, charges)

    def carry_out(self, operation: Operation) -> Receipt | Exception:
        """Write the requested operation, or return the error. A failure does not affect the others of its group."""
        before = len(self.written)
        try:
            if isinstance(operation, Charge):
                return self._charge(operation)
            if isinstance(operation, Deposit):
                return self._deposit(operation)
            return self._register(operation)
        except Exception as refusal:
            if len(self.written) > before:
                raise  # half done: roll back the whole transaction
            return refusal

    def _register(self, wanted: Register) -> Receipt:
        terms, now = Terms.of(wanted), self._account.terms
        if now is not None and now.adjacency != terms.adjacency:
            raise OptionError(
                "data-set-registered-neighbour-relation-cannot",
                dataset=wanted.dataset,
                neighbours=now.adjacency,
                neighbours_2=terms.adjacency,
            )
        if now is not None and (terms.unit is None or same_unit(now.unit, terms.unit)):
            terms = replace(terms, unit=now.unit)
        if now is not None and now.unit not in (None, terms.unit):
            raise OptionError(
                "data-set-registered-budget-per-cannot",
                dataset=wanted.dataset,
                unit=now.unit,
                unit_2=terms.unit,
            )
        if now is not None and now.currency != terms.currency:
            raise OptionError(
                "data-set-registered-budget-cannot-change",
                dataset=wanted.dataset,
                currency=now.currency,
                currency_2=terms.currency,
            )
        if terms != now:
            self._write("terms", canonical(terms.to_dict()))
        return Receipt(wanted.dataset, self._account.number, _NOTHING, terms == now, None, self._account.head)

    def _charge(self, wanted: Charge) -> Receipt:
        earlier = self._by_key.get((wanted.analyst, wanted.key)) if wanted.key else None
        if earlier is not None:
            if (earlier.content, earlier.kind) != (wanted.content, wanted.kind):
                raise KeyReusedError
            return self._receipt(earlier, repeated=True)
        if min(wanted.epsilon, wanted.delta, wanted.rho or _NOTHING) < 0:
            raise OptionError("charge-not-negative")
        wanted = self._account.in_currency(wanted)
        taken = self._account.stored.get(wanted.analyst, 0) + len(wanted.content) + wanted.size
        if wanted.room is not None and taken > wanted.room:
            raise QuotaError(wanted.room)
        added, added_analyst = self._account.permit(wanted)
        entry = self._write(
            wanted.kind,
            wanted.content,
            analyst=wanted.analyst,
            key=wanted.key,
            epsilon=wanted.epsilon,
            delta=wanted.delta,
            added=added,
            added_analyst=added_analyst,
            person=wanted.person,
            family=wanted.family,
        )
        if wanted.key:
            self._by_key[wanted.analyst, wanted.key] = entry
        return self._receipt(entry, repeated=False)

    def _deposit(self, wanted: Deposit) -> Receipt:
        if wanted.charge in self._account.unanswered:
            self._answers[wanted.charge] = self._write(
                "answer", wanted.content, analyst=wanted.analyst, refers=wanted.charge
            )
        answer = self._answers.get(wanted.charge)
        if answer is None:
            raise LedgerError("answer-came-without-charge")
        return Receipt(wanted.dataset, wanted.charge, _NOTHING, False, answer.content, answer.hash)

    def _receipt(self, charge: LedgerEntry, *, repeated: bool) -> Receipt:
        answer = self._answers.get(charge.number)
        return Receipt(
            charge.dataset,
            charge.number,
            charge.added,
            repeated,
            None if answer is None else answer.content,
            charge.hash if answer is None else answer.hash,
        )

    def _write(
        self,
        kind: Kind,
        content: str,
        *,
        analyst: str = "",
        key: str = "",
        refers: int | None = None,
        epsilon: Fraction = _NOTHING,
        delta: Fraction = _NOTHING,
        added: Fraction = _NOTHING,
        added_analyst: Fraction = _NOTHING,
        person: tuple[str, str] | None = None,
        family: str = "",
    ) -> LedgerEntry:
        account = self._account
        values = (
            account.dataset,
            account.number + 1,
            kind,
            self._now,
            analyst,
            key,
            refers,
            epsilon,
            delta,
            added,
            added_analyst,
            person,
            family,
            content,
            account.head,
        )
        entry = LedgerEntry(*values, hash=seal(list(values)))
        account.take(entry)
        self.written.append(entry)
        return entry


class GroupCommit:
    """A thread that writes submitted operations in order of arrival.

    Args:
        ledger: the ledger to write to.
        noted: called after each transaction, before any of its results is returned.
        after: called after each transaction, when all of its results were returned.

    Attributes:
        failed: time of the last transaction that failed because of the database, not of the ledger's content.
    """

    def __init__(
        self,
        ledger: Ledger,
        noted: Callable[[], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._noted, self._after = noted, after
        self.failed = -math.inf
        self._waiting: queue.SimpleQueue[tuple[Operation, Then] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="shoal-ledger", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation, then: Then) -> None:
        """Queue an operation for writing; `then` gets its result in the writing thread, and must be fast."""
        self._waiting.put((operation, then))

    def call(self, operation: Operation) -> Receipt:
        """Write an operation and wait for the result; a refusal is raised."""
        future: Future[Receipt] = Future()

        def settle(result: Receipt | Exception) -> None:
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.submit(operation, settle)
        return future.result()

    def close(self) -> None:
        """Write the operations submitted so far, then end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        ending = False
        while not ending:
            group: list[tuple[Operation, Then]] = []
            item = self._waiting.get()
            while item is not None:
                group.append(item)
                if len(group) == _LARGEST_GROUP:
                    break
                try:
                    item = self._waiting.get_nowait()
                except queue.Empty:
                    break
            ending = item is None
            if group:
                self._write(group)

    def _write(self, group: list[tuple[Operation, Then]]) -> None:
        results: list[Receipt | Exception]
        try:
            results = self._ledger.commit([operation for operation, _ in group])
            self.failed = -math.inf
            if self._noted is not None:
                self._noted()
        except Exception as error:
            # no result of this transaction is returned, and waiting callers must learn that
            results = [error] * len(group)
            if not isinstance(error, LedgerError):
                self.failed = time.monotonic()
        for (_, then), result in zip(group, results, strict=True):
            then(result)
        if self._after is not None:
            self._after()


_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class ChainFinding:
    """A data set with an intact chain, and the known heads it contains."""

    standing: Standing
    heads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """Findings of an examination: what is in order, and all problems."""

    findings: list[ChainFinding] = field(default_factory=list)
    problems: list[Message] = field(default_factory=list)


def verify(ledger: Ledger, heads: Sequence[str] = ()) -> list[ChainFinding]:
    """Check the database, then verify every chain from its start: every hash, every amount, every ceiling.

    Args:
        ledger: opened with `check=False` if it may be broken.
        heads: hashes of entries that must be present, kept from an earlier check or taken from answers.

    Guarantee:
        An altered, removed or inserted entry breaks the chain, unless all later entries were recomputed. That,
        and a restored old backup, is detected by any head from a later time: a known head that is in no chain is an
        error.

    Raises:
        LedgerError: the first problem.
    """
    found = _examined(ledger.store, heads)
    if found.problems:
        raise LedgerError.saying(found.problems[0])
    return found.findings


def examine(address: str | Path, heads: Sequence[str] = (), digest: str | None = None) -> Examination:
    """The same for a ledger with any kind of damage: opened read-only, and all problems are reported.

    Args:
        address: address of the ledger, see `open_ledger`.
        heads: hashes of entries that must be present.
        digest: hash of the whole file when it was last closed, stored with `heads` as the newest; it detects
            damage outside entries.

    Raises:
        InputError: the ledger does not exist.
    """
    from shoal.ledger.store import EntryStore, digest_of

    store = EntryStore(address, create=False, looking=True)
    path = Path(store.url.database or "") if store.sqlite else None
    # before the database opens its file, which might repair it
    now = None if path is None or digest is None else digest_of(path)
    try:
        found = _examined(store, heads)
    finally:
        store.close()
    newest = {finding.standing.head for finding in found.findings}
    if (
        not found.problems
        and now is not None
        and newest == {_plain(head) for head in heads}
        and now != digest
    ):
        found.problems.append(Message("ledger-file-changed"))
    return found


def _examined(store: EntryStore, heads: Sequence[str]) -> Examination:
    found, wanted = Examination(), {_plain(head) for head in heads}
    for problem in _attempt(found, Message("look-database"), lambda: _damage(store)) or ():
        found.problems.append(Message.of("ledger-damaged", reason=problem))
    names = _attempt(found, Message("look-data-sets"), lambda: _names(store)) or []
    for name in names:
        what = Message.of("look-data-set", dataset=name)
        finding = _attempt(found, what, lambda name=name: _follow(store, name, wanted))  # type: ignore[misc]
        if finding is not None:
            found.findings.append(finding)
    if not names and not found.problems:
        found.problems.append(Message("ledger-without-entries"))
    missing = wanted.difference(*(finding.heads for finding in found.findings))
    if missing:
        found.problems.append(Message.of("head-not-in-ledger", head=min(missing)))
    return found


def _attempt(found: Examination, what: Message, look: Callable[[], _Found]) -> _Found | None:
    """The result of a check; any failure becomes a problem."""
    try:
        return look()
    except LedgerError as error:
        found.problems.append(error.message)
    except Exception as error:
        # a damaged file can make any reader fail, in any way
        found.problems.append(Message.of("ledger-unreadable", what=what, reason=type(error).__name__))
    return None


def _damage(store: EntryStore) -> list[Message]:
    with store.reading() as connection:
        return store.damage(connection)


def _names(store: EntryStore) -> list[str]:
    with store.reading() as connection:
        return sorted({*store.datasets(connection), *store.registered(connection)})


def _follow(store: EntryStore, dataset: str, wanted: set[str]) -> ChainFinding:
    account = Account(dataset)
    seen = tuple(entry.hash for entry in _followed(account, store) if entry.hash in wanted)
    if not account.number:
        raise LedgerError("data-set-lost-all-entries-restore", dataset=dataset)
    return ChainFinding(account.standing(), seen)


def _followed(account: Account, store: EntryStore) -> Iterator[LedgerEntry]:
    with store.reading() as connection:
        for entry in store.entries(connection, account.dataset):
            account.follow(entry)
            yield entry


def _plain(head: str) -> str:
    return head.strip().lower()
