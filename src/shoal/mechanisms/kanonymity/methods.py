"""The k-anonymity family: `k-anonymity`, `swap-mdav`, `swap-ranking`, `t-closeness` and `anatomy`. None has an ε."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from shoal.columns import KINDS
from shoal.errors import OptionError
from shoal.mechanisms import parameter_fields
from shoal.mechanisms.method import Method, Output
from shoal.mechanisms.parameter_fields import SHARED, Exact, parameter, shared
from shoal.mechanisms.partition_stage import check_stage
from shoal.privacy import Case, Claim, MethodTerms
from shoal.text import Message


class GroupMethod(Method):
    """Methods that group records such that the released table satisfies a condition on the groups.

    Parameters that a method of the family does not offer have the defaults of this class.
    """

    kinds: ClassVar[tuple[str, ...]] = KINDS
    partitions: ClassVar[tuple[str, ...]] = ("mdav", "vmdav", "given")

    partition = "mdav"
    normalise = "domain"
    gamma = cast("Any", SHARED["gamma"].default)
    l = cast("int | None", None)  # noqa: E741
    t_emd = cast("Any", None)
    unit_columns = cast("tuple[str, ...] | None", None)
    generalise = False

    def check(self) -> None:
        check_stage(self.partition, type(self).partition, self.partitions)

    @property
    def output(self) -> Output:
        return Output(generalise=self.generalise)

    def terms(self, attributes: int) -> MethodTerms:
        scaled = self.normalise == "zscore" and self.stage.scaled
        return MethodTerms(data_dependent=(Message("distances-by-records"),) if scaled else ())


class KAnonymity(GroupMethod):
    """Clusters of records close in the quasi-identifiers, which are replaced by the middle of the cluster.

    Guarantee: k-anonymity of the released table, which is not differential privacy.
    """

    name: ClassVar[str] = "k-anonymity"
    paper: ClassVar[str] = "the thesis, chapter 3 (MDAV-ID)"
    about: ClassVar[str] = (
        "clusters of records with similar quasi-identifiers, which are replaced by the cluster centre"
    )
    mechanism: ClassVar[str] = "centroids"
    work: ClassVar[str] = "shoal.mechanisms.kanonymity.centroids"
    claims: ClassVar[Claim] = Claim((Case("k-anonymity", Message("because-one-value")),), shows_gaps=True)

    k: int = shared("k", default=5)
    l: int | None = shared("l")  # noqa: E741
    t_emd: Exact = shared("t_emd")
    generalise: bool = shared("generalise")
    normalise: str = shared("normalise")
    partition: str = shared("partition", default="mdav")
    gamma: Exact = shared("gamma")
    strata: Any = shared("strata")
    unit_columns: Any = shared("unit_columns")


_BY_CLOSENESS = Claim(
    (
        Case("probabilistic-k-anonymity", Message("because-values-stay-in-group"), {"t": (None,)}),
        Case("t-closeness", Message("because-bucket-shares")),
    )
)


class SwapMethod(GroupMethod):
    """Sensitive values are swapped among the records of a group."""

    work: ClassVar[str] = "shoal.mechanisms.kanonymity.swapping"
    claims: ClassVar[Claim] = _BY_CLOSENESS

    t = cast("int | None", None)
    sizes = cast("Any", None)
    intruder = "informed"


class SwapMdav(SwapMethod):
    """Sensitive values swapped among records that are close in what an intruder knows.

    Guarantee: probabilistic k-anonymity of the released table, which is not differential privacy.
    """

    name: ClassVar[str] = "swap-mdav"
    paper: ClassVar[str] = "the thesis, chapter 3 (MDAV-SWAP)"
    about: ClassVar[str] = "sensitive values swapped among records that are similar in what an intruder knows"
    mechanism: ClassVar[str] = "swap-mdav"

    k: int = shared("k", default=5)
    sizes: Any = shared("sizes")
    l: int | None = shared("l")  # noqa: E741
    intruder: str = parameter(
        parameter_fields.CHOICE,
        "what the intruder knows",
        group="guarantee",
        choices={"informed": "all columns but one", "uninformed": "the columns that are not sensitive"},
        default="informed",
        after="t",
    )
    normalise: str = shared("normalise")
    strata: Any = shared("strata")
    unit_columns: Any = shared("unit_columns")


class SwapRanking(SwapMethod):
    """Each sensitive column swapped among neighbours in rank.

    Guarantee: probabilistic k-anonymity of the released table, which is not differential privacy.
    """

    name: ClassVar[str] = "swap-ranking"
    paper: ClassVar[str] = "the thesis, chapter 3 (IR-SWAP)"
    about: ClassVar[str] = "each sensitive attribute swapped among records of similar rank"
    mechanism: ClassVar[str] = "swap-ranking"
    partition = "ranking"

    k: int = shared("k", default=50)
    sizes: Any = shared("sizes")
    l: int | None = shared("l")  # noqa: E741
    remainder: str = shared("remainder")
    strata: Any = shared("strata")
    unit_columns: Any = shared("unit_columns")

    @property
    def in_parts(self) -> str:
        return "" if self.strata else "by_swap"

    @property
    def not_in_parts(self) -> str:
        if self.unit_columns is not None:
            return "unit-columns-not-in-parts"
        return "" if self.l is None else "l-not-in-parts"


class TCloseness(GroupMethod):
    """Sensitive values swapped in groups where every bucket of values has nearly its share of the table.

    Guarantee: t-closeness of the released table, which is not differential privacy.
    """

    name: ClassVar[str] = "t-closeness"
    paper: ClassVar[str] = "the thesis, chapter 7"
    about: ClassVar[str] = (
        "sensitive values swapped in groups where every bucket of values has nearly its share in the table"
    )
    mechanism: ClassVar[str] = "t-closeness"
    work: ClassVar[str] = "shoal.mechanisms.kanonymity.closeness"
    claims: ClassVar[Claim] = _BY_CLOSENESS

    k: int = shared("k", default=10)
    t: int = shared("t", default=2)
    normalise: str = shared("normalise")

    @classmethod
    def refuse_option(cls, name: str, value: Any) -> None:
        if name == "strata":
            raise OptionError("strata-not-method-compares-every-group", option="strata", name=cls.name)
        super().refuse_option(name, value)


class Anatomy(GroupMethod):
    """Two tables linked by group: what an intruder may know, and the frequencies of sensitive values.

    Guarantee: probabilistic k-anonymity, t-closeness with a `t`; neither is differential privacy.
    """

    name: ClassVar[str] = "anatomy"
    paper: ClassVar[str] = "the thesis, chapter 7"
    about: ClassVar[str] = (
        "two tables linked by group: the quasi-identifiers, and the frequencies of sensitive values"
    )
    mechanism: ClassVar[str] = "anatomy"
    work: ClassVar[str] = "shoal.mechanisms.kanonymity.linked"
    claims: ClassVar[Claim] = _BY_CLOSENESS

    k: int = shared("k", default=10)
    t: int | None = shared("t")
    l: int | None = shared("l")  # noqa: E741
    t_emd: Exact = shared("t_emd")
    group_by: str = parameter(
        parameter_fields.CHOICE,
        "columns in which the records of a group are similar",
        choices={"quasi": "the quasi-identifiers", "confidential": "the sensitive attributes"},
        default="quasi",
        after="intruder",
    )
    normalise: str = shared("normalise")
    partition: str = shared("partition", default="mdav")
    gamma: Exact = shared("gamma")
    strata: Any = shared("strata")
