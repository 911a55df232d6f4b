"""State of the server: tokens, ledger and its checkpoints, free work and recorded faults.

A token holds 256 random bits, so its plain hash cannot be reversed by trying.

A small text file, best kept on another disk, has the latest head of every data set. It is written after each
transaction, before any result of it is sent.

Free work is done by one thread, which takes the tokens in turns, and not by the workers that compute answers: a
client that requests much of it waits, and nobody else does.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from fastapi import Depends, Header, Request
from fastapi import Path as PathParameter
from fastapi.security import HTTPBearer

from shoal.columns import fresh_key
from shoal.errors import InputError, OptionError, OutputError, ShoalError
from shoal.io import dumps, load
from shoal.ledger import Ledger, LedgerError, digest_of, open_ledger, verify
from shoal.query.server.answers import PaidAnswers, Schedule, WorkQueue
from shoal.query.server.description import Health
from shoal.query.server.folder import (
    DATA_SET,
    FAULTS_FILE,
    HEADS_FILE,
    KEY,
    LEDGER_FILE,
    NAME,
    TOKEN_OWNER,
    TOKENS_FILE,
    Served,
    check_earlier_names,
    load_folder,
    plain_name,
)
from shoal.query.server.guard import Limits, RateLimit, RequestProblem, warn, write_log

Role = Literal["holder", "analyst"]
# how long a change of the file may go unnoticed
_LOOK_AGAIN_SECONDS = 1.0
_MOST_DAYS = 36_500
_ALARM_SECONDS = 1.0
_MOST_WAITING = 20
_Result = TypeVar("_Result")
_Piece = tuple[Callable[[], Any], asyncio.Future[Any]]
_SECONDS = 1.0
_CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is stored.

    Attributes:
        id: identifies the token in lists and logs; not secret.
        name: of the user; budgets are kept by this name, so a new token does not bring a new budget.
        role: holders see everyone's spending, analysts only their own.
        hash: of the token's text.
        datasets: the data sets it gives access to; empty for all.
        expires: its expiry time, in UTC; empty for never.
    """

    id: str
    name: str
    role: Role
    hash: str
    created: str
    datasets: tuple[str, ...] = ()
    expires: str = ""

    def opens(self, dataset: str) -> bool:
        return not self.datasets or dataset in self.datasets

    def is_over(self, now: datetime.datetime) -> bool:
        return bool(self.expires) and now >= datetime.datetime.fromisoformat(self.expires)


def new_token(
    path: Path, name: str, role: str, datasets: tuple[str, ...] = (), days: float | None = None
) -> str:
    """Add a token to the file and return its text, which is not stored anywhere; it expires after the given days."""
    plain_name(name, TOKEN_OWNER)
    if role not in get_args(Role):
        raise OptionError("unknown-token-role", option="role", role=role, allowed=tuple(get_args(Role)))
    for dataset in datasets:
        plain_name(dataset, DATA_SET)
    number = secrets.token_hex(4)
    text = f"shoal_{number}_{secrets.token_urlsafe(32)}"
    now = datetime.datetime.now(datetime.UTC)
    if days is not None and not 0 < days <= _MOST_DAYS:
        raise OptionError("token-good-more-than-0-most", most_days=_MOST_DAYS, found=days)
    end = "" if days is None else (now + datetime.timedelta(days=days)).isoformat(timespec="seconds")
    made = now.isoformat(timespec="seconds")
    token = Token(number, name, role, hash_of(text), made, datasets, end)  # type: ignore[arg-type]
    with _changing(path) as tokens:
        tokens.append(token)
    return text


def revoke_token(path: Path, number: str) -> None:
    """Remove a token by its id."""
    with _changing(path) as tokens:
        kept = [token for token in tokens if token.id != number]
        if len(kept) == len(tokens):
            raise OptionError("tokens-there-no-token", number=number)
        tokens[:] = kept


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file; none if there is no file."""
    if not path.exists():
        return []
    entries = load(path, "toml-tokens").get("token", [])
    try:
        return [_new_token(entry) for entry in entries]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError("tokens-file-damaged", path=path) from None


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class TokenBook:
    """The tokens of a running server; rereads the file when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._looked = float("-inf")
        self._by_hash: dict[str, Token] = {}

    def find(self, text: str) -> Token | None:
        """The token with this text, unless it has expired."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_AGAIN_SECONDS:
            self._look()
            self._looked = now
        token = self._by_hash.get(hash_of(text))
        return None if token is None or token.is_over(datetime.datetime.now(datetime.UTC)) else token

    def _look(self) -> None:
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
        except OSError:
            stamp = (0, 0)
        if stamp != self._stamp:
            try:
                self._by_hash = {token.hash: token for token in read_tokens(self._path)}
            except InputError:
                # a file that cannot be read admits nobody
                self._by_hash = {}
            self._stamp = stamp


def _new_token(entry: Any) -> Token:
    role: Any = entry["role"]
    if role not in get_args(Role):
        raise KeyError(role)
    token = Token(
        entry["id"],
        entry["name"],
        role,
        entry["hash"],
        entry["created"],
        tuple(entry.get("datasets", ())),
        entry.get("expires", ""),
    )
    token.is_over(datetime.datetime.now(datetime.UTC))  # an expiry time that cannot be read is found here
    return token


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[list[Token]]:
    """The tokens, for modification; written to a temporary file and renamed at the end, one process at a time."""
    if not path.parent.is_dir():
        raise InputError("tokens-there-no-folder", parent=path.parent)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        tokens = read_tokens(path)
        yield tokens
        entries = [
            {
                "id": token.id,
                "name": token.name,
                "role": token.role,
                "created": token.created,
                "hash": token.hash,
                **({"datasets": list(token.datasets)} if token.datasets else {}),
                **({"expires": token.expires} if token.expires else {}),
            }
            for token in tokens
        ]
        descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=".tokens-")  # readable by the owner only
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(dumps({"token": entries}))
        os.replace(aside, path)
    finally:
        os.close(folder)


class FaultFile:
    """One line of JSON per fault. While there is one, no claim about timing is made, after a restart either.

    Each fault reveals to the client a little about how long an answer took, so the custodian must judge it: find the
    cause, and remove the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.count = len(lines)
        self.last: str | None = json.loads(lines[-1])["at"] if lines else None
        self._alarmed = -_ALARM_SECONDS

    def note(self, paces: int) -> None:
        """Record that an answer was delayed by this many paces."""
        self.count += 1
        self.last = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        if time.monotonic() - self._alarmed >= _ALARM_SECONDS:
            self._alarmed = time.monotonic()
            warn("late", faults=self.count, paces=paces)
        line = json.dumps({"at": self.last, "paces": paces}) + "\n"
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            # counted all the same, but unknown after a restart
            warn("fault not kept", failure=type(error).__name__)

    def claim(self, pace: float) -> str:
        """Whether the times of answers follow from public facts alone: "holds", "lapsed", or "none" without a pace."""
        if not pace:
            return "none"
        return "lapsed" if self.count else "holds"


class FreeWork:
    """Runs free work; created inside the event loop that waits for it.

    Args:
        seconds: CPU seconds per second and token, on average; 0 for no limit.
        burst: CPU seconds at once before the average counts.
    """

    def __init__(self, seconds: float, burst: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._quota = RateLimit(seconds, burst)
        self._queue: WorkQueue[_Piece] = WorkQueue()
        self._thread = threading.Thread(target=self._run, name="shoal-free", daemon=True)
        self._thread.start()

    async def run(self, token: str, work: Callable[[], _Result]) -> _Result:
        """Run a piece of work when it is the token's turn.

        Raises:
            Problem: its quota is used up, or too much of its work is waiting.
        """
        self._quota.check(token)
        if self._queue.waiting(token) >= _MOST_WAITING:
            raise RequestProblem("too_many", headers={"Retry-After": "1"})
        future: asyncio.Future[_Result] = self._loop.create_future()
        self._queue.put(token, (work, future))
        return await future

    def at_once(self, token: str, work: Callable[[], _Result]) -> _Result:
        """Run a short piece of work immediately, within the same quota."""
        self._quota.check(token)
        return self.metered(token, work)

    def metered(self, token: str, work: Callable[[], _Result]) -> _Result:
        """Run a piece of work in this thread; the time counts, however it ends."""
        began = time.thread_time()
        try:
            return work()
        finally:
            self._quota.spend(token, time.thread_time() - began)

    def close(self) -> None:
        self._queue.close()
        self._thread.join()

    def _run(self) -> None:
        while (task := self._queue.take()) is not None:
            token, (work, future) = task
            result: Any = None
            error: Exception | None = None
            try:
                # a client that no longer waits needs no answer
                if not future.cancelled():
                    result = self.metered(token, work)
            except Exception as raised:
                error = raised
            finally:
                self._queue.done(token)
            # nobody waits once the loop is closed
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class HeadFile:
    """A file with one line per data set: the hash of an entry, the name, the number of the entry.

    After a regular stop the last line has the hash of the whole ledger file, for `shoal ledger verify` to find damage
    between the entries.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # what was written last, and whether it was flushed to disk
        self._noted = "", False

    def heads(self) -> list[str]:
        """The recorded heads; none if there is no file."""
        return [line.split()[0] for line in self._lines() if not line.startswith(_CLOSED)]

    def digest(self) -> str | None:
        """The hash of the ledger file when it was closed, if it was."""
        return next((line.split()[-1] for line in self._lines() if line.startswith(_CLOSED)), None)

    def _lines(self) -> list[str]:
        if not self._path.exists():
            return []
        text = self._path.read_text("utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()]

    def note(self, ledger: Ledger, *, durable: bool = True) -> None:
        """Write the latest heads; the old file is replaced as a whole.

        Args:
            ledger: the ledger with the heads.
            durable: wait for the disk. Without it the file survives this process, but not necessarily a system crash,
                and a durable `note` must follow.
        """
        heads = ledger.heads()
        with self._alone():
            # several processes may record the heads of one ledger: the last to write must not restore an older one
            for line in self._lines():
                head, name, number = (*line.split(), "0")[:3]
                if head != _CLOSED and name in heads and int(number) > heads[name][0]:
                    heads[name] = int(number), head
            text = "".join(f"{head} {name} {number}\n" for name, (number, head) in sorted(heads.items()))
            if (text, True) != self._noted and (text, durable) != self._noted:
                self._write(text, durable)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold a lock that excludes other writers."""
        try:
            folder = os.open(self._path.parent, os.O_RDONLY)
        except OSError as error:
            raise self._failed(error) from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def note_closed(self, ledger_file: Path) -> None:
        """Append the hash of a ledger file that no process has open any more."""
        digest = digest_of(ledger_file)
        if digest is not None and (heads := [line for line in self._lines() if not line.startswith(_CLOSED)]):
            self._write("".join(f"{line}\n" for line in (*heads, f"{_CLOSED} {digest}")))

    def _write(self, text: str, durable: bool = True) -> None:
        try:
            # a unique name, as several servers may record the heads of one ledger; mkstemp makes it private,
            # as heads require: they reveal when something was asked
            handle, name = tempfile.mkstemp(
                prefix=f"{self._path.name}.", suffix=".new", dir=self._path.parent
            )
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    if durable:
                        os.fsync(file.fileno())
                os.replace(name, self._path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._noted = text, durable
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> OutputError:
        return OutputError("heads-cannot-noted", path=self._path, reason=error.strerror)


def check_heads(files: Sequence[HeadFile], ledger: Ledger) -> None:
    """Verify that every recorded head is still in the ledger, and that the ledger is intact.

    Raises:
        LedgerError: one is missing, so entries were lost.
    """
    if heads := [head for file in files for head in file.heads()]:
        verify(ledger, heads)


async def keep_heads(files: Sequence[HeadFile], ledger: Ledger) -> None:
    """Write the recorded heads to the disk repeatedly, while the server runs."""
    while True:
        await asyncio.sleep(_SECONDS)
        for file in files:
            try:
                await asyncio.to_thread(file.note, ledger)
            except Exception as error:
                # the next attempt may succeed; a ledger that cannot be used is refused where it is used
                kind = error if isinstance(error, ShoalError) else type(error)
                warn("heads not noted", failure=getattr(kind, "__name__", type(error).__name__))


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a server.

    Attributes:
        folder: the served folder, see `folder.py`.
        ledger: address of the ledger; DIR/ledger.sqlite when absent.
        heads: one more file, best on another disk, in which ledger heads are recorded and checked at start.
        limits: limits for clients.
        closes: whether the ledger is closed when this process ends; of several processes that share it, none closes it.
    """

    folder: Path
    ledger: str | None = None
    heads: Path | None = None
    limits: Limits = field(default_factory=Limits)
    closes: bool = True


def ledger_address(config: Config) -> str | Path:
    return config.ledger or config.folder / LEDGER_FILE


def ledger_file(config: Config) -> Path | None:
    """The ledger's file, if it is a file."""
    address = str(ledger_address(config))
    return None if "://" in address else Path(address)


def head_files(config: Config) -> list[HeadFile]:
    """The files that record heads: in the folder, and where the custodian chose."""
    return [HeadFile(path) for path in (config.folder / HEADS_FILE, config.heads) if path is not None]


def open_folder(config: Config) -> tuple[Ledger, dict[str, Served]]:
    """Read the data sets, open and check the ledger, and register the terms: everything that can fail at start."""
    files = head_files(config)
    path, served_before = ledger_file(config), any(file.heads() for file in files)
    if served_before and path is not None and not path.exists():
        raise LedgerError("ledger-gone", folder=config.folder, path=path, heads=config.folder / HEADS_FILE)
    opened: list[Ledger] = []

    def checked() -> Ledger:
        """The ledger, opened when it is first needed."""
        if not opened:
            opened.append(open_ledger(ledger_address(config)))
            check_heads(files, opened[0])
        return opened[0]

    def key_of(dataset: str) -> bytes:
        key = checked().bound_key(dataset, fresh_key())
        assert key is not None
        return key

    try:
        datasets = load_folder(config.folder, key_of)
        ledger = checked()
        check_earlier_names(datasets, ledger)
        for served in datasets.values():
            if served.table.facts.refused:
                warn("columns refused", dataset=served.name, columns=sorted(served.table.facts.refused))
            ledger.register(served.register())
        for file in files:
            file.note(ledger)
    except BaseException:
        for ledger in opened:
            ledger.close()
        raise
    return ledger, datasets


def note_closed(config: Config) -> None:
    """After a regular stop: record the hash of the ledger file."""
    path = ledger_file(config)
    for file in head_files(config) if path is not None else ():
        file.note_closed(path or Path())


class State:
    """The state of a running server; created inside its event loop."""

    def __init__(self, config: Config, ledger: Ledger, datasets: dict[str, Served]) -> None:
        self.ledger, self.datasets, self.limits = ledger, datasets, config.limits
        self.tokens = TokenBook(config.folder / TOKENS_FILE)
        self.rates = RateLimit(config.limits.rate, config.limits.burst)
        self.strangers = RateLimit(config.limits.rate, config.limits.burst)
        self.free = FreeWork(config.limits.free, config.limits.free_burst)
        self.head_files = head_files(config)
        self.faults = FaultFile(config.folder / FAULTS_FILE)
        # one worker shares the interpreter with the event loop, free work and the ledger, others with it
        self.allowance = config.limits.allowance * (config.limits.workers + 3) / 4
        self.schedule = Schedule(config.limits.pace, config.limits.patience, fault=self.faults.note)
        self.paid_answers = PaidAnswers(
            ledger,
            self.schedule,
            config.limits.workers,
            config.limits.most_waiting,
            config.limits.most_queued,
            lambda kind: write_log("unanswered", failure=kind),
            lambda: self.note_heads(durable=False),
        )
        self.health = Health(ledger, self.paid_answers.group)

    def note_heads(self, *, durable: bool = True) -> None:
        for file in self.head_files:
            file.note(self.ledger, durable=durable)

    def close(self) -> None:
        """Finish work in progress."""
        self.free.close()
        self.paid_answers.close()


def state_of(request: Request) -> State:
    state: State = request.app.state.shoal
    return state


def authenticated(request: Request) -> Token:
    """Identify the client; unknown clients are rate-limited by address, others by token."""
    state = state_of(request)
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    token = state.tokens.find(text) if scheme.lower() == "bearer" else None
    if token is None:
        state.strangers.take(request.client.host if request.client else "")
        raise RequestProblem("no_token", headers={"WWW-Authenticate": "Bearer"})
    request.state.log["token"] = token.id
    state.rates.take(token.id)
    return token


def served_to(request: Request, token: Token, name: str) -> Served:
    """A data set that this token gives access to; any other one looks as if it did not exist."""
    served = state_of(request).datasets.get(name)
    if served is None or not token.opens(name):
        raise RequestProblem("not_found")
    request.state.log["dataset"] = name
    return served


_bearer = HTTPBearer(auto_error=False, description="A token created by 'shoal token new'.")


async def _token(request: Request, _: Annotated[object, Depends(_bearer)]) -> Token:
    return authenticated(request)


Asker = Annotated[Token, Depends(_token)]
Name = Annotated[str, PathParameter(pattern=NAME, description="Name of the data set.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=KEY,
        description="Chosen by the client for one request: a repeated request with the same key is charged only once.",
    ),
]
