"""Tables 3.6 to 3.11 of the thesis as printed: nothing comes in, text of numbers leaves."""

from __future__ import annotations

from collections.abc import Iterator

SIZES = (5, 7, 9, 11, 25, 50, 100, 200, 300)
METHODS = ("MDAV-ID", "MDAV-SWAP", "IR-SWAP")
# executions behind a mean of tables 3.10 and 3.11
RUNS = 100
ATTRIBUTES, FIRST_PROTECTED = 13, 6

# mean and standard deviation by method, one pair per k
CHANGES: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "Census": {
        "MDAV-ID": (
            *((".055", ".064"), (".062", ".071"), (".069", ".078"), (".078", ".085"), (".11", ".11")),
            *((".14", ".13"), (".17", ".15"), (".29", ".27"), (".38", ".39")),
        ),
        "MDAV-SWAP": (
            *((".037", ".045"), (".048", ".056"), (".055", ".064"), (".061", ".070"), (".091", ".093")),
            *((".13", ".12"), (".19", ".17"), (".31", ".28"), (".37", ".34")),
        ),
        "IR-SWAP": (
            *(
                (".0021", ".0041"),
                (".0022", ".0039"),
                (".0028", ".0049"),
                (".0038", ".0068"),
                (".0061", ".012"),
            ),
            *((".010", ".020"), (".020", ".030"), (".044", ".047"), (".087", ".071")),
        ),
    },
    "EIA": {
        "MDAV-ID": (
            *((".018", ".017"), (".02", ".017"), (".034", ".031"), (".039", ".036"), (".085", ".078")),
            *((".13", ".12"), (".15", ".14"), (".19", ".18"), (".2", ".18")),
        ),
        "MDAV-SWAP": (
            *((".017", ".035"), (".024", ".05"), (".028", ".053"), (".029", ".052"), (".043", ".081")),
            *((".053", ".089"), (".058", ".092"), (".09", ".11"), (".12", ".13")),
        ),
        "IR-SWAP": (
            *(
                (".00064", ".00075"),
                (".0012", ".0018"),
                (".0015", ".0018"),
                (".0019", ".0023"),
                (".0063", ".0072"),
            ),
            *((".011", ".011"), (".029", ".037"), (".093", ".074"), (".14", ".091")),
        ),
    },
}

# mean change of IR-SWAP on EIA that a throw-away prototype found, by k
PROTOTYPE_RANKING = {5: ".00066", 25: ".0062", 100: ".0287", 300: ".137"}

# correlations of A1 .. A13 (lines) with A7 .. A13, upper triangle
CORRELATIONS: dict[str, str] = {
    "original": """
        .0038 -.027 -.024 .031 .032 .039 .036
        .98 .14 .2 .73 .71 .72 .7
        .44 -.12 -.058 .56 .55 .56 .55
        .98 .2 .28 .73 .69 .71 .69
        .78 .27 .27 .9 .85 .88 .86
        .79 .13 .22 .59 .57 .57 .56
        1 .17 .23 .72 .7 .71 .69
        1 .45 -.17 -.19 -.17 -.17
        1 .072 .061 .70 .075
        1 .96 .98 .96
        1 .91 .89
        1 .97
        1""",
    "MDAV-ID": """
        -.0035 -.035 -.055 .034 .035 .042 .04
        1 .18 .39 .8 .81 .8 .78
        .79 -.17 .084 .89 .9 .89 .89
        .99 .23 .45 .82 .8 .81 .8
        .86 .18 .4 .94 .92 .94 .93
        .95 .2 .43 .77 .76 .76 .75
        1 .2 .41 .8 .8 .79 .78
        1 .68 -.15 -.18 -.15 -.16
        1 .18 .14 .17 .16
        1 .98 1 .99
        1 .97 .97
        1 1
        1""",
    "MDAV-SWAP": """
        -.0011 -.028 -.034 .032 .033 .036 .032
        .81 .089 .17 .69 .67 .69 .67
        .42 -.020 .091 .48 .47 .48 .43
        .77 .093 .18 .68 .65 .68 .67
        .72 .086 .16 .80 .76 .79 .77
        .64 .086 .14 .54 .52 .54 .52
        1 .12 .17 .69 .67 .66 .65
        1 .19 -.013 -.022 -.042 -.011
        1 .11 .10 .10 .13
        1 .76 .81 .87
        1 .72 .70
        1 .77
        1""",
    "IR-SWAP": """
        .0041 -.017 -.018 .031 .038 .039 .038
        .98 .13 .20 .73 .71 .72 .70
        .44 -.12 -.041 .56 .55 .56 .55
        .98 .19 .27 .73 .68 .71 .69
        .78 .26 .26 .90 .85 .88 .86
        .79 -.12 .21 .59 .57 .57 .56
        1 .16 .23 .72 .69 .71 .69
        1 .42 -.17 -.19 -.17 -.17
        1 .077 .063 .075 .080
        1 .95 .98 .96
        1 .91 .89
        1 .97
        1""",
}


def filled(text: str) -> str:
    """A number with the zeros that print leaves out: two digits that count, and two places after the point.

    >>> filled(".2"), filled("1"), filled("-.0011"), filled(".05")
    ('.20', '1.00', '-.0011', '.050')
    """
    whole, _, places = text.partition(".")
    short = 2 - len(places.lstrip("0")) if whole in ("", "-") else 2 - len(places)
    return f"{whole}.{places}{'0' * max(short, 0)}"


def cells(table: str) -> Iterator[tuple[int, int, str]]:
    """Row, column (of A1 .. A13, from 0) and text of every printed correlation."""
    for row, line in enumerate(CORRELATIONS[table].strip().splitlines()):
        texts = line.split()
        for column, text in zip(range(ATTRIBUTES - len(texts), ATTRIBUTES), texts, strict=True):
            yield row, column, filled(text)
