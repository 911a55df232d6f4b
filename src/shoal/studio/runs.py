"""Runs, each in a process of its own: where it stands, how it ended, and how to end it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from shoal.journal import PLACE
from shoal.studio.recipe import Recipe
from shoal.studio.worker import BUNDLE, FACTS, RELEASE
from shoal.text import Message

State = Literal["running", "done", "failed", "cancelled"]
_PATIENCE = 10.0


@dataclass(eq=False)
class Run:
    """One run, from its start to what is left of it.

    Attributes:
        letter: what the page calls it.
        kind: release, rehearse, compare, buy, learn or expect.
        recipe: what was settled when it was started.
        dataset, content, ledger: under which name, on which records and with which ledger it was made.
        use: by which the journal knows it, once something of it was shown or handed out; `noted` says what.
        what, done, total: the stage.
        charged: a ledger has been charged.
        dots: settings that were compared, as they arrive.
        seen: its measurements were shown.
        on, mark: the other table whose people were rehearsed on, and its content; empty without one.
        of: the folder of the run that something is learned about.
        override: why it is published although its verdict says otherwise.
    """

    letter: str
    kind: str
    recipe: Recipe
    folder: Path
    dataset: str = ""
    content: str = ""
    ledger: str = ""
    state: State = "running"
    what: str = "starting"
    done: int = 0
    total: int = 0
    charged: bool = False
    problems: tuple[str, ...] = ()
    dots: list[dict[str, Any]] = field(default_factory=list)
    loss: str = ""
    bought: dict[str, Any] = field(default_factory=dict)
    expected: str = ""
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    at: str = field(default_factory=lambda: time.strftime("%H:%M"))
    seen: bool = False
    on: str = ""
    mark: str = ""
    of: Path | None = None
    override: str = ""
    use: str = ""
    noted: frozenset[str] = frozenset()
    _process: subprocess.Popen[str] | None = None
    _facts: dict[str, Any] | None = None
    _kept: tuple[Any, Any] | None = None

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.began

    @property
    def share(self) -> float | None:
        """How much of the stage is done, in percent; None where nobody knows."""
        return 100 * self.done / self.total if self.total > 1 else None

    @property
    def rehearsed(self) -> bool:
        return self.kind == "rehearse"

    @property
    def bundle(self) -> Path:
        return self.folder / BUNDLE

    @property
    def facts(self) -> dict[str, Any]:
        """What Judge shows of it."""
        if self._facts is None:
            self._facts = json.loads((self.folder / FACTS).read_text("utf-8"))
        return self._facts

    @property
    def kept(self) -> tuple[Any, Any]:
        """The original and the release."""
        if self._kept is None:
            import pickle

            with open(self.folder / RELEASE, "rb") as file:
                found = pickle.load(file)
            self._kept = found["original"], found["release"]
        return self._kept

    @property
    def settings_words(self) -> str:
        """Method and the settings that everybody asks for."""
        asked = self.recipe.asked
        shown = {"epsilon": "ε", "delta": "δ", "k": "k", "l": "l", "t": "t"}
        parts = [f"{sign} {asked[name]}" for name, sign in shown.items() if name in asked]
        return ", ".join([self.recipe.method, *parts])

    def cancel(self) -> str:
        """End the process with all it started, remove what it wrote, and say what is left."""
        if self.state != "running":
            return ""
        self.state = "cancelled"
        self._end()
        self.remove()
        return str(self._ended("run-cancelled"))

    def _ended(self, code: str) -> Message:
        """How it ended, and that a charge stays."""
        return Message(code, {"added": Message("ledger-charge-stays")} if self.charged else {})

    def remove(self) -> None:
        """The run and its files are gone."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)


def start(run: Run, job: Mapping[str, Any], told: Callable[[Run], None]) -> None:
    """Start the process of a run; `told` is called whenever something about it changed."""
    run.folder.mkdir(parents=True, mode=0o700)
    run._process = subprocess.Popen(
        [sys.executable, "-m", "shoal.studio.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **_own_journal(run)},
    )
    assert run._process.stdin is not None
    assert run._process.stdout is not None
    # the other end closes when this process ends, and the worker with it
    with contextlib.suppress(BrokenPipeError):
        run._process.stdin.write(json.dumps({**job, "folder": str(run.folder), "kind": run.kind}) + "\n")
        run._process.stdin.flush()
    threading.Thread(target=_listen, args=(run, run._process.stdout, told), daemon=True).start()


def _own_journal(run: Run) -> dict[str, str]:
    """Settings compared on people who do not exist are no use of anybody's records: what is noted goes with the run."""
    return {PLACE: str(run.folder / "journal.jsonl")} if run.kind == "compare" and not run.on else {}


def _listen(run: Run, output: IO[str], told: Callable[[Run], None]) -> None:
    finished = False
    for line in output:
        with contextlib.suppress(json.JSONDecodeError):
            message = json.loads(line)
            finished = _note(run, message) or finished
            told(run)
    assert run._process is not None
    run._process.wait()
    run.ended = time.monotonic()
    if run.state == "running":
        if finished and not run.problems:
            run.state = "done"
        else:
            run.state = "failed"
            if not run.problems:
                run.problems = (str(run._ended("run-killed")),)
            shutil.rmtree(run.folder, ignore_errors=True)
    told(run)


def _note(run: Run, message: Mapping[str, Any]) -> bool:
    """Take one message; whether it was the last."""
    event = message["event"]
    if event == "progress":
        run.what, run.done, run.total = message["what"], message["done"], message["total"]
    elif event == "charged":
        run.charged = True
    elif event == "dots":
        run.dots, run.loss = message["dots"], message["loss"]
    elif event == "bought":
        run.bought = dict(message)
    elif event == "expected":
        run.expected = message["words"]
    elif event == "problem":
        run.problems = (*message["problems"], *message["notes"])
    return event in ("done", "problem")
