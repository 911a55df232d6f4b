"""Settings that were chosen on the records: what a recipe says about them comes in, its part of a statement leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.errors import OptionError, did_you_mean
from shoal.method import OPTIONS
from shoal.noise import parse_epsilon

# what `shoal tune --private` can choose
BOUGHT = ("k", "split")


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was chosen by looking at the records, and what was paid for it.

    Attributes:
        what: names of the settings, `method` among them.
        epsilon: the budget that a private choice cost; None where nothing was paid, which taints a statement.
    """

    what: tuple[str, ...]
    epsilon: Fraction | None = None

    @property
    def text(self) -> str:
        """The names as a recipe holds them."""
        return ", ".join(self.what)

    @property
    def words(self) -> str:
        """The names in a sentence.

        >>> Tuned(("method", "k", "split")).words
        'method, k and split'
        """
        return " and ".join([", ".join(self.what[:-1]), self.what[-1]] if len(self.what) > 1 else self.what)

    @property
    def taint(self) -> tuple[str, ...]:
        """What a statement lists among the choices that looked at the records; nothing for a choice that was paid for.

        >>> Tuned(("k",)).taint
        ('k was chosen by looking at the records (shoal tune).',)
        """
        if self.epsilon is not None:
            return ()
        return (f"{self.words} {self._were} chosen by looking at the records (shoal tune).",)

    @property
    def condition(self) -> str:
        """What a statement says about a choice that was paid for."""
        return (
            f"{self.words} {self._were} chosen from the records by the exponential mechanism (shoal tune --private), "
            "from candidates fixed without looking at them; ε includes what that cost."
        )

    @property
    def _were(self) -> str:
        return "were" if len(self.what) > 1 else "was"


def tuned_settings(tuned: str | Sequence[str] | None, epsilon: Any = None) -> Tuned | None:
    """The settings that a caller or a recipe says were chosen on the records.

    Raises:
        OptionError: a name is no setting, or a budget is given for what it cannot have paid for.

    >>> tuned_settings("method, k"), tuned_settings(None)
    (Tuned(what=('method', 'k'), epsilon=None), None)
    """
    names = tuned.split(",") if isinstance(tuned, str) else () if tuned is None else tuned
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"tuned must name the settings that were chosen on the records, got {tuned!r}.")
    what = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    known = ("method", *OPTIONS)
    for name in what:
        if name not in known:
            raise OptionError(f"tuned names '{name}', which is no setting.{did_you_mean(name, known)}")
    if epsilon is not None and (not what or not set(what) <= set(BOUGHT)):
        raise OptionError(
            f"tuned_epsilon is the price of a private choice of {' or '.join(BOUGHT)}: say in tuned what was chosen, "
            f"got '{', '.join(what)}'."
        )
    return Tuned(what, None if epsilon is None else parse_epsilon(epsilon)) if what else None
