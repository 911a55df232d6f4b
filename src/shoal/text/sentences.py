"""Sentences from codes and facts, rendered for the library or for the command line.

A template is a sentence with its facts in braces, as in `str.format`, plus these formats:

- `{names:list}` is a list, `{names:or quoted 5}` at most five names in quotes with "or" before the last,
  `{reasons:clauses}` separates with semicolons and `{problems:lines}` gives each its own line,
  `{count:s}` is an "s" unless the count is 1, `{word:guess}` suggests what was meant, `{share:percent}` is a
  percentage, `{share:roughly}` a rounded one;
- `«outside="clip"»` marks an option of the library, which the command line shows as its flag, `--outside clip`;
  an option without a value is marked the same way, `«epsilon»`.

A fact `added` is one more sentence, appended by code that handled the error.

A template of two parts says what is wrong and, after a colon, what to do.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

# separators of lists other than lists of names
_BETWEEN = {"clauses": "; ", "lines": "\n"}


def listed(names: Iterable[object], last: str = "", *, quoted: bool = False, most: int | None = None) -> str:
    """Names in a sentence; long lists are cut short.

    Args:
        last: the word before the last name, "and" or "or"; a comma if empty.

    >>> listed("abc"), listed("abc", "or"), listed("abcde", quoted=True, most=3)
    ('a, b, c', 'a, b or c', "'a', 'b', 'c' and 2 more")
    """
    words = [f"'{name}'" if quoted else str(name) for name in names]
    if most is not None and len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most:,} more"
    if not last or len(words) < 2:
        return ", ".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def counted(count: int, what: str, several: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "release"), counted(2000, "release"), counted(2, "person", "people")
    ('1 release', '2,000 releases', '2 people')
    """
    return f"{count:,} {what if count == 1 else several or f'{what}s'}"


def percent(share: float) -> str:
    """A share in percent, two digits below ten percent.

    >>> percent(0.0312), percent(2.8284)
    ('3.1%', '283%')
    """
    return f"{100 * share:,.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def roughly(share: float) -> str:
    """A share as an approximate percentage.

    >>> roughly(0.0312), roughly(0.004), roughly(0.00001), roughly(4.2)
    ('3%', '0.4%', 'less than 0.1%', '420%')
    """
    if 0 < share < 0.0005:
        return "less than 0.1%"
    return f"{100 * share:.1f}%" if 0 < share < 0.0095 else f"{100 * share:.0f}%"


def capital(sentence: str) -> str:
    """A sentence with its first letter in upper case.

    >>> capital("no column is left.")
    'No column is left.'
    """
    return f"{sentence[:1].upper()}{sentence[1:]}"


def list_of(value: Sequence[object], spec: str) -> str:
    """A list in the format of a template: `list`, `and`, `or`, with `quoted` and a maximum number of names, or
    its parts as `clauses` or `lines`.

    >>> list_of(["a", "b"], "or quoted"), list_of("abcd", "list 2")
    ("'a' or 'b'", 'a, b and 2 more')
    """
    kind, *more = spec.split(" ")
    if kind in _BETWEEN:
        return _BETWEEN[kind].join(map(str, value))
    most = next((int(word) for word in more if word.isdigit()), None)
    return listed(value, "" if kind == "list" else kind, quoted="quoted" in more, most=most)


# the edition of the sentences: raised when those of statements are reworded, so that older ones still load
EDITION = 2

# the flag of an option of the library, None where the command line has none
Flag = Callable[[str], str | None]

_MARK = re.compile("«([^»]*)»")
_OPTION = re.compile(
    r"(?P<name>[a-z]\w*)(?:=(?:\{\"[^\"]*\": \"(?P<of_column>[^\"]+)\"\}|\"(?P<quoted>[^\"]+)\"|(?P<bare>\w[\w-]*))?)?"
)
_SPECS: Mapping[str, Callable[[Any], str]] = {
    "s": lambda count: "" if count == 1 else "s",
    "guess": lambda word: f" Did you mean '{word}'?" if word else "",
    "percent": percent,
    "roughly": roughly,
}
# what follows a column's name in flags that concern one column
_FORMS = {"domains": "lo:hi", "types": "integer"}
# flags that take the column and a value
_OF_COLUMNS = ("types", "date_format")


@dataclass(frozen=True, slots=True)
class Message:
    """A message: a code that programs branch on, and the facts for its sentence.

    >>> message = Message.of("infinite", column="age", row=3)
    >>> message.code, str(message)
    ('infinite', "column 'age' has an infinite value in row 3: correct or remove it.")
    """

    code: str
    # not in the repr, since facts may be long or private; not hashed, since facts may contain lists
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @classmethod
    def of(cls, code: str, /, **facts: Any) -> Message:
        return cls(code, facts)

    def rendered(self, flag: Flag | None = None) -> str:
        """The sentence, with command-line flags if `flag` is given."""
        return render(self.code, self.facts, flag)

    def __str__(self) -> str:
        return self.rendered()


@cache
def catalogue() -> Mapping[str, tuple[str, ...]]:
    """Every code with its template, in one part or two, from one file for each package."""
    rooms = sorted((Path(__file__).parent / "en").glob("*.json"))
    return {
        code: (text,) if isinstance(text, str) else tuple(text)
        for room in rooms
        for code, text in json.loads(room.read_text("utf-8")).items()
    }


def render(code: str, facts: Mapping[str, Any], flag: Flag | None = None) -> str:
    """The sentence of a code; a code without a template, as in an extension, is itself the sentence.

    Args:
        flag: returns the flags of options; without it, options appear as in the library.

    >>> facts = {"option": "k", "found": 0}
    >>> render("k-least-1", facts), render("k-least-1", facts, "--{}".format)
    ('k must be at least 1, got 0.', '--k must be at least 1, got 0.')
    """
    if code not in catalogue():
        return code
    writer = _Writer(facts, flag)
    sentence = ": ".join(writer.written(part) for part in catalogue()[code])
    return f"{sentence}{writer.added()}{writer.own_flag()}"


def filled(template: str, facts: Mapping[str, Any]) -> str:
    """A template from outside the catalogue, such as a sentence stored in a file, with its facts.

    >>> filled("{column} has {count} row{count:s}", {"column": "age", "count": 2})
    'age has 2 rows'
    """
    return _Writer(facts, None).written(template)


def way_out(code: str, facts: Mapping[str, Any]) -> str:
    """What the sentence of a code says to do: a suggestion, or what follows its colon; or ""."""
    parts, writer = catalogue().get(code, ()), _Writer(facts, None)
    guess = next((found for part in parts if (found := writer.guess(part))), "")
    return guess or (writer.written(parts[1]) if len(parts) > 1 else "")


@dataclass(frozen=True, slots=True)
class _Within:
    """Flags inside another sentence: `k=` is an option there, an initial `k` is not."""

    flag: Flag

    def __call__(self, option: str) -> str | None:
        return self.flag(option)


class _Writer(string.Formatter):
    """Fills templates with facts, and records which options were named."""

    def __init__(self, facts: Mapping[str, Any], flag: Flag | None) -> None:
        self._facts, self._flag = facts, flag
        self._named: set[str] = set()
        # whether the output is still empty, now and before the fact being written
        self._empty = self._first = True

    def written(self, template: str) -> str:
        parts = _MARK.split(template)
        return "".join(
            self._option(self.vformat(part, (), self._facts))
            if place % 2
            else self.vformat(part, (), self._facts)
            for place, part in enumerate(parts)
        )

    def guess(self, template: str) -> str:
        """The suggestion of a template, or ""."""
        names = (name for _, name, spec, _ in self.parse(template) if spec == "guess" and name)
        return next((self.vformat(f"{{{name}:guess}}", (), self._facts).strip() for name in names), "")

    def added(self) -> str:
        """The additional sentence."""
        self._first = False
        return f" {self._text(self._facts['added'])}" if "added" in self._facts else ""

    def own_flag(self) -> str:
        """The flag that a sentence of the command line is about, unless it is named already."""
        option = self._facts.get("option")
        if option is None or option in self._named or isinstance(self._flag, _Within):
            return ""
        own = self._flag and self._flag(option)
        return f" ({own})" if own else ""

    def parse(self, format_string: str) -> Iterable[tuple[str, str | None, str | None, str | None]]:
        for literal, name, spec, conversion in super().parse(format_string):
            self._empty = self._empty and not literal
            yield literal, name, spec, conversion

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self._first, self._empty = self._empty, False
        return super().get_field(field_name, args, kwargs)

    def format_field(self, value: Any, spec: str) -> str:
        kind = spec.partition(" ")[0]
        if kind in ("list", "and", "or", "clauses", "lines"):
            return list_of([self._text(one) for one in value], spec)
        if kind in _SPECS:
            return _SPECS[kind](value)
        return self._text(value) if not spec else str(format(value, spec))

    def _text(self, value: Any) -> str:
        """A fact in a sentence; a nested message is rendered the same way."""
        rendered = getattr(value, "rendered", None)
        if rendered is None:
            return str(value)
        return str(rendered(self._flag and (self._spelled if self._first else _Within(self._spelled))))

    def _spelled(self, option: str) -> str | None:
        """The flag of an option named here, also within a nested message."""
        own = None if self._flag is None else self._flag(option)
        if own is not None:
            self._named.add(option)
        return own

    def _option(self, marked: str) -> str:
        found = _OPTION.fullmatch(marked)
        if found is None or (isinstance(self._flag, _Within) and found[0] == found["name"]):
            return marked
        own = self._spelled(found["name"])
        if own is None:
            return marked
        name, value = found["name"], found["of_column"] or found["quoted"] or found["bare"] or ""
        column = self._facts.get("column")
        if value in ("True", "False"):
            return own if value == "True" else f"--no-{own[2:]}"
        if not value and marked.endswith("=") and column is not None and name in _FORMS:
            return f"{own} '{column}={_FORMS[name]}'"
        if value and column is not None and name in _OF_COLUMNS:
            return f"{own} '{column}={value}'"
        if found["quoted"] and (name == "na" or re.fullmatch(r"\w[\w-]*", value) is None):
            # quoted for a shell
            value = f'"{value}"' if "'" in value else f"'{value}'"
        return f"{own} {value}".rstrip()
