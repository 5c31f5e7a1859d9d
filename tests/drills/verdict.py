"""What a drill's people got, judged from outside: from which webhooks got a 2xx, and from what the simulated Twilio was
given to send. The mesh is not asked."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from agents.orchestrator.words import STILL_WORKING
from tests.drills.echo import tokens_in

Log = Mapping[str, Sequence[Mapping[str, Any]]]
"""As `mesh.testing.phone.Phone.log` gives it."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a person. `apology`: words in place of the answer are fine, too; `only`: just they are."""

    token: str
    sid: str
    person: str
    apology: bool = False
    only: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """When a message was posted first, and when a webhook of it was first answered with a 2xx; in seconds, by the
    simulated Twilio's monotonic clock. It was accepted somewhere between the two."""

    posted: float
    acknowledged: float | None


@dataclass(frozen=True, slots=True)
class Answered:
    seq: int
    at: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """`lost`: acknowledged, and without an outcome that the drill allows; `silent`: without any word at all;
    `duplicated`: replies too many; `order_inversions`: replies that came after one to a message which was surely
    accepted later."""

    messages: int
    acknowledged: int
    lost: int
    duplicated: int
    order_inversions: int
    silent: int
    p50_s: float | None
    p95_s: float | None
    gone_wrong: int
    """Sends that were not answered with success."""
    which: Mapping[str, list[str]] = field(default_factory=dict, repr=False)
    """Tokens of what went wrong, by figure."""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.order_inversions or self.silent)


def heard(log: Log, sids: Collection[str]) -> dict[str, Heard]:
    """Of the messages that were posted at all."""
    found: dict[str, Heard] = {}
    for post in log["inbound"]:
        sid = post["message_sid"]
        if sid not in sids:
            continue
        began = float(post["mono"])
        ended = began + post["ms"] / 1000 if 200 <= post["status"] < 300 else None
        known = found.get(sid, Heard(began, None))
        acknowledged = min((each for each in (known.acknowledged, ended) if each is not None), default=None)
        found[sid] = Heard(min(known.posted, began), acknowledged)
    return found


def judge(said: Sequence[Said], log: Log, *, owed: Collection[str] | None = None) -> Verdict:
    """`owed`: sids of the messages that must have an outcome, where that is not those that were acknowledged."""
    by_person: dict[str, list[Said]] = {}
    for message in said:
        by_person.setdefault(message.person, []).append(message)
    posts = heard(log, {message.sid for message in said})
    must = {sid for sid, each in posts.items() if each.acknowledged is not None} if owed is None else set(owed)
    replies: dict[str, list[Mapping[str, Any]]] = {person: [] for person in by_person}
    for reply in sorted(log["outbound"], key=lambda reply: int(reply["seq"])):
        if reply["to"] in replies:
            replies[reply["to"]].append(reply)
    chats = [_chat(messages, replies[person], posts, must) for person, messages in by_person.items()]
    waited = sorted(chain.from_iterable(chat.waited for chat in chats))
    return Verdict(
        messages=len(said),
        acknowledged=sum(each.acknowledged is not None for each in posts.values()),
        lost=sum(len(chat.lost) for chat in chats),
        duplicated=sum(len(chat.duplicated) for chat in chats),
        order_inversions=sum(len(chat.inverted) for chat in chats),
        silent=sum(len(chat.silent) for chat in chats),
        p50_s=round(statistics.median(waited), 3) if waited else None,
        p95_s=round(waited[min(len(waited) - 1, int(len(waited) * 0.95))], 3) if waited else None,
        gone_wrong=sum(each["answer"] != "success" for each in chain.from_iterable(replies.values()))
        + sum(each["to"] in replies for each in log["refused"]),
        which={
            name: sorted(chain.from_iterable(getattr(chat, name) for chat in chats))
            for name in ("lost", "duplicated", "inverted", "silent")
        },
    )


@dataclass(frozen=True, slots=True)
class _Chat:
    lost: list[str]
    duplicated: list[str]
    inverted: list[str]
    silent: list[str]
    waited: list[float]


def _chat(said: list[Said], replies: list[Mapping[str, Any]], posts: Mapping[str, Heard], must: set[str]) -> _Chat:
    answered, words, duplicated = _attributed(said, replies, must)
    outcome = answered | words
    lost, silent = [], []
    for message in said:
        if message.sid not in must:
            continue
        got = message.token in outcome
        right = (message.token in answered and not message.only) or (message.token in words and message.apology)
        if not right:
            lost.append(message.token)
        if not got:
            silent.append(message.token)
    waited = [
        outcome[message.token].at - posts[message.sid].posted
        for message in said
        if message.sid in must and message.token in outcome and message.sid in posts
    ]
    waited = [each for each in waited if each >= 0]  # a webhook that came again after the answer says nothing
    known = {message.token: posts[message.sid] for message in said if message.sid in posts}
    return _Chat(lost, duplicated, _inverted(known, outcome), silent, waited)


def _attributed(
    said: list[Said], replies: Iterable[Mapping[str, Any]], must: set[str]
) -> tuple[dict[str, Answered], dict[str, Answered], list[str]]:
    """Answers by token; words without a token, given in order to the messages that have no answer, first to those that
    must have one; and what was too much, or answers nothing that was said in this chat."""
    known = {message.token for message in said}
    answered: dict[str, Answered] = {}
    wordless: list[Answered] = []
    extra: list[str] = []
    notices = 0
    for reply in replies:
        this = Answered(int(reply["seq"]), float(reply["mono"]))
        tokens = tokens_in(reply["body"])
        if reply["body"] == STILL_WORKING:
            notices += 1
        elif not tokens:
            wordless.append(this)
        for token in tokens:
            if token in answered or token not in known:
                extra.append(token)
            else:
                answered[token] = this
    without = [message for message in said if message.token not in answered]
    without.sort(key=lambda message: message.sid not in must)
    words = {message.token: reply for message, reply in zip(without, wordless, strict=False)}
    extra += ["words"] * (len(wordless) - len(words)) + ["notice"] * max(0, notices - len(said))
    return answered, words, extra


def _inverted(posts: Mapping[str, Heard], outcome: Mapping[str, Answered]) -> list[str]:
    """A message was surely accepted before another when it was acknowledged before the other was posted."""
    inverted = []
    for token, first in posts.items():
        if first.acknowledged is None or token not in outcome:
            continue
        later = (
            other
            for other, post in posts.items()
            if other in outcome and post.posted >= first.acknowledged and other != token
        )
        if any(outcome[other].seq < outcome[token].seq for other in later):
            inverted.append(token)
    return inverted
