"""The questions in a message, by rules: how many there are, and whether the asker is in them."""

from __future__ import annotations

import regex

from mesh.text import content_words, words

MOST_PARTS = 3

OPENERS = (
    r"(?:(?:what|where|when|who|how)['’]?s|what|when|where|which|whom?|whose|why|how|is|are|was|were|do|does|did|can|could|may|must|will|would|should"
    r"|has|have|¿|(?:a |de |en )?qu[eé]|cu[aá]l(?:es)?|cu[aá]ndo|cu[aá]nt[oa]s?|d[oó]nde|qui[eé]n(?:es)?|c[oó]mo|hay"
    r"|puedo|se puede|tienen?|est[aá]n?|क्या|कौन|कब|कहाँ|कहां|कैसे|कितन\w*|क्यों|किस\w*)"
)
_ENDS = regex.compile(r"(?<=[?？؟])\s+(?=\S)")
_JOINS = regex.compile(
    rf",?\s+(?:and(?: also)?|also|y(?: tambi[eé]n)?|e|और)\s+(?={OPENERS}(?:[\s¿]|(?<=¿)))", regex.IGNORECASE
)
_ASKS = regex.compile(
    rf"[?？؟]|^\W*{OPENERS}\b|\b(?:need|want|like|tell|show|give|send|dime|necesito|quiero)\b"
    r"|(?:क्या|कौन|कब|कहाँ|कहां|कैसे|कितन|क्यों|किस)",
    regex.IGNORECASE,
)
_SUBJECT_WORD = regex.compile(r"^\W*(?:who|which|qui[eé]n)\b", regex.IGNORECASE)
"""Who founded it and is known for …": what is joined has the same subject."""
_VERB_FIRST = regex.compile(r"^(?:is|are|was|were|has|have|did|does|do|can|could|will|would)\b", regex.IGNORECASE)
_POINTS_BACK = regex.compile(
    r"\b(?:it|its|they|them|their|that|those|these|ones?|él|ella|ellos|ellas|eso|esa|ese|allí)\b"
    r"|(?:^|\s)(?:वह|यह|वहाँ|उस\w*|इस\w*)(?:\s|$)",
    regex.IGNORECASE,
)
_FILLERS = regex.compile(
    r"(?<!\w)(?:l+o+l|haha\w*|btw|pls|plz|please|thx|thanks|tnx|by the way)(?!\w)[ ,.!]*"
    r"|^(?:hi|hey|hello|hiya)\b[ ,.!]*(?=\w)",
    regex.IGNORECASE,
)
_SHORT = {"u": "you", "ur": "your", "hes": "he's", "shes": "she's", "theres": "there's", "wont": "won't"}
_SHORTENED = regex.compile(rf"(?<![\w'’-])(?:{'|'.join(_SHORT)})(?![\w'’-])", regex.IGNORECASE)
_SENTENCE = regex.compile(r"[^?？؟.!\n]*(?:[.!](?=\S)[^?？؟.!\n]*)*[?？؟.!\n]*")
_GIVEN = regex.compile(r"\s\([^()]*\)$")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}'’-]*")


_PERSONAL = regex.compile(
    r"\b(?:i|my|mine|me|our|ours|us|we|mi|mis|nuestr[oa]s?|yo|tengo)\b|मेर[ाीे]|हमार[ाीे]|मैं|मुझे", regex.IGNORECASE
)


def is_personal(text: str) -> bool:
    return _PERSONAL.search(text) is not None


def tidied(text: str) -> str:
    """Without the small words of chats ("hi", "lol", "btw"), and with the long form of "u" and "hes"."""
    bare = _FILLERS.sub("", text).strip()
    return _SHORTENED.sub(lambda found: _SHORT[found[0].lower()], bare) if content_words(bare) else text


def questions_alone(text: str) -> str:
    """The sentences of a message that end in a question mark, without the remarks beside them."""
    sentences = [found.group().strip() for found in _SENTENCE.finditer(text)]
    asked = [sentence for sentence in sentences if sentence.endswith(("?", "？", "؟"))]
    return " ".join(asked) if asked else text


def as_written(part: str) -> str:
    """One of `parts`, without the words of the first that it was given."""
    return _GIVEN.sub("", part)


def parts(text: str) -> tuple[str, ...]:
    """The questions of a message, each so that it can be asked alone: "What is the price of the suite and is it
    quiet?" gives a second one that names the suite. One that cannot be taken apart is given as it is."""
    pieces = [piece for ended in _ENDS.split(text.strip()) for piece in _joined(ended)]
    asked = [piece for piece in pieces if _ASKS.search(piece)]
    if not 2 <= len(asked) <= MOST_PARTS:
        return (text,)
    first, *others = asked
    return (first, *(_pointed(first, other) for other in others))


def _joined(sentence: str) -> list[str]:
    pieces: list[str] = []
    for piece in _JOINS.split(sentence):
        same = bool(pieces) and bool(_SUBJECT_WORD.match(pieces[-1]) and _VERB_FIRST.match(piece))
        if pieces and (same or not content_words(pieces[-1]) or not words(piece)[1:]):
            pieces[-1] = f"{pieces[-1]} and {piece}"
        else:
            pieces.append(piece)
    return pieces


def _pointed(first: str, other: str) -> str:
    """With the words of the first question when it only points at them."""
    if not _POINTS_BACK.search(other) and len(content_words(other)) > 1:
        return other
    return f"{other} ({' '.join(_named(first))})"


def _named(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if content_words(word) and word.lower() not in ("much", "many")]
