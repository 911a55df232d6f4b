"""The page of the utility benchmark: markdown from measured cells, with a computed conclusion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from benchmarks.utility_cells import ALWAYS_YES, BOUNDS, Cell

# score, its heading, how it is printed, and whether more is better; labels kept are neither good nor bad
SCORES = {
    "row": ("row error", ".3g", False),
    "labels": ("labels kept", ".0%", None),
    "marginal": ("marginal error", ".4f", False),
    "correlation": ("correlation error", ".3f", False),
    "rank": ("rank correlation error", ".3f", False),
    "f": ("F", ".3f", True),
}
# scores that every method has
COMMON = ("marginal", "correlation", "f")
_CLAIM_WORDS = {
    "replace-one": "replace-one",
    "one record added or removed": "add/remove",
}


@dataclass(frozen=True)
class Figure:
    """A mean over seeds with half its 95% interval, None for a single seed."""

    mean: float
    half: float | None

    def text(self, form: str) -> str:
        if form.endswith("%"):
            return f"{self.mean:{form}}"
        return f"{self.mean:{form}}" + ("" if self.half is None else f" ± {self.half:.2g}")


@dataclass(frozen=True)
class Line:
    """A method on one table at one ε.

    Attributes:
        figures: by score, those that exist.
        ours: a method of Shoal.
    """

    method: str
    claim: str
    neighbours: str
    figures: Mapping[str, Figure]
    seconds: float | None
    failed: str
    ours: bool

    @property
    def of_the_records(self) -> bool:
        """Whether differential privacy of the original records is claimed, with or without a δ."""
        return self.claim in ("dp", "approximate-dp") or self.claim.startswith("dp,")

    @property
    def claim_words(self) -> str:
        if not self.of_the_records:
            return self.claim
        relation = next(
            (word for text, word in _CLAIM_WORDS.items() if self.neighbours.startswith(text)), "?"
        )
        return f"**{self.claim}**, {relation}"


def figure(values: Sequence[float]) -> Figure:
    if len(values) < 2:
        return Figure(values[0], None)
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
    return Figure(mean(values), half)


def lines_of(cells: Iterable[Cell], table: str, epsilon: str) -> list[Line]:
    """One line per method, in the order in which they were measured, over all its seeds."""
    by_method: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.table == table and cell.epsilon == epsilon:
            by_method.setdefault(cell.method, []).append(cell)
    return [_line(method, found) for method, found in by_method.items()]


def _line(method: str, cells: Sequence[Cell]) -> Line:
    good = [cell for cell in cells if not cell.failed]
    # runs recorded earlier lack the newer scores
    names = [name for name in SCORES if any(name in cell.scores for cell in good)]
    times = [cell.seconds for cell in good if cell.seconds is not None]
    ours = method not in BOUNDS and not method.endswith("(dpmm)")
    figures = {name: figure([cell.scores[name] for cell in good if name in cell.scores]) for name in names}
    if method.endswith("(dpmm)"):
        # one to three runs say little about their spread
        figures = {name: Figure(found.mean, None) for name, found in figures.items()}
    return Line(
        method,
        good[0].claim if good else "",
        good[0].neighbours if good else "",
        figures,
        mean(times) if times else None,
        "; ".join(sorted({cell.failed for cell in cells if cell.failed})),
        ours,
    )


def best(lines: Iterable[Line], score: str) -> Line | None:
    """The line that is best by a score; None if nobody has it."""
    known = [line for line in lines if score in line.figures]
    if not known:
        return None
    sign = -1 if SCORES[score][2] else 1
    return min(known, key=lambda line: sign * line.figures[score].mean)


def result_table(lines: Sequence[Line], bounds: Sequence[Line]) -> list[str]:
    """Markdown rows; the best of those that claim differential privacy of the records are bold.

    Scores that no line has are left out: rows that were made up have no row error.
    """
    shown = {name: facts for name, facts in SCORES.items() if any(name in line.figures for line in lines)}
    found = [
        "| method | claim | " + " | ".join(words for words, _, _ in shown.values()) + " | seconds |",
        "| --- | --- |" + " ---: |" * (len(shown) + 1),
    ]
    strict = [line for line in lines if line.of_the_records]
    winners = {score: best(strict, score) for score, (_, _, more) in SCORES.items() if more is not None}
    for line in (*bounds, *lines):
        row = [line.method if line.method in BOUNDS else f"`{line.method}`", line.claim_words]
        for score, (_, form, _) in shown.items():
            text = line.figures[score].text(form) if score in line.figures else "-"
            row.append(f"**{text}**" if winners.get(score) is line else text)
        found.append(f"| {' | '.join([*row, line.failed or _seconds(line.seconds)])} |")
    return found


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


@dataclass(frozen=True)
class Duel:
    """One score on one table at one ε: the best synthesiser, and the best of Shoal with and without the same claim."""

    table: str
    epsilon: str
    score: str
    synthesiser: Line
    strict: Line
    any: Line

    def gain(self, line: Line) -> float:
        """How much better a method of Shoal is than the synthesiser; 0 if that is inside the interval of our mean."""
        mine, theirs = line.figures[self.score], self.synthesiser.figures[self.score]
        gain = mine.mean - theirs.mean if SCORES[self.score][2] else theirs.mean - mine.mean
        return gain if abs(gain) > (mine.half or 0) else 0.0

    def beats(self, line: Line) -> bool:
        return self.gain(line) > 0

    def loses(self, line: Line) -> bool:
        return self.gain(line) < 0

    def words(self, line: Line) -> str:
        form = SCORES[self.score][1]
        return f"{line.method} {line.figures[self.score].mean:{form}}"


def duels(cells: Sequence[Cell], tables: Sequence[str], epsilons: Sequence[str]) -> list[Duel]:
    """Every comparison for which both sides were measured."""
    found = []
    for table in tables:
        for epsilon in epsilons:
            lines = lines_of(cells, table, epsilon)
            for score in COMMON:
                theirs = best([line for line in lines if not line.ours], score)
                strict = best([line for line in lines if line.ours and line.of_the_records], score)
                mine = best([line for line in lines if line.ours], score)
                if theirs and strict and mine:
                    found.append(Duel(table, epsilon, score, theirs, strict, mine))
    return found


@dataclass(frozen=True)
class Verdict:
    """One method against the better synthesiser, by one score on one table at one ε.

    Attributes:
        says: `win` if the 95% interval of our mean excludes the synthesiser's score (the mean of its runs) on the good
            side, `loss` on the bad side, else `tie`; the synthesiser's own spread does not count.
    """

    table: str
    epsilon: str
    score: str
    ours: Figure
    theirs: Line
    says: str


def verdicts(
    cells: Sequence[Cell], method: str, tables: Sequence[str], epsilons: Sequence[str]
) -> list[Verdict]:
    """Every comparison of one method for which both sides were measured."""
    found = []
    for table in tables:
        for epsilon in epsilons:
            lines = lines_of(cells, table, epsilon)
            mine = next((line for line in lines if line.method == method), None)
            for score in COMMON if mine is not None else ():
                theirs = best([line for line in lines if not line.ours], score)
                if mine is None or theirs is None or score not in mine.figures:
                    continue
                ours, other = mine.figures[score], theirs.figures[score].mean
                gain = ours.mean - other if SCORES[score][2] else other - ours.mean
                apart = abs(gain) > (ours.half or 0.0)
                says = ("win" if gain > 0 else "loss") if apart else "tie"
                found.append(Verdict(table, epsilon, score, ours, theirs, says))
    return found


def verdict_table(found: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """Wins, ties and losses of each method, and where it does not win."""
    lines = [
        "| method | score | wins | ties | losses | not won |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for method, all_of_it in found.items():
        for score in COMMON:
            these = [verdict for verdict in all_of_it if verdict.score == score]
            if not these:
                continue
            counts = [sum(one.says == word for one in these) for word in ("win", "tie", "loss")]
            form = SCORES[score][1]
            rest = "; ".join(
                f"{one.table} {one.epsilon}: {one.ours.text(form)} against "
                f"{one.theirs.figures[score].mean:{form}} ({one.theirs.method})"
                for one in these
                if one.says != "win"
            )
            cells = [f"`{method}`", SCORES[score][0], *map(str, counts), rest]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


@dataclass(frozen=True)
class Goal:
    """How many comparisons a method was to win, or not to lose, by one score.

    Attributes:
        words: `wins`, or `wins and ties`.
    """

    method: str
    score: str
    words: str
    wanted: int


GOALS = (
    Goal("pairs-dp, δ, n given", "marginal", "wins", 9),
    Goal("pairs-dp, δ, n given", "correlation", "wins and ties", 8),
    Goal("pairs-dp, δ, n given", "correlation", "wins", 7),
    Goal("pairs-dp, δ, n given", "f", "wins and ties", 7),
    Goal("pairs-dp, δ, n given", "f", "wins", 4),
    Goal("pairs-dp, n given", "marginal", "wins", 8),
    Goal("pairs-dp, n given", "correlation", "wins and ties", 8),
    Goal("pairs-dp, n given", "correlation", "wins", 5),
    Goal("pairs-dp, n given", "f", "wins and ties", 5),
)


def goal_table(found: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """What was aimed at before anything was measured, and how far it is."""
    lines = ["| method | score | goal | found | |", "| --- | --- | --- | ---: | --- |"]
    for goal in GOALS:
        these = [verdict for verdict in found.get(goal.method, ()) if verdict.score == goal.score]
        if not these:
            continue
        good = ("win", "tie") if goal.words == "wins and ties" else ("win",)
        count = sum(verdict.says in good for verdict in these)
        short = goal.wanted - count
        lines.append(
            f"| `{goal.method}` | {SCORES[goal.score][0]} | {goal.words} ≥ {goal.wanted} | {count} of {len(these)} | "
            f"{'reached' if short <= 0 else f'missed by {short}'} |"
        )
    return lines


@dataclass(frozen=True)
class Bound:
    """An error that a method was to stay below."""

    table: str
    method: str
    epsilon: str
    score: str
    wanted: float


BOUNDS_ON_ERRORS = (
    Bound("EIA", "pairs-dp, δ, n given", "10", "correlation", 0.055),
    Bound("EIA", "pairs-dp, δ, n given", "100", "correlation", 0.03),
    Bound("EIA", "pairs-dp, δ, n given", "10", "rank", 0.035),
    Bound("EIA", "pairs-dp, δ, n given", "100", "rank", 0.035),
)


def bound_table(cells: Sequence[Cell]) -> list[str]:
    """Heavy tails: errors beside what they were to be at most."""
    lines = ["| table, ε | method | score | goal | found | |", "| --- | --- | --- | ---: | ---: | --- |"]
    for bound in BOUNDS_ON_ERRORS:
        mine = [one for one in lines_of(cells, bound.table, bound.epsilon) if one.method == bound.method]
        if not mine or bound.score not in mine[0].figures:
            continue
        found = mine[0].figures[bound.score]
        over = found.mean - bound.wanted
        lines.append(
            f"| {bound.table}, {bound.epsilon} | `{bound.method}` | {SCORES[bound.score][0]} | ≤ {bound.wanted:g} | "
            f"{found.text('.4f')} | {'reached' if over <= 0 else f'missed by {over:.4f}'} |"
        )
    return lines if len(lines) > 2 else []


def runs_of(cells: Iterable[Cell], method: str, tables: Sequence[str]) -> list[int]:
    """How many runs of a method there are, for every table and ε where there is one."""
    found: dict[tuple[str, str], int] = {}
    for cell in cells:
        if cell.method == method and cell.table in tables and not cell.failed:
            found[cell.table, cell.epsilon] = found.get((cell.table, cell.epsilon), 0) + 1
    return list(found.values())


def duel_table(found: Sequence[Duel]) -> list[str]:
    lines = [
        "| table, ε | score | best synthesiser | best of Shoal, claim about the records | best of Shoal, any claim |",
        "| --- | --- | --- | --- | --- |",
    ]
    for duel in found:
        entries = [duel.words(duel.synthesiser), duel.words(duel.strict), duel.words(duel.any)]
        # the winner of the comparison of equal claims is bold
        if duel.gain(duel.strict):
            winner = 1 if duel.beats(duel.strict) else 0
            entries[winner] = f"**{entries[winner]}**"
        lines.append(f"| {duel.table}, {duel.epsilon} | {SCORES[duel.score][0]} | {' | '.join(entries)} |")
    return lines


def conclusion(found: Sequence[Duel], cells: Sequence[Cell]) -> list[str]:
    """Sentences that follow from the numbers, whoever they favour."""
    if not found:
        return ["No comparison is complete yet."]
    lines = [
        f"Among methods that claim differential privacy of the records, over {len(found)} comparisons of the best "
        f"synthesiser with the best of Shoal:",
        "",
    ]
    for score in COMMON:
        these = [duel for duel in found if duel.score == score]
        lost = [duel for duel in these if duel.loses(duel.strict)]
        won = [duel for duel in these if duel.beats(duel.strict)]
        lines.append(
            f"- {SCORES[score][0]}: the synthesisers win {_count(lost)}, Shoal {_count(won)}, of {len(these)}; "
            f"{len(these) - len(lost) - len(won)} too close to call."
        )
    if all(duel.any is duel.strict for duel in found):
        return [*lines, "", *_taught(found, cells), "", *_times(cells)]
    weaker = [duel for duel in found if duel.any is not duel.strict and duel.beats(duel.any)]
    only_so = [duel for duel in weaker if not duel.beats(duel.strict)]
    lines += [
        "",
        f"Methods of Shoal that claim less (given the partition) beat the best synthesiser in {len(weaker)} of "
        f"{len(found)} comparisons, in {len(only_so)} of which no method of Shoal with the same claim does. That is no "
        "win at equal promises: it is what the weaker promise buys, together with rows that correspond to records.",
        "",
        *_taught(found, cells),
    ]
    return [*lines, "", *_labels(cells), *_times(cells)]


def _count(found: Sequence[Duel]) -> str:
    """How many, and where."""
    by_table: dict[str, list[str]] = {}
    for duel in found:
        by_table.setdefault(duel.table, []).append(duel.epsilon)
    where = "; ".join(f"{table} at ε = {', '.join(each)}" for table, each in by_table.items())
    return f"{len(found)} ({where})" if found else "none"


def _taught(found: Sequence[Duel], cells: Sequence[Cell]) -> list[str]:
    """In which comparisons a forest learned more than to say yes."""
    floor = {cell.table: cell.scores["f"] for cell in cells if cell.method == ALWAYS_YES}
    these = [duel for duel in found if duel.score == "f" and duel.table in floor]
    if not these:
        return []
    theirs, strict, mine = (
        sum(getattr(duel, who).figures["f"].mean > floor[duel.table] for duel in these)
        for who in ("synthesiser", "strict", "any")
    )
    return [
        f"A forest does better than always saying yes in {theirs} of {len(these)} cases after the best synthesiser, "
        f"in {strict} after the best method of Shoal with a claim about the records, in {mine} after the best with any."
    ]


def _labels(cells: Sequence[Cell]) -> list[str]:
    """How many labels come through at the smallest ε, by claim."""
    epsilons = sorted({cell.epsilon for cell in cells if "labels" in cell.scores}, key=float)
    if not epsilons:
        return []
    shares: dict[bool, list[float]] = {True: [], False: []}
    for table in dict.fromkeys(cell.table for cell in cells):
        for line in lines_of(cells, table, epsilons[0]):
            if "labels" in line.figures:
                shares[line.of_the_records].append(line.figures["labels"].mean)
    said = []
    if shares[True]:
        said.append(
            f"At ε = {epsilons[0]} no method with the claim `dp` whose rows correspond to records gives back more than "
            f"{max(shares[True]):.0%} of the labels."
        )
    if shares[False]:
        said.append(
            f"Methods that claim less give back {min(shares[False]):.0%} to {max(shares[False]):.0%}."
        )
    return [" ".join(said), ""]


def _times(cells: Sequence[Cell]) -> list[str]:
    ours: list[float] = []
    theirs: list[float] = []
    for cell in cells:
        if cell.seconds is not None:
            (theirs if cell.method.endswith("(dpmm)") else ours).append(cell.seconds)
    if not ours or not theirs:
        return []
    return [
        f"A release of Shoal took {median(ours):.2g} seconds of processor time in the median and {max(ours):.2g} at "
        f"most, a synthesiser {median(theirs):.0f} in the median and {max(theirs):.0f} at most."
    ]


def bound_lines(cells: Iterable[Cell], table: str) -> list[Line]:
    """Bounds on F, which have no ε."""
    return [line for line in lines_of(cells, table, "") if line.method in BOUNDS]
