"""Log lines: what they hold, what they never hold, and that strangers can't fill the disk with them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator

import pytest

from mesh import logs


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """What went to standard error. The root logger is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield lambda: capsys.readouterr().err
    root.handlers[:], root.level = handlers, level


def test_a_line_is_time_level_process_and_event(written: Callable[[], str]) -> None:
    logs.set_up("gateway")
    logging.getLogger("mesh.x").info("→ accepted message=%s took_ms=%d", "SM1", 3)
    line = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z info    gateway → accepted message=SM1 took_ms=3\n"
    assert re.fullmatch(line, written())


def test_a_phone_number_is_masked_wherever_it_comes_from(written: Callable[[], str]) -> None:
    logs.set_up("gateway")
    try:
        raise ValueError("whatsapp:+15551230001")
    except ValueError:
        logging.getLogger("mesh.x").exception("lost for %s", "+15551230002")
    text = written()
    assert "1555123" not in text
    assert text.count("[number]") >= 2
    assert "Traceback" in text


def test_metas_id_of_a_message_in_which_the_number_is_is_told_by_another_name(written: Callable[[], str]) -> None:
    logs.set_up("gateway")
    wamid = "wamid.HBgLMTY1MDM4Nzk0MzkVAgARGBJDQjZCMzlEQUE4OTJBMTE4RTUA"  # as in Meta's documentation: +16503879439
    for each in (wamid, wamid, wamid[:-1]):
        logging.getLogger("mesh.x").info("→ accepted message=%s new=true", each)
    names = re.findall(r"message=(\S+) new=true", written())
    assert names[0] == names[1] != names[2]
    assert not any(part in name for name in names for part in ("MTY1MDM4", "[number]"))


def test_what_strangers_cause_is_counted_rather_than_written(written: Callable[[], str]) -> None:
    logs.set_up("gateway", sparing=True)
    for number in range(1000):
        logging.getLogger("mesh.gateway.app").warning("refused status=%d", number)
        logging.getLogger("mesh.gateway.app").info("accepted")
    logging.getLogger("mesh.gateway.app").error("unavailable")
    logging.getLogger("mesh.other").warning("something else")
    lines = [line.split(" gateway ")[1] for line in written().splitlines()]
    assert sum(line.startswith("refused") for line in lines) == 20
    assert lines.count("accepted") == 1000
    assert lines[-2:] == ["unavailable", "something else"]


def test_the_next_line_says_how_many_were_left_out() -> None:
    sparing = logs.Sparing(most=2, seconds=10)

    def passed(at: float) -> str | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, "refused status=%d", (403,), None)
        record.created = at
        return record.getMessage() if sparing.filter(record) else None

    assert [passed(at) for at in (100.0, 101.0, 102.0, 109.9)] == [
        "refused status=403",
        "refused status=403",
        None,
        None,
    ]
    assert passed(110.0) == "refused status=403 left_out=2"
    assert passed(111.0) == "refused status=403"
