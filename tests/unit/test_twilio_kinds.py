"""What a person's message is: its kind, its files, what it replies to, which button, and who wrote it."""

from __future__ import annotations

import pytest

from mesh.adapters.twilio_signature import Pairs, parse_inbound
from mesh.errors import Malformed
from mesh.ports.channel import Attachment

URL = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM1/Media/ME"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PERSON, SCOPED = "+15551230001", "US.13491208655302741918"


def form(**fields: str) -> Pairs:
    usual = {"MessageSid": "SM1", "From": f"whatsapp:{PERSON}", "To": "whatsapp:+14155238886"}
    return [(name, value) for name, value in {**usual, **fields}.items() if value]


def with_file(media_type: str, **fields: str) -> Pairs:
    return form(NumMedia="1", MediaUrl0=f"{URL}0", MediaContentType0=media_type, **fields)


# ── kinds ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        *((name, name) for name in ("text", "image", "audio", "video", "document", "sticker", "location", "contacts")),
        *(("reaction", "reaction"), ("button", "button"), ("interactive", "button"), ("contact", "contacts")),
        *(("IMAGE", "image"), ("voice", "audio"), ("order", "other"), ("unsupported", "other"), ("", "text")),
    ],
)
def test_the_kind_is_what_twilio_says_and_an_unknown_one_is_other_with_its_fields(said: str, kind: str) -> None:
    message = parse_inbound(form(MessageType=said, OrderId="7"))
    assert (message.kind, message.fields["OrderId"], message.fields.get("MessageType", "")) == (kind, "7", said)


@pytest.mark.parametrize("said", ["", "text"])
@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        *(("application/pdf", "document"), (DOCX, "document"), ("text/plain", "document"), ("", "document")),
        *(("image/jpeg", "image"), ("image/webp", "sticker"), ("audio/ogg; codecs=opus", "audio")),
        *(
            ("application/ogg", "audio"),
            ("Video/MP4", "video"),
            ("text/vcard", "contacts"),
            ("text/x-vcard", "contacts"),
        ),
    ],
)
def test_where_twilio_does_not_say_the_kind_is_that_of_the_file(said: str, media_type: str, kind: str) -> None:
    assert parse_inbound(with_file(media_type, MessageType=said)).kind == kind


def test_where_twilio_does_not_say_the_kind_follows_from_the_other_fields() -> None:
    assert parse_inbound(form(Latitude="48.1", Longitude="11.5")).kind == "location"
    assert parse_inbound(form(Latitude="48.1")).kind == "text"
    assert parse_inbound(form(ButtonText="Yes")).kind == "button"
    assert parse_inbound(form(NumMedia="1")).kind == "document", "a file of which nothing is known"
    assert parse_inbound(form(Body="hello")).kind == "text"


def test_a_voice_note_that_says_it_is_a_document_stays_one() -> None:
    assert parse_inbound(with_file("audio/ogg", MessageType="document")).kind == "document"


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_files_are_handed_on_in_their_order_with_the_types_that_are_claimed() -> None:
    fields = {"NumMedia": "3", "MediaUrl2": f"{URL}2", "MediaUrl0": f"{URL}0", "MediaContentType0": "image/png"}
    message = parse_inbound(form(**fields, MediaUrl7=f"{URL}7", Body="look"))
    assert message.attachments == (Attachment(f"{URL}0", "image/png"), Attachment(f"{URL}2", ""))
    assert (message.media, message.text, message.kind) == (3, "look", "image")


def test_no_more_than_ten_files_are_handed_on() -> None:
    many = {f"MediaUrl{number}": f"{URL}{number}" for number in range(50)}
    assert len(parse_inbound(form(**many, NumMedia="50")).attachments) == 10


@pytest.mark.parametrize(
    ("body", "media_type", "name"),
    [
        ("contract.pdf", "application/pdf", "contract.pdf"),
        ("Our offer 2026.DOCX", DOCX, "Our offer 2026.DOCX"),
        ("notes.md", "text/plain", "notes.md"),
        ("contract.pdf", "application/octet-stream", "contract.pdf"),
        ("contract.docx", "application/pdf", ""),
        ("what does contract.pdf say?", "application/pdf", ""),
        ("please\ncontract.pdf", "application/pdf", ""),
        (" contract.pdf", "application/pdf", ""),
        ("hello.", "application/pdf", ""),
    ],
)
def test_a_text_that_is_only_the_documents_name_is_its_name_and_nothing_that_was_said(
    body: str, media_type: str, name: str
) -> None:
    message = parse_inbound(with_file(media_type, MessageType="document", Body=body))
    assert (message.attachments[0].name, message.text) == (name, "" if name else body)
    assert message.fields["Body"] == body


def test_a_picture_that_is_called_something_keeps_what_was_said() -> None:
    message = parse_inbound(with_file("image/jpeg", MessageType="image", Body="cat.jpg"))
    assert (message.text, message.attachments[0].name) == ("cat.jpg", "")


# ── replies and buttons ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_message_replies_to_is_known_by_its_id() -> None:
    quoting = form(Body="this one?", OriginalRepliedMessageSid="SM9", OriginalRepliedMessageSender="whatsapp:+1")
    assert parse_inbound(quoting).quoted == "SM9"
    assert parse_inbound(form(OriginalRepliedMessageSid="SM 9|x")).quoted == ""
    assert parse_inbound(form()).quoted == ""


def test_a_button_has_a_payload_and_what_stood_on_it_is_the_text() -> None:
    pressed = parse_inbound(form(MessageType="button", ButtonPayload="share:7", ButtonText="Share it"))
    assert (pressed.kind, pressed.button, pressed.text) == ("button", "share:7", "Share it")
    spoken = parse_inbound(form(ButtonPayload="share:7", ButtonText="Share it", Body="Share it, please"))
    assert (spoken.kind, spoken.text) == ("button", "Share it, please")
    chosen = parse_inbound(form(MessageType="interactive", ListId="two", ListTitle="The second"))
    assert (chosen.button, chosen.text) == ("two", "The second")
    assert parse_inbound(form(Body="Share it")).button == ""


def test_control_characters_are_left_out_of_everything_that_is_handed_on() -> None:
    pairs = with_file("application/pdf\0", ButtonPayload="a\0b", ButtonText="c\x1bd")
    message = parse_inbound(pairs)
    assert (message.button, message.text) == ("ab", "cd")
    assert message.attachments == (Attachment(f"{URL}0", "application/pdf"),)


# ── who ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["ExternalUserId", "ExternalUserIdentifier", "ParentExternalUserId"])
@pytest.mark.parametrize("prefix", ["", "whatsapp:"])
def test_somebody_without_a_number_is_known_by_whatsapps_id(name: str, prefix: str) -> None:
    message = parse_inbound(form(From="", **{name: prefix + SCOPED}))
    assert message.sender == f"whatsapp:{SCOPED}"
    assert message.fields[name] == prefix + SCOPED


def test_the_id_that_is_ours_alone_comes_before_the_one_that_is_shared() -> None:
    message = parse_inbound(form(From="", ParentExternalUserId="US.ENT.1", ExternalUserId=SCOPED))
    assert message.sender == f"whatsapp:{SCOPED}"


def test_who_has_a_number_is_known_by_it_and_the_id_is_kept() -> None:
    message = parse_inbound(form(ExternalUserId=SCOPED, ProfileUsername="asha"))
    assert message.sender == PERSON
    assert message.fields.items() >= {"ExternalUserId": SCOPED, "ProfileUsername": "asha"}.items()


@pytest.mark.parametrize(
    "fields",
    [
        {"From": ""},
        {"From": "sms:+15551230001", "ExternalUserId": SCOPED},
        {"From": "", "ExternalUserId": "+15550000000"},
        {"From": "", "ExternalUserId": "whatsapp:+15550000000"},
        {"From": "", "ExternalUserId": "15550000000"},
        {"From": "", "ExternalUserId": "US.1|2"},
        {"From": "", "ExternalUserId": f"US.{'1' * 200}"},
        {"From": "", "ProfileName": SCOPED, "ProfileUsername": SCOPED, "WaId": "15550000000"},
    ],
)
def test_an_id_never_passes_for_a_number_and_no_name_passes_for_an_id(fields: dict[str, str]) -> None:
    with pytest.raises(Malformed):
        parse_inbound(form(**fields))


def test_an_id_that_is_given_twice_is_nobodys() -> None:
    with pytest.raises(Malformed):
        parse_inbound([*form(From="", ExternalUserId=SCOPED), ("ExternalUserId", "US.2")])
