"""Numbers of a spreadsheet as a person sees them: dates, shares, amounts of money, numbers with a unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

_BUILT_IN = {
    3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
    18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 45: "mm:ss", 46: "[h]:mm:ss",
    47: "mm:ss", **dict.fromkeys((*range(27, 37), *range(50, 59)), "yyyy-mm-dd"),
}  # fmt: skip
_PIECE = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[(h+|m+|s+)\]|\[[^\]]*\]|[_*].|(General)|(.)', re.I | re.S)
_FIGURES = frozenset("0#?.,/E+")
_MOST_DAYS = 2_958_465  # the last of the year 9999


@dataclass(frozen=True, slots=True)
class Form:
    before: str = ""
    after: str = ""
    figures: str = ""
    """The digits' pattern, as in `#,##0.00`."""
    date: bool = False
    time: bool = False
    elapsed: bool = False


PLAIN = Form()


@lru_cache(maxsize=1_000)
def form_of(number: int, code: str) -> tuple[Form, ...]:
    """For numbers from zero on, below it, and zero, as far as they differ."""
    code = code or _BUILT_IN.get(number, "")
    return tuple(map(_form, re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', code)))[:3] if code else (PLAIN,)


def _form(section: str) -> Form:
    before = after = figures = ""
    letters: list[str] = []
    elapsed = False
    for quoted, escaped, money, passed, general, other in _PIECE.findall(section):
        literal = quoted or escaped or money
        if passed:
            elapsed = True
            letters.append(passed[0].lower())
        elif general or other in _FIGURES:
            figures += other if other not in "E+" or figures else ""
        elif other and other.lower() in "ymdhsbge" and other not in "E":
            letters.append(other.lower())
        elif literal or other:
            if figures:
                after += literal or other
            else:
                before += literal or other
    time = bool({"h", "s"} & set(letters))
    date = bool({"y", "d"} & set(letters)) or ("m" in letters and not time)
    if (date or time) and not re.search(r"[0#?]", figures.replace(".0", "").replace(".", "")):
        return Form(date=date, time=time, elapsed=elapsed)
    return Form(before, after, figures)


def shown(text: str, forms: tuple[Form, ...], since_1904: bool = False) -> str:
    try:
        number = float(text)
    except ValueError:
        return text
    form = forms[1 if number < 0 and len(forms) > 1 else 2 if not number and len(forms) > 2 else 0]
    if form.date or form.time:
        return _moment(number, form, since_1904) or _plain(number, text)
    if "%" in form.before + form.after:
        share = _plain(round(number * 100, 10), text)
        return f"{form.before}{share}{form.after}".replace("@", "").strip()
    if not (form.before + form.after).replace("@", "").strip("()- "):
        if re.fullmatch(r"0{2,}", form.figures) and number.is_integer():
            return f"{int(number):0{len(form.figures)}}"
        return _plain(number, text)
    negative = "-" if number < 0 and len(forms) == 1 else ""
    figures = _figures(abs(number), form.figures, text)
    said = negative + " ".join(f"{form.before}{figures}{form.after}".split())
    return f"-{said}" if number < 0 and len(forms) > 1 and not re.search(r"[-(]", said) else said


def _figures(number: float, pattern: str, text: str) -> str:
    if not pattern or "/" in pattern or "E" in pattern:
        return _plain(number, text.lstrip("-"))
    if pattern.endswith(","):  # thousands, millions
        return _plain(round(number / 1000 ** (len(pattern) - len(pattern.rstrip(","))), 2), text)
    most = len(pattern.partition(".")[2].replace(",", ""))
    least = pattern.partition(".")[2].count("0")
    written = f"{number:{',' if ',' in pattern else ''}.{most}f}"
    while most > least and written.endswith("0"):
        written, most = written[:-1], most - 1
    return written.rstrip(".") if not most else written


def _plain(number: float, text: str) -> str:
    """Without what comes of counting in twos: 0.1 + 0.2 is 0.3."""
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    written = f"{number:.12g}"
    return text if "e" in written or "n" in written else written


def _moment(number: float, form: Form, since_1904: bool) -> str:
    if not 0 <= number < _MOST_DAYS:
        return ""
    if form.elapsed or (form.time and not form.date and number >= 1):
        seconds = round(number * 86_400)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}" + (f":{seconds % 60:02}" if seconds % 60 else "")
    first = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 — as written, no zone
    if number < 60 and not since_1904 and form.date:
        number += 1  # Lotus took 1900 for a leap year
    at = first + timedelta(seconds=round(number * 86_400))
    clock = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
    if not form.date:
        return clock
    return f"{at:%Y-%m-%d} {clock}" if form.time and number % 1 else f"{at:%Y-%m-%d}"
