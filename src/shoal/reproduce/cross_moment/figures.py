"""The figures of the cross-moment paper: measured cells come in, medians, crossings and SVG leave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.reproduce.cross_moment.measure import SETS, Cell, Measured, measure, overtakes
from shoal.reproduce.plots import Curve, Panel, panels

EPSILONS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
CENSUS, EIA = ("Census 2", "Census 3", "Census 4"), ("EIA 2", "EIA 3", "EIA 4")
FIRST = tuple(f"xm-{number}" for number in range(1, 8))
SECOND = tuple(f"xm-{number}" for number in (1, 3, *range(8, 14)))
_COLOURS = ("#1f7a8c", "#c0392b", "#8e6bbf", "#5f7f2e", "#d98c1f", "#444444", "#2e5fa3", "#b03a7d", "#7a5c3e")
_QUICK_SIZES = {"Census": (100, 200, 350, 500), "EIA": (200, 500, 800, 1200)}


class Figures:
    """All measured cells and what is drawn from them."""

    def __init__(self, quick: bool, runs: int, workers: int, keep: Path | None) -> None:
        self.quick, self.runs = quick, runs
        cells = [cell for group in self.groups().values() for cell in group]
        self.found: dict[Cell, Measured] = measure(cells, runs, workers, keep)

    @property
    def minutes(self) -> float:
        """Processor time of all cells."""
        return sum(measured.seconds for measured in self.found.values()) / 60

    def sizes(self, data: str) -> tuple[int, ...]:
        return _QUICK_SIZES[data.split()[0]] if self.quick else SETS[data].sizes

    def cells(self, data: str, methods: Sequence[str], epsilon: float) -> list[Cell]:
        return [Cell(data, method, k, epsilon) for method in methods for k in self.sizes(data)]

    def groups(self) -> dict[str, list[Cell]]:
        """The cells of every figure."""
        wanted: dict[str, list[Cell]] = {}
        for figure, sets, epsilon in ((7, CENSUS, 1.0), (8, CENSUS, 2.0), (9, EIA, 1.0), (10, EIA, 2.0)):
            wanted[str(figure)] = [
                cell
                for data in sets
                for cell in self.cells(data, (*FIRST, *SECOND, *_names("xm-b", range(1, 6))), epsilon)
            ]
        wanted["11"] = [
            cell for data in SETS for epsilon in EPSILONS for cell in self.cells(data, FIRST[:3], epsilon)
        ]
        ranked = (*_names("xm-", range(20, 27)), *_names("xm-b", range(6, 9)))
        for figure, epsilon in ((12, 1.0), (13, 2.0)):
            wanted[str(figure)] = [c for d in ("Census 4", "EIA 4") for c in self.cells(d, ranked, epsilon)]
        eigen = ("xm-1", *_names("xm-", range(14, 20)))
        wanted["14"] = [cell for data in SETS for cell in self.cells(data, eigen, 2.0)]
        return wanted

    def medians(self, data: str, method: str, epsilon: float) -> list[float]:
        return [self.found[Cell(data, method, k, epsilon)].median for k in self.sizes(data)]

    def k_min(self, data: str, method: str, epsilon: float, base: str = "xm-1") -> float | None:
        return overtakes(
            self.sizes(data), self.medians(data, base, epsilon), self.medians(data, method, epsilon)
        )

    def panel(self, title: str, data: str, methods: Sequence[str], epsilon: float) -> Panel:
        curves = []
        for place, method in enumerate(methods):
            name = method.removeprefix("xm-").upper()
            colour = _COLOURS[place % len(_COLOURS)]
            curves.append(
                Curve(name, self.sizes(data), self.medians(data, method, epsilon), colour, name[0] == "B")
            )
        return Panel(title, curves)

    def drawn(self) -> dict[str, str]:
        """File name -> SVG of every figure."""
        files = {}
        for figure, sets, epsilon in ((7, CENSUS, 1.0), (8, CENSUS, 2.0), (9, EIA, 1.0), (10, EIA, 2.0)):
            # a colour means one method in the whole figure
            order = [*FIRST, *_names("xm-b", range(1, 4))]
            top = [self.panel(f"{data}, m = 0, 1", data, order, epsilon) for data in sets]
            lower = [*SECOND, "xm-b4", "xm-b5"]
            bottom = [self.panel(f"{data}, m = 2", data, lower, epsilon) for data in sets]
            title = f"Figure {figure}: log2 SSE over k, coefficients, MDAV, ε = {epsilon:g}"
            files[f"cross-moment-{figure}a.svg"] = panels(title + ", orders 0 and 1", top, 3, common=False)
            files[f"cross-moment-{figure}b.svg"] = panels(title + ", order 2", bottom, 3, common=False)
        files["cross-moment-11.svg"] = self._figure_11()
        for figure, epsilon in ((12, 1.0), (13, 2.0)):
            shown = [
                self.panel(f"{data}, {part}", data, methods, epsilon)
                for part, methods in (
                    ("m = 0, 1", [*_names("xm-", range(20, 24)), "xm-b6", "xm-b7"]),
                    ("m = 2", ["xm-20", "xm-21", "xm-24", "xm-25", "xm-26", "xm-b8"]),
                )
                for data in ("Census 4", "EIA 4")
            ]
            files[f"cross-moment-{figure}.svg"] = panels(
                f"Figure {figure}: log2 SSE over k, individual ranking, ε = {epsilon:g}",
                shown,
                2,
                common=False,
            )
        eigen = [self.panel(data, data, ["xm-1", *_names("xm-", range(14, 20))], 2.0) for data in SETS]
        files["cross-moment-14.svg"] = panels(
            "Figure 14: log2 SSE over k, eigen form (individual DP), ε = 2", eigen, 3, common=False
        )
        return files

    def _figure_11(self) -> str:
        curves = []
        for place, data in enumerate(SETS):
            points = [(epsilon, self.k_min(data, "xm-3", epsilon)) for epsilon in EPSILONS]
            some = [(epsilon, k) for epsilon, k in points if k is not None]
            if some:
                curves.append(Curve(data, [e for e, _ in some], [k for _, k in some], _COLOURS[place]))
        return panels(
            "Figure 11: k from which method 3 beats method 1, over ε",
            [Panel("k", curves, "ε")],
            1,
            common=True,
        )


def _names(prefix: str, numbers: range) -> list[str]:
    return [f"{prefix}{number}" for number in numbers]
