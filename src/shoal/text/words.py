"""Lists, counts, percentages and numbers, formatted for sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
