"""Statistics as text: `mean(income) by sex`, `share(age > 64)`, `corr(age, hours)`, `hours ~ age + C(sex)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError, closest
from shoal.inference.rows import Frame
from shoal.numbers import Bools, Floats

# values at weights, and the influence of each row on each of them
Evaluation = tuple[Floats, Floats]
_FORMS = ("mean", "share", "quantile", "median", "table", "corr", "logit")
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"log": np.log, "sqrt": np.sqrt, "abs": np.abs, "exp": np.exp}
_MOST_GROUPS = 50
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Statistic:
    """Numbers about a population, as functions of rows and weights.

    Attributes:
        names: what each number is.
        columns: the columns that it depends on.
        evaluate: the numbers under weights, and the influence of each row on each of them.
        linear: a share or mean, possibly within groups.
        threshold: column, least position above and side, for a share at a threshold alone.
        quantile: column and level.
        mean: the column, for a mean over all rows.
        slope: it compares columns: a slope or a correlation.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    evaluate: Callable[[Frame, Floats], Evaluation]
    linear: bool = True
    threshold: tuple[str, float, str] | None = None
    quantile: tuple[str, float] | None = None
    mean: str | None = None
    slope: bool = False


def parsed(text: str, frame: Frame) -> Statistic:
    """The statistic that a text describes; values and names of columns are checked against the released rows.

    Raises:
        OptionError: the text is no statistic, or names a column that was not released.
    """
    what, _, by = _apart(text, r"\sby\s")
    if "~" in what and not what.lstrip().startswith("logit"):
        if by:
            raise _bad(text)
        return _ols(what, frame)
    found = re.fullmatch(r"\s*([a-z]+)\s*\((.*)\)\s*", what, re.DOTALL)
    if found is None or found[1] not in _FORMS:
        raise _bad(text)
    form, inner = found[1], found[2]
    if by and form not in ("mean", "share"):
        raise _bad(text)
    if form == "logit":
        return _logit(inner, frame)
    if form in ("corr", "table"):
        parts = [_column(part, frame) for part in inner.split(",")]
        if len(parts) != 2 or parts[0] == parts[1]:
            raise _bad(text)
        of_two = _correlation if form == "corr" else _table
        return of_two(parts[0], parts[1], frame)
    if form in ("quantile", "median"):
        column, _, level = inner.partition(",")
        return _quantile(column, "0.5" if form == "median" else level, frame, text)
    body, _, condition = _apart(inner, r"\|")
    made = _ratio(form, body, condition, frame)
    return _grouped(made, form, body, by, frame) if by else made


def _apart(text: str, pattern: str) -> tuple[str, str, str]:
    found = re.search(pattern, text)
    return (text, "", "") if found is None else (text[: found.start()], found[0], text[found.end() :].strip())


def _bad(text: str) -> OptionError:
    return OptionError("not-a-statistic", found=text.strip(), allowed=_FORMS)


def _column(text: str, frame: Frame) -> str:
    name = text.strip().strip("`")
    known = tuple(frame.rows.positions)
    if name not in known:
        raise OptionError("no-such-released-column", column=name, hint=closest(name, known))
    return name


class _Expression:
    """A number or a condition in terms of columns."""

    def __init__(self, text: str, frame: Frame) -> None:
        self.text, self.columns = text.strip(), list[str]()
        quoted: dict[str, str] = {}

        def plain(found: re.Match[str]) -> str:
            quoted[f"_q{len(quoted)}"] = found[1]
            return f"_q{len(quoted) - 1}"

        source = re.sub(r"`([^`]+)`", plain, self.text)
        source = re.sub(r"(?<![<>=!])=(?!=)", "==", source)
        try:
            self._tree = ast.parse(source.strip(), mode="eval").body
        except SyntaxError:
            raise _bad(self.text) from None
        self._quoted, known = quoted, tuple(frame.rows.positions)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name):
                name = quoted.get(node.id, node.id)
                if name in known:
                    self.columns.append(name)
        self.columns = list(dict.fromkeys(self.columns))
        # names of no column are texts in comparisons, and nothing elsewhere
        self(frame)
        if not self.columns:
            raise _bad(self.text)

    def __call__(self, frame: Frame) -> NDArray[Any]:
        found = np.asarray(self._value(self._tree, frame))
        return np.broadcast_to(found, (frame.size,)) if found.ndim == 0 else found

    def truth(self, frame: Frame) -> Bools:
        """As a condition; False where a value is missing."""
        found = self(frame)
        if found.dtype != np.bool_:
            raise OptionError("not-a-condition", found=self.text)
        return found & self.present(frame)

    def number(self, frame: Frame) -> Floats:
        """As a number; NaN where a value is missing."""
        found = self(frame)
        if found.dtype == object:
            raise OptionError("names-have-no-mean", column=self.columns[0])
        return np.where(self.present(frame), found.astype(np.float64), np.nan)

    def present(self, frame: Frame) -> Bools:
        found = np.ones(frame.size, dtype=np.bool_)
        for column in self.columns:
            found &= frame.present(column)
        return found

    @property
    def simple(self) -> bool:
        """Whether it is one column itself."""
        return isinstance(self._tree, ast.Name)

    @property
    def threshold(self) -> tuple[str, str, float] | None:
        """Column, comparison and value, if that is all."""
        tree = self._tree
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or not isinstance(tree.left, ast.Name):
            return None
        signs = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<="}
        sign, value = signs.get(type(tree.ops[0])), tree.comparators[0]
        if sign is None or not isinstance(value, ast.Constant) or not isinstance(value.value, int | float):
            return None
        return self._quoted.get(tree.left.id, tree.left.id), sign, float(value.value)

    def _value(self, node: ast.expr, frame: Frame) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                return node.value
            case ast.Name(id=name):
                return self._name(self._quoted.get(name, name), frame)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return ~self._condition(inner, frame)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._amount(inner, frame)
            case ast.BoolOp(op=op, values=parts):
                found = [self._condition(part, frame) for part in parts]
                return (np.logical_and if isinstance(op, ast.And) else np.logical_or).reduce(found)
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                each = [
                    self._compared(a, op, b, frame)
                    for a, op, b in zip(sides[:-1], ops, sides[1:], strict=True)
                ]
                return np.logical_and.reduce(each)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                with np.errstate(all="ignore"):
                    return _ARITHMETIC[type(op)](self._amount(left, frame), self._amount(right, frame))
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _FUNCTIONS:
                with np.errstate(all="ignore"):
                    return _FUNCTIONS[name](self._amount(inner, frame))
        raise _bad(self.text)

    def _name(self, name: str, frame: Frame) -> Any:
        if name not in frame.rows.positions:
            known = tuple(frame.rows.positions)
            raise OptionError("no-such-released-column", column=name, hint=closest(name, known))
        return frame[name]

    def _amount(self, node: ast.expr, frame: Frame) -> Any:
        found = np.asarray(self._value(node, frame))
        if found.dtype == object:
            raise OptionError("names-have-no-mean", column=self.columns[0])
        return found.astype(np.float64)

    def _condition(self, node: ast.expr, frame: Frame) -> Bools:
        found = np.asarray(self._value(node, frame))
        if found.dtype != np.bool_:
            raise OptionError("not-a-condition", found=self.text)
        return found

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, frame: Frame) -> Bools:
        column = self._quoted.get(left.id, left.id) if isinstance(left, ast.Name) else ""
        labels = frame.texts(column) if column in frame.rows.positions else None
        if labels is not None:
            listed = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
            wanted = [self._label(one, column, labels) for one in listed]
            inside = np.isin(frame[column].astype(str), wanted)
            if isinstance(op, ast.Eq | ast.In):
                return inside
            if isinstance(op, ast.NotEq | ast.NotIn):
                return ~inside
            raise _bad(self.text)
        first = self._amount(left, frame)
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List):
            inside = np.isin(first, [float(self._amount(one, frame)) for one in right.elts])
            return inside if isinstance(op, ast.In) else ~inside
        if type(op) not in _COMPARISONS:
            raise _bad(self.text)
        with np.errstate(invalid="ignore"):
            found: Bools = np.asarray(_COMPARISONS[type(op)](first, self._amount(right, frame)))
        return found

    def _label(self, node: ast.expr, column: str, labels: Sequence[str]) -> str:
        if isinstance(node, ast.Constant):
            found = str(node.value)
        elif isinstance(node, ast.Name):
            found = self._quoted.get(node.id, node.id)
        else:
            raise _bad(self.text)
        if found not in labels:
            raise OptionError("no-such-value", column=column, found=found, hint=closest(found, labels))
        return found


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


def weighted_ratio(values: Floats, inside: Bools, weights: Floats) -> tuple[float, Floats]:
    """The mean of values among the rows inside, and the influence of each row on it; NaN if there are none."""
    total = weights.sum()
    share = float(weights[inside].sum() / total)
    if share <= 1e-9:
        return float("nan"), np.zeros(weights.size)
    mean = float(weights[inside] @ values[inside] / total / share)
    return mean, np.where(inside, values - mean, 0.0) / share


def _ratio(form: str, body: str, condition: str, frame: Frame, name: str = "") -> Statistic:
    what = _Expression(body, frame)
    where = _Expression(condition, frame) if condition else None
    columns = tuple(dict.fromkeys([*what.columns, *(where.columns if where else [])]))

    def evaluate(frame: Frame, weights: Floats) -> Evaluation:
        inside = what.present(frame)
        if where is not None:
            inside = inside & where.truth(frame)
        values = what.truth(frame).astype(np.float64) if form == "share" else what.number(frame)
        inside = inside & np.isfinite(values)
        mean, influence = weighted_ratio(np.where(inside, values, 0.0), inside, weights)
        return np.array([mean]), influence[:, None]

    evaluate(frame, frame.rows.weights)
    threshold = None
    if (
        form == "share"
        and where is None
        and (found := what.threshold) is not None
        and frame.texts(found[0]) is None
    ):
        column, sign, value = found
        threshold = (column, value, sign)
    label = name or f"{form}({what.text}{f' | {where.text}' if where else ''})"
    alone = form == "mean" and where is None and what.simple
    return Statistic(
        (label,), columns, evaluate, threshold=threshold, mean=what.columns[0] if alone else None
    )


def groups_of(column: str, frame: Frame) -> list[tuple[str, Any]]:
    """The values of a column of few values, as text and as the column holds them."""
    labels = frame.texts(column)
    if labels is not None:
        return [(label, label) for label in labels]
    values = frame[column][: frame.rows.released]
    distinct = np.unique(values[~np.isnan(values)])
    if distinct.size > _MOST_GROUPS:
        raise OptionError("too-many-groups", column=column, found=int(distinct.size), allowed=_MOST_GROUPS)
    return [(f"{value:g}", value) for value in distinct.tolist()]


def _grouped(made: Statistic, form: str, body: str, by: str, frame: Frame) -> Statistic:
    column = _column(by, frame)
    groups = groups_of(column, frame)

    def evaluate(frame: Frame, weights: Floats) -> Evaluation:
        what = _Expression(body, frame)
        values = what.truth(frame).astype(np.float64) if form == "share" else what.number(frame)
        present = what.present(frame) & np.isfinite(values)
        values = np.where(present, values, 0.0)
        found = [weighted_ratio(values, present & (frame[column] == value), weights) for _, value in groups]
        return np.array([mean for mean, _ in found]), np.stack([own for _, own in found], axis=1)

    names = tuple(f"{form}({body.strip()} | {column} = {label})" for label, _ in groups)
    return Statistic(names, tuple(dict.fromkeys([*made.columns, column])), evaluate)


def _table(first: str, second: str, frame: Frame) -> Statistic:
    rows, columns = groups_of(first, frame), groups_of(second, frame)

    def evaluate(frame: Frame, weights: Floats) -> Evaluation:
        both = frame.present(first) & frame.present(second)
        found = []
        for _, a in rows:
            here = (frame[first] == a).astype(np.float64)
            for _, b in columns:
                found.append(weighted_ratio(here * (frame[second] == b), both, weights))
        return np.array([mean for mean, _ in found]), np.stack([own for _, own in found], axis=1)

    names = tuple(f"share({first} = {a} and {second} = {b})" for a, _ in rows for b, _ in columns)
    return Statistic(names, (first, second), evaluate)


def _quantile(column: str, level: str, frame: Frame, text: str) -> Statistic:
    name = _column(column, frame)
    if frame.texts(name) is not None:
        raise OptionError("names-have-no-mean", column=name)
    try:
        wanted = float(level)
    except ValueError:
        raise _bad(text) from None
    if not 0 < wanted < 1:
        raise OptionError("quantiles-lie-between-0-1", option="quantile", found=wanted)

    def evaluate(frame: Frame, weights: Floats) -> Evaluation:
        values, present = frame[name], frame.present(name)
        order = np.argsort(values[present], kind="stable")
        running = np.cumsum(weights[present][order])
        place = min(int(np.searchsorted(running, wanted * running[-1])), running.size - 1)
        return np.array([values[present][order][place]]), np.zeros((frame.size, 1))

    label = f"median({name})" if wanted == 0.5 else f"quantile({name}, {wanted:g})"
    return Statistic((label,), (name,), evaluate, quantile=(name, wanted))


def _correlation(first: str, second: str, frame: Frame) -> Statistic:
    for name in (first, second):
        if frame.texts(name) is not None:
            raise OptionError("names-have-no-mean", column=name)

    def evaluate(frame: Frame, weights: Floats) -> Evaluation:
        both = frame.present(first) & frame.present(second)
        w = np.where(both, weights, 0.0)
        scores = []
        for name in (first, second):
            values = np.where(both, frame[name], 0.0)
            values = values - w @ values / w.sum()
            scores.append(values / np.sqrt(max(w @ values**2 / w.sum(), 1e-12)))
        x, y = scores
        found = float(w @ (x * y) / w.sum())
        influence = (x * y - found / 2 * (x**2 + y**2)) * both * (weights.sum() / w.sum())
        return np.array([found]), influence[:, None]

    names = (f"corr({first}, {second})",)
    return Statistic(names, (first, second), evaluate, linear=False, slope=True)


@dataclass(frozen=True, slots=True)
class _Term:
    name: str
    columns: tuple[str, ...]
    value: Callable[[Frame], Floats]


def _terms(text: str, frame: Frame) -> list[_Term]:
    found: list[_Term] = []
    for part in _plus(text):
        if part in ("1", ""):
            if part:
                continue
            raise _bad(text)
        inner = re.fullmatch(r"C\((.*)\)", part)
        name = (inner[1] if inner else part).strip().strip("`")
        if inner or (name in frame.rows.positions and frame.texts(name) is not None):
            column = _column(name, frame)
            groups = groups_of(column, frame)
            # a value that no row has gives no slope
            seen = [g for g in groups if bool((frame[column][: frame.rows.released] == g[1]).any())]
            for label, value in seen[1:]:
                found.append(_Term(f"{column}[{label}]", (column,), partial(_indicator, column, value)))
            continue
        what = _Expression(part, frame)
        found.append(_Term(what.text, tuple(what.columns), partial(_numeric, what)))
    return found


def _plus(text: str) -> Iterator[str]:
    depth, part = 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()


def _indicator(column: str, value: Any, frame: Frame) -> Floats:
    return np.where(frame.present(column), (frame[column] == value).astype(np.float64), np.nan)


def _numeric(what: _Expression, frame: Frame) -> Floats:
    return what.number(frame)


@dataclass(frozen=True, slots=True)
class _Model:
    """The response and the terms of a regression."""

    text: str
    response: _Expression
    terms: tuple[_Term, ...]

    @classmethod
    def of(cls, text: str, frame: Frame) -> _Model:
        left, tilde, right = text.partition("~")
        if not tilde:
            raise _bad(text)
        return cls(" ".join(text.split()), _Expression(left, frame), tuple(_terms(right, frame)))

    @property
    def columns(self) -> tuple[str, ...]:
        every = [*self.response.columns, *(column for term in self.terms for column in term.columns)]
        return tuple(dict.fromkeys(every))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.text}: {name}" for name in ("(intercept)", *(term.name for term in self.terms)))

    def design(self, frame: Frame, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Terms, response and weights; rows with a missing value weigh nothing."""
        x = np.stack([np.ones(frame.size), *(term.value(frame) for term in self.terms)], axis=1)
        y = self.response.number(frame)
        whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
        return np.where(whole[:, None], x, 0.0), np.where(whole, y, 0.0), np.where(whole, weights, 0.0)


def _inverse(x: Floats, w: Floats, total: float, model: _Model) -> Floats:
    """The inverse of the terms' moments, in units in which they are of equal size."""
    size = np.sqrt(np.maximum((np.abs(w) @ x**2) / np.abs(w).sum(), 1e-300))
    moments = (x / size * w[:, None]).T @ (x / size) / total
    values = np.linalg.eigvalsh(moments)
    if not np.isfinite(values).all() or abs(values).min() < 1e-10 * abs(values).max():
        raise OptionError("terms-collinear", found=model.text)
    found: Floats = np.linalg.inv(moments) / np.outer(size, size)
    return found


def _ols(text: str, frame: Frame) -> Statistic:
    model = _Model.of(text, frame)

    def evaluate(frame: Frame, weights: Floats) -> Evaluation:
        x, y, w = model.design(frame, weights)
        total = weights.sum()
        inverse = _inverse(x, w, total, model)
        slopes = inverse @ (x.T @ (w * y)) / total
        influence = (x * (y - x @ slopes)[:, None]) @ inverse
        return slopes, np.where((w != 0)[:, None], influence, 0.0)

    evaluate(frame, frame.rows.weights)
    return Statistic(model.names, model.columns, evaluate, linear=False, slope=True)


def _logit(text: str, frame: Frame) -> Statistic:
    model = _Model.of(text, frame)
    response = model.response(frame)
    if response.dtype != np.bool_ and not set(
        np.unique(model.response.number(frame)[: frame.rows.released])
    ) <= {0.0, 1.0}:
        raise OptionError("logit-needs-two-values", found=model.response.text)

    def evaluate(frame: Frame, weights: Floats) -> Evaluation:
        x, y, w = model.design(frame, weights)
        slopes, total = np.zeros(x.shape[1]), weights.sum()
        inverse = np.eye(x.shape[1])
        for _ in range(_STEPS):
            odds = 1 / (1 + np.exp(-np.clip(x @ slopes, -30, 30)))
            inverse = _inverse(x, w * (odds * (1 - odds) + 1e-9), total, model)
            step = inverse @ (x.T @ (w * (y - odds))) / total
            # a step changes no row's logit by more than 2: far from the solution the curve is flat
            step *= min(1.0, 2 / max(float(np.abs(x @ step).max()), 1e-9))
            slopes = slopes + step
            if np.abs(step).max() < 1e-9 * max(1.0, float(np.abs(slopes).max())):
                break
        odds = 1 / (1 + np.exp(-np.clip(x @ slopes, -30, 30)))
        influence = (x * (y - odds)[:, None]) @ inverse
        return slopes, np.where((w != 0)[:, None], influence, 0.0)

    evaluate(frame, frame.rows.weights)
    names = tuple(f"logit({name.replace(': ', '): ', 1)}" for name in model.names)
    return Statistic(names, model.columns, evaluate, linear=False, slope=True)


# --- weights raked to known totals


@dataclass(frozen=True, slots=True)
class Raking:
    """Weights whose sums by the values of columns are known totals: a function of the released columns.

    Attributes:
        totals: by column, the known total or share of each value, as text.
    """

    totals: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, totals: Mapping[str, Mapping[Any, Any]], frame: Frame) -> Raking:
        """Known totals, checked against the released rows.

        Raises:
            OptionError: a column is not released, a value has no total, or a total is not positive.
        """
        found: dict[str, dict[str, float]] = {}
        for name, own in totals.items():
            column = _column(name, frame)
            found[column] = {str(value): float(total) for value, total in own.items()}
            for label, value in groups_of(column, frame):
                if label not in found[column] and bool((frame[column][: frame.rows.released] == value).any()):
                    raise OptionError("rake-value-without-total", column=column, found=label)
            if not all(total > 0 and np.isfinite(total) for total in found[column].values()):
                raise OptionError("rake-total", column=column)
        if not found:
            raise OptionError("rake-without-totals", option="rake")
        return cls(found)

    def _groups(self, frame: Frame) -> Iterator[list[tuple[Bools, float]]]:
        """For each column, the rows with each value, and the share that they should have of those with a value."""
        for column, totals in self.totals.items():
            kept = [(value, totals[label]) for label, value in groups_of(column, frame) if label in totals]
            whole = sum(total for _, total in kept)
            yield [(frame[column] == value, total / whole) for value, total in kept]

    def factors(self, frame: Frame, weights: Floats) -> Floats:
        """By what each weight is multiplied (iterative proportional fitting)."""
        found = np.ones(weights.size)
        columns = list(self._groups(frame))
        for _ in range(_RAKING_ROUNDS):
            moved = 0.0
            for groups in columns:
                sums = [float((found * weights)[rows].sum()) for rows, _ in groups]
                for (rows, share), now in zip(groups, sums, strict=True):
                    if now > 0:
                        factor = share * sum(sums) / now
                        found[rows] *= factor
                        moved = max(moved, abs(factor - 1))
            if moved < 1e-9:
                break
        return found

    def raked(self, statistic: Statistic) -> Statistic:
        """The statistic under raked weights; its influence is what the margins leave over.

        Reference:
            Deville and Särndal (1992), Journal of the American Statistical Association 87(418), section 3.
        """
        if statistic.quantile is not None:
            raise OptionError("rake-no-quantiles", found=statistic.names[0])

        def evaluate(frame: Frame, weights: Floats) -> Evaluation:
            factors = self.factors(frame, weights)
            own = weights * factors
            values, influence = statistic.evaluate(frame, own)
            every = [rows.astype(np.float64) for groups in self._groups(frame) for rows, _ in groups]
            margins = np.stack(every, axis=1)
            slopes = np.linalg.pinv((margins * own[:, None]).T @ margins) @ (
                margins.T @ (own[:, None] * influence)
            )
            return values, factors[:, None] * (influence - margins @ slopes)

        columns = tuple(dict.fromkeys([*statistic.columns, *self.totals]))
        return replace(statistic, columns=columns, evaluate=evaluate, threshold=None, mean=None)


_RAKING_ROUNDS = 200
