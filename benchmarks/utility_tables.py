"""The tables of the utility benchmark: files come in, records to protect and records held out leave.

Domains are constants that a custodian could write down from the documentation of a table, round and generous; values
beyond them are clipped. They are the same for every method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from shoal.columns.schema import Attribute, Schema
from shoal.decimals import exact
from tools.public_data import data_folder

DATA = data_folder()
LABEL = "label"
NO, YES = "no", "yes"
# the label where a method takes no names: more than half is yes
NUMBER_OF = {NO: 0, YES: 1}


@dataclass(frozen=True)
class Numbers:
    """The public range of a numeric column.

    Attributes:
        step: 1 for whole numbers; None for the finest that Shoal takes.
        few: so few values that a synthesiser takes them as names instead of cutting them into bins.
    """

    lo: float
    hi: float
    step: float | None = None
    few: bool = False

    @property
    def width(self) -> float:
        return self.hi - self.lo


# a range, or the values that a column of names can take
Domain = Numbers | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """A table split in two before anything else happens.

    Attributes:
        target: what the label says.
        domains: of every released column; the last one is the label.
        records: what is protected.
        held_out: what is never protected, only asked about.
    """

    name: str
    target: str
    domains: Mapping[str, Domain]
    records: pa.Table
    held_out: pa.Table

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(name for name in self.domains if name != LABEL)

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(name for name, domain in self.domains.items() if isinstance(domain, Numbers))

    @property
    def has_names(self) -> bool:
        """Whether a feature is nominal, which methods for numbers and orders cannot take."""
        return len(self.numbers) < len(self.features)

    def schema(self, *, label_as_number: bool = False) -> Schema:
        """The public facts, for Shoal; the label may be a number for methods that take no names."""
        return Schema(
            tuple(
                _attribute(name, Numbers(0, 1, 1) if name == LABEL and label_as_number else domain)
                for name, domain in self.domains.items()
            )
        )


def _attribute(name: str, domain: Domain) -> Attribute:
    if not isinstance(domain, Numbers):
        return Attribute(name, kind="nominal", values=domain)
    step = None if domain.step is None else exact(domain.step, "step")
    return Attribute(name, lo=exact(domain.lo, "lo"), hi=exact(domain.hi, "hi"), step=step)


def with_number_as_label(table: pa.Table) -> pa.Table:
    """The same table, its label 0 or 1."""
    numbers = [NUMBER_OF[value] for value in table[LABEL].to_pylist()]
    return table.set_column(table.column_names.index(LABEL), LABEL, pa.array(numbers))


def with_name_as_label(table: pa.Table) -> pa.Table:
    """The way back: more than half means yes."""
    yes = pc.greater(table[LABEL], 0.5)
    return table.set_column(table.column_names.index(LABEL), LABEL, pc.if_else(yes, YES, NO))


def split(name: str, target: str, domains: Mapping[str, Domain], table: pa.Table) -> Task:
    """Hold out every third row of a fixed shuffle."""
    order = np.random.default_rng(0).permutation(table.num_rows)
    table = _inside(table.select(list(domains)), domains)
    out, kept = np.sort(order[::3]), np.sort(order[np.arange(order.size) % 3 != 0])
    return Task(name, target, domains, table.take(kept), table.take(out))


def _inside(table: pa.Table, domains: Mapping[str, Domain]) -> pa.Table:
    for place, (name, domain) in enumerate(domains.items()):
        if isinstance(domain, Numbers):
            values = np.clip(table[name].to_numpy(), domain.lo, domain.hi)
            whole = domain.step == 1
            table = table.set_column(place, name, pa.array(values.astype(np.int64 if whole else np.float64)))
    return table


def _labelled(table: pa.Table, yes: pa.ChunkedArray) -> pa.Table:
    return table.append_column(LABEL, pc.if_else(yes, YES, NO))


CENSUS: dict[str, Domain] = {
    "AFNLWGT": Numbers(0, 1_000_000, 1),
    "AGI": Numbers(0, 150_000, 1),
    "EMCONTRB": Numbers(0, 10_000, 1),
    "FEDTAX": Numbers(0, 40_000, 1),
    "STATETAX": Numbers(0, 20_000, 1),
    "TAXINC": Numbers(0, 150_000, 1),
    "POTHVAL": Numbers(0, 150_000, 1),
    "INTVAL": Numbers(0, 100_000, 1),
    "FICA": Numbers(0, 10_000, 1),
    LABEL: (NO, YES),
}

ADULT: dict[str, Domain] = {
    "age": Numbers(17, 90, 1),
    "education_num": Numbers(1, 16, 1, few=True),
    "marital_status": (
        "Married-civ-spouse",
        "Divorced",
        "Never-married",
        "Separated",
        "Widowed",
        "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support",
        "Craft-repair",
        "Other-service",
        "Sales",
        "Exec-managerial",
        "Prof-specialty",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
    ),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "hours_per_week": Numbers(1, 99, 1),
    LABEL: (NO, YES),
}

WINE: dict[str, Domain] = {
    "fixed_acidity": Numbers(0, 20),
    "volatile_acidity": Numbers(0, 2),
    "citric_acid": Numbers(0, 2),
    "residual_sugar": Numbers(0, 100),
    "chlorides": Numbers(0, 0.5),
    "free_sulfur_dioxide": Numbers(0, 400),
    "total_sulfur_dioxide": Numbers(0, 500),
    "density": Numbers(0.98, 1.05),
    "ph": Numbers(2, 5),
    "sulphates": Numbers(0, 2),
    "alcohol": Numbers(7, 16),
    LABEL: (NO, YES),
}


def census() -> Task:
    """The nine columns of the iDP paper and its class."""
    table = csv.read_csv(DATA / "census.csv")
    return split("Census", "ERNVAL > 30,000", CENSUS, _labelled(table, pc.greater(table["ERNVAL"], 30_000)))


def adult() -> Task:
    """The rows without gaps."""
    options = csv.ConvertOptions(strings_can_be_null=True)
    table = csv.read_csv(DATA / "adult.csv", convert_options=options).drop_null()
    return split("Adult", "income > 50K", ADULT, _labelled(table, pc.equal(table["income"], ">50K")))


def wine() -> Task:
    table = csv.read_csv(DATA / "wine_white.csv")
    return split("Wine", "quality > 6", WINE, _labelled(table, pc.greater(table["quality"], 6)))


TASKS: dict[str, Callable[[], Task]] = {"Census": census, "Adult": adult, "Wine": wine}
