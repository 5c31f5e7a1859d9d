"""Names: what a document or a section is called, and where a text names it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

import regex

from mesh.ports.documents import Chunk
from mesh.text import content_words, sentences, telling, words

LONGEST = 8
"""Words of a name."""
LONGEST_CASELESS = 4
"""Where the script has no capitals to tell where a name begins."""

_TOKEN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’‐-][\p{L}\p{M}\p{N}]+)*")
_ASIDE = regex.compile(r"\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
_AFTER_COMMA = regex.compile(r"\s*[,،，、].*", regex.DOTALL)
_MARK = regex.compile(r"[,;:()（）\n–—।]|[.!?]\s")
_WITHIN = regex.compile("of|the|and|in|for|to|an?|de|la|le|du|et|del|y|e|el|al|di|da|dos?|van|von|der|und|bin|bint")
"""Words in small letters that stand within a name."""


def names_of(file: str, chunk: Chunk) -> tuple[str, ...]:
    """What a passage may be called: its file, its outermost and its innermost heading, each as it is written, without
    what stands in brackets behind it, and without what follows a comma ("Willow (film)", "Alix, Countess of Blois").
    Where none says anything, what a text begins with: "Ted Wilde (1889-1929) was a director …"."""
    path = chunk.heading_path
    titles = [title for title in (telling(PurePosixPath(file).stem), *path[:1], *path[-1:]) if title]
    if not titles and chunk.index == 0:
        titles = [_beginning(chunk.text)]
    return tuple(dict.fromkeys(name for title in titles for name in forms(title)))


@lru_cache(maxsize=1 << 12)
def forms(title: str) -> tuple[str, ...]:
    bare = _ASIDE.sub("", title)
    written = (title, bare, _AFTER_COMMA.sub("", bare))
    return tuple(dict.fromkeys(_key(form) for form in written if content_words(form)))


def _beginning(text: str) -> str:
    """Up to the last capital before the first mark, or the first small word that no name has within."""
    start = end = None
    for token in islice(_TOKEN.finditer(text), LONGEST):
        word = token.group()
        if end is not None and _MARK.search(text, end, token.start()):
            break
        if _is_edge(word):
            start, end = token.start() if start is None else start, token.end()
        elif end is None or not _WITHIN.fullmatch(word):
            break
    return text[start:end] if end is not None else ""


def named_in(text: str, *, small: bool = False) -> dict[str, str]:
    """All that may be a name in it, in the form of `names_of`, each with the sentence where it is met first: runs of
    words that begin and end with a capital or a figure; in scripts without capitals, any few words. A word alone counts
    within a sentence. `small`: so do runs in small letters, as people write in chats."""
    found: dict[str, str] = {}
    for span in sentences(text):
        sentence = span.of(text)
        for name in _runs(_TOKEN.findall(sentence), small):
            found.setdefault(name, sentence)
    return found


def _runs(tokens: list[str], small: bool) -> Iterator[str]:
    keys = [_key(token) for token in tokens]
    edges = [_is_edge(token) or (small and bool(content_words(token))) for token in tokens]
    for start, token in enumerate(tokens):
        if not edges[start]:
            continue
        longest = LONGEST_CASELESS if _is_caseless(token) else LONGEST
        for end in range(start + 1, min(start + longest, len(tokens)) + 1):
            if edges[end - 1] and (end - start > 1 or (start > 0 and token[0].isupper() and len(token) > 2)):
                yield " ".join(keys[start:end])


def _is_edge(token: str) -> bool:
    return token[0].isupper() or token[0].isdecimal() or _is_caseless(token)


def _is_caseless(token: str) -> bool:
    first = token[0]
    return first.isalpha() and first.lower() == first.upper()


@lru_cache(maxsize=1 << 14)
def _key(text: str) -> str:
    return " ".join(words(text))
