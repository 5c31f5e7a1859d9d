"""What the simulated Twilio makes of the mesh's files and templates, and the rules that it can hold the mesh to."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from mesh.testing.files import MOST_IMAGE_BYTES
from tests.simulated import NUMBER, SID, TOKEN, Hook, hook, json_answer, logged, person, serving, talking

__all__ = ["hook", "person"]

HELLO = "HX" + "1" * 32


@dataclass(frozen=True)
class Mesh:
    """Sends by Twilio's REST form to one person."""

    hook: Hook
    person: str

    async def send(self, text: str = "", **more: str) -> httpx.Response:
        form: Mapping[str, Any] = {"To": f"whatsapp:{self.person}", "From": f"whatsapp:{NUMBER}", **more}
        form = {**form, "Body": text} if text else form
        async with httpx.AsyncClient(base_url=self.hook.address, auth=(SID, TOKEN), trust_env=False) as client:
            return await client.post(f"/2010-04-01/Accounts/{SID}/Messages.json", data=form)

    async def resource(self, sid: str) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=self.hook.address, auth=(SID, TOKEN), trust_env=False) as client:
            found: dict[str, Any] = (await client.get(f"/2010-04-01/Accounts/{SID}/Messages/{sid}.json")).json()
            return found


@pytest.fixture
def mesh(hook: Hook, person: str) -> Mesh:
    return Mesh(hook, person)


def file_answer(raw: bytes, media_type: bytes, *headers: bytes, status: str = "200 OK") -> bytes:
    return json_answer(status, raw, b"Content-Type: " + media_type, *headers)


# ── files of the mesh ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_mesh_links_to_arrives_as_a_file_with_its_type_and_name(mesh: Mesh) -> None:
    named = b"Content-Disposition: inline; filename*=UTF-8''Preise%20%E2%82%AC.pdf"
    async with serving(file_answer(b"%PDF-", b"application/pdf", named)) as base:
        sent = (await mesh.send("Here it is.", MediaUrl=f"{base}/l/abc")).json()
        (reply,) = await mesh.hook.phone.replies(mesh.person, wait=10)
    assert (sent["status"], sent["num_media"], sent["sid"][:2]) == ("queued", "1", "MM")
    assert (reply.sid, reply.text) == (sent["sid"], "Here it is.")
    (shown,) = reply.media
    assert (shown.media_type, shown.name, shown.size) == ("application/pdf", "Preise €.pdf", 5)
    assert await mesh.hook.phone.open(shown) == b"%PDF-"
    assert await mesh.hook.told(2) == [("sent", ""), ("delivered", "")]


async def test_a_file_needs_no_text_and_is_named_by_its_address_when_nothing_else_says(mesh: Mesh) -> None:
    async with serving(file_answer(b"\x89PNG", b"image/png")) as base:
        await mesh.send(MediaUrl=f"{base}/l/plan%20b.png?token=1")
        (reply,) = await mesh.hook.phone.replies(mesh.person, wait=10)
    assert (reply.text, reply.media[0].name) == ("", "plan b.png")


async def test_a_file_that_arrives_late_is_told_after_what_came_before_it(mesh: Mesh) -> None:
    go = asyncio.Event()

    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await go.wait()
        writer.write(file_answer(b"%PDF-", b"application/pdf"))
        await writer.drain()

    async with talking(slowly) as base:
        await mesh.send(MediaUrl=f"{base}/a.pdf")
        await mesh.send("meanwhile")
        (first,) = await mesh.hook.phone.replies(mesh.person, wait=5)
        assert first.text == "meanwhile"
        go.set()
        (second,) = await mesh.hook.phone.replies(mesh.person, after=first.seq, wait=5)
    assert second.media[0].name == "a.pdf"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (file_answer(b"gone", b"application/pdf", status="404 Not Found"), 63019),
        (file_answer(b"x" * (MOST_IMAGE_BYTES + 1), b"image/jpeg"), 63019),
        (file_answer(b"# Prices", b"text/markdown"), 63021),
        (b"nonsense", 63019),
    ],
    ids=["absent", "too large", "a type that WhatsApp does not take", "no HTTP"],
)
async def test_a_link_that_can_not_be_sent_is_taken_and_then_failed(mesh: Mesh, answer: bytes, code: int) -> None:
    async with serving(answer) as base:
        sent = await mesh.send("look", MediaUrl=f"{base}/a.jpg")
        assert sent.status_code == 201
        assert await mesh.hook.told(1) == [("failed", str(code))]
    resource = await mesh.resource(sent.json()["sid"])
    assert (resource["status"], resource["error_code"]) == ("failed", code)
    assert resource["error_message"]
    assert await mesh.hook.phone.replies(mesh.person) == []
    (failed,) = (await mesh.hook.phone.log())["failed"]
    assert (failed["sid"], failed["to"], failed["code"]) == (sent.json()["sid"], mesh.person, code)


async def test_a_link_that_is_none_and_a_message_of_nothing_are_refused(mesh: Mesh) -> None:
    for link in ("ftp://127.0.0.1/a.pdf", "a.pdf", "http://"):
        assert (await mesh.send(MediaUrl=link)).json()["code"] == 21620
    assert (await mesh.send()).json()["code"] == 21602


async def test_a_text_beside_a_document_is_lost_where_captions_are_off(mesh: Mesh) -> None:
    await mesh.hook.phone.rules(captions=False)
    for media_type in (b"application/pdf", b"image/png"):
        async with serving(file_answer(b"x", media_type)) as base:
            await mesh.send("a caption", MediaUrl=f"{base}/a")
            await logged(mesh.hook.phone, "callbacks", 2 if media_type == b"application/pdf" else 4)
    assert [each.text for each in await mesh.hook.phone.replies(mesh.person)] == ["", "a caption"]


# ── templates ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_template_is_filled_and_has_its_buttons(mesh: Mesh) -> None:
    text = "Hello {{1}}, about your question: {{2}}"
    await mesh.hook.phone.templates({HELLO: {"text": text, "buttons": [{"title": "Stop", "id": "STOP"}]}})
    sent = await mesh.send(ContentSid=HELLO, ContentVariables=json.dumps({"1": "Asha", "2": "we open at 9"}))
    (reply,) = await mesh.hook.phone.replies(mesh.person, wait=5)
    assert sent.json()["body"] == reply.text == "Hello Asha, about your question: we open at 9"
    assert reply.buttons == (("Stop", "STOP"),)


@pytest.mark.parametrize(
    ("sid", "variables", "code"),
    [("HX0", "{}", 21655), (HELLO, "{", 21656), (HELLO, '{"1": ""}', 21656), (HELLO, '["a"]', 21656)],
)
async def test_a_template_that_is_unknown_or_badly_filled_is_refused(
    mesh: Mesh, sid: str, variables: str, code: int
) -> None:
    await mesh.hook.phone.templates({HELLO: "Hello {{1}}"})
    refused = await mesh.send(ContentSid=sid, ContentVariables=variables)
    assert (refused.status_code, refused.json()["code"]) == (400, code)


@pytest.mark.parametrize(
    ("text", "variables", "state", "code"),
    [
        (None, {"1": "a"}, "failed", 63027),
        ("Hello {{1}}", {}, "failed", 63028),
        ("Hello {{1}}", {"1": "a", "2": "b"}, "failed", 63028),
        ("Hello {{1}}", {"1": "two\nlines"}, "undelivered", 63013),
        ("Hello {{1}}", {"1": "x" * 1_100}, "failed", 63021),
    ],
)
async def test_a_template_that_whatsapp_does_not_take_fails_later(
    mesh: Mesh, text: str | None, variables: dict[str, str], state: str, code: int
) -> None:
    await mesh.hook.phone.templates({HELLO: text})
    assert (await mesh.send(ContentSid=HELLO, ContentVariables=json.dumps(variables))).status_code == 201
    told = await mesh.hook.told(2 if state == "undelivered" else 1)
    assert told[-1] == (state, str(code))
    assert await mesh.hook.phone.replies(mesh.person) == []


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_outside_the_window_a_text_is_taken_and_undelivered_and_a_template_arrives(mesh: Mesh) -> None:
    phone = mesh.hook.phone
    await phone.templates({HELLO: "Hello"})
    await phone.rules(window_s=30)
    sent = await mesh.send("nobody asked")
    assert sent.status_code == 201
    assert await mesh.hook.told(2) == [("sent", ""), ("undelivered", "63016")]
    assert (await mesh.resource(sent.json()["sid"]))["error_code"] == 63016
    await mesh.send(ContentSid=HELLO)
    await phone.say(mesh.person, "hello")
    await mesh.send("you asked")
    await logged(phone, "callbacks", 6)
    assert [each.text for each in await phone.replies(mesh.person)] == ["Hello", "you asked"]
    await phone.rules(window_s=0.05)
    await asyncio.sleep(0.1)
    await mesh.send("too late")
    assert (await mesh.hook.told(8))[-1] == ("undelivered", "63016")


async def test_outside_the_window_a_text_can_be_refused_at_once(mesh: Mesh) -> None:
    await mesh.hook.phone.rules(window_s=30, window_refuses=True)
    refused = await mesh.send("nobody asked")
    assert (refused.status_code, refused.json()["code"]) == (400, 63016)
    (noted,) = (await mesh.hook.phone.log())["refused"]
    assert (noted["to"], noted["code"]) == (mesh.person, 63016)
    await mesh.hook.phone.rules()
    assert (await mesh.send("allowed")).status_code == 201


async def test_the_sandbox_takes_one_message_in_its_time(mesh: Mesh) -> None:
    phone = mesh.hook.phone
    await phone.rules(every_s=60)
    await mesh.send("one")
    await mesh.send("two")
    told = await mesh.hook.told(3)
    assert sorted(told) == [("delivered", ""), ("failed", "63018"), ("sent", "")]
    await phone.rules(every_s=60, rate_refuses=True)
    refused = await mesh.send("three")
    assert (refused.status_code, refused.json()["code"]) == (429, 20429)
    assert refused.headers["retry-after"] == "1"
    assert [each.text for each in await phone.replies(mesh.person)] == ["one"]


@pytest.mark.parametrize(
    ("rule", "code", "state"),
    [("unjoined", 63015, "failed"), ("invalid", 63024, "undelivered"), ("withheld", 63049, "undelivered")],
)
async def test_somebody_who_can_not_be_reached_is_told_of_later(mesh: Mesh, rule: str, code: int, state: str) -> None:
    await mesh.hook.phone.rules(**{rule: [mesh.person]})
    assert (await mesh.send("hello")).status_code == 201
    assert (await mesh.hook.told(2 if state == "undelivered" else 1))[-1] == (state, str(code))
    other = Mesh(mesh.hook, "+15559999999")
    await other.send("hello")
    assert [each.text for each in await mesh.hook.phone.replies(other.person, wait=5)] == ["hello"]


async def test_who_opted_out_at_twilio_is_refused_at_once(mesh: Mesh) -> None:
    await mesh.hook.phone.rules(opted_out=[mesh.person])
    refused = await mesh.send("hello")
    assert (refused.status_code, refused.json()["code"]) == (400, 21610)


async def test_callbacks_come_reversed_doubled_or_never(mesh: Mesh) -> None:
    phone = mesh.hook.phone
    await phone.rules(callbacks="reversed", callback_copies=2, read=True)
    sid = (await mesh.send("hello")).json()["sid"]
    assert [state for state, _ in await mesh.hook.told(6)] == ["read", "read", "delivered", "delivered", "sent", "sent"]
    assert (await mesh.resource(sid))["status"] == "read"
    await phone.rules(callbacks="never")
    quiet = (await mesh.send("quiet")).json()["sid"]
    async with asyncio.timeout(5):
        while (await mesh.resource(quiet))["status"] != "delivered":
            await asyncio.sleep(0.01)
    assert len((await phone.log())["callbacks"]) == 6


async def test_a_failed_webhook_is_posted_again_with_its_sid_and_token(mesh: Mesh) -> None:
    await mesh.hook.phone.rules(retries=2)
    mesh.hook.refused = 2
    posted = await mesh.hook.phone.post(mesh.person, "hello")
    assert posted.status == 200
    assert await mesh.hook.texts(1) == ["hello"]
    assert (len(mesh.hook.tokens), len(set(mesh.hook.tokens))) == (3, 1)
    log = await mesh.hook.phone.log()
    assert [(each["message_sid"], each["status"]) for each in log["inbound"]] == [
        (posted.message_sid, status) for status in (503, 503, 200)
    ]
    mesh.hook.refused = 3
    assert (await mesh.hook.phone.post(mesh.person, "hello again")).status == 503
    assert mesh.hook.refused == 0


async def test_a_rule_that_is_none_is_named(mesh: Mesh) -> None:
    with pytest.raises(TypeError, match="windows"):
        await mesh.hook.phone.rules(windows=1)
    with pytest.raises(ValueError, match="sideways"):
        await mesh.hook.phone.rules(callbacks="sideways")


async def test_rules_are_off_until_asked_for(mesh: Mesh) -> None:
    began = time.monotonic()
    for number in range(3):
        assert (await mesh.send(f"{number}")).status_code == 201
    assert [each.text for each in await mesh.hook.phone.replies(mesh.person)] == ["0", "1", "2"]
    assert time.monotonic() - began < 5
