"""A reply as WhatsApp shows it: its own marks instead of Markdown's, and parts that the provider takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import regex

from mesh.text import sentences

# ── Markdown to WhatsApp ──────────────────────────────────────────────────────────────────────────────────────────

_CODE = regex.compile(
    r"(?P<fence>^[ \t]*```(?P<told>[\w+-]*)[ \t]*\n(?P<body>.*?)\n[ \t]*```[ \t]*$)"
    r"|(?P<block>```.+?```)"
    r"|(?<!`)`(?P<inline>[^`\n]+)`(?!`)",
    regex.DOTALL | regex.MULTILINE,
)
_ADDRESS = regex.compile(
    r"<(?P<bare>(?:https?://|mailto:)[^\s<>]+)>"
    r"|(?:https?://|www\.)(?:[^\s<>()\[\]*~|`\x00]|\([^\s<>()*`\x00]*\))+"
    r"|\b[\w.%+-]+@[\w-]+(?:\.[\w-]+)+"
)
_CODE_NAME = regex.compile(
    r"bash|console|css|csv|diff|html|ini|java|javascript|js|json|markdown|md|plaintext|py|python|sh|shell|sql|text|toml|ts|"
    r"txt|typescript|xml|ya?ml",
    regex.IGNORECASE,
)
"""After a fence, a word that says what follows; any other may be the code's own first line."""
_LINK = regex.compile(
    r"!?\[(?P<text>[^\[\]\n]*)\]\(\s*<?(?P<to>(?:https?://|mailto:|tel:|www\.)(?:[^\s()<>]|\([^\s()<>]*\))+)>?"
    r"(?:\s+[\"'][^\"'\n]*[\"'])?\s*\)"
)
_BOLD_ITALIC = regex.compile(r"(?<![\w*])\*\*\*(?=[^\s*])([^\n*]+?)(?<=\S)\*\*\*(?![\w*])")
_BOLD = regex.compile(r"(?<![\w*])\*\*(?=[^\s*])((?:[^\n*]|\*(?!\*))+?)(?<=[^\s*])\*\*(?![\w*])")
_BOLD_UNDERLINED = regex.compile(r"(?<![\w_])__(?=\S)((?:[^\n_]|_(?!_))+?)(?<=\S)__(?![\w_]|\.\w)")
_STRUCK = regex.compile(r"(?<![\w~])~~(?=\S)([^\n~]+?)(?<=\S)~~(?![\w~])")
_HEADING = regex.compile(r"^[ ]{0,3}#{1,6}[ \t]+(?!of\b)(?P<title>\S.*?)(?:[ \t]+#+)?[ \t]*$", regex.MULTILINE)
_BREAK = regex.compile(r"[ \t]*<br[ \t]*/?>[ \t]*", regex.IGNORECASE)
_RULE_OF_A_TABLE = regex.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_CELLS = regex.compile(r"(?<!\\)\|")
_HELD = regex.compile("\x00(\\d+)\x00")


def for_whatsapp(text: str) -> str:
    """What is WhatsApp's form already stays as it is."""
    held: list[str] = []

    def hold(shown: str) -> str:
        held.append(shown)
        return f"\x00{len(held) - 1}\x00"

    text = text.replace("\x00", "")
    lone = "```" in _CODE.sub("", text)  # it would pair with those of what is inline

    def hold_code(found: regex.Match[str]) -> str:
        if found["inline"]:
            return hold(found[0] if lone else f"```{found['inline']}```")
        told = _CODE_NAME.fullmatch(found["told"] or "")
        return hold(f"```\n{found['body']}\n```" if told else found[0])

    plain = _CODE.sub(hold_code, text)
    plain = _LINK.sub(_link, plain)
    plain = _ADDRESS.sub(lambda found: hold(found["bare"] or found[0]), plain)
    plain = "\n".join(_BREAK.sub(", " if "|" in line else "\n", line) for line in plain.split("\n"))
    plain = _tables(plain)
    plain = _BOLD_ITALIC.sub(r"*_\1_*", plain)
    plain = _BOLD.sub(lambda found: f"*{_bare(found[1])}*", plain)
    plain = _BOLD_UNDERLINED.sub(lambda found: found[0] if _is_name(found[1]) else f"*{_bare(found[1])}*", plain)
    plain = _STRUCK.sub(r"~\1~", plain)
    plain = _HEADING.sub(lambda found: f"*{_bare(found['title'])}*", plain)
    return _HELD.sub(lambda found: held[int(found[1])], plain)


def _link(found: regex.Match[str]) -> str:
    text, to = found["text"].strip(), found["to"]
    shown = to.removeprefix("mailto:").removeprefix("tel:")
    bare = regex.sub(r"^https?://|/$", "", to)
    return shown if text in ("", to, shown, bare) else f"{text} ({shown})"


def _bare(title: str) -> str:
    """Bold within bold would end it."""
    return regex.sub(r"(?<!\w)\*+(?=\S)|(?<=\S)\*+(?!\w)", "", title).strip() or title


def _is_name(text: str) -> bool:
    """__init__ is more likely a name than something bold."""
    return text.isascii() and text.islower() and text.replace("_", "").isalnum()


def _tables(text: str) -> str:
    """Each row as a line that names its columns."""
    lines = text.split("\n")
    shown: list[str] = []
    head: list[str] = []
    for at, line in enumerate(lines):
        if head and "|" in line:
            if not _RULE_OF_A_TABLE.fullmatch(line):
                shown.append(_row(head, _cells(line)))
            continue
        head = []
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if "|" in line and "|" in following and _RULE_OF_A_TABLE.fullmatch(following):
            head = _cells(line)
            if at + 2 >= len(lines) or "|" not in lines[at + 2]:
                shown.append(" · ".join(filter(None, head)))  # no row under it
        else:
            shown.append(line)
    return "\n".join(shown)


def _cells(line: str) -> list[str]:
    return [cell.replace("\\|", "|").strip() for cell in _CELLS.split(line.strip().removeprefix("|").removesuffix("|"))]


def _row(head: list[str], cells: list[str]) -> str:
    named = [*head, *[""] * len(cells)]
    told = [f"{name}: {cell}" if name else cell for name, cell in zip(named, cells, strict=False) if cell]
    return f"• {', '.join(told)}" if told else ""


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_RUN = regex.compile(
    r"(?P<mark>```).+?```"
    r"|(?<![\w*])(?P<mark>\*)(?=[^\s*])[^*\n]*(?<=[^\s*])\*(?![\w*])"
    r"|(?<![\w_])(?P<mark>_)(?=[^\s_])(?:[^_\n]|(?<=\w)_+(?=\w))*(?<=[^\s_])_(?![\w_])"
    r"|(?<![\w~])(?P<mark>~)(?=[^\s~])[^~\n]*(?<=[^\s~])~(?![\w~])",
    regex.DOTALL,
)
_ITEM = regex.compile(
    r"^[ \t]*(?P<bullet>(?:[-*+•·▪◦‣●○–—]|\(?\p{Nd}{1,3}[.)])[ \t]+(?=\S))[^\n]*(?:\n[ \t]+(?!(?&bullet))\S[^\n]*)*",
    regex.MULTILINE,
)
_INTRODUCES = regex.compile(r"(?:[:：]|(?:^|\n)[ \t]*\*[^*\n]+\*)$")
_SPACE = regex.compile(r"\s+")
_PARAGRAPH, _ITEM_BEGINS, _LINE, _SENTENCE, _WORD = 5, 4, 3, 2, 1
_MARKS = 6
"""The most that closing what is open takes."""
_TINY = 20
"""In so small a limit no marks are kept."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What is better not cut: a list item, or what stands between two marks."""

    start: int
    end: int
    mark: str = ""

    def holds(self, at: int) -> bool:
        return self.start < at < self.end


@dataclass(frozen=True, slots=True)
class _Gap:
    """Where one part may end, and the next begin."""

    start: int
    end: int
    worth: int


def size(text: str) -> int:
    """In UTF-16 units: providers don't say what a character is, and they count no more than that."""
    return len(text) + sum(c > "\uffff" for c in text)


def split(text: str, limit: int, most: int | None = None) -> list[str]:
    """Parts of at most `limit` in size, in order: cut between paragraphs where that is possible, else between list
    items, lines, sentences, words. Empty where it would take more than `most`: then it is better sent as a file."""
    parts: list[str] = []
    rest = text.strip()
    while rest:
        if len(parts) == most:
            return []
        part, rest = (rest, "") if size(rest) <= limit else _cut(rest, limit)
        parts.append(part)
    return parts


def _cut(text: str, limit: int) -> tuple[str, str]:
    runs = list(takewhile(lambda run: run.start < limit, _runs(text))) if limit >= _TINY else []
    gap = _place(text, limit, limit, runs)
    if not any(run.holds(gap.start) for run in runs):
        return text[: gap.start].strip(), text[gap.end :].strip()
    gap = _place(text, limit - _MARKS, limit, runs)  # a run longer than a message: closed here, and opened again
    open_ = "".join(run.mark for run in runs if run.holds(gap.start))
    rest = text[gap.end :].rstrip() if open_ else text[gap.end :].strip()
    return text[: gap.start].rstrip() + open_[::-1], open_ + rest


def _place(text: str, limit: int, whole: int, runs: list[_Run]) -> _Gap:
    """The best gap within the limit. Runs that fit into a whole message are not cut."""
    reach = _within(text, limit)
    marked = [run for run in runs if size(text[run.start : run.end]) <= whole]
    open_ = [run for run in runs if run not in marked]
    every = takewhile(lambda found: found.start() < reach, _ITEM.finditer(text))
    items = [_Run(*found.span()) for found in every if size(found[0].strip()) <= whole]
    gaps = [gap for gap in _gaps(text, reach) if not any(_at_a_mark(gap, run) for run in open_)]
    for uncut in ([*marked, *items], marked):
        if free := [gap for gap in gaps if not any(run.holds(gap.start) for run in uncut)]:
            return max(free, key=lambda gap: _rank(gap, reach))
    ends = [found.end() for found in regex.finditer(r"\X", text[: reach + 1])]  # a word longer than a message
    at = max((end for end in ends if end <= reach), default=reach)
    at = min((run.start for run in marked if run.start and run.holds(at)), default=at)
    return _Gap(at, at, 0)


def _rank(gap: _Gap, reach: int) -> tuple[bool, bool, int, int]:
    """A good place in the later half first, then a sentence's end that leaves no crumb, then the last word's."""
    good, late = gap.worth >= _SENTENCE, 2 * gap.start >= reach
    return good and late, good and 4 * gap.start >= reach, gap.worth if late else 0, gap.start


def _gaps(text: str, reach: int) -> Iterator[_Gap]:
    seen = text[: reach + 400]
    ends = {span.end for span in sentences(seen)} - {len(seen)}
    begins = {found.start() for found in _ITEM.finditer(seen)}
    for found in _SPACE.finditer(seen):
        start, end = found.span()
        if not 0 < start <= reach:
            continue
        lines = found[0].count("\n")
        line = start + found[0].rfind("\n") + 1
        if lines and _INTRODUCES.search(text[max(0, start - 200) : start]):
            worth = _WORD
        elif lines:
            worth = _PARAGRAPH if lines > 1 else _ITEM_BEGINS if line in begins else _LINE
        else:
            worth = _SENTENCE if start in ends else _WORD
        yield _Gap(start, line if lines else end, worth)
    unspaced = (end for end in ends if end <= reach and not seen[end].isspace())  # 。
    yield from (_Gap(end, end, _SENTENCE) for end in unspaced if not seen[end - 1].isalnum())


def _runs(text: str) -> Iterator[_Run]:
    """Outer before inner; nothing within code is a mark."""
    reached = 0
    while found := _RUN.search(text, reached):
        yield _Run(*found.span(), found["mark"])
        inner, end = found.start() + 1, found.end()
        if found["mark"] != "```":
            yield from (_Run(inner + run.start, inner + run.end, run.mark) for run in _runs(text[inner : end - 1]))
        reached = end


def _at_a_mark(gap: _Gap, run: _Run) -> bool:
    """Nothing would stand between the marks on one side."""
    wide = len(run.mark)
    return run.holds(gap.start) and (gap.start <= run.start + wide or gap.end >= run.end - wide)


def _within(text: str, limit: int) -> int:
    """How many characters are at most `limit` in size; at least one."""
    at = min(len(text), limit)
    while at > 1 and (over := size(text[:at]) - limit) > 0:
        at -= (over + 1) // 2
    return max(1, at)
