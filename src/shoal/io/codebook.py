"""The codebook of a statistics package: codes come in with their labels, texts go on; texts come back as codes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw

Code = int | float | str


@dataclass(frozen=True, slots=True)
class Variable:
    """What a statistics package keeps about one column beside its values.

    Attributes:
        label: the variable's own label, such as the question that was asked.
        format: display format in the package's own words.
        measure: nominal, ordinal or scale, where the package knows it.
        labels: value labels by code, those of missing values included.
        texts: what the table shows for each labelled code; empty if it shows the codes themselves.
        missing: ranges (lo, hi) of codes that stand for missing values.
        tags: labels of Stata's missing values .a to .z.
        width: display width.
        reserved: codes that are taken though their labels are not told.
        declared: texts that the schema lists: each has its code, whether or not it occurs.
    """

    label: str | None = None
    format: str | None = None
    measure: str | None = None
    labels: Mapping[Code, str] = field(default_factory=dict)
    texts: Mapping[Code, str] = field(default_factory=dict)
    missing: tuple[tuple[Code, Code], ...] = ()
    tags: Mapping[Code, str] = field(default_factory=dict)
    width: int | None = None
    reserved: frozenset[Code] = frozenset()
    declared: tuple[str, ...] = ()

    @property
    def shows_labels(self) -> bool:
        """Whether the table shows texts for the codes."""
        return bool(self.texts or self.reserved)

    def is_missing(self, code: Code) -> bool:
        """Whether a code stands for a missing value."""
        return any(
            isinstance(code, str) == isinstance(lo, str) and lo <= code <= hi  # type: ignore[operator]
            for lo, hi in self.missing
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """The texts of all values in the order of their codes."""
        return tuple(self.texts[code] for code in sorted(self.texts, key=_order))

    def showing_labels(self) -> Variable:
        """The variable with a text for every labelled code; none comes from the records.

        Two codes with one label, and a label that reads like another code, keep their codes in the text.

        >>> Variable(labels={1: "yes", 2: "other", 3: "other", 4: "7"}).showing_labels().texts
        {1: 'yes', 2: 'other (2)', 3: 'other (3)', 4: '7 (4)'}
        """
        labels = {code: label.strip() for code, label in self.labels.items() if not self.is_missing(code)}
        spelled = {code: label or str(code) for code, label in labels.items()}
        unclear = _repeated(spelled.values()) | {
            text for code, text in spelled.items() if _number(text) not in (None, code)
        }
        texts = {code: f"{text} ({code})" if text in unclear else text for code, text in spelled.items()}
        if _repeated(texts.values()):
            texts = {code: f"{code}: {text}" for code, text in spelled.items()}
        return replace(self, texts=texts)

    def text_of(self, code: Code | None) -> str | None:
        """What the table shows for a code: one without a label is its own text."""
        return None if code is None else self.texts.get(code, str(code))

    def codes_of(self, texts: Iterable[str]) -> dict[str, Code]:
        """A code for each text: that of its label, the number that it is, or a fresh one.

        Only labels and the texts themselves count, so they must be those of the schema: codes that follow what occurs
        in the records would tell it.

        >>> Variable(texts={1: "cat", 2: "dog"}, missing=((3, 3),)).codes_of(["dog", "animal", "7"])
        {'dog': 2, '7': 7, 'animal': 8}
        """
        wanted = dict.fromkeys((*self.declared, *texts))
        codes = {text: code for code, text in self.texts.items() if text in wanted}
        taken = {*self.labels, *self.texts, *self.reserved}
        for text in wanted:
            own = self._own_code(text)
            if text not in codes and own is not None and own not in taken:
                codes[text] = own
        taken.update(codes.values())
        for text in sorted(wanted.keys() - codes.keys()):
            codes[text] = self._fresh(text, taken)
            taken.add(codes[text])
        return codes

    def _own_code(self, text: str) -> Code | None:
        """The code that a text without a label is, in a column of such codes."""
        known = {*self.labels, *self.texts, *self.reserved}
        own: Code | None = text if any(isinstance(code, str) for code in known) else _number(text)
        return None if own is None or self.is_missing(own) else own

    def _fresh(self, text: str, taken: Collection[Code]) -> Code:
        if any(isinstance(code, str) for code in taken):
            while text in taken or self.is_missing(text):
                text += "*"
            return text
        usual = [code for code in taken if not isinstance(code, str) and not self.is_missing(code)]
        spans = [(lo, hi) for lo, hi in self.missing if not isinstance(lo, str) and not isinstance(hi, str)]
        code = math.floor(max(usual, default=0)) + 1
        while code in taken or self.is_missing(code):
            ends = [hi for lo, hi in spans if lo <= code <= hi]
            if any(math.isinf(end) for end in ends):
                return self._fresh_below(min(usual, default=0), taken)
            code = math.floor(max([code, *ends])) + 1
        return code

    def _fresh_below(self, lowest: int | float, taken: Collection[Code]) -> int:
        code = math.ceil(lowest) - 1
        while code in taken or self.is_missing(code):
            code -= 1
        return code


@dataclass(frozen=True, slots=True)
class Codebook:
    """The variables of a file, by column name; `source` says whose formats they are in."""

    source: str
    variables: Mapping[str, Variable]

    def of(self, name: str) -> Variable:
        return self.variables.get(name, Variable())

    def public(self, data: Any, declared: Mapping[str, Collection[str]]) -> Codebook:
        """What may be published with a released table: its own columns, and labels that it or the schema holds.

        A set of labels can list every value of the original data (Stata's `encode` makes such sets), so a label
        that is neither released nor declared stays in the house, but its code is not given to another. Labels of
        missing values are kept.
        """
        frame = nw.from_native(data, eager_only=True)
        kept: dict[str, Variable] = {}
        for name in frame.columns:
            variable = self.of(name)
            if variable.labels or variable.texts:
                found = {*frame.get_column(name).unique().to_list(), *declared.get(name, ())}
                texts = {code: text for code, text in variable.texts.items() if text in found}
                labels = {
                    code: label
                    for code, label in variable.labels.items()
                    if code in texts or variable.is_missing(code) or (not variable.texts and code in found)
                }
                variable = replace(
                    variable,
                    labels=labels,
                    texts=texts,
                    reserved=frozenset(variable.texts).difference(texts),
                    declared=tuple(declared.get(name, ())),
                )
            kept[name] = variable
        return Codebook(self.source, kept)


def _number(text: str) -> int | float | None:
    """The number that a text is, None for other texts."""
    try:
        found = float(text)
    except ValueError:
        return None
    if not math.isfinite(found):
        return None
    return int(found) if found.is_integer() else found


def _order(code: Code) -> tuple[bool, Code]:
    return isinstance(code, str), code


def _repeated(texts: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for text in texts:
        (twice if text in seen else seen).add(text)
    return twice
