"""The tables of the utility benchmark, split into records to protect and records held out.

Domains are round, generous constants that a custodian could derive from the documentation of a table; values
beyond them are clipped. They are the same for every method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.io import ColumnType
from shoal.numbers import exact
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
    type: ColumnType = "integer" if step == 1 else "decimal"
    return Attribute(name, lo=exact(domain.lo, "lo"), hi=exact(domain.hi, "hi"), step=step, type=type)


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


EIA: dict[str, Domain] = {
    "RESREVENUE": Numbers(0, 500_000, 1),
    "RESSALES": Numbers(0, 5_000_000, 1),
    "COMREVENUE": Numbers(0, 500_000, 1),
    "COMSALES": Numbers(0, 5_000_000, 1),
    "INDREVENUE": Numbers(0, 200_000, 1),
    "INDSALES": Numbers(0, 5_000_000, 1),
    "OTHREVENUE": Numbers(0, 100_000, 1),
    "OTHRSALES": Numbers(0, 1_000_000, 1),
    "TOTSALES": Numbers(0, 10_000_000, 1),
    "MONTH": Numbers(1, 12, 1, few=True),
    LABEL: (NO, YES),
}

RANDHIE: dict[str, Domain] = {
    "mdvis": Numbers(0, 100, 1),
    "lncoins": Numbers(0, 5),
    "idp": ("0", "1"),
    "lpi": Numbers(0, 10),
    "fmde": Numbers(0, 10),
    "physlm": Numbers(0, 1),
    "disea": Numbers(0, 60),
    "hlthg": ("0", "1"),
    "hlthf": ("0", "1"),
    LABEL: (NO, YES),
}

DIABETES: dict[str, Domain] = {
    "age": Numbers(0, 100, 1),
    "sex": ("1", "2"),
    "bmi": Numbers(10, 60),
    "bp": Numbers(40, 200),
    "s1": Numbers(0, 500),
    "s2": Numbers(0, 400),
    "s3": Numbers(0, 150),
    "s4": Numbers(0, 20),
    "s5": Numbers(2, 8),
    "s6": Numbers(40, 200),
    LABEL: (NO, YES),
}

KNOWN: dict[str, Domain] = {
    **{f"x{number}": Numbers(0, 100) for number in range(6)},
    "heavy": Numbers(0, 10_000),
    "colour": ("red", "green", "blue", "black"),
    "a": ("0", "1"),
    "b": ("0", "1"),
    LABEL: (NO, YES),
}


def eia() -> Task:
    """Revenue and sales of utilities, heavy tails in all columns; a few constants were chosen with a look at it."""
    table = csv.read_csv(DATA / "eia.csv")
    return split("EIA", "TOTREVENUE > 20,000", EIA, _labelled(table, pc.greater(table["TOTREVENUE"], 20_000)))


def randhie() -> Task:
    """The RAND health insurance experiment, as statsmodels has it."""
    from statsmodels.datasets import randhie as source

    frame = source.load_pandas().data
    yes = pa.chunked_array([frame["mdvis"].to_numpy() > 2])
    for name in ("idp", "hlthg", "hlthf"):
        frame[name] = frame[name].astype(int).astype(str)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    domains = {name: domain for name, domain in RANDHIE.items() if name != "mdvis"}
    return split("RAND", "more than two visits", domains, _labelled(table, yes))


def diabetes() -> Task:
    """The diabetes table of scikit-learn, in its own units."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    yes = pa.chunked_array([frame["target"].to_numpy() > 140])
    frame["sex"] = frame["sex"].astype(int).astype(str)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return split("Diabetes", "progression > 140", DIABETES, _labelled(table, yes))


def known() -> Task:
    """A made-up table: two factors, a heavy tail, names that follow a number, a label that is an exclusive or."""
    random = np.random.default_rng(20)
    rows = 6_000
    factors = random.normal(size=(rows, 2))
    weights = np.array([[1, 0], [0.8, 0.3], [0.5, -0.5], [0, 1], [0.2, 0.9], [0, 0]])
    noise = random.normal(size=(rows, 6)) * 0.6
    numbers = np.clip(50 + 15 * (factors @ weights.T + noise), 0, 100)
    heavy = np.clip(np.exp(1.5 * factors[:, 0] + 3 + 0.3 * noise[:, 0]), 0, 10_000)
    colour = np.array(KNOWN["colour"])[np.digitize(numbers[:, 3] + random.normal(0, 10, rows), [35, 50, 65])]
    a, b = random.random((2, rows)) < 0.5
    yes = (a ^ b) ^ (random.random(rows) < 0.2)
    columns = {f"x{number}": numbers[:, number] for number in range(6)}
    names = {name: np.where(bit, "1", "0") for name, bit in (("a", a), ("b", b))}
    table = pa.table({**columns, "heavy": heavy, "colour": colour, **names})
    return split("Known", "a exclusive or b", KNOWN, _labelled(table, pa.chunked_array([yes])))


TASKS: dict[str, Callable[[], Task]] = {"Census": census, "Adult": adult, "Wine": wine}
# tables by which no constant of a method was chosen, but for a few by EIA and RAND
FRESH: dict[str, Callable[[], Task]] = {"EIA": eia, "RAND": randhie, "Diabetes": diabetes, "Known": known}
