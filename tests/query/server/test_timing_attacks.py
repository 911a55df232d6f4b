"""What the time of an answer tells: attacks that told who is in the table, against the deadline and without it.

Every attack is tried on the server as it is. Then on one that does less work for nobody, as it was before
(`uneven.py`), without a deadline: there it must succeed, in the same run, or it would show nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from shoal.columns.schema import Attribute, Schema
from shoal.query.server.folder import TOKENS_FILE, Settings, write_dataset
from shoal.query.server.tokens import new_token
from shoal.survey import survey, survey_schema

TRIALS, PRACTICE = 200, 20
# what was measured, of which an attacker takes the one that tells most
Features = tuple[float, ...]
LEVEL = 0.01
UNEVEN = Path(__file__).with_name("uneven.py")
# several values at once have many possible answers: to find out which are near the truth takes long
COLUMNS = [
    {"column": "hours per week", "range": {"lo": 0, "hi": 90, "step": 1}},
    {"column": "income", "range": {"lo": 0, "hi": 300_000, "step": 450}},
]
# how many questions at once, and how often they are asked in turn with a question about nobody
BATCH, BATCHES = 20, 4


@dataclass
class Target:
    """A running server and how to ask it."""

    url: str
    tokens: dict[str, str]
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=120, verify=False))

    def post(self, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens['eve']}"}
        reply = self.http.post(f"{self.url}/v1/datasets/survey/{path}", json=body, headers=headers)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def status(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.tokens['hilda']}"}
        return self.http.get(f"{self.url}/v1/status", headers=headers).json()  # type: ignore[no-any-return]

    def batch(self, question: Any) -> float:
        """How long a full batch of one question takes."""
        began = time.perf_counter()
        self.post("batches", {"questions": [question] * BATCH})
        return time.perf_counter() - began

    async def post_at_once(self, path: str, body: Any, count: int) -> Features:
        """The same request from many connections at once: when the last answer came, and when some of them had come.

        Nothing but sockets, so that it is the server that takes time.
        """
        host, _, port = self.url.removeprefix("http://").partition(":")
        content = json.dumps(body).encode()
        head = (
            f"POST /v1/datasets/survey/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.tokens['eve']}\r\n"
            f"Connection: close\r\nContent-Length: {len(content)}\r\n\r\n"
        ).encode()

        began = time.perf_counter()

        async def one() -> float:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(head + content)
            reply = await reader.read()
            assert b" 200 " in reply[:20]
            assert b'"error":' not in reply.partition(b'"answer"')[0]
            writer.close()
            return time.perf_counter() - began

        times = sorted(await asyncio.gather(*(one() for _ in range(count))))
        # from one of the first answers to the last, whatever else the machine does counts least
        return (times[-1], times[-1] - times[count // 4], times[-1] - times[0], times[count // 2], sum(times))


def longer(measure: Callable[[Any], float], question: Any, nobody: Any, times: int) -> Features:
    """How much longer a question takes than one about nobody, asked in turn: what else the machine does hits both.

    The last number is its own shortest time.
    """
    pairs = np.array([(measure(question), measure(nobody)) for _ in range(times)])
    ratios = pairs[:, 0] / pairs[:, 1]
    total = pairs.sum(axis=0)
    least = pairs.min(axis=0)
    return (
        float(np.median(ratios)),
        float(np.exp(np.log(ratios).mean())),
        total[0] / total[1],
        least[0] / least[1],
        least[0],
    )


def about(person: str) -> dict[str, Any]:
    key = {"column": "person_id", "value": person}
    return {"kind": "individual", "epsilon": "0.0005", "key": key, "columns": COLUMNS}


def person_of(inside: bool) -> str:
    """One whose values are all there, as the attacker hopes, or nobody."""
    name: str = random.choice(PEOPLE)["person_id"]
    return name if inside else name.replace("P", "Q")


def membership_by_batch(target: Target, inside: bool) -> Features:
    return longer(target.batch, about(person_of(inside)), about(person_of(False)), BATCHES)


def membership_by_90_singles(target: Target, inside: bool) -> Features:
    return asyncio.run(target.post_at_once("answers", about(person_of(inside)), 90))


def search_of_a_filtered_mean(target: Target, inside: bool) -> Features:
    """One step of a search for the income of one person: is it in this half? The other half is then searched."""
    row, width = random.choice(ALONE), random.randrange(1, 20)

    lo = row["income"] if inside else row["income"] - width - 1
    age, region = ({"column": name, "op": "==", "value": row[name]} for name in ("age", "region"))
    income = {"column": "income", "op": "between", "lo": lo, "hi": lo + width}

    def asked(*conditions: dict[str, Any]) -> dict[str, Any]:
        # beside it a mean over all, which only makes more answers possible
        filtered = {"kind": "mean", **COLUMNS[1], "where": {"and": list(conditions)}}
        means = [{"kind": "mean", **COLUMNS[0]}, filtered]
        return {"kind": "statistical", "epsilon": "0.001", "statistics": means}

    # nobody has two ages
    nobody = asked(age, age | {"value": row["age"] + 1}, income)
    return longer(target.batch, asked(age, region, income), nobody, BATCHES)


def quantile_of_a_million(target: Target, inside: bool) -> Features:
    where = {"column": "age", "op": ">=", "value": 18 if inside else 110}
    asked = {"kind": "quantile", "column": "income", "q": "0.5", "epsilon": "0.001", "where": where}
    began = time.perf_counter()
    target.post("answers", asked)
    return (time.perf_counter() - began,)


def alone(people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """People whose age, region and income nobody near them shares."""
    near: dict[Any, list[int]] = {}
    for row in people:
        near.setdefault((row["age"], row["region"]), []).append(row["income"])
    return [
        row
        for row in people
        if row["income"] > 100
        and sum(abs(other - row["income"]) <= 40 for other in near[row["age"], row["region"]]) == 1
    ]


PEOPLE = [row for row in survey(5000).to_pylist() if None not in row.values()]
ALONE = alone(PEOPLE)
Attack = Callable[[Target, bool], Features]
ATTACKS: dict[str, Attack] = {
    "quantiles at a million rows": quantile_of_a_million,
    "membership by batches": membership_by_batch,
    "binary search on a filtered mean": search_of_a_filtered_mean,
    "membership by 90 parallel singles": membership_by_90_singles,
}


# the server as it is, and the old work without a deadline
CASES = (("shipped", True, "0.1"), ("no deadline", False, "0"))


def make_folder(folder: Path, large: bool) -> dict[str, str]:
    settings = Settings(ceiling=Fraction(10**6), most_bytes=2**40)
    if large:
        pick = np.random.default_rng(1)
        schema = Schema(
            (
                Attribute("age", lo=Fraction(0), hi=Fraction(120), step=Fraction(1), type="integer"),
                Attribute("income", lo=Fraction(0), hi=Fraction(300_000), step=Fraction(1), type="integer"),
            )
        )
        table = pa.table({"age": pick.integers(18, 100, 10**6), "income": pick.integers(0, 300_001, 10**6)})
        write_dataset(folder / "survey", settings, schema, table)
    else:
        write_dataset(folder / "survey", settings, survey_schema(), survey(5000))
    return {
        name: new_token(folder / TOKENS_FILE, name, role)
        for name, role in (("eve", "analyst"), ("hilda", "holder"))
    }


@contextlib.contextmanager
def target(folder: Path, *, large: bool, even: bool, pace: str) -> Iterator[Target]:
    tokens = make_folder(folder, large)
    # a quarter of the time that is allowed by default, so that 4,000 batches do not take hours: no easier to hide in
    words = ["serve", "--data", str(folder), "--port", "0", "--rate", "0", "--quiet", "--pace", pace]
    words += ["--allowance", "1"]
    start = [sys.executable, "-m", "shoal"] if even else [sys.executable, str(UNEVEN)]
    process = subprocess.Popen([*start, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "Serving" in line, line + process.stderr.read()
    threading.Thread(target=process.stderr.read, daemon=True).start()
    made = Target(line.partition(" on ")[2].partition(" ")[0], tokens)
    try:
        yield made
    finally:
        made.http.close()
        process.terminate()
        process.wait()


def accuracy(attack: Attack, against: Target, trials: int = TRIALS) -> int:
    """How many of twice `trials` guesses are right, by a threshold that was learned on other trials."""
    for inside in (True, False, True, False):
        attack(against, inside)
    practice = [(inside, attack(against, inside)) for inside in shuffled(PRACTICE)]
    rules = [
        (number, (low + high) / 2, longer, high - low)
        for number in range(len(practice[0][1]))
        for low, high in pairwise(sorted(seconds[number] for _, seconds in practice))
        for longer in (True, False)
    ]

    def right(rule: tuple[int, float, bool, float], trial: tuple[bool, Features]) -> bool:
        number, limit, longer, _ = rule
        return (trial[1][number] > limit) == (trial[0] == longer)

    # of rules that are right as often, the one with most room on both sides
    best = max(rules, key=lambda rule: (sum(right(rule, trial) for trial in practice), rule[3]))
    return sum(right(best, (inside, attack(against, inside))) for inside in shuffled(trials))


def shuffled(trials: int) -> list[bool]:
    sides = [True, False] * trials
    random.shuffle(sides)
    return sides


def interval(right: int, of: int, level: float) -> tuple[float, float]:
    """Clopper and Pearson."""
    low = stats.beta.ppf(level / 2, right, of - right + 1) if right else 0.0
    high = stats.beta.ppf(1 - level / 2, right + 1, of - right) if right < of else 1.0
    return float(low), float(high)


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    assert interval(10, 20, 0.05) == pytest.approx((0.272, 0.728), abs=1e-3)
    assert interval(0, 20, 0.05)[0] == 0.0


@pytest.fixture
def quiet_place() -> Iterator[Path]:
    """A folder in memory where there is one: a busy disk would hide the time of the work from this attacker."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_time_tells_nothing_before_the_deadline_and_everything_without(name: str, quiet_place: Path) -> None:
    large, attack, said = "million" in name, ATTACKS[name], []
    level = LEVEL / len(ATTACKS)
    found = {}
    for case, even, pace in CASES:
        with target(quiet_place / case.replace(" ", "-"), large=large, even=even, pace=pace) as against:
            right = accuracy(attack, against)
            found[case] = right, interval(right, 2 * TRIALS, level)
            said.append(f"{name}, {case}: {right / (2 * TRIALS):.3f} {found[case][1]} {against.status()}")
            print(said[-1], flush=True)
    low, high = found["shipped"][1]
    assert low <= 0.5 <= high, said
    assert found["no deadline"][0] > 0.95 * 2 * TRIALS, said
