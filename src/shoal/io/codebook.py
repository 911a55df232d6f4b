"""The codebook of a statistics package: codes come in with their labels, texts go on; texts come back as codes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw

from shoal.io.formats import Format

Code = int | float | str


@dataclass(frozen=True, slots=True)
class Variable:
    """What a statistics package keeps about one column beside its values.

    Attributes:
        label: the variable's own label, such as the question that was asked.
        format: display format in the package's own words.
        measure: nominal, ordinal or scale, where the package knows it.
        labels: value labels by code, those of missing values included.
        texts: what the table shows for each code; empty if it shows the codes themselves.
        missing: ranges (lo, hi) of codes that stand for missing values.
        tags: labels of Stata's missing values .a to .z.
        width: display width.
        reserved: codes that are taken though their labels are not told.
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

    @property
    def labelled(self) -> tuple[str, ...]:
        """The texts of the values that have a label, in the order of their codes: none comes from the records."""
        return tuple(self.texts[code] for code in sorted(self.texts, key=_order) if code in self.labels)

    def showing_labels(self, codes: Iterable[Code]) -> Variable:
        """The variable with a text for every code that occurs or has a label.

        Two codes with one label keep their codes in the text; a code without a label is its own text.

        >>> Variable(labels={1: "yes", 2: "other", 3: "other"}).showing_labels([1, 4]).texts
        {1: 'yes', 2: 'other (2)', 3: 'other (3)', 4: '4'}
        """
        labels = {code: label.strip() for code, label in self.labels.items() if not self.is_missing(code)}
        spelled = {code: labels.get(code) or str(code) for code in dict.fromkeys((*labels, *codes))}
        repeated = _repeated(spelled.values())
        texts = {code: f"{text} ({code})" if text in repeated else text for code, text in spelled.items()}
        if _repeated(texts.values()):
            texts = {code: f"{code}: {text}" for code, text in spelled.items()}
        return replace(self, texts=texts)

    def codes_of(self, texts: Iterable[str]) -> dict[str, Code]:
        """A code for each text: its own, or a fresh one for a released text that never had any.

        >>> Variable(texts={1: "cat", 2: "dog"}, missing=((3, 3),)).codes_of(["dog", "animal"])
        {'dog': 2, 'animal': 4}
        """
        wanted = set(texts)
        codes = {text: code for code, text in self.texts.items() if text in wanted}
        taken = {*self.labels, *self.texts, *self.reserved}
        for text in sorted(wanted - set(codes)):
            codes[text] = self._fresh(text, taken)
            taken.add(codes[text])
        return codes

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

    source: Format
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
                    variable, labels=labels, texts=texts, reserved=frozenset(variable.texts).difference(texts)
                )
            kept[name] = variable
        return Codebook(self.source, kept)


def _order(code: Code) -> tuple[bool, Code]:
    return isinstance(code, str), code


def _repeated(texts: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for text in texts:
        (twice if text in seen else seen).add(text)
    return twice
