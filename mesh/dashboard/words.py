"""How the page puts things: times, states, and the one sentence at its top."""

from __future__ import annotations

from mesh.dashboard.reading import DEAD_COUNTED, LATE_S, Exchange, Snapshot
from mesh.queues import QueueState

UNREACHABLE = "Redis can't be reached, so nothing can be shown. This page looks again every two seconds."


def span(seconds: float) -> str:
    """As precise as it matters: `14 ms`, `1.3 s`, `42 s`, `3 min`, `5 h`, `2 d`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return age(seconds)


def age(seconds: float) -> str:
    """In whole units: `3 s`, `3 min`, `5 h`, `2 d`."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0.0, seconds) // 1:.0f} s"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def state(exchange: Exchange) -> str:
    told = " · ".join(filter(None, (exchange.state, exchange.delivery)))
    return f"{told} {exchange.delivery_error}".rstrip()


def tone(exchange: Exchange, now: float) -> str:
    if exchange.failed:
        return "bad"
    if exchange.is_late(now):
        return "warn"
    return "good" if exchange.state == "sent" else "warn" if exchange.state == "waiting" else ""


def trouble(exchange: Exchange) -> str:
    """Why there is no reply, as a sentence; empty when there is one."""
    if exchange.state == "silent":
        return f"Nothing was said: {exchange.reason}."
    if exchange.state == "waiting":
        return f"The reply waits until this person writes again: {exchange.reason}."
    if exchange.state == "dead":
        return f"No reply was sent: {exchange.reason or 'no reason was recorded'}."
    if exchange.reason:
        return f"The mesh gave up and apologised: {exchange.reason}."
    if exchange.failed:
        code = f" (error {exchange.delivery_error})" if exchange.delivery_error else ""
        return f"The provider took the reply and could not deliver it{code}."
    return ""


def needs_worker(queue: QueueState) -> bool:
    """Somebody waits for what nobody does."""
    return not queue.workers and bool(queue.waiting or queue.running)


def headline(seen: Snapshot) -> tuple[str, str]:
    """A tone and a sentence: the worst of what is going on."""
    if not seen.queues:
        return "warn", "No agent is configured."
    stuck = [queue for queue in seen.queues if needs_worker(queue)]
    if stuck:
        jobs = count(sum(queue.waiting + queue.running for queue in stuck), "job")
        return "bad", f"No worker for {_list(stuck)}: {jobs} can't be done."
    if unmanned := [queue for queue in seen.queues if not queue.workers]:
        return (
            "warn",
            f"No worker for {_list(unmanned)}. Nothing waits for {'it' if len(unmanned) == 1 else 'them'} yet.",
        )
    late = [each for chat in seen.conversations for each in chat.exchanges if each.is_late(seen.at)]
    if late:
        return "warn", f"{count(len(late), 'message')} without an outcome for more than {age(LATE_S)}."
    waiting = sum(queue.waiting for queue in seen.queues)
    what = "nothing waits" if not waiting else "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
    return "good", f"Every agent has a worker, and {what}."


def dead_letters(number: int) -> str:
    if not number:
        return "No dead letter."
    return f"{number}{'+' if number >= DEAD_COUNTED else ''} dead letter{'' if number == 1 else 's'}."


def _list(queues: list[QueueState]) -> str:
    *head, last = (queue.agent for queue in queues)
    return f"{', '.join(head)} and {last}" if head else last
