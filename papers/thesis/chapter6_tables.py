"""Tables 6.1 to 6.5 and Figures 6.4, 6.5: measurements next to the published values, and drawings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from papers.plots import COLOURS, Curve, Panel, panels
from papers.study import Number, Series
from papers.thesis.chapter6_print import KS, STATISTICS, TABLE_6_1, TABLE_6_2, TABLE_6_3, TABLE_6_4, TABLE_6_5
from papers.thesis.chapter6_runs import EPSILONS, Alone, Found, Noisy, Runs, factors
from papers.thesis.chapter6_verdicts import LOW

TREES = (
    "the thesis' trees (WordNet 2.1, 122 and 127 concepts) are not at hand; distances, boundaries, centroids and the "
    "number of candidates depend on the tree"
)
TEN_TIMES = (
    "printed ten times too small (its own SSE_f and Table 6.4 give ten times as much); the rest: other trees"
)
CHANCE = "linkages are chance here, about one record a run: a mean of ten runs scatters by a third"
# about one of this many differences exceeds three standard errors by chance alone
ONE_IN = 370
RARE = f"more than three standard errors, as one of {ONE_IN} is by chance; nothing else known"
FACTORS = ("SSE_f", "RL_f", "Score")


def against_mdav(table: Mapping[int, str], where: str, found: Found, why: str = "") -> Iterator[Number]:
    """Tables 6.1 and 6.3: MDAV itself, then the factors of the published method against it."""
    for k, line in table.items():
        if k not in found.alone["MDAV"]:
            continue
        base, printed = found.alone["MDAV"][k], line.split()
        ten = TEN_TIMES if why else ""
        yield Number(where, f"MDAV, k = {k}, SSE₀", printed[0], base.sse, why=ten)
        yield Number(where, f"MDAV, k = {k}, RL₀", printed[1], base.linkage, why=why)
        for number, epsilon in enumerate(EPSILONS):
            own = printed[2 + 3 * number : 5 + 3 * number]
            yield from _factors(
                where, f"k = {k}, ε = {epsilon}", epsilon, own, base, found.noisy[k, epsilon], why
            )


def against_plain(table: Mapping[str, str], where: str, found: Found, why: str = "") -> Iterator[Number]:
    """Tables 6.2 and 6.4: no clusters (k = 1), then the factors against them."""
    for epsilon, line in table.items():
        base, printed = found.noisy[1, epsilon], line.split()
        for name, digits, runs in (("SSE₀", printed[0], base.sse), ("RL₀", printed[1], base.linkage)):
            reason = why or _reason(name, epsilon)
            yield Number(where, f"k = 1, ε = {epsilon}, {name}", digits, runs.mean, runs.spread, reason)
        for number, k in enumerate(KS[1:]):
            if (k, epsilon) in found.noisy:
                own = printed[2 + 3 * number : 5 + 3 * number]
                yield from _factors(
                    where, f"ε = {epsilon}, k = {k}", epsilon, own, base, found.noisy[k, epsilon], why
                )


def _reason(name: str, epsilon: str) -> str:
    return CHANCE if epsilon in LOW and not name.startswith("SSE") else RARE


def _factors(
    where: str, what: str, epsilon: str, printed: Sequence[str], base: Noisy | Alone, found: Noisy, why: str
) -> Iterator[Number]:
    for name, digits, factor in zip(FACTORS, printed, factors(base, found), strict=True):
        reason = why or _reason(name, epsilon)
        yield Number(where, f"{what}, {name}", digits, factor.value, factor.error, reason)


def statistics(found: Found) -> Iterator[Number]:
    """Table 6.5: the size of the mean variation over runs, and the two columns without noise."""
    for (statistic, k), printed in TABLE_6_5.items():
        number, what = STATISTICS.index(statistic), f"{statistic}, k = {k}"
        for place, epsilon in enumerate(EPSILONS):
            runs = found.noisy[k, epsilon].variations[number]
            yield Number(
                "Table 6.5", f"{what}, ε = {epsilon}", printed[place], abs(runs.mean), runs.spread, RARE
            )
        for place, name in enumerate(("insensitive", "MDAV"), start=len(EPSILONS)):
            value = abs(found.alone[name][k].variations[number]) if k > 1 else 0.0
            # a mean that is preserved comes out with the last bit off
            yield Number(
                "Table 6.5", f"{what}, {name} alone", printed[place], value if value > 1e-12 else 0.0
            )


def table_numbers(census: Found, adult: Found) -> dict[str, list[Number]]:
    """All cells of the five tables, by table."""
    return {
        "6.1": list(against_mdav(TABLE_6_1, "Table 6.1", census)),
        "6.2": list(against_plain(TABLE_6_2, "Table 6.2", census)),
        "6.3": list(against_mdav(TABLE_6_3, "Table 6.3", adult, TREES)),
        "6.4": list(against_plain(TABLE_6_4, "Table 6.4", adult, TREES)),
        "6.5": list(statistics(census)),
    }


def curves(name: str, found: Found) -> Series:
    """All points of Figure 6.4 or 6.5."""
    rows: list[Sequence[object]] = []
    for (k, epsilon), noisy in sorted(found.noisy.items(), key=lambda item: (float(item[0][1]), item[0][0])):
        runs = noisy.sse.values.size
        errors = (f"{noisy.sse.error():.2g}", f"{noisy.linkage.error():.2g}")
        rows.append(
            (
                f"published, ε = {epsilon}",
                k,
                f"{noisy.sse.mean:.6g}",
                errors[0],
                f"{noisy.linkage.mean:.5g}",
                errors[1],
                runs,
            )
        )
    for method in ("insensitive", "MDAV", "single"):
        for k, alone in found.alone[method].items():
            rows.append((f"{method}, no noise", k, f"{alone.sse:.6g}", "0", f"{alone.linkage:.5g}", "0", 1))
    columns = ("method", "k", "sse", "sse_standard_error", "rl_percent", "rl_standard_error", "runs")
    return Series(name, columns, rows)


def picture(title: str, found: Found) -> str:
    """log10 of SSE and of linkage over k, one curve for each ε and for both kinds of clusters."""
    named: dict[str, list[tuple[int, float, float]]] = {
        f"ε = {epsilon}": [(k, found.sse(k, epsilon), found.linkage(k, epsilon)) for k in found.ks]
        for epsilon in EPSILONS
    }
    for method in ("insensitive", "MDAV"):
        named[method] = [(k, one.sse, one.linkage) for k, one in found.alone[method].items()]
    shown = []
    for place, words in ((1, "log10 SSE"), (2, "log10 RL (percent)")):
        lines = []
        for number, (name, points) in enumerate(named.items()):
            some = [point for point in points if point[place] > 0]
            lines.append(
                Curve(
                    name,
                    [point[0] for point in some],
                    [math.log10(point[place]) for point in some],
                    COLOURS[number % len(EPSILONS)],
                    dashed=number >= len(EPSILONS),
                )
            )
        shown.append(Panel(words, lines))
    return panels(title, shown, common=False)


def strict_table(found: Mapping[tuple[str, int | None, str], Runs]) -> str:
    """Markdown: the strict composition beside plain Laplace noise."""
    epsilons = list(dict.fromkeys(epsilon for _, _, epsilon in found))
    lines = [
        "| method | " + " | ".join(f"ε = {epsilon}" for epsilon in epsilons) + " |",
        "| --- |" + " ---: |" * len(epsilons),
    ]
    for method, k in dict.fromkeys((method, k) for method, k, _ in found):
        runs = [found[method, k, epsilon] for epsilon in epsilons]
        words = f"`{method}`" if k is None else f"`{method}`, k = {k}" + (" (default)" if k == 34 else "")
        shown = (f"{one.mean:.3g} ± {one.error():.1g}" for one in runs)
        lines.append(f"| {words} | {' | '.join(shown)} |")
    return "\n".join(lines)
