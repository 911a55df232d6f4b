"""Prescribed transcripts: every random draw of the production code is recorded on one table and replayed on another.

A noisy number is kept as what is released, the private number plus its noise; a choice as the candidate chosen; a
shuffle as the rows in their released order; other draws as they are. Replayed on a neighbouring table, the code gets
noise that makes the same numbers, so that the same release must come out, and both sides' private numbers are known.

    with recording(seed=1) as mine:
        release = shoal.protect(table, ...)
    with replaying(mine.draws) as other:
        same = shoal.protect(neighbour, ...)
    # release.data equals same.data; accounting.loss(mine.draws, other.draws) is the exact log-ratio
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import shoal.query.refinement
import shoal.release.protection
from shoal.noise import Seeded, Source, block, choice, discrete, entropy, families
from shoal.noise.discrete import best_centre
from shoal.noise.entropy import shape_with
from shoal.noise.exact import split_scale
from shoal.noise.families import best_centres

from .laws import Blocks, Box, Elliptope, Gaussian, Laplace, Odds, Scores, Selection, Staircase, Transition
from .noise import DivergenceError, Noise, NoiseNumber

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """One draw: its law, what was private about it (numbers or scores), and what was released."""

    law: Any
    private: Any
    outcome: Any


@dataclass(frozen=True)
class Plain:
    """The law of a draw that no record has a part in: a shuffle, a place in a box. It is replayed as it was."""

    what: str
    arguments: tuple[Any, ...]


class Run:
    """One run of the code under a transcript.

    Args:
        prescribed: the draws to replay; None records.
        seed: of the outcomes that are recorded.
        wanted: outcomes to record where they fit, by number of the draw, for the worst case.
    """

    def __init__(
        self, prescribed: Sequence[Draw] | None, seed: int = 0, wanted: Mapping[int, Any] | None = None
    ) -> None:
        self._prescribed = prescribed
        self._wanted = wanted or {}
        self._random = np.random.default_rng(seed)
        self._bits = Seeded(seed)
        self._laws: list[Any] = []
        self._outcomes: list[Any] = []
        self._private: list[Any] = []
        # draw and place of every slot of noise handed out
        self._slots: list[tuple[int, int]] = []
        self._offset: tuple[int, int] | None = None
        self.source = TranscriptSource(self)

    @property
    def draws(self) -> tuple[Draw, ...]:
        return tuple(
            Draw(law, *(tuple(part) if isinstance(part, list) else part for part in (private, outcome)))
            for law, private, outcome in zip(self._laws, self._private, self._outcomes, strict=True)
        )

    def finish(self) -> None:
        """Every draw was used, and a replay came to the end of its transcript."""
        self._settle_offset()
        for law, private in zip(self._laws, self._private, strict=True):
            if isinstance(private, list) and any(number is None for number in private):
                raise DivergenceError(f"noise was drawn and not seen to be added to anything: {law}")
        if self._prescribed is not None and len(self._laws) != len(self._prescribed):
            raise DivergenceError(
                f"{len(self._laws)} draws were made where {len(self._prescribed)} were recorded"
            )

    def _next(self, law: Any, private: Any, make: Callable[[int], Any]) -> Any:
        """Enter a draw; its outcome is the prescribed one, or made."""
        self._settle_offset()
        number = len(self._laws)
        if self._prescribed is None:
            outcome = make(number)
        elif number >= len(self._prescribed):
            raise DivergenceError(f"draw {number} was not recorded: {law}")
        else:
            recorded = self._prescribed[number]
            if recorded.law != law:
                raise DivergenceError(f"draw {number} is {law} where {recorded.law} was recorded")
            outcome = recorded.outcome
        self._laws.append(law)
        self._private.append(private)
        self._outcomes.append(outcome)
        return outcome

    def plain(self, what: str, arguments: tuple[Any, ...], make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        if what == "below" and len(arguments) == 2 and arguments[1] == 1:
            place = self.place_in_run(arguments[0])
            if place is not None:
                return np.array([place], dtype=np.int64)
        found: NDArray[Any] = self._next(Plain(what, arguments), None, lambda number: make())
        return found.copy()

    def place_in_run(self, bound: Any) -> int | None:
        """The place of the candidate in the run that was chosen, if this bound is the run's length."""
        if self._offset is None or self._offset[0] != bound:
            return None
        place, self._offset = self._offset[1], None
        return place

    def _settle_offset(self) -> None:
        if self._offset is not None and self._offset[0] > 1:
            raise DivergenceError("one of several equally good candidates was chosen, but not which")
        self._offset = None

    def noise(self, law: Any, shape: tuple[int, ...]) -> Noise:
        count = int(np.prod(shape, dtype=np.int64))
        number = len(self._laws)
        made = self._next(law, [None] * count, lambda number: None)
        first = len(self._slots)
        self._slots += [(number, place) for place in range(count)]
        if self._prescribed is None:
            made = self._wanted_noise(number, law, count)
            self._outcomes[number] = [None] * count
        slots = np.arange(first, first + count).reshape(shape)
        # what a replay hands out is never looked at: the outcome is prescribed
        values = made if self._prescribed is None else np.zeros(count, dtype=np.int64)
        return Noise.of(np.asarray(values, dtype=np.int64).reshape(shape), slots, self)

    def _wanted_noise(self, number: int, law: Any, count: int) -> Integers:
        wanted = self._wanted.get(number)
        if isinstance(wanted, np.ndarray) and wanted.size == count:
            return wanted
        sizes, steps = _sizes(law, count)
        near = np.rint(self._random.laplace(0.0, 1.0, count) * sizes).astype(np.int64)
        signs = self._random.integers(0, 2, count) * 2 - 1
        far = self._random.random(count) < 0.5
        return np.where(far, signs * steps, near)

    def combine(self, private: Any, slots: Integers, noise: Integers) -> Integers:
        """Private numbers meet their noise: what is released leaves."""
        numbers = np.broadcast_to(np.asarray(private), slots.shape)
        if numbers.dtype.kind not in "iu" and numbers.dtype != object:
            raise DivergenceError(f"noise is added to numbers of type {numbers.dtype}")
        released = np.empty(slots.shape, dtype=np.int64)
        for place in np.ndindex(slots.shape):
            draw, index = self._slots[int(slots[place])]
            if self._private[draw][index] is not None:
                raise DivergenceError(f"the same noise is added twice: {self._laws[draw]}")
            self._private[draw][index] = int(numbers[place])
            if self._prescribed is None:
                self._outcomes[draw][index] = int(numbers[place]) + int(noise[place])
            released[place] = self._outcomes[draw][index]
        return released

    def choose(self, rule: str, scores: Scores) -> int:
        def make(number: int) -> int:
            wanted = self._wanted.get(number)
            if isinstance(wanted, int) and wanted < scores.total:
                return wanted
            if self._random.random() < 0.5:
                return int(self._random.integers(scores.total))
            # where scores change is where most is lost
            return int(self._random.choice(scores.starts()))

        chosen: int = self._next(Selection(rule, scores.total), scores, make)
        return chosen

    def pass_on(self, states: Integers, weights: Integers) -> Integers:
        """Each record's next state, given the row of weights for each state."""
        size = weights.shape[1]

        def make(number: int) -> int:
            wanted = self._wanted.get(number)
            return wanted if isinstance(wanted, int) and wanted < size else int(self._random.integers(size))

        rows = [Odds(tuple(weights[state].tolist())) for state in states.tolist()]
        return np.array([self._next(Transition(size), row, make) for row in rows], dtype=np.int64)

    def choose_run(self, lengths: Any, penalties: Any, rate: Fraction) -> int:
        """The exponential mechanism over runs of candidates; the next uniform number says which of the run."""
        scores = Scores(
            tuple(np.asarray(lengths).tolist()),
            tuple(rate * penalty for penalty in np.asarray(penalties).tolist()),
        )
        number, place = scores.run_of(self.choose("exponential", scores))
        self._offset = (scores.lengths[number], place)
        return number

    def choose_each(self, rule: str, scores: Integers, scale: Fraction) -> Integers:
        found = []
        for row in scores.tolist():
            exponents = tuple(Fraction(score) / scale for score in row)
            found.append(self.choose(rule, Scores((1,) * len(row), exponents)))
        return np.array(found, dtype=np.int64)

    def orders(self, method: Any, rebuilt: Any, source: Source) -> dict[str, Integers]:
        """Row orders that release the prescribed rows: a shuffle gives any order of the same rows the same odds."""
        if rebuilt.units is not None:
            return self._order_of_units(method, rebuilt)
        together = [list(rebuilt.values)] if method.output.linked else [[column] for column in rebuilt.values]
        _check_shuffles(method, rebuilt, together)
        found: dict[str, Integers] = {}
        for columns in together:
            bits = np.stack(
                [np.ascontiguousarray(rebuilt.values[column]).view(np.int64) for column in columns]
            )
            rows = [tuple(row) for row in bits.T.tolist()]
            released = self._next(
                Plain("rows", (tuple(columns), len(rows))),
                None,
                lambda number, rows=rows: tuple(rows[i] for i in self._bits.permutation(len(rows)).tolist()),
            )
            if sorted(rows) != sorted(released):
                raise DivergenceError(f"other rows are released of columns {', '.join(columns)}")
            places: dict[tuple[int, ...], list[int]] = {}
            for place, row in enumerate(rows):
                places.setdefault(row, []).append(place)
            order = np.array([places[row].pop() for row in released], dtype=np.int64)
            found |= dict.fromkeys(columns, order)
        return found

    def _order_of_units(self, method: Any, rebuilt: Any) -> dict[str, Integers]:
        """A permutation of units, whose rows stay together in their order."""
        shuffles = _Shuffles()
        orders = _row_orders(method, rebuilt, shuffles)
        units = int(rebuilt.units.max()) + 1
        usual = np.argsort(rebuilt.units, kind="stable")
        if [one.size for one in shuffles.drawn] != [units] or any(
            (o != usual).any() for o in orders.values()
        ):
            raise DivergenceError("units are released in an order that is not random")
        rows = np.stack([rebuilt.units, *(own.view(np.int64) for own in rebuilt.values.values())])
        order = self._next(
            Plain("units", (units, rows.tobytes())),
            None,
            lambda number: tuple(self._bits.permutation(units).tolist()),
        )
        return dict.fromkeys(rebuilt.values, np.argsort(np.array(order)[rebuilt.units], kind="stable"))


_row_orders = shoal.release.protection._row_orders
_fraction_of = shoal.query.refinement.fraction_of


class _Shuffles(Source):
    """Nothing but permutations, each of which is known again."""

    reproducible = True

    def __init__(self) -> None:
        self.drawn: list[Integers] = []

    def words(self, n: int) -> Any:
        raise DivergenceError("rows are not ordered by permutations alone")

    def permutation(self, n: int) -> Integers:
        self.drawn.append(np.arange(n))
        return self.drawn[-1]


def _check_shuffles(method: Any, rebuilt: Any, together: Sequence[Sequence[str]]) -> None:
    """The code orders columns that are linked by one permutation that was drawn for them, and by no other."""
    shuffles = _Shuffles()
    orders = _row_orders(method, rebuilt, shuffles)
    used = [{id(orders[column]) for column in columns} for columns in together]
    if [{id(order)} for order in shuffles.drawn] != used:
        raise DivergenceError("rows are released in an order that is not random")


def _sizes(law: Any, count: int) -> tuple[Any, Any]:
    """How wide the noise is, and how far out it loses most."""
    if isinstance(law, Laplace):
        return np.array([float(scale) for scale in law.scales]), np.array(law.far())
    if isinstance(law, Gaussian):
        return np.sqrt(np.array([float(variance) for variance in law.variances])), np.array(law.far())
    if isinstance(law, Staircase):
        return float(law.steps / law.epsilon), law.far()
    if isinstance(law, Blocks | Elliptope):
        far = np.resize(np.array(law.far()), count)
        return far / (60 * float(law.epsilon)), far
    steps, centre = np.array(law.steps), np.array(law.centre)
    repeat = count // max(steps.size, 1)
    return np.tile(steps / float(law.epsilon), repeat), np.tile(centre + 3 * steps, repeat)


class TranscriptSource(Source):
    """A source whose draws are entered into a run."""

    reproducible = False

    def __init__(self, run: Run) -> None:
        self._run = run

    def _draw(self, what: str, *arguments: Any) -> Any:
        known = tuple(_hashable(argument) for argument in arguments)
        return self._run.plain(what, known, lambda: getattr(self._run._bits, what)(*arguments))

    def words(self, n: int) -> Any:
        return self._draw("words", n)

    def digits(self, bits: int, n: int) -> Any:
        return self._draw("digits", bits, n)

    def below(self, bound: Any, size: Any = None) -> Any:
        return self._draw("below", bound, size)

    def bernoulli(self, numerator: Any, denominator: Any, size: Any = None) -> Any:
        return self._draw("bernoulli", numerator, denominator, size)

    def flip(self, above: Any, under: Any, n: int) -> Any:
        return self._draw("flip", above, under, n)

    def permutation(self, n: int) -> Any:
        return self._draw("permutation", n)


def _hashable(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return (argument.shape, tuple(argument.ravel().tolist()))
    return int(argument) if isinstance(argument, np.integer) else argument


def _replacements(run: Run) -> dict[Any, Any]:
    """The production functions that make a draw, and what stands for them."""

    def discrete_laplace(scale: Any, size: Any = None, source: Any = None) -> Noise:
        numerators, denominators = split_scale(scale)
        shape = shape_with(numerators.shape, size)
        pairs = (np.broadcast_to(part, shape).ravel().tolist() for part in (numerators, denominators))
        return run.noise(Laplace(tuple(Fraction(t, s) for t, s in zip(*pairs, strict=True))), shape)

    def discrete_staircase(
        steps: int,
        epsilon: Any,
        size: Any = (),
        source: Any = None,
        *,
        optimise: str = "variance",
        centre: Any = None,
    ) -> Noise:
        exact = discrete.check_staircase(steps, epsilon)
        half = best_centre(int(steps), exact, optimise) if centre is None else int(centre)
        return run.noise(Staircase(int(steps), exact, half), shape_with((), size))

    def discrete_box(
        steps: Any,
        epsilon: Any,
        size: int = 1,
        source: Any = None,
        *,
        optimise: str = "variance",
        centre: Any = None,
    ) -> Noise:
        exact = max(discrete.check_staircase(step, epsilon) for step in steps)
        moving = [j for j, step in enumerate(steps) if step > 0]
        halves = [0] * len(steps)
        best = (
            best_centres(tuple(int(steps[j]) for j in moving), exact, optimise) if centre is None else centre
        )
        for j, half in zip(moving, best, strict=True):
            halves[j] = int(half)
        return run.noise(Box(tuple(int(step) for step in steps), exact, tuple(halves)), (size, len(steps)))

    def block_noise(
        sizes: Any, epsilon: Any, source: Any = None, *, steps: Any = None, draws: Any = None
    ) -> Noise:
        widths = [1] * len(sizes) if steps is None else steps
        exact = block._checked(sizes, widths, epsilon)
        law = Blocks(tuple(map(int, sizes)), tuple(map(int, widths)), exact)
        return run.noise(law, (sum(sizes),) if draws is None else (draws, sum(sizes)))

    def elliptope_noise(signs: int, epsilon: Any, source: Any = None) -> Noise:
        return run.noise(Elliptope(signs, discrete.check_staircase(0, epsilon)), (signs, signs))

    def discrete_gaussian(variance: Any, size: Any = None, source: Any = None) -> Noise:
        exact = np.array(variance, dtype=object)
        shape = shape_with(exact.shape, size)
        variances = (Fraction(one) for one in np.broadcast_to(exact, shape).ravel())
        return run.noise(Gaussian(tuple(variances)), shape)

    def single_laplace(t: int, s: int, source: Any) -> NoiseNumber:
        (number,) = run.noise(Laplace((Fraction(t, s),)), (1,)).tolist()
        return number

    def fraction_of(bound: int, source: Any) -> int:
        place = run.place_in_run(bound)
        return _fraction_of(bound, source) if place is None else place

    return {
        discrete.discrete_laplace: discrete_laplace,
        discrete.discrete_staircase: discrete_staircase,
        families.discrete_box: discrete_box,
        block.block_noise: block_noise,
        block.elliptope_noise: elliptope_noise,
        discrete.discrete_gaussian: discrete_gaussian,
        discrete.single_laplace: single_laplace,
        choice.exponential_choice: lambda lengths, penalties, rate, source, largest=None: run.choose_run(
            lengths, penalties, rate
        ),
        choice.permute_and_flip: lambda scores, scale, source: run.choose_each(
            "permute-and-flip", scores, scale
        ),
        choice.exponential_places: lambda scores, scale, source: run.choose_each(
            "exponential", scores, scale
        ),
        choice.through_matrix: lambda states, weights, source: run.pass_on(states, weights),
        _fraction_of: fraction_of,
        entropy.source: lambda seed: run.source,
        shoal.release.protection._row_orders: run.orders,
    }


def _package() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("shoal")]


def _names_by_module() -> dict[ModuleType, tuple[int, tuple[str, ...]]]:
    """Where the package has what is replaced, looked for before any test runs; and how many names a module has."""
    for module in pkgutil.walk_packages(shoal.__path__, "shoal."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    wanted = set(map(id, _replacements(Run(None, 0, None))))
    return {
        module: (
            len(vars(module)),
            tuple(name for name, value in vars(module).items() if id(value) in wanted),
        )
        for module in _package()
    }


_NAMES = _names_by_module()


def _replace_everywhere(functions: Mapping[Any, Any]) -> None:
    """Put functions in the place of others in every module of the package that has them by any name."""
    replacing = {id(before): after for before, after in functions.items()}
    for module in _package():
        names = vars(module)
        count, known = _NAMES.get(module, (-1, ()))
        # a module that has got more names, or was loaded since, is searched
        for name in known if count == len(names) else list(names):
            if id(names[name]) in replacing:
                setattr(module, name, replacing[id(names[name])])


@contextmanager
def _in_charge(run: Run) -> Iterator[Run]:
    replacements = _replacements(run)
    rules = {name: replacements[rule] for name, rule in choice._RULES.items()}
    _replace_everywhere(replacements)
    try:
        with patch.dict(choice._RULES, rules):
            yield run
        run.finish()
    finally:
        # modules that were loaded meanwhile hold the replacements, too
        _replace_everywhere({after: before for before, after in replacements.items()})


def recording(seed: int = 0, wanted: Mapping[int, Any] | None = None) -> Any:
    """Draw outcomes at random, half of them where most is lost, or those that are wanted, and record them all."""
    return _in_charge(Run(None, seed, wanted))


def replaying(draws: Sequence[Draw]) -> Any:
    """Give the same outcomes to code that runs on other records."""
    return _in_charge(Run(draws))
