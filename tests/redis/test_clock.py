"""Machines whose clocks differ: Redis's is the one that counts."""

from __future__ import annotations

import time

import pytest

from mesh import clock
from mesh.bus import Bus
from mesh.envelope import Ok
from mesh.lease import Quiet
from mesh.ledger import Ledger
from mesh.ports.channel import Inbound
from tests.people import ASHA
from tests.redis.stage import ECHO, Stage, request, working

REAL = time.time


@pytest.fixture(autouse=True)
def _own_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_offset", 0.0)


@pytest.mark.parametrize("ahead", [60.0, -60.0])
async def test_a_minute_more_or_less_delays_no_job_and_lets_no_deadline_pass(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    monkeypatch.setattr(time, "time", lambda: REAL() + ahead)
    async with Bus(redis_url) as bus:
        assert clock.now() == pytest.approx(REAL(), abs=0.5)
        async with working(Stage().worker(bus, redis_url)):
            asked = request(ECHO, "word").model_copy(update={"deadline": clock.now() + 5})
            began = time.monotonic()
            assert isinstance(await bus.ask(asked), Ok)
            assert time.monotonic() - began < 2


@pytest.mark.parametrize("ahead", [60.0, -60.0])
async def test_a_gateways_clock_does_not_stretch_the_quiet_window(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    async with Bus(redis_url) as bus:
        ledger = Ledger(bus.redis, quiet=Quiet(0.1))
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(time, "time", lambda: REAL() + ahead)
            await ledger.accept(Inbound("SM1", ASHA, "+14155238886", "hello", {}))
        began = time.monotonic()
        async with ledger.lease(f"+14155238886|{ASHA}") as lease:
            assert lease is not None
            assert await lease.next() is not None
        assert time.monotonic() - began < 1
        await ledger.close()
