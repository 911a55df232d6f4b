"""Which statistics a cluster is replaced by: an order and a few choices come in, their names and number leave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

from shoal.errors import OptionError

COVARIANCES = ("all", "variances")
COSKEWNESSES = ("marginal", "full")
FORMS = ("coefficients", "eigen")

# an entry of a symmetric array of statistics: the attributes it belongs to, in order
Index = tuple[int, ...]


@dataclass(frozen=True)
class Summary:
    """Mean and central cross moments of every cluster.

    Attributes:
        attributes: how many attributes are summarised together.
        order: 0 the mean; 1 also the covariance; 2 also the coskewness.
        covariance: `all` entries of the matrix, or the `variances` only.
        coskewness: the `marginal` entries only, which are what rows are drawn from, or the `full` array.
        form: entries as `coefficients`, or the `eigen` form: eigenvalues and eigenvectors of the covariance matrix,
            and of each slice of a full coskewness.

    Reference:
        the cross-moment paper, sections 2.4 and 4.1.

    >>> Summary(3, order=2).means, Summary(3, order=2).covariances, Summary(3, order=2).coskewnesses
    (3, 6, 3)
    >>> Summary(3, order=2, coskewness="full").coskewnesses
    10
    """

    attributes: int
    order: int = 0
    covariance: str = "all"
    coskewness: str = "marginal"
    form: str = "coefficients"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("covariance", self.covariance, COVARIANCES),
            ("coskewness", self.coskewness, COSKEWNESSES),
            ("form", self.form, FORMS),
        ):
            if value not in known:
                raise OptionError("unknown-option", option=name, found=value, allowed=tuple(known), hint=None)
        if self.order not in (0, 1, 2):
            raise OptionError("order-0-1-2", option="order", found=self.order)
        if self.form == "eigen" and self.covariance != "all":
            raise OptionError("eigenvectors-need-all-entries-covariance-matrix")

    @property
    def smallest(self) -> int:
        """The number of records that a cluster needs to have all these statistics."""
        return self.order + 1

    @cached_property
    def covariance_entries(self) -> tuple[Index, ...]:
        """The entries of the covariance matrix, row by row of its upper triangle."""
        if self.order < 1:
            return ()
        if self.covariance == "variances":
            return tuple((i, i) for i in range(self.attributes))
        return tuple(combinations_with_replacement(range(self.attributes), 2))

    @cached_property
    def coskewness_entries(self) -> tuple[Index, ...]:
        """The entries of the coskewness, every set of three attributes once."""
        if self.order < 2:
            return ()
        if self.coskewness == "marginal":
            return tuple((i, i, i) for i in range(self.attributes))
        return tuple(combinations_with_replacement(range(self.attributes), 3))

    @property
    def means(self) -> int:
        return self.attributes

    @property
    def covariances(self) -> int:
        return len(self.covariance_entries)

    @property
    def coskewnesses(self) -> int:
        return len(self.coskewness_entries)

    @property
    def correlated(self) -> bool:
        """Whether anything is said about how attributes go together."""
        return self.order > 0 and self.covariance == "all" and self.attributes > 1
