"""The judge of the drills: it must see each thing that can go wrong."""

from __future__ import annotations

from typing import Any

from agents.orchestrator.words import CRASHING, STILL_WORKING
from tests.drills.verdict import Said, Verdict, judge

ASHA, BEN = "+15551230001", "+15551230002"
ONE, TWO, THREE = (Said(f"m0000{number}", f"SM{number}", ASHA) for number in (1, 2, 3))
BENS = Said("m00009", "SM9", BEN)


class Log:
    """Of the simulated Twilio, one thing a second."""

    def __init__(self) -> None:
        self.log: dict[str, list[dict[str, Any]]] = {"inbound": [], "outbound": [], "refused": []}
        self.clock = 0.0

    def posted(self, said: Said, status: int = 200, *, took: float = 0.1) -> Log:
        self.clock += 1
        self.log["inbound"].append({"message_sid": said.sid, "mono": self.clock, "ms": took * 1000, "status": status})
        return self

    def sent(self, body: str, to: str = ASHA, answer: str = "success") -> Log:
        self.clock += 1
        seq = len(self.log["outbound"])
        self.log["outbound"].append({"seq": seq, "to": to, "body": body, "mono": self.clock, "answer": answer})
        return self

    def refused(self, to: str = ASHA) -> Log:
        self.log["refused"].append({"to": to, "status": 503})
        return self

    def judged(self, *said: Said, **options: Any) -> Verdict:
        return judge(said, self.log, **options)


def faults(verdict: Verdict) -> tuple[int, int, int, int]:
    return verdict.lost, verdict.duplicated, verdict.order_inversions, verdict.silent


def test_one_answer_to_each_message_in_order_is_clean() -> None:
    log = Log().posted(ONE).posted(TWO).sent("echo m00001").posted(BENS).sent("echo m00009", BEN).sent("echo m00002")
    verdict = log.judged(ONE, TWO, BENS)
    assert verdict.clean
    assert (verdict.messages, verdict.acknowledged) == (3, 3)
    assert (verdict.p50_s, verdict.p95_s) == (2.0, 4.0)


def test_an_acknowledged_message_without_a_reply_is_lost_and_silent() -> None:
    assert faults(Log().posted(ONE).judged(ONE)) == (1, 0, 0, 1)


def test_a_message_that_nobody_acknowledged_is_owed_nothing() -> None:
    for status in (0, 403, 503):
        assert faults(Log().posted(ONE, status).judged(ONE)) == (0, 0, 0, 0)


def test_what_is_owed_may_be_said() -> None:
    assert faults(Log().posted(ONE, 0).judged(ONE, owed={ONE.sid})) == (1, 0, 0, 1)


def test_a_message_that_nobody_acknowledged_is_not_answered_twice_either() -> None:
    log = Log().posted(ONE, 0).sent("echo m00001")
    assert log.judged(ONE).clean
    assert faults(log.sent("echo m00001").judged(ONE)) == (0, 1, 0, 0)


def test_an_apology_is_an_outcome_only_where_it_is_allowed() -> None:
    log = Log().posted(ONE).sent(CRASHING)
    assert faults(log.judged(ONE)) == (1, 0, 0, 0)
    assert log.judged(Said(ONE.token, ONE.sid, ASHA, apology=True)).clean


def test_where_only_words_are_allowed_the_answer_is_a_loss() -> None:
    refused = Said(ONE.token, ONE.sid, ASHA, apology=True, only=True)
    assert Log().posted(refused).sent("You are not served here.").judged(refused).clean
    assert faults(Log().posted(refused).sent("echo m00001").judged(refused)) == (1, 0, 0, 0)


def test_an_answer_and_an_apology_are_one_too_many() -> None:
    for first, second in (("echo m00001", CRASHING), (CRASHING, "echo m00001")):
        assert faults(Log().posted(ONE).sent(first).sent(second).judged(ONE)) == (0, 1, 0, 0)


def test_an_answer_in_the_wrong_chat_is_one_too_many() -> None:
    log = Log().posted(ONE).sent("echo m00001").sent("echo m00001", BEN)
    assert faults(log.judged(ONE, BENS)) == (0, 1, 0, 0)


def test_an_answer_before_that_to_an_earlier_message_is_an_inversion() -> None:
    log = Log().posted(ONE).posted(TWO).sent("echo m00002").sent("echo m00001")
    verdict = log.judged(ONE, TWO)
    assert faults(verdict) == (0, 0, 1, 0)
    assert verdict.which["inverted"] == [ONE.token]


def test_webhooks_that_were_under_way_together_may_be_answered_in_any_order() -> None:
    log = Log().posted(ONE, took=5.0).posted(TWO).sent("echo m00002").sent("echo m00001")
    assert log.judged(ONE, TWO).clean


def test_the_first_acknowledgement_counts_for_the_order() -> None:
    log = Log().posted(ONE, 0).posted(TWO).posted(ONE).sent("echo m00002").sent("echo m00001")
    assert log.judged(ONE, TWO).clean
    late = Log().posted(ONE).posted(TWO).posted(ONE).sent("echo m00002").sent("echo m00001")
    assert faults(late.judged(ONE, TWO)) == (0, 0, 1, 0)


def test_one_reply_may_answer_several_messages() -> None:
    log = Log().posted(ONE).posted(TWO).sent("echo m00001 m00002")
    assert log.judged(ONE, TWO).clean
    assert faults(log.sent("echo m00002").judged(ONE, TWO)) == (0, 1, 0, 0)


def test_an_apology_goes_to_the_message_without_an_answer() -> None:
    poisoned = Said(TWO.token, TWO.sid, ASHA, apology=True)
    log = Log().posted(ONE).posted(poisoned).posted(THREE)
    assert log.sent("echo m00001").sent(CRASHING).sent("echo m00003").judged(ONE, poisoned, THREE).clean


def test_that_it_takes_longer_is_no_outcome_and_told_once_at_most() -> None:
    log = Log().posted(ONE).sent(STILL_WORKING)
    assert faults(log.judged(ONE)) == (1, 0, 0, 1)
    assert log.sent("echo m00001").judged(ONE).clean
    assert faults(log.sent(STILL_WORKING).judged(ONE)) == (0, 1, 0, 0)


def test_sends_that_went_wrong_are_counted_and_are_no_fault_of_the_mesh() -> None:
    log = Log().posted(ONE).refused().refused(BEN).sent("echo m00001", answer="hung")
    verdict = log.judged(ONE)
    assert verdict.clean
    assert verdict.gone_wrong == 2


def test_what_is_sent_to_nobody_of_the_drill_is_not_counted() -> None:
    assert Log().posted(ONE).sent("echo m00001").sent("hello", BEN).judged(ONE).clean
