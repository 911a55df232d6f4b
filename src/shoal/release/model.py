"""The model that was paid for: fit a synthesiser once, draw any number of rows, save and load it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import display
from shoal.columns import Declaration, Described, Schema
from shoal.display import displayed
from shoal.errors import InputError, OptionError, closest
from shoal.io import check_output, read, staged, write
from shoal.mechanisms import Learned, Method, configured, load_recipe, settled_text
from shoal.noise import source as noise_source
from shoal.numbers import Floats
from shoal.privacy import Measurements, PrivacyStatement
from shoal.progress import Progress, silent
from shoal.release.bundle import MEASUREMENTS, load_measurements
from shoal.release.protection import Angle, Preparation, describe_table, one_table, public_schema
from shoal.release.publication import Delivery, plan

_MODEL, _ARRAYS = "model.json", "model.npz"
_VERSION = 1
# Rows drawn at a time for a condition; above these numbers, the second a multiple of those wanted, it is too rare.
_BATCH, _MOST_DRAWN, _MOST_TIMES = 20_000, 1_000_000, 100


@displayed(display.of_model)
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticModel:
    """A fitted synthesiser: noisy quantities only, so drawing rows costs nothing more.

    Attributes:
        method: the configured method.
        statement: the guarantee, which covers all rows ever drawn together.
        rows: number of rows of a release.
        schema: the public facts about the columns.
        measurements: the noisy numbers behind the rows.
    """

    method: Method
    statement: PrivacyStatement
    rows: int
    schema: Schema
    measurements: Measurements | None
    # what the method draws from, and the columns without records: Learned, Described
    _learned: Any
    _described: Any
    _recipe: str

    @property
    def columns(self) -> tuple[str, ...]:
        found: tuple[str, ...] = self._described.columns
        return found

    def sample(
        self, n: int | None = None, *, where: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> Any:
        """Draw synthetic rows; this uses no privacy budget, however often it is called.

        Args:
            n: number of rows; by default as many as a release has.
            where: only rows with these values of nominal columns, or within these (low, high) ranges of others.
            seed: draws the same rows again. The guarantee does not depend on it: the model is noisy already.

        Raises:
            OptionError: n is not positive, a column or value is unknown, or hardly any row fulfils the conditions.

        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"age": [31, 45, 28, 60] * 50, "member": [True, False] * 100})
        >>> model = shoal.TreeDP(epsilon="1").fit(people, seed=1,
        ...     domains={"age": (0, 120), "member": [False, True]})
        >>> model.sample(7, seed=1).num_rows
        7
        """
        wanted = self.rows if n is None else n
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise OptionError("rows-to-sample", option="n", found=wanted)
        source = noise_source(seed)
        if not where:
            return self._frame(self._drawn(wanted, source), source)
        kept: list[dict[str, Floats]] = []
        found = drawn = 0
        checks = {column: self._allowed(column, value) for column, value in where.items()}
        while found < wanted:
            if drawn >= max(_MOST_DRAWN, _MOST_TIMES * wanted):
                raise OptionError("condition-too-rare", option="where", found=found, drawn=drawn)
            values = self._drawn(max(_BATCH, wanted), source)
            drawn += next(iter(values.values())).size
            right = np.logical_and.reduce([check(values[column]) for column, check in checks.items()])
            kept.append({name: own[right] for name, own in values.items()})
            found += int(right.sum())
        whole = {name: np.concatenate([one[name] for one in kept]) for name in self.columns}
        order = source.permutation(found)[:wanted]
        return self._frame({name: own[order] for name, own in whole.items()}, source)

    def save(self, folder: str | Path) -> Path:
        """Write the model to a new folder: statement, recipe, measurements, and the noisy quantities themselves.

        `model.json` holds plain values and `model.npz` arrays; loading them runs no code. The folder may be published
        if the statement says so.
        """
        place = Path(folder)
        check_output(place, None)
        arrays: dict[str, NDArray[Any]] = {}
        document = {"version": _VERSION, "rows": self.rows, "model": _plain(self._learned.model, arrays)}
        with staged(place) as aside:
            statement = json.dumps(self.statement.to_dict(), indent=2, ensure_ascii=False)
            (aside / "statement.json").write_text(statement + "\n", "utf-8")
            (aside / "method.toml").write_text(self._recipe, "utf-8")
            (aside / _MODEL).write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")
            # mypy takes any name of an array for an option
            write_arrays: Any = np.savez_compressed
            write_arrays(aside / _ARRAYS, **arrays)
            # types of the columns; a table without rows
            kept = self._described.table.frame.select(list(self.columns))
            write(kept.to_native(), aside / _COLUMNS)
            if self.measurements is not None:
                numbers = json.dumps(self.measurements.to_dict(), ensure_ascii=False)
                (aside / MEASUREMENTS).write_text(numbers + "\n", "utf-8")
        return place

    @classmethod
    def load(cls, folder: str | Path) -> SyntheticModel:
        """Read the folder that `save` wrote.

        Raises:
            InputError: it is no model, or a file is missing or damaged.
        """
        place = Path(folder)
        for name in ("statement.json", "method.toml", _MODEL, _ARRAYS, _COLUMNS):
            if not (place / name).is_file():
                raise InputError("model-file-missing", folder=place, file=name)
        recipe = load_recipe(place / "method.toml")
        known = {name: recipe[name] for name in recipe if name not in ("method", "schema", "columns")}
        settings = {name: value for name, value in known.items() if name not in _OF_TABLES}
        method = configured(recipe["method"], **settings)
        parts = {part.__name__: part for part in method.model_parts}
        try:
            found = json.loads((place / "statement.json").read_text("utf-8"))
            document = json.loads((place / _MODEL).read_text("utf-8"))
            if document["version"] != _VERSION:
                raise InputError("model-damaged", folder=place, reason=f"version {document['version']}")
            with np.load(place / _ARRAYS, allow_pickle=False) as arrays:
                held = {name: arrays[name] for name in arrays.files}
            model = _object(document["model"], held, parts)
            rows = int(document["rows"])
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise InputError("model-damaged", folder=place, reason=str(error)) from None
        statement = PrivacyStatement.from_dict(found, f"'{place / 'statement.json'}'")
        schema = recipe["schema"]
        described = _without_table(method, schema, recipe, place / _COLUMNS)
        numbers = load_measurements(place / MEASUREMENTS, statement, schema)
        learned = Learned(model, rows, measurements=numbers)
        text = (place / "method.toml").read_text("utf-8")
        return cls(method, statement, rows, schema, numbers, learned, described, text)

    def _drawn(self, rows: int, source: Any) -> dict[str, Floats]:
        return self.method.draw(self._learned, self._described, rows, source, silent)

    def _frame(self, values: dict[str, Floats], source: Any) -> Any:
        made = self._learned.rebuilt(values)
        return one_table(self.method, self._described, made, source)[0]

    def _allowed(self, column: str, value: Any) -> Any:
        """A check of drawn values against a condition."""
        described = self._described
        if column not in described.columns:
            hint = closest(column, described.columns)
            raise OptionError("no-such-released-column", column=column, hint=hint)
        attribute, tree = described.attribute(column), described.tree(column)
        if tree is None and attribute.kind_facts.ranged:
            if not isinstance(value, tuple | list):
                value = (value, value)
            try:
                low, high = (float(end) for end in value)
            except (TypeError, ValueError):
                raise OptionError("condition-not-a-range", column=column, found=value) from None
            return lambda own: (own >= low) & (own <= high)
        labels = attribute.ordered if tree is None else tuple(tree.labels[code] for code in tree.domain)
        codes = range(len(labels)) if tree is None else tree.domain
        wanted = value if isinstance(value, tuple | list | set) else [value]
        numbers = dict(zip(labels, codes, strict=True))
        chosen = []
        for one in wanted:
            text = str(one).lower() if isinstance(one, bool) else str(one)
            if text not in numbers:
                hint = closest(text, tuple(labels))
                raise OptionError("no-such-value", column=column, found=text, hint=hint)
            chosen.append(float(numbers[text]))
        return lambda own: np.isin(own, chosen)


# keys of a recipe that describe the table
_OF_TABLES = (
    "outside",
    "missing",
    "na",
    "most_epsilon",
    "override",
    "tuned",
    "tuned_epsilon",
    "tuned_choice",
)
_COLUMNS = "columns.parquet"


def fit(
    method: Method,
    data: Any,
    schema: Schema | None = None,
    *,
    seed: int | None = None,
    ledger: str | None = None,
    dataset: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> SyntheticModel:
    """Spend the budget of a synthesiser on a table once, and return the model that rows can be drawn from.

    Args:
        method: `PairsDP` or `TreeDP`; `method.fit(data, schema)` is the same.
        data, schema, seed, options: as for `shoal.protect`.
        ledger, dataset: charge the release to this ledger, under the name of the data set, as for `shoal.publish`.

    Guarantee:
        Whatever the statement of the model says. It covers all rows drawn from it, and the model itself.

    Raises:
        OptionError: the method is no synthesiser, or the data or options are refused; nothing was charged.
    """
    if not method.learns:
        raise OptionError("method-learns-no-model", method=method.name)
    tell = progress or silent
    delivery = Delivery(ledger=ledger, dataset=dataset, engine="memory")
    planned = plan(data, delivery, schema=schema, method=method, seed=seed, progress=tell, **options)
    prepared = planned.prepared
    if prepared.method.strata:
        raise OptionError("model-has-no-strata", option="strata")
    if prepared.method.measures_units:
        raise OptionError("model-has-no-units", option="unit_columns")
    book = prepared.described.rules
    if book and any(rule.from_records for _, rule in book.numbered):
        raise OptionError("model-has-no-rules")
    if prepared.rakes:
        raise OptionError("model-has-no-raked-weight")
    planned.charge(tell)
    learned = prepared.method.learn(prepared.described, prepared.plan, prepared.account(), tell)
    planned.uses.note_release(prepared.statement, by="fit")
    return _model(prepared, learned)


def _model(prepared: Preparation, learned: Learned) -> SyntheticModel:
    """What may be kept of a fitted method: nothing private."""
    described = prepared.described
    statement = prepared.drawn(learned.conditions, learned.rows).statement
    public = public_schema(described, prepared.declared)
    recipe = settled_text(prepared.method, public, prepared.declared, described.columns)
    kept = replace(learned, internal={})
    return SyntheticModel(
        prepared.method,
        statement,
        learned.rows,
        public,
        learned.measurements,
        kept,
        described.without_records(),
        recipe,
    )


def _without_table(method: Method, schema: Schema, recipe: Mapping[str, Any], columns: Path) -> Described:
    """The described columns of a saved model."""
    table = read(columns, strict=False, empty=True)
    stepped = schema.stepped
    kept = tuple(a for a in stepped.attributes if a.name in table.names)
    released = Schema(kept, rules=stepped.rules)
    asked = {name: recipe[name] for name in ("missing", "na") if name in recipe}
    declared = Declaration.of(released, columns=list(table.names), **asked)
    described, problems = describe_table(table, declared, replace(Angle.of(method), empty=True))
    for problem in problems:
        raise problem
    return described.without_records()


def _plain(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """A part of a model as plain values; arrays are kept beside them, under a number."""
    if is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: _plain(getattr(value, field.name), arrays) for field in fields(value)}
        return {"part": type(value).__name__, "fields": inside}
    if isinstance(value, np.ndarray):
        arrays[f"a{len(arrays)}"] = value
        return {"array": f"a{len(arrays) - 1}"}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, Mapping):
        return {"items": [[_plain(key, arrays), _plain(own, arrays)] for key, own in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_plain(own, arrays) for own in value]}
    if isinstance(value, list):
        return [_plain(own, arrays) for own in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _object(value: Any, arrays: Any, parts: Mapping[str, type]) -> Any:
    """The part of a model that `_plain` wrote; only known parts are made."""
    if isinstance(value, list):
        return [_object(own, arrays, parts) for own in value]
    if not isinstance(value, dict):
        return value
    ((kind, inside), *more) = value.items()
    if kind == "part":
        made = parts[inside]
        return made(**{name: _object(own, arrays, parts) for name, own in more[0][1].items()})
    if kind == "array":
        return arrays[inside]
    if kind == "fraction":
        return Fraction(inside)
    if kind == "items":
        return {_object(key, arrays, parts): _object(own, arrays, parts) for key, own in inside}
    if kind == "tuple":
        return tuple(_object(own, arrays, parts) for own in inside)
    raise ValueError(kind)
