"""Who may ask: token texts come in, names and roles leave. Only hashes of tokens are kept.

A token holds 256 random bits, so that a plain hash of it cannot be turned back by trying.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from shoal.errors import InputError, OptionError
from shoal.io.common import dumps, load
from shoal.query.server.names import DATA_SET, TOKEN_OWNER, plain_name

Role = Literal["holder", "analyst"]
# how long a change of the file may go unnoticed
_LOOK_AGAIN_SECONDS = 1.0
_MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept.

    Attributes:
        id: tells tokens apart in lists and logs; not secret.
        name: who uses it; budgets are kept by this name, so a new token does not bring a new budget.
        role: holders see what everybody spent, analysts only their own.
        hash: of the token's text.
        datasets: the data sets it is good for; empty for all.
        expires: when it ends, in UTC; empty for never.
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
    """Add a token to the file and return its text, which is not kept anywhere; it ends after so many days."""
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
        return [_token(entry) for entry in entries]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError("tokens-file-damaged", path=path) from None


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class TokenBook:
    """The tokens of a running server; looks at the file again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._looked = float("-inf")
        self._by_hash: dict[str, Token] = {}

    def find(self, text: str) -> Token | None:
        """The token with this text, unless its time is over."""
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
                # a file that cannot be read lets nobody in
                self._by_hash = {}
            self._stamp = stamp


def _token(entry: Any) -> Token:
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
    token.is_over(datetime.datetime.now(datetime.UTC))  # an end that cannot be read is found here
    return token


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[list[Token]]:
    """The tokens, to be changed; written aside and put in place at the end, one process at a time."""
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
