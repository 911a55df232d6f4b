"""Compare the noise families with Laplace noise: write the tables and figures of docs/noise.md.

python -m benchmarks.noise_families [--page docs/noise.md]
"""

from __future__ import annotations

import argparse
import datetime
import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.noise import (
    Box,
    LatticeBox,
    LatticeStaircase,
    Staircase,
    block_deviations,
    block_noise,
    discrete_box,
    discrete_gaussian,
    discrete_laplace,
    discrete_staircase,
    elliptope_deviation,
    elliptope_noise,
    rho_from,
)
from shoal.workers import machine_words

PAGE = Path(__file__).parents[1] / "docs" / "noise.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
DRAWS = 1_000_000
ROUNDS = 3
OPENDP_DRAWS = 20_000
DELTA = Fraction(1, 10**6)
_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 540, 30, 250
_COLOURS = ("#1f7a8c", "#c0392b", "#8e6bbf")
Curve = tuple[str, NDArray[np.float64], NDArray[np.float64]]


def gains() -> list[str]:
    """Variance of box noise against Laplace noise with equal shares, by the number of attributes."""
    lines = [
        "Variance per attribute of a group that is protected together: box noise relative to Laplace noise with "
        "equal shares:",
        "",
        "| attributes | ε = 0.1 | ε = 1 | ε = 4 |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for attributes in (1, 2, 4, 9, 13):
        ratios = [
            Box.best((1.0,) * attributes, epsilon).variances[0] / (2 * (attributes / epsilon) ** 2)
            for epsilon in (0.1, 1.0, 4.0)
        ]
        lines.append(f"| {attributes} | " + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |")
    printed, best = Box((1.0, 10.0), 1.0, (0.1, 1.0)), Box.best((1.0, 10.0), 1.0)
    return [
        *lines,
        "",
        f"Example 5 of the thesis (sensitivities 1 and 10, ε = 1) has variances {printed.variances[0]:.4f} and "
        f"{printed.variances[1]:.2f} if the innermost box has a tenth of these widths. The best share, "
        f"{best.centre[0]:.4f}, gives {best.variances[0]:.4f} and {best.variances[1]:.2f}.",
    ]


def samplers() -> list[str]:
    """Draws per second on one core and the variance of the draws over the closed form."""
    lines = [
        f"Draws per second of processor time, best of {ROUNDS} interleaved rounds of {DRAWS:,} draws, and variance of "
        "the draws relative to the closed form:",
        "",
        "| noise | sensitivity (steps) | ε | draws/s | Laplace draws/s | variance |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for steps, epsilon in ((1, "1"), (1000, "0.1"), (10**6, "1"), (10**9, "0.01"), (10**9, "3")):
        lattice = LatticeStaircase.best(steps, Fraction(epsilon))
        rates, draws = _fastest(
            lambda steps=steps, epsilon=epsilon: discrete_staircase(steps, epsilon, DRAWS),
            lambda steps=steps, epsilon=epsilon: discrete_laplace(-int(-steps // Fraction(epsilon)), DRAWS),
        )
        ratio = float(np.mean(draws.astype(np.float64) ** 2)) / lattice.variance
        lines.append(
            f"| staircase | {steps:,} | {epsilon} | {rates[0]:,.0f} | {rates[1]:,.0f} | {ratio:.4f} |"
        )
    for widths, epsilon in (((1000, 10_000), "1"), ((10**6, 10**3, 77, 10**9), "0.1")):
        shape = LatticeBox.best(widths, Fraction(epsilon))
        rates, draws = _fastest(
            lambda widths=widths, epsilon=epsilon: discrete_box(widths, epsilon, DRAWS),
            lambda widths=widths: discrete_laplace(sum(widths), (DRAWS, len(widths))),
        )
        ratio = float(np.mean((draws.astype(np.float64) ** 2).mean(axis=0) / shape.variances))
        names = ", ".join(f"{width:,}" for width in widths)
        lines.append(
            f"| box | {names} | {epsilon} | {rates[0]:,.0f} vectors | {rates[1]:,.0f} vectors | {ratio:.4f} |"
        )
    return lines


def fitted() -> list[str]:
    """Spread of an entry where one record moves all entries at once, by the noise, and the time of a draw."""
    lines = [
        "Noise fitted to a record: standard deviation of an entry at ε = 1 under add-remove, with all entries under "
        f"one budget; Gaussian noise has δ = {float(DELTA):g}. In brackets: the standard deviation of draws relative "
        "to the closed form, rounding included, and the processor time of one draw of all entries:",
        "",
        "| sums | entries | Laplace | block | elliptope | Gaussian |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    rho = float(rho_from(Fraction(1), DELTA))
    for signs in (3, 6, 10, 20, 40, 60):
        products = signs * (signs - 1) // 2
        block = _drawn(lambda n=products: block_noise([1] * n, 1), block_deviations([1] * products, 1)[0])
        upper = np.triu_indices(signs, 1)
        elliptope = _drawn(
            lambda d=signs, upper=upper: elliptope_noise(d, 1)[upper], elliptope_deviation(signs, 1)
        )
        lines.append(
            f"| products of {signs} signs | {products:,} | {math.sqrt(2) * products:,.1f} | {block} | {elliptope} | "
            f"{math.sqrt(products / (2 * rho)):,.1f} |"
        )
    for blocks, size in ((8, 16), (45, 4), (45, 64)):
        block = _drawn(
            lambda blocks=blocks, size=size: block_noise([size] * blocks, 1),
            block_deviations([size] * blocks, 1)[0],
        )
        lines.append(
            f"| {blocks} tables of {size} counts | {blocks * size:,} | {math.sqrt(2) * blocks:,.1f} | {block} | - | "
            f"{math.sqrt(blocks / (2 * rho)):,.1f} |"
        )
    return lines


def _drawn(draw: Callable[[], NDArray[np.int64]], deviation: float) -> str:
    draw()
    runs = 200
    start = time.process_time()
    squares = [float((draw().astype(np.float64) ** 2).mean()) for _ in range(runs)]
    seconds = (time.process_time() - start) / runs
    return f"{deviation:,.1f} ({math.sqrt(sum(squares) / runs) / deviation:.3f}, {1000 * seconds:.1f} ms)"


def gaussians() -> list[str]:
    """Draws per second of discrete Gaussian noise beside OpenDP's, on one core and in one run."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    lines = [
        f"Discrete Gaussian noise: draws per second of processor time, best of {ROUNDS} interleaved rounds, and "
        "variance of the draws relative to σ²:",
        "",
        "| σ | draws/s | OpenDP draws/s | ratio | variance |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for deviation in (2, 100, 10**4, 10**8):
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
        peer = dp.m.make_gaussian(*space, scale=float(deviation))
        zeros = [0] * OPENDP_DRAWS
        best = [0.0, 0.0]
        for _ in range(ROUNDS):
            start = time.process_time()
            draws = discrete_gaussian(deviation**2, DRAWS)
            middle = time.process_time()
            peer(zeros)
            best[0] = max(best[0], DRAWS / (middle - start))
            best[1] = max(best[1], OPENDP_DRAWS / (time.process_time() - middle))
        ratio = float(np.mean((draws / deviation) ** 2))
        lines.append(
            f"| {deviation:,} | {best[0]:,.0f} | {best[1]:,.0f} | {best[0] / best[1]:.0f}x | {ratio:.4f} |"
        )
    return lines


def _fastest(
    sampler: Callable[[], NDArray[np.int64]], peer: Callable[[], NDArray[np.int64]]
) -> tuple[list[float], NDArray[np.int64]]:
    best = [0.0, 0.0]
    drawn = sampler()
    for _ in range(ROUNDS):
        for number, work in enumerate((sampler, peer)):
            start = time.process_time()
            work()
            best[number] = max(best[number], DRAWS / (time.process_time() - start))
    return best, drawn


def figures() -> dict[str, str]:
    """Four pictures: densities, variance and interval by the width of the centre, marginals of Example 5."""
    x = np.linspace(-4, 4, 1601)
    laplace = np.exp(-np.abs(x)) / 2
    narrow, short = Staircase.best(1.0, 1.0), Staircase.best(1.0, 1.0, "interval")
    d = np.linspace(0.001, 1, 400)
    shapes = [Staircase(1.0, 1.0, float(centre)) for centre in d]
    variances = np.array([shape.variance for shape in shapes])
    lengths = np.array([2 * shape.interval(0.95) for shape in shapes])
    wide = np.linspace(-60, 60, 2401)
    return {
        "staircase-density": plot(
            "Density, sensitivity 1, ε = 1",
            [
                ("least variance", x, narrow.density(x)),
                ("Laplace", x, laplace),
                ("shortest 95%", x, short.density(x)),
            ],
        ),
        "staircase-variance": plot(
            "Variance by the half-width d of the centre, ε = 1",
            [("staircase", d, variances), ("Laplace", d, np.full_like(d, 2.0))],
        ),
        "staircase-interval": plot(
            "Length of the 95% interval by d, ε = 1",
            [("staircase", d, lengths), ("Laplace", d, np.full_like(d, 2 * math.log(20)))],
        ),
        "box-marginals": plot(
            "Marginal densities of Example 5",
            [
                ("box, first", wide, _marginal(wide, 0)),
                ("Laplace, both", wide, np.exp(-np.abs(wide) / 11) / 22),
                ("box, second", wide, _marginal(wide, 1)),
            ],
            top=0.08,
        ),
    }


def _marginal(x: NDArray[np.float64], coordinate: int) -> NDArray[np.float64]:
    """The density of one coordinate of Example 5: the boxes that reach x, each uniform."""
    reach = np.array([0.1, 1.0])[coordinate] + np.arange(80) * np.array([1.0, 10.0])[coordinate]
    weights = np.exp(-np.arange(80.0)) * (0.1 + np.arange(80.0)) ** 2
    uniform = (np.abs(x)[:, None] <= reach) / (2 * reach)
    return np.asarray(uniform @ (weights / weights.sum()))


def plot(title: str, curves: Sequence[Curve], top: float | None = None) -> str:
    """Curves over one axis as a small SVG; a curve is a name, places and values."""
    low_x, high_x = curves[0][1][0], curves[0][1][-1]
    values = np.concatenate([values for _, _, values in curves])
    low_y, high_y = (float(values.min()), float(values.max())) if top is None else (0.0, top)
    low_y = 0.0 if low_y < 0.1 * high_y else low_y - 0.1 * (high_y - low_y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12" role="img">',
        f'<title>{title}</title><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{title}</text>',
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="#555"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        across, up = _LEFT + share * (_RIGHT - _LEFT), _BOTTOM - share * (_BOTTOM - _TOP)
        place, value = low_x + share * (high_x - low_x), low_y + share * (high_y - low_y)
        parts += [
            f'<text x="{across:.0f}" y="{_BOTTOM + 16}" text-anchor="middle">{place:.3g}</text>',
            f'<text x="{_LEFT - 6}" y="{up + 4:.0f}" text-anchor="end">{value:.3g}</text>',
        ]
    for number, (name, places, found) in enumerate(curves):
        across = _LEFT + (places - low_x) / (high_x - low_x) * (_RIGHT - _LEFT)
        up = _BOTTOM - np.clip((found - low_y) / (high_y - low_y), 0, 1) * (_BOTTOM - _TOP)
        jumps = np.r_[True, np.abs(np.diff(up)) > 0.05]
        # both sides of a jump, and a point now and then on what is level
        kept = np.flatnonzero(jumps | np.r_[jumps[1:], True] | (np.arange(up.size) % 20 == 0))
        path = " ".join(f"{across[i]:.1f},{up[i]:.1f}" for i in kept)
        colour = _COLOURS[number]
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<text x="{_LEFT + 10 + 170 * number}" y="{_HEIGHT - 12}" fill="{colour}">{name}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=PAGE)
    page: Path = parser.parse_args().page
    text = page.read_text("utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    stamp = f"Written by `python -m benchmarks.noise_families` on {datetime.date.today()}, {machine_words()}."
    sections = [[stamp], gains(), fitted(), samplers(), gaussians()]
    body = "\n\n".join("\n".join(section) for section in sections)
    page.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}", "utf-8")
    folder = page.parent / "figures"
    folder.mkdir(exist_ok=True)
    for name, picture in figures().items():
        (folder / f"{name}.svg").write_text(picture, "utf-8")
    print(f"Written to {page} and {folder}.")


if __name__ == "__main__":
    main()
