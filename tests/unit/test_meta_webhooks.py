"""What Meta's webhooks say, in our words. The shapes are those of Meta's webhook reference."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mesh.adapters.meta_webhooks import Webhook, echo_of, media_id, parse_webhook
from mesh.errors import Malformed
from mesh.incoming import pack_inbound, unpack_inbound
from mesh.ports.channel import Attachment, Inbound

ID, NUMBER, WAMID = "106540352242922", "+15550783881", "wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQz/QTRBNjU5+RAA=="
ECHO = echo_of(NUMBER, "+16505551234", "hello")


def value(**parts: Any) -> dict[str, Any]:
    metadata = {"display_phone_number": "15550783881", "phone_number_id": ID}
    return {"messaging_product": "whatsapp", "metadata": metadata, **parts}


def body(*values: dict[str, Any]) -> bytes:
    changes = [{"value": each, "field": "messages"} for each in values]
    return json.dumps({"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": changes}]}).encode()


def message(kind: str = "text", **parts: Any) -> dict[str, Any]:
    given = parts or {"text": {"body": "Does it come in another color?"}}
    return {"from": "16505551234", "id": WAMID, "timestamp": "1749416383", "type": kind, **given}


def said(kind: str = "text", **parts: Any) -> Inbound:
    one = [{"profile": {"name": "Sheena Nelson"}, "wa_id": "16505551234"}]
    (found,) = parsed(value(contacts=one, messages=[message(kind, **parts)])).messages
    assert unpack_inbound(pack_inbound(found)) == found
    return found


def parsed(*values: dict[str, Any]) -> Webhook:
    return parse_webhook(body(*values), {ID: NUMBER})


def test_a_text_is_from_the_persons_number_to_ours() -> None:
    found = said()
    assert (found.message_id, found.sender, found.recipient) == (WAMID, "+16505551234", NUMBER)
    assert (found.kind, found.text, found.media) == ("text", "Does it come in another color?", 0)
    assert found.fields["text.body"] == found.text
    assert found.fields["contact.profile.name"] == "Sheena Nelson"


@pytest.mark.parametrize(
    ("kind", "what", "expected"),
    [
        ("document", {"id": "12", "mime_type": "application/pdf", "filename": "a.pdf", "caption": "see"}, "document"),
        ("image", {"id": "12", "mime_type": "image/jpeg", "sha256": "x", "caption": "see"}, "image"),
        ("audio", {"id": "12", "mime_type": "audio/ogg; codecs=opus", "voice": True}, "audio"),
        ("voice", {"id": "12", "mime_type": "audio/ogg"}, "audio"),
        ("video", {"id": "12", "mime_type": "video/mp4", "caption": "see"}, "video"),
        ("sticker", {"id": "12", "mime_type": "image/webp", "animated": False}, "sticker"),
    ],
)
def test_a_file_is_one_attachment_by_its_id(kind: str, what: dict[str, Any], expected: str) -> None:
    found = said(kind, **{kind: what})
    assert (found.kind, found.media, found.text) == (expected, 1, what.get("caption", ""))
    assert found.attachments == (Attachment("meta:12", what["mime_type"], what.get("filename", "")),)
    assert media_id(found.attachments[0].reference) == "12"


def test_a_file_that_meta_could_not_take_itself_has_no_attachment() -> None:
    found = said("document", document={}, errors=[{"code": 131052, "title": "Media download error"}])
    assert (found.kind, found.media, found.attachments) == ("document", 1, ())
    assert found.fields["errors.0.code"] == "131052"


def test_a_place_is_told_by_its_name_or_else_by_where_it_is() -> None:
    at = {"latitude": 37.44, "longitude": -122.16}
    assert said("location", location={**at, "name": "HQ", "address": "1 Hacker Way"}).text == "HQ, 1 Hacker Way"
    assert said("location", location=at).text == "37.44, -122.16"


def test_a_reaction_names_the_message_that_it_is_to_and_has_no_text_when_it_is_taken_back() -> None:
    found = said("reaction", reaction={"message_id": "wamid.ours", "emoji": "👍"})
    assert (found.kind, found.text, found.quoted) == ("reaction", "👍", "wamid.ours")
    assert said("reaction", reaction={"message_id": "wamid.ours"}).text == ""


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("button", {"payload": "YES", "text": "Yes please"}),
        ("interactive", {"type": "button_reply", "button_reply": {"id": "YES", "title": "Yes please"}}),
        ("interactive", {"type": "list_reply", "list_reply": {"id": "YES", "title": "Yes please", "description": "d"}}),
    ],
)
def test_a_pressed_button_says_what_stood_on_it_and_has_its_payload(kind: str, what: dict[str, Any]) -> None:
    found = said(kind, **{kind: what}, context={"from": "15550783881", "id": "wamid.ours"})
    assert (found.kind, found.text, found.button, found.quoted) == ("button", "Yes please", "YES", "wamid.ours")


def test_shared_contacts_are_no_words_of_the_person() -> None:
    found = said("contacts", contacts=[{"name": {"formatted_name": "STOP"}}])
    assert (found.kind, found.text, found.fields["contacts.0.name.formatted_name"]) == ("contacts", "", "STOP")


def test_an_order_is_something_else_and_keeps_what_was_written_beside() -> None:
    found = said("order", order={"catalog_id": "1", "text": "by Friday?", "product_items": [{"quantity": 2}]})
    assert (found.kind, found.text, found.fields["order.product_items.0.quantity"]) == ("other", "by Friday?", "2")


@pytest.mark.parametrize("kind", ["unsupported", "ephemeral", "hologram", ""])
def test_what_nobody_knows_yet_is_something_else_and_is_not_lost(kind: str) -> None:
    found = said(kind, errors=[{"code": 131051, "error_data": {"details": "not supported"}}])
    assert (found.kind, found.text) == ("other", "")
    assert found.fields["errors.0.error_data.details"] == "not supported"


def test_a_notice_of_whatsapps_own_asks_nothing_and_is_left_out() -> None:
    system = message("system", system={"body": "User A changed from 1 to 2", "type": "user_changed_number"})
    found = parsed(value(messages=[system, message()]))
    assert [each.kind for each in found.messages] == ["text"]
    assert found.aside == ("it is a notice of WhatsApp's: user_changed_number",)


# ── who ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hidden", [{"from_user_id": "US.13491208655302741918"}, {}])
def test_somebody_without_a_number_is_known_by_whatsapps_id(hidden: dict[str, str]) -> None:
    one = {"profile": {"name": "Asha", "username": "asha"}, "user_id": "US.13491208655302741918"}
    plain = {key: each for key, each in message().items() if key != "from"}
    (found,) = parsed(value(contacts=[one], messages=[{**plain, **hidden}])).messages
    assert found.sender == "whatsapp:US.13491208655302741918"


def test_the_number_is_who_it_is_when_both_are_told() -> None:
    found = said(text={"body": "x"}, from_user_id="US.134")
    assert found.sender == "+16505551234"


@pytest.mark.parametrize("given", ["", "not a number", "+1650555|1234", "0", None, 7, {"a": 1}])
def test_who_can_t_be_told_is_left_out_and_hides_nobody_else(given: object) -> None:
    nobody = {**message(), "from": given}
    found = parsed(value(messages=[nobody, message()]))
    assert [each.sender for each in found.messages] == ["+16505551234"]
    assert found.aside == ("a message does not tell who sent it",)


def test_what_is_of_a_number_that_is_not_ours_is_left_alone() -> None:
    other = {**value(messages=[message()]), "metadata": {"phone_number_id": "999999"}}
    found = parsed(other, value(messages=[message()]))
    assert len(found.messages) == 1
    assert "META_PHONE_NUMBER_ID" in found.aside[0]


@pytest.mark.parametrize("given", ["", "notice:forged", "a b", "x" * 300, None])
def test_a_message_without_a_usable_id_is_left_out(given: object) -> None:
    found = parsed(value(messages=[{**message(), "id": given}]))
    assert (found.messages, found.aside) == ((), ("a message has no usable id",))


# ── statuses, and batches ─────────────────────────────────────────────────────────────────────────────────────────


def status(state: str, **more: Any) -> dict[str, Any]:
    return {"id": WAMID, "status": state, "timestamp": "1750263773", "recipient_id": "16505551234", **more}


def test_a_status_tells_what_became_of_which_message_and_gives_back_what_went_along() -> None:
    (found,) = parsed(value(statuses=[status("delivered", biz_opaque_callback_data=ECHO)])).statuses
    assert (found.delivery.provider_id, found.delivery.state) == (WAMID, "delivered")
    assert (found.echo, found.at) == (ECHO, 1750263773)


@pytest.mark.parametrize("given", ["somebody else's", {"a": 1}, "../../etc", "F" * 32, None])
def test_what_another_app_gave_along_is_no_key_of_ours(given: object) -> None:
    (found,) = parsed(value(statuses=[status("sent", biz_opaque_callback_data=given)])).statuses
    assert found.echo == ""


def test_a_voice_note_that_was_played_was_read() -> None:
    (found,) = parsed(value(statuses=[status("played")])).statuses
    assert found.delivery.state == "read"


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (131047, "63016"),
        (131049, "63049"),
        (130472, "63049"),
        (131050, "63049"),
        (131056, "63018"),
        (130429, "63018"),
        (131000, "63018"),
        (131026, "63024"),
        (131030, "63015"),
        (131042, "131042"),
    ],
)
def test_a_failure_has_the_code_that_the_mesh_reacts_to_and_keeps_metas_own(code: int, ours: str) -> None:
    (found,) = parsed(value(statuses=[status("failed", errors=[{"code": code, "title": "x"}])])).statuses
    assert (found.delivery.state, found.delivery.error_code, found.code) == ("failed", ours, str(code))


def test_one_body_may_hold_many_of_both() -> None:
    first = value(messages=[message(), {**message(), "id": "wamid.2"}], statuses=[status("sent")])
    second = value(messages=[{**message(), "id": "wamid.3"}], statuses=[status("read"), status("Bad State")])
    found = parsed(first, second)
    assert [each.message_id for each in found.messages] == [WAMID, "wamid.2", "wamid.3"]
    assert [each.delivery.state for each in found.statuses] == ["sent", "read"]
    assert found.aside == ("a status has no usable id or state",)


def test_what_ails_the_account_is_named() -> None:
    assert parsed(value(errors=[{"code": 130429, "title": "x"}])).aside == ("Meta reports error 130429",)


def test_changes_that_are_not_about_messages_say_nothing_to_us() -> None:
    raw = json.dumps({"entry": [{"changes": [{"field": "account_update", "value": {"event": "x"}}]}]}).encode()
    assert parse_webhook(raw, {ID: NUMBER}) == Webhook()


# ── garbage ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("raw", [b"", b"\xff", b"[]", b"{}", b'"x"', b'{"entry": 1}', b"[" * 200_000, b"{"])
def test_what_is_no_webhook_is_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        parse_webhook(raw, {ID: NUMBER})


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [None], [[]], {"a": []}, True])
def test_odd_values_anywhere_raise_nothing(odd: object) -> None:
    whole: dict[str, Any] = {"entry": [{"changes": [{"field": "messages", "value": value(messages=[message()])}]}]}
    shapes: list[dict[str, Any]] = [
        {"entry": [odd]},
        {"entry": [{"changes": odd}]},
        {"entry": [{"changes": [odd]}]},
        {"entry": [{"changes": [{"field": "messages", "value": odd}]}]},
        *({"entry": [{"changes": [{"value": value(**{name: odd})}]}]} for name in ("messages", "statuses", "contacts")),
        *({"entry": [{"changes": [{"value": value(messages=[message(k, **{k: odd})])}]}]} for k in KINDS),
        whole,
    ]
    for shape in shapes:
        parse_webhook(json.dumps(shape).encode(), {ID: NUMBER})


KINDS = ("text", "document", "location", "reaction", "button", "interactive", "contacts", "order", "context", "errors")


def test_what_no_store_can_keep_is_taken_out() -> None:
    raw = body(value(messages=[message(text={"body": "a\u0000b\r\nc \ud83d"})]))
    (found,) = parse_webhook(raw, {ID: NUMBER}).messages
    assert found.text == "ab\nc ?"


def test_fields_are_bounded_in_number_and_depth() -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = {"a": deep}
    assert len(said("hologram", many=[{"a": n} for n in range(1000)]).fields) == 200
    assert not any(name.startswith("deep") for name in said("hologram", deep=deep).fields)
