"""The variable sizes that MDAI-2017 leaves to future work: best sizes come in, a section with numbers leaves."""

from __future__ import annotations

import time

import numpy as np

from papers.cluster_errors import share_verdict
from papers.desk import Desk
from papers.mdai2017 import facts
from papers.mdai2017.curves import EPSILONS, IR_1, IR_2, IR_OURS, Curves, Point
from papers.mdai2017.printed import OPTIMAL_GAINS
from papers.study import Claim, Number, Section
from shoal.partition import Partition, optimal, ranking

_SAME_SPLIT = {"equal": IR_1, "proportional": IR_2, "optimal": IR_OURS}


def section(desk: Desk, curves: Curves) -> Section:
    sizes = facts.all_best_sizes(desk)
    errors = facts.optimal_errors(desk)
    return Section(
        "Clusters of varying size, k = 1",
        "The paper proposes variable sizes without a minimum as future work. `optimal-dp` does that: for each "
        "attribute the partition of least expected error, of all there are. Errors of one attribute are before "
        "clipping, at ε = 1; groups of fixed size leave their remainder last here, as the prototype's numbers need.",
        _numbers(sizes),
        _tables(sizes, errors, curves),
        claims=_claims(desk, sizes, errors, curves),
    )


def _numbers(sizes: list[facts.BestSizes]) -> list[Number]:
    by_name = {one.attribute: one for one in sizes}
    found = dict(
        zip(
            OPTIMAL_GAINS,
            (
                float(np.mean([one.gain for one in sizes])),
                by_name["INTVAL"].gain,
                by_name["POTHVAL"].gain,
                float(np.mean([one.gain_over_fifty for one in sizes])),
            ),
            strict=True,
        )
    )
    return [
        Number("prototype, Census", f"error saved, per cent, against: {what}", printed, 100 * found[what])
        for what, printed in OPTIMAL_GAINS.items()
    ]


def _tables(sizes: list[facts.BestSizes], errors: dict[tuple[str, int], Point], curves: Curves) -> str:
    lines = [
        "| attribute | best fixed k | its error | best sizes | error | saved |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {one.attribute} | {one.fixed_k} | {one.fixed:.3g} | {one.smallest} to {one.largest} | {one.best:.3g} | "
            f"{one.gain:.0%} |"
            for one in sizes
        ),
        "",
        "Census-4, expected SSE of a release with clipping, beside the best of the fixed k of Figure 3:",
        "",
        "| ε | split | best fixed k | individual ranking | best sizes | saved |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for (split, epsilon), point in sorted(errors.items(), key=lambda item: (item[0][1], item[0][0])):
        k, fixed = curves.best(_SAME_SPLIT[split], epsilon)
        lines.append(
            f"| {epsilon} | {split} | {k} | {fixed:.3g} | {point['sse']:.3g} | {1 - point['sse'] / fixed:.0%} |"
        )
    return "\n".join(lines)


def _claims(
    desk: Desk, sizes: list[facts.BestSizes], errors: dict[tuple[str, int], Point], curves: Curves
) -> list[Claim]:
    saved = [
        1 - errors[split, epsilon]["sse"] / curves.best(name, epsilon)[1]
        for split, name in _SAME_SPLIT.items()
        for epsilon in EPSILONS
    ]
    x = desk.table("census.csv")["FICA"].to_numpy()
    alone = facts.squared_error(Partition.from_labels(np.arange(x.size)), x.astype(np.float64))
    larger = [one.smallest > 1 for one in sizes]
    varied = [one.largest > one.smallest for one in sizes]
    slower = _relative_time(desk)
    return [
        Claim(
            "section 4.1",
            "A fixed cluster size limits the accuracy that can be reached.",
            f"Free sizes save {min(one.gain for one in sizes):.0%} to {max(one.gain for one in sizes):.0%} of the "
            "error against the best fixed k, attribute by attribute.",
            share_verdict(sum(one.gain > 0 for one in sizes), len(sizes)),
        ),
        Claim(
            "section 3",
            "A smaller cluster can be better where one more record would cost much.",
            f"The best sizes vary in {sum(varied)} of {len(varied)} attributes, from "
            f"{min(one.smallest for one in sizes)} to {max(one.largest for one in sizes)} records.",
            share_verdict(sum(varied), len(varied)),
        ),
        Claim(
            "future work",
            "Without noise, the best partition without a minimum size is every record by itself.",
            f"Its SSE is {alone:g}, the least there is.",
            "holds" if alone == 0 else "fails",
        ),
        Claim(
            "future work",
            "With noise to come, the best partition has larger clusters.",
            f"At ε = 1 no cluster of one record in {sum(larger)} of {len(larger)} attributes; the smallest has "
            f"{min(one.smallest for one in sizes)}.",
            share_verdict(sum(larger), len(larger)),
        ),
        Claim(
            "future work",
            "Variable sizes can be expected to give better utility.",
            f"On Census-4 {min(saved):.0%} to {max(saved):.0%} less SSE than individual ranking at its best k, over "
            "three splits and two ε. The partition is exact, not a heuristic.",
            share_verdict(sum(part > 0 for part in saved), len(saved)),
        ),
        Claim(
            "future work",
            "Variable sizes cost more computing.",
            f"About {float(f'{slower:.1g}'):.0f} times the processor time of individual ranking here, for the 1,080 "
            "records of an attribute; both are O(n log n) (docs/optimal.md has a million).",
            "holds" if slower > 1 else "fails",
        ),
    ]


def _relative_time(desk: Desk) -> float:
    """Processor time of the best sizes over that of individual ranking, of one attribute, best of three."""
    x = desk.table("census.csv")["FICA"].to_numpy()
    width = 1.5 * float(x.max())
    times = []
    for _ in range(3):
        started = time.process_time()
        ranking(x, 50)
        between = time.process_time()
        optimal(x, width, 1, k=1)
        times.append((between - started, time.process_time() - between))
    sorting, sizing = (min(column) for column in zip(*times, strict=True))
    return float(sizing / max(sorting, 1e-6))
