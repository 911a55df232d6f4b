"""How quick the studio is on a table of 200,000 rows and 12 columns: what a person waits for, measured by HTTP.

    python -m benchmarks.studio

The table is uploaded as CSV; a setting is moved on the promise page; and while a release is made the studio is asked
over and over whether it is alive. Times are those of a clock; beside them is what this process used of a processor,
which says more on a machine that has other work.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from shoal.io import write
from shoal.survey import survey
from tools.served_studio import Studio, served

ROWS = 200_000
# what the issue of a release may take at most, in seconds
TABLE, PREVIEW, HEARTBEAT = 3.0, 0.15, 1.0
_SETTINGS = ("0.5", "0.8", "1", "1.5", "2", "3", "0.7", "1.2", "2.5", "4")


class Person:
    """Somebody at the studio."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.client = httpx.Client(base_url=studio.origin, headers={"x-shoal": "1"}, timeout=600)
        self.client.cookies.set(studio.access.cookie_name, studio.access.cookie)
        self.name = self.client.post("/desk").json()["desk"]

    @property
    def desk(self):  # type: ignore[no-untyped-def]
        return self.studio.desks.find(self.name)

    def post(self, path: str, **body: object) -> float:
        """Seconds until the answer is there."""
        began = time.perf_counter()
        self.client.post(f"/desk/{self.name}/{path}", json=body).raise_for_status()
        return time.perf_counter() - began

    def upload(self, path: Path) -> float:
        began = time.perf_counter()
        answer = self.client.put(
            f"/desk/{self.name}/file", content=path.read_bytes(), headers={"x-name": path.name}
        )
        assert "<tbody" in answer.text
        return time.perf_counter() - began

    def settle(self) -> None:
        """Everything that a promise needs."""
        ranges = {"hours per week": ["0", "168"], "age": ["0", "120"], "savings": ["0", "3000000"]}
        for number, attribute in enumerate(self.desk.recipe.schema.attributes):
            if attribute.kind_facts.ranged:
                ends = ranges.get(attribute.name, ["0", "400000"])
                self.post(f"column/{number}", what="range", value=ends)
            else:
                self.post(f"column/{number}", what="values", value=None)
        self.post("vouch", value="questionnaire")

    def heartbeats(self) -> list[float]:
        """How long the studio takes to answer while a run is on its way."""
        found = []
        while self.desk.running is not None:
            began = time.perf_counter()
            self.client.get("/ping").raise_for_status()
            found.append(time.perf_counter() - began)
            time.sleep(0.02)
        return found


def measure(rows: int) -> dict[str, tuple[float, float, float]]:
    """Seconds of the clock and of a processor, and the limit of each."""
    with tempfile.TemporaryDirectory() as aside, served() as studio:
        path = Path(aside) / "people.csv"
        table = survey(rows).drop_columns(["savings"])
        write(table.append_column("rent2", table["rent"]).append_column("tax2", table["tax"]), path)
        person = Person(studio)
        # what is loaded once, with the first table of a day, is not what is measured
        person.post("survey")
        person.post("step/promise")
        used = time.process_time()
        seconds = person.upload(path)
        found = {"table visible after upload": (seconds, time.process_time() - used, TABLE)}
        person.settle()
        for card in ("dp", "given-partition", "k-anonymity"):
            person.post("promise", what="card", value=card)
            name = "k" if card == "k-anonymity" else "epsilon"
            values = [str(int(10 * float(value))) for value in _SETTINGS] if name == "k" else _SETTINGS
            used = time.process_time()
            times = [person.post("promise", what="typed", name=name, value=value) for value in values]
            found[f"preview of a setting, {card} (median of {len(times)})"] = (
                statistics.median(times),
                (time.process_time() - used) / len(times),
                PREVIEW,
            )
        person.post("promise", what="card", value="given-partition")
        person.post("promise", what="method", value="ranking-dp")
        person.post("run/release")
        beats = person.heartbeats()
        found[f"worst heartbeat of {len(beats):,} during a run"] = (max(beats), 0.0, HEARTBEAT)
        assert not person.desk.runs[-1].problems, person.desk.runs[-1].problems
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    for name, (seconds, used, limit) in measure(parser.parse_args().rows).items():
        processor = f", processor {used:.3f} s" if used else ""
        print(f"{name:55} {seconds:8.3f} s{processor}   (at most {limit:g} s)")


if __name__ == "__main__":
    main()
