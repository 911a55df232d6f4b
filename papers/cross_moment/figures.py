"""The drawings of Figures 7 to 14, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from papers.cross_moment.curves import EIGEN, RANKED, Curves
from papers.cross_moment.measure import CENSUS, EIA, SETS
from papers.cross_moment.printed import first_order
from papers.plots import Curve, Panel, panels
from papers.study import Figure

# one colour for one method in all figures; a baseline has that of the method it is the noiseless form of
_COLOURS: Mapping[str, str] = {
    "1": "#222222",
    "2": "#c0392b",
    "3": "#1f7a8c",
    "4": "#d98c1f",
    "5": "#b7a12a",
    "7": "#8e6bbf",
    "8": "#b03a7d",
    "9": "#2e5fa3",
    "10": "#7a5c3e",
    "11": "#e57fa4",
    "12": "#5f7f2e",
    "13": "#6fb3c9",
    "14": "#c0392b",
    "15": "#1f7a8c",
    "16": "#d98c1f",
    "17": "#8e6bbf",
    "18": "#5f7f2e",
    "19": "#2e5fa3",
    "20": "#222222",
    "21": "#1f7a8c",
    "23": "#d98c1f",
    "24": "#b03a7d",
    "25": "#5f7f2e",
    "26": "#2e5fa3",
    "b1": "#222222",
    "b2": "#c0392b",
    "b3": "#1f7a8c",
    "b4": "#b03a7d",
    "b5": "#2e5fa3",
    "b6": "#222222",
    "b7": "#1f7a8c",
    "b8": "#b03a7d",
}
_LABELS: Mapping[str, str] = {"3": "3 (= 6)", "21": "21 (= 22)"}


def coefficient_figures(curves: Curves) -> list[Figure]:
    """Figures 7 to 10."""
    return [
        _coefficients(curves, figure, sets, epsilon)
        for figure, sets, epsilon in ((7, CENSUS, 1.0), (8, CENSUS, 2.0), (9, EIA, 1.0), (10, EIA, 2.0))
    ]


def _coefficients(curves: Curves, figure: int, sets: Sequence[str], epsilon: float) -> Figure:
    upper = ("1", "2", "3", "4", "5", "7", "b1", "b2", "b3")
    lower = ("1", "3", "8", "9", "10", "11", "12", "13", "b4", "b5")
    shown = [
        _panel(curves, f"{data}, {order}", data, methods, epsilon)
        for order, methods in (("orders 0 and 1", upper), ("order 2, with 1 and 3", lower))
        for data in sets
    ]
    title = f"Figure {figure}: log2 SSE over k, coefficients, MDAV, ε = {epsilon:g}"
    return Figure(
        f"figure-{figure}", f"{title}. Dashed: without noise.", panels(title, shown, 3, common=False)
    )


def ranking_figures(curves: Curves) -> list[Figure]:
    """Figures 12 and 13."""
    figures = []
    for figure, epsilon in ((12, 1.0), (13, 2.0)):
        shown = [
            _panel(curves, f"{data}, {order}", data, methods, epsilon)
            for order, methods in (
                ("orders 0 and 1", ("20", "21", "23", "b6", "b7")),
                ("order 2, with 20 and 21", ("20", "21", *_plain(RANKED[-3:]), "b8")),
            )
            for data in ("Census 4", "EIA 4")
        ]
        title = f"Figure {figure}: log2 SSE over k, individual ranking, ε = {epsilon:g}"
        drawing = panels(title, shown, 2, common=False)
        figures.append(Figure(f"figure-{figure}", f"{title}. Dashed: without noise.", drawing))
    return figures


def eigen_figure(curves: Curves) -> Figure:
    """Figure 14."""
    shown = [_panel(curves, data, data, ("1", *_plain(EIGEN)), 2.0) for data in SETS]
    title = "Figure 14: log2 SSE over k, eigen form (individual DP), ε = 2"
    return Figure("figure-14", title, panels(title, shown, 3, common=False))


def k_min_figure(curves: Curves) -> Figure:
    """Figure 11."""
    colours = ("#222222", "#c0392b", "#1f7a8c", "#d98c1f", "#8e6bbf", "#5f7f2e")
    drawn = []
    for data, colour in zip(SETS, colours, strict=True):
        largest = float(curves.ks(data)[-1])
        sizes = [min(curves.k_min(data, "xm-3", epsilon), largest) for epsilon in curves.epsilons]
        drawn.append(Curve(data, curves.epsilons, sizes, colour))
        drawn.append(Curve(f"{data}, printed", (1.0, 2.0), _printed(data), colour, dashed=True))
    title = "Figure 11: the k from which method 3 beats method 1, over ε"
    caption = (
        f"{title}; where method 1 is never overtaken, the largest size measured. Dashed: the printed sizes at "
        "ε = 1 and 2, joined."
    )
    return Figure("figure-11", caption, panels(title, [Panel("k", drawn, "ε")], 1, logarithmic=False))


def _printed(data: str) -> list[float]:
    return [first_order(data, epsilon) for epsilon in (1.0, 2.0)]


def _plain(methods: Sequence[str]) -> tuple[str, ...]:
    return tuple(method.removeprefix("xm-") for method in methods)


def _panel(curves: Curves, title: str, data: str, methods: Sequence[str], epsilon: float) -> Panel:
    drawn = [
        Curve(
            _LABELS.get(method, method.upper()),
            curves.ks(data),
            curves.medians(data, f"xm-{method}", epsilon).tolist(),
            _COLOURS[method],
            method.startswith("b"),
        )
        for method in methods
    ]
    return Panel(title, drawn)
