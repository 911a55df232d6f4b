"""Runs in separate processes: start, progress and cancellation.

Everything a process writes is in the folder of the run, so removing that folder removes all of it. It ends
by itself when the studio is gone: standard input is then closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from shoal.columns import Schema, read_declared
from shoal.errors import InputError, ShoalError
from shoal.io import Table, private_file, private_text
from shoal.journal import PLACE
from shoal.release import CHARGING
from shoal.studio.guarantee import Recipe
from shoal.text import Message

FACTS, RELEASE, BUNDLE = "facts.json", "release.pickle", "bundle"
Tell = Callable[[Mapping[str, Any]], None]

# a measure of loss that every method has, with or without synthetic records
_LOSS_OF_NUMBERS, _LOSS_OF_NAMES = "wasserstein", "total_variation"
_SEEDS = 2
_NICENESS = 5
State = Literal["running", "done", "failed", "cancelled"]
_PATIENCE = 10.0


def main() -> None:
    """Read one job, run it, and report the outcome."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # output of libraries must not mix with our messages
    os.dup2(2, 1)
    lock = threading.Lock()

    def tell(message: Mapping[str, Any]) -> None:
        with lock:
            output.write(json.dumps(message) + "\n")
            output.flush()

    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_studio, daemon=True).start()
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    try:
        JOBS[job["kind"]](job, tell)
    except ShoalError as error:
        tell({"event": "problem", "problems": [str(one) for one in error.problems], "notes": _notes(error)})
    except MemoryError as error:
        words = "not enough memory for this table: publish fewer columns, or use a ranking method."
        tell({"event": "problem", "problems": [words], "notes": _notes(error)})
    else:
        tell({"event": "done"})


def _notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", ()))


def _end_with_the_studio() -> None:
    """End this process with the studio, which keeps the other end of the pipe open."""
    sys.stdin.read()
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _progress(tell: Tell) -> Callable[[str, int, int], None]:
    def report(what: str, done: int, total: int) -> None:
        if what == CHARGING and done == total:
            tell({"event": "charged"})
        tell({"event": "progress", "what": what, "done": done, "total": total})

    return report


def _request(job: Mapping[str, Any]) -> dict[str, Any]:
    asked = dict(job["request"])
    asked["schema"] = Schema.from_dict(asked["schema"])
    return asked


def _unchanged(job: Mapping[str, Any]) -> None:
    """Refuse a table other than the one shown; checked once it is read, and before anything is charged.

    Raises:
        InputError: the file has changed since it was opened.
    """
    from shoal.io import fingerprint

    if fingerprint(Path(job["data"])) != job["mark"]:
        raise InputError("changed", name=job["name"])


def _table(job: Mapping[str, Any], schema: Schema) -> Table:
    """The table that was shown."""
    found = read_declared(Path(job["data"]), schema)
    _unchanged(job)
    return found


def release(job: Mapping[str, Any], tell: Tell) -> None:
    """Make, measure and write one release."""
    from shoal.evaluation import verdict
    from shoal.inference import main_numbers
    from shoal.release import Delivery, domains_of, plan, settings_of
    from shoal.studio.facts import judged

    folder = Path(job["folder"])
    report = _progress(tell)
    delivery = Delivery(
        folder / BUNDLE,
        evaluate=True,
        engine="memory",
        ledger=job.get("ledger") or None,
        dataset=job.get("dataset") or None,
        noted=False,
    )
    planned = plan(Path(job["data"]), delivery, progress=report, **_request(job))
    # the table read is the one shown, and nothing is charged yet
    _unchanged(job)
    published = planned.carry_out(report)
    report("measuring what changed", 0, 1)
    # a table that is read column by column may have changed since
    _unchanged(job)
    original = planned.prepared.described.table
    assert published.evaluation is not None
    found = verdict(published.release, published.evaluation)
    facts = judged(original, published.release, published.evaluation, found, job["quasi"])
    facts["exposed"] = _exposed(original, published.release, job["quasi"])
    facts["warnings"] = list(published.warnings)
    report("intervals of main numbers", 0, 1)
    numbers = main_numbers(folder / BUNDLE)
    facts["main_numbers"] = [one.to_dict() for one in numbers]
    cautions: dict[str, list[str]] = {}
    for one in numbers:
        for flag in one.flags:
            cautions.setdefault(one.words_of(flag), []).append(one.name)
    lines = [f"{', '.join(names)}: {words}" for words, names in cautions.items()]
    facts["about_numbers"] = [*(one.meaning for one in numbers[:1]), *lines]
    facts["ledger"] = _standing(job)
    stated = published.release.statement
    charged = {} if published.charge is None else {"charge": published.charge.head}
    facts["use"] = {"settings": settings_of(stated), "domains": domains_of(stated), **charged}
    _keep(folder, facts, original.frame.to_native(), published.release)


def rehearse(job: Mapping[str, Any], tell: Tell) -> None:
    """The same on stand-in data."""
    from shoal.release import rehearse as rehearsed
    from shoal.studio.facts import judged

    report = _progress(tell)
    asked = {name: value for name, value in _request(job).items() if not name.startswith("tuned")}
    found = rehearsed(on=_another(job), people=job["people"], progress=report, **asked)
    report("measuring what changed", 0, 1)
    facts = judged(found.original, found.release, found.evaluation, found.verdict, job["quasi"])
    facts["exposed"] = _exposed(found.original, found.release, job["quasi"])
    facts["rehearsed"] = found.sentence
    _keep(Path(job["folder"]), facts, found.original.frame.to_native(), found.release)


def _another(job: Mapping[str, Any]) -> Path | None:
    """Another table to rehearse on; without one, synthetic records."""
    return Path(job["on"]) if job.get("on") else None


def _exposed(original: Any, made: Any, quasi: Sequence[str]) -> dict[str, int] | None:
    """The most exposed person in a release, for the intruder shown on the page."""
    from shoal.privacy import MODELS
    from shoal.studio.facts import exposed, pairs

    found = pairs(original, made, quasi if MODELS[made.statement.model].of_the_table else ())
    return None if found is None else exposed(found)


def _standing(job: Mapping[str, Any]) -> str:
    """The budget spent, including this release; empty without a ledger."""
    if not job.get("ledger"):
        return ""
    from shoal.ledger import open_ledger

    with contextlib.closing(open_ledger(job["ledger"], create=False)) as opened:
        return opened.standing(job["dataset"]).words


def expect(job: Mapping[str, Any], tell: Tell) -> None:
    """Estimate the time of a run with its measures, from synthetic rows; no record is read and no budget is spent."""
    from shoal.release import Delivery, plan

    delivery = Delivery(Path(job["folder"]) / BUNDLE, evaluate=True, engine="memory")
    found = plan(Path(job["data"]), delivery, estimated=True, **_request(job)).estimate
    tell({"event": "expected", "words": str(found)})


def _keep(folder: Path, facts: Mapping[str, Any], original: Any, made: Any) -> None:
    with private_file(folder / RELEASE).open("wb") as file:
        pickle.dump({"original": original, "release": made}, file)
    private_text(folder / FACTS, json.dumps(facts))


def compare(job: Mapping[str, Any], tell: Tell) -> None:
    """Run settings one by one, and report each when it is done; the frontier comes last."""
    from shoal.release import people_of
    from shoal.tuning import make_grid, tune, with_frontier

    report = _progress(tell)
    asked = _request(job)
    method, epsilon, k = (asked.pop(name, None) for name in ("method", "epsilon", "k"))
    schema: Schema = asked.pop("schema")
    data, part = people_of(_another(job), schema, method, epsilon, k, job["people"], **asked)
    schema = part or schema
    shared = {name: asked[name] for name in ("columns", "missing", "outside")}
    grid = make_grid(job["methods"], job["ks"], None, None, job["rows"])
    ordered = all(schema[name].kind_facts.ordered for name in asked["columns"])
    loss = _LOSS_OF_NUMBERS if ordered else _LOSS_OF_NAMES
    rows: list[Any] = []
    budget = epsilon or job["epsilon"]
    for number, setting in enumerate(grid):
        report("comparing settings", number, len(grid))
        try:
            found = tune(
                data,
                schema,
                epsilon=budget,
                methods=[setting.method],
                ks=None if setting.k is None else [setting.k],
                seeds=_SEEDS,
                utility=loss,
                workers=1,
                **shared,
            )
        except ShoalError as error:
            tell({"event": "refused", "words": f"{setting}: {error}"})
            continue
        rows += found.rows
        tell({"event": "dots", "loss": loss, "dots": [_dot(row) for row in with_frontier(rows)]})


def _dot(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = row.to_dict()
    return {**found, "words": str(row.setting), "loss_words": str(row.loss), "risk_words": str(row.risk)}


def buy(job: Mapping[str, Any], tell: Tell) -> None:
    """A private choice of k: its cost is part of the statement of every release that uses it."""
    from shoal.tuning import tune

    _progress(tell)("choosing k privately", 0, 1)
    asked = _request(job)
    method, epsilon, _ = (asked.pop(name, None) for name in ("method", "epsilon", "k"))
    for name in ("split", "noise"):
        asked.pop(name, None)
    found = tune(
        _table(job, asked["schema"]),
        epsilon=epsilon,
        methods=[method],
        private=job["price"],
        ledger=job.get("ledger") or None,
        dataset=job.get("dataset") or None,
        **asked,
    )
    assert found.tuned is not None
    assert found.best is not None
    tell(
        {
            "event": "bought",
            "k": found.best.k,
            "why": found.why,
            "bought": {
                "tuned": list(found.tuned.what),
                "tuned_epsilon": job["price"],
                "tuned_choice": [choice.to_dict() for choice in found.tuned.choice],
            },
        }
    )


def learn(job: Mapping[str, Any], tell: Tell) -> None:
    """The predictive utility of a finished release for a column."""
    from shoal.evaluation import evaluate

    folder = Path(job["folder"])
    with open(Path(job["of"]) / RELEASE, "rb") as file:
        kept = pickle.load(file)
    report = _progress(tell)
    measured = evaluate(kept["original"], kept["release"], target=job["target"], progress=report)
    private_text(folder / FACTS, json.dumps(measured.to_dict()["learning"]))


JOBS: Mapping[str, Callable[[Mapping[str, Any], Tell], None]] = {
    "release": release,
    "rehearse": rehearse,
    "compare": compare,
    "buy": buy,
    "learn": learn,
    "expect": expect,
}

if __name__ == "__main__":
    main()


@dataclass(eq=False)
class StudioRun:
    """One run, from its start to its results.

    Attributes:
        letter: its name on the page.
        kind: release, rehearse, compare, buy, learn or expect.
        recipe: the recipe at its start.
        dataset, content, ledger: the data set name, the records and the ledger it used.
        use: its entry in the journal, once something of it was shown or downloaded; `noted` has the details.
        what, done, total: the stage.
        charged: a ledger has been charged.
        dots: compared settings, in order of arrival.
        seen: its measures were shown.
        on, mark: the other table used for a rehearsal, and a hash of its content; empty without one.
        of: for a learning run, the folder of the run it measures.
        override: why it is published despite its verdict.
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
        """Progress of the stage in percent; None where unknown."""
        return 100 * self.done / self.total if self.total > 1 else None

    @property
    def rehearsed(self) -> bool:
        return self.kind == "rehearse"

    @property
    def bundle(self) -> Path:
        return self.folder / BUNDLE

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that the Judge page shows."""
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
        """The method and its main settings."""
        asked = self.recipe.asked
        shown = {"epsilon": "ε", "delta": "δ", "k": "k", "l": "l", "t": "t"}
        parts = [f"{sign} {asked[name]}" for name, sign in shown.items() if name in asked]
        return ", ".join([self.recipe.method, *parts])

    def cancel(self) -> str:
        """End the process and its children, remove what it wrote, and report what remains."""
        if self.state != "running":
            return ""
        self.state = "cancelled"
        self._end()
        self.remove()
        return str(self._ended("run-cancelled"))

    def _ended(self, code: str) -> Message:
        """How it ended, and that a charge remains."""
        return Message(code, {"added": Message("ledger-charge-stays")} if self.charged else {})

    def remove(self) -> None:
        """Remove the run and its files."""
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


def start(run: StudioRun, job: Mapping[str, Any], told: Callable[[StudioRun], None]) -> None:
    """Start the process of a run; `told` is called on every change."""
    run.folder.mkdir(parents=True, mode=0o700)
    run._process = subprocess.Popen(
        [sys.executable, "-m", "shoal.studio.runs"],
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


def _own_journal(run: StudioRun) -> dict[str, str]:
    """A separate journal for comparisons on synthetic records, which do not use real ones; removed with the run."""
    return {PLACE: str(run.folder / "journal.jsonl")} if run.kind == "compare" and not run.on else {}


def _listen(run: StudioRun, output: IO[str], told: Callable[[StudioRun], None]) -> None:
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


def _note(run: StudioRun, message: Mapping[str, Any]) -> bool:
    """Handle one message; return whether it was the last."""
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
