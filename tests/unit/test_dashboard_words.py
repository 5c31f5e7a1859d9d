"""The dashboard's words: what a reader takes in at a glance must be true."""

from __future__ import annotations

import pytest

from mesh.dashboard import words
from mesh.dashboard.reading import Conversation, Exchange, Snapshot, Step
from mesh.queues import QueueState

NOW = 1_000_000.0


def exchange(state: str = "sent", at: float = NOW, took_s: float | None = 0.2, **more: str) -> Exchange:
    return Exchange("m1", "hello", 0, at, state, (Step("accepted", 0.0),), took_s, **more)  # type: ignore[arg-type]


def queue(agent: str, waiting: int = 0, running: int = 0, workers: int = 1) -> QueueState:
    return QueueState(agent, waiting, running, 0, 1.0 if waiting else None, workers)


def seen(*queues: QueueState, exchanges: tuple[Exchange, ...] = ()) -> Snapshot:
    chats = (Conversation("+15551230001", "+14155238886", exchanges),) if exchanges else ()
    return Snapshot(NOW, queues, (), chats, 0)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 ms"),
        (0.0144, "14 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (1.34, "1.3 s"),
        (10.0, "10 s"),
        (59.9, "59 s"),
        (60.0, "1 min"),
        (3599.0, "59 min"),
        (3600.0, "1 h"),
        (200_000.0, "2 d"),
    ],
)
def test_a_span_is_as_precise_as_it_matters(seconds: float, told: str) -> None:
    assert words.span(seconds) == told


def test_a_clock_that_is_ahead_makes_no_negative_age() -> None:
    assert words.age(-3.0) == "0 s"


@pytest.mark.parametrize(
    ("snapshot", "told"),
    [
        (seen(queue("a"), queue("b")), ("good", "Every agent has a worker, and nothing waits.")),
        (seen(queue("a", 2), queue("b", 1)), ("good", "Every agent has a worker, and 3 jobs wait.")),
        (seen(queue("a", 1)), ("good", "Every agent has a worker, and 1 job waits.")),
        (seen(queue("a", workers=0)), ("warn", "No worker for a. Nothing waits for it yet.")),
        (
            seen(queue("a", workers=0), queue("b", workers=0), queue("c")),
            ("warn", "No worker for a and b. Nothing waits for them yet."),
        ),
        (
            seen(queue("a", workers=0), queue("b", 2, 1, workers=0)),
            ("bad", "No worker for b: 3 jobs can't be done."),
        ),
        (
            seen(queue("a"), exchanges=(exchange("planned", NOW - 31, None), exchange("accepted", NOW - 29, None))),
            ("warn", "1 message without an outcome for more than 30 s."),
        ),
        (seen(), ("warn", "No agent is configured.")),
    ],
)
def test_the_headline_is_the_worst_of_what_is_going_on(snapshot: Snapshot, told: tuple[str, str]) -> None:
    assert words.headline(snapshot) == told


@pytest.mark.parametrize(
    ("exchange", "tone", "told"),
    [
        (exchange(), "good", ""),
        (exchange("accepted", NOW - 5, None), "", ""),
        (exchange("ready", NOW - 31, None), "warn", ""),
        (
            exchange("dead", reason="not sent after 30 attempts"),
            "bad",
            "No reply was sent: not sent after 30 attempts.",
        ),
        (exchange(reason="it keeps failing"), "bad", "The mesh gave up and apologised: it keeps failing."),
        (exchange(delivery="delivered"), "good", ""),
        (exchange(delivery="failed"), "bad", "The provider took the reply and could not deliver it."),
    ],
)
def test_what_failed_is_bad_and_says_why(exchange: Exchange, tone: str, told: str) -> None:
    assert (words.tone(exchange, NOW), words.trouble(exchange)) == (tone, told)
