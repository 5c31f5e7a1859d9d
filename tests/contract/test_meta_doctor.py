"""What `adiyan doctor` says of a mesh that writes through Meta."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mesh.cli import meta_probes, probes
from mesh.cli.findings import Scene
from mesh.settings import load
from tests.contract.channel_stage import ID, NUMBER, SECRET, TOKEN, VERIFY, SimulatedMeta, meta_base, meta_provider
from tests.processes import free_port
from tests.simulated import json_answer, serving

__all__ = ["meta_base"]


@pytest.fixture
async def gateway(meta_base: SimulatedMeta, redis_url: str) -> AsyncIterator[str]:
    async with meta_provider(meta_base, redis_url):
        yield f"http://127.0.0.1:{meta_base.webhook_port}"


async def said(probe: probes.Probe, base: str, *, public: str = "https://mesh.example.com", **changed: str) -> str:
    settings = load(
        twilio_account_sid="",
        meta_app_secret=SECRET,
        meta_verify_token=VERIFY,
        meta_api_base=f"{base}/v25.0",
        public_url=public,
        **{"meta_access_token": TOKEN, "meta_phone_number_id": ID, "meta_number": NUMBER, **changed},
    )
    found = await probe(Scene(settings, running=False, simulated=""))
    told = "\n".join(f"{finding.level.name.lower()}: {finding.text} {finding.todo}" for finding in found)
    assert TOKEN not in told
    return told


async def test_a_token_that_is_accepted_is_fine(meta_base: SimulatedMeta) -> None:
    assert (await said(meta_probes.meta, meta_base.base)).startswith("fine: ")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"meta_access_token": "expired"}, "It refuses the token (error 190)"),
        ({"meta_phone_number_id": "999999"}, "Copy META_PHONE_NUMBER_ID anew"),
        ({"meta_number": "+15550000009"}, "of another number than META_NUMBER"),
    ],
)
async def test_what_is_wrong_is_named_with_what_to_do(
    meta_base: SimulatedMeta, changed: dict[str, str], told: str
) -> None:
    found = await said(meta_probes.meta, meta_base.base, **changed)
    assert found.startswith("broken: ")
    assert told in found


@pytest.mark.parametrize("answer", [b"", json_answer("200 OK", b"<html>"), json_answer("200 OK", b"[]")])
async def test_another_answer_than_metas_is_broken(answer: bytes) -> None:
    async with serving(answer) as base:
        assert (await said(meta_probes.meta, base)).startswith("broken: ")


async def test_metas_webhook_is_recognised_behind_the_public_address(gateway: str, meta_base: SimulatedMeta) -> None:
    assert (await said(probes.webhook, meta_base.base, public=gateway)).startswith("note: ")
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert "Meta can't deliver a message" in await said(probes.webhook, meta_base.base, public=nowhere)
