"""What every mechanism is: a plan of the budget from public facts, and a run that spends it on the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.io import Table
from shoal.method.budget import Plan
from shoal.method.method import Method
from shoal.noise import Source
from shoal.partition import Partition
from shoal.partition.base import check_k
from shoal.progress import Progress as Progress
from shoal.text import Message


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rebuilt:
    """The protected table before shuffling and rounding.

    Attributes:
        values: unrounded values of each released column.
        partitions: one partition per attribute group (empty where records have no clusters).
        aligned: row i of the values belongs to record i, so errors can be measured row by row.
        internal: private facts for the internal report.
        measured: the values that errors are measured on, where drawn rows are matched to records; never published.
        statistics: columns of the table of cluster statistics, where a method keeps them; may be published.
        gaps: cells that are released empty, by column, row by row, where that is more than was empty before.
        unchanged: columns that hold the records' own values, which keep all their decimals.
        conditions: what was measured and how finely, where it follows from what was let out on the way; may
            be published.
    """

    values: dict[str, NDArray[np.float64]]
    partitions: list[Partition]
    aligned: bool
    internal: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, NDArray[np.float64]] | None = None
    statistics: dict[str, Any] | None = None
    unchanged: frozenset[str] = frozenset()
    gaps: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    conditions: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareNoise:
    """The noise to expect on shares of the rows, in parts of them, where rows are drawn anew from noisy counts.

    Attributes:
        alone: by column: standard deviation of the share of rows below a typical threshold, or with one name.
        pairs: by two columns, as they are ordered in the table: of the share of rows in like halves of both (with a
            name in place of a half where a column has names). Pairs that are not measured are left out.
    """

    alone: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A way to spend a budget on a described table.

    Attributes:
        plan: shares the budget, from public facts.
        run: spends it on the records.
        freeze: what a claim "given the partition" takes as fixed, computed from the records: one object per attribute
            group, with its clusters as `.partition`; None where a mechanism makes no such claim.
        run_frozen: spends the budget on the records with what was frozen, possibly on other records.
        settle: fills in settings that follow from the public number of rows, and says what the custodian should know
            about them.
        verify: reads what was written and raises where it does not hold what the statement says: the released table,
            and further ones by name.
        check: raises now what this mechanism's run would raise for these settings, records and labels.
        publish: the released table, and further ones by name, where that is more than all columns in one random order.
        shares: the ε of a cluster's sum by column, for a number of records, where what is released are noisy cluster
            means: expected errors are then known in closed form.
        share_noise: the noise on shares of the rows, for a number of rows, where they are drawn anew from noisy counts.
        told: what was measured and how finely, for a number of released rows, where it follows from them; the
            conditions of a run are these.
        trial: a run without some of the work that takes the same time whatever the number of rows, and the processor
            seconds of what was left out.
        by_frequency: what is done follows from how many rows are alike, which a small table says little about.
        compares: whether records are compared with each other, so that time may grow with the square of their number;
            by default that is a matter of the partition stage.
        likelihood: the noise on a cluster's sum has the share of its column, so that a likelihood ratio is known.
        statistics: masked statistics of every cluster can be published, too.
    """

    plan: Callable[[Method, Described], Plan]
    run: Callable[[Method, Described, Plan, Source, Progress, ArrayLike | None], Rebuilt]
    freeze: Callable[[Method, Described, Plan, Progress, ArrayLike | None], Any] | None = None
    run_frozen: Callable[[Method, Described, Plan, Source, Progress, Any], Rebuilt] | None = None
    settle: Callable[[Method, Described], tuple[Method, tuple[Message, ...]]] | None = None
    verify: Callable[[Method, Described, Table, Mapping[str, Table]], None] | None = None
    check: Callable[[Method, Described, Plan, ArrayLike | None], None] | None = None
    publish: Callable[[Method, Described, Rebuilt, Source], tuple[Any, dict[str, Any]]] | None = None
    shares: Callable[[Method, int, Plan], Mapping[str, Fraction]] | None = None
    share_noise: Callable[[Method, Described], ShareNoise] | None = None
    told: Callable[[Method, Described, int], tuple[Message, ...]] | None = None
    trial: Callable[[Method, Described, Source], tuple[Rebuilt, float]] | None = None
    by_frequency: bool = False
    compares: Callable[[Method], bool] | None = None
    likelihood: bool = False
    statistics: bool = False

    def refuse(
        self, method: Method, described: Described, plan: Plan, labels: ArrayLike | None = None
    ) -> None:
        """Raise now whatever a run would raise.

        Once the budget is spent nothing may fail depending on records or draws, because a rerun until it succeeds is
        another mechanism.
        """
        if not method.adjacency.hides_size:
            check_k(method.size, described.n)
        if self.check is not None:
            self.check(method, described, plan, labels)


def gap_terms(described: Described) -> list[Message]:
    """What is said about columns whose missing values are a place of their own."""
    return [Message.of("gaps-have-a-place", columns=described.flagged)] if described.flagged else []
