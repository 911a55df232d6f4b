"""The variable cluster sizes that MDAI-2017 leaves to future work, with numbers."""

from __future__ import annotations

import time

import numpy as np

from papers.desk import Desk
from papers.mdai2017 import facts
from papers.mdai2017.curves import EPSILONS, IR_1, IR_2, IR_OURS, Curves, Point
from papers.mdai2017.printed import OPTIMAL_GAINS
from papers.study import Claim, Number, Section
from papers.texts import judging, wording
from shoal.partition import Partition, optimal, ranking

judge = judging("mdai2017/texts")
heading = wording("mdai2017/texts")

_SAME_SPLIT = {"equal": IR_1, "proportional": IR_2, "optimal": IR_OURS}


def section(desk: Desk, curves: Curves) -> Section:
    sizes = facts.all_best_sizes(desk)
    errors = facts.optimal_errors(desk)
    return Section(
        *heading("clusters-varying-size-k"),
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
        judge(
            "fixed-cluster-size-limits",
            (one.gain > 0 for one in sizes),
            min(one.gain for one in sizes),
            max(one.gain for one in sizes),
        ),
        judge(
            "smaller-cluster-better-where",
            varied,
            min(one.smallest for one in sizes),
            max(one.largest for one in sizes),
        ),
        judge("without-noise-best-partition", alone == 0, alone),
        judge("noise-come-best-partition", larger, min(one.smallest for one in sizes)),
        judge("variable-sizes-expected-give", (part > 0 for part in saved), min(saved), max(saved)),
        judge("variable-sizes-cost-more", slower > 1, float(f"{slower:.1g}")),
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
