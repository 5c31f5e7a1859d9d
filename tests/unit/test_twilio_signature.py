"""Which forms are Twilio's, and what they say."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import subprocess
import sys
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.adapters.twilio_signature import (
    MAX_FIELDS,
    Pairs,
    Signatures,
    address,
    body_fits,
    identity,
    parse_delivery,
    parse_inbound,
    parse_pairs,
    signature,
)
from mesh.errors import Malformed, Misconfigured

TOKEN = "12345"
PUBLIC = "https://mesh.example.com"
PATH = "/whatsapp/twilio"
MESSAGE: Pairs = [
    ("MessageSid", "SM1"),
    ("From", "whatsapp:+15551230001"),
    ("To", "whatsapp:+14155238886"),
    ("Body", "Do you open on Sunday?"),
    ("ProfileName", "+15550000000"),
    ("NumMedia", "0"),
]


def by_hand(url: str, sorted_text: str, token: str = TOKEN) -> str:
    """RFC 2104 over the URL and the sorted names and values, without any code of Twilio's or ours."""
    mac = hmac.new(token.encode(), (url + sorted_text).encode("utf-8"), hashlib.sha1)
    return base64.b64encode(mac.digest()).decode()


def fits(pairs: Pairs, given: str, *, path: str = PATH, query: str = "", public: str = PUBLIC) -> bool:
    return Signatures(public, TOKEN).fit(path, query, pairs, given)


def with_field(name: str, value: str) -> Pairs:
    return [*((key, kept) for key, kept in MESSAGE if key != name), (name, value)]


def test_the_example_in_twilios_documentation_is_reproduced() -> None:
    form = [
        ("CallSid", "CA1234567890ABCDE"),
        ("Caller", "+14158675310"),
        ("Digits", "1234"),
        ("From", "+14158675310"),
        ("To", "+18005551212"),
    ]
    assert signature("https://example.com/myapp.php?foo=1&bar=2", form, TOKEN) == "L/OH5YylLD5NRKLltdqwSvS0BnU="


def test_a_signature_computed_by_hand_fits() -> None:
    pairs = [("To", "whatsapp:+2"), ("Body", "hé llo"), ("From", "whatsapp:+1")]
    assert fits(pairs, by_hand(PUBLIC + PATH, "Bodyhé lloFromwhatsapp:+1Towhatsapp:+2"))


def test_unicode_is_signed_as_it_was_written() -> None:
    text = "नमस्ते 👋🏽 e\u0301"
    raw = urlencode([("Body", text)]).encode()
    assert fits(parse_pairs(raw), by_hand(PUBLIC + PATH, "Body" + text))
    assert not fits([("Body", "नमस्ते 👋🏽 \u00e9")], by_hand(PUBLIC + PATH, "Body" + text))


def test_a_signature_of_sha256_under_a_shared_key_computed_by_hand_fits() -> None:
    mac = hmac.new(b"shared", f"{PUBLIC}{PATH}BodyhiTowhatsapp:+2".encode(), hashlib.sha256)
    given_signature = base64.b64encode(mac.digest()).decode()
    pairs = [("To", "whatsapp:+2"), ("Body", "hi")]
    signatures = Signatures(PUBLIC, TOKEN, ["shared"])
    assert signatures.fit(PATH, "", pairs, given_signature, "key=webhooks_sharedkey_01,algorithm=HMAC_SHA256")
    assert not signatures.fit(PATH, "", pairs, given_signature)
    assert not Signatures(PUBLIC, "shared").fit(PATH, "", pairs, given_signature, "algorithm=HMAC_SHA256")


def test_the_hash_of_a_body_is_compared_with_the_one_in_the_signed_address() -> None:
    raw = '{"Body": "é"}'.encode()
    stated = hashlib.sha256(raw).hexdigest()
    for query in (f"bodySHA256={stated}", f"a=1&bodySHA256={stated.upper()}&b=2"):
        assert body_fits(query, raw)
    for query in ("", "bodySHA256=", "bodySHA256=é", f"bodysha256={stated}", f"bodySHA256={stated[:-1]}0g"):
        assert not body_fits(query, raw)
    assert not body_fits(f"bodySHA256={stated}", raw + b" ")


@pytest.mark.parametrize(
    "altered",
    [
        with_field("Body", "Do you open on Monday?"),
        with_field("From", "whatsapp:+15559999999"),
        [*MESSAGE, ("Extra", "")],
        MESSAGE[:-1],
        [],
    ],
)
def test_an_altered_form_does_not_fit(altered: Pairs) -> None:
    assert not fits(altered, signature(PUBLIC + PATH, MESSAGE, TOKEN))


def test_white_space_at_the_ends_is_part_of_what_is_signed() -> None:
    raw = b"Body=+hello+%0A&MessageSid=SM1"
    good = by_hand(PUBLIC + PATH, "Body hello \nMessageSidSM1")
    assert fits(parse_pairs(raw), good)
    assert not fits([("Body", "hello"), ("MessageSid", "SM1")], good)


def test_blank_values_are_part_of_what_is_signed() -> None:
    assert parse_pairs(b"Body=&Address=&To=1") == [("Body", ""), ("Address", ""), ("To", "1")]


def test_every_value_of_a_repeated_name_is_signed() -> None:
    good = by_hand(PUBLIC + PATH, "MediaaMediabToz")
    assert fits(parse_pairs(b"Media=b&Media=a&To=z"), good)
    assert not fits(parse_pairs(b"Media=a&To=z"), good)
    assert not fits(parse_pairs(b"Media=a&Media=c&To=z"), good)


@pytest.mark.parametrize(
    ("path", "query", "public"),
    [
        (PATH + "/", "", PUBLIC),
        (PATH + "/status", "", PUBLIC),
        (PATH, "a=1", PUBLIC),
        (PATH, "", "http://mesh.example.com"),
        (PATH, "", "https://evil.example.com"),
        (PATH, "", PUBLIC + "/prefix"),
    ],
)
def test_another_address_does_not_fit(path: str, query: str, public: str) -> None:
    assert not fits(MESSAGE, signature(PUBLIC + PATH, MESSAGE, TOKEN), path=path, query=query, public=public)


def test_the_query_is_signed_as_it_was_received() -> None:
    query = "b=2&a=it's+1%20"
    assert fits(MESSAGE, signature(f"{PUBLIC}{PATH}?{query}", MESSAGE, TOKEN), query=query)


@pytest.mark.parametrize("spelling", ["https://mesh.example.com", "https://mesh.example.com:443"])
@pytest.mark.parametrize("public", ["https://mesh.example.com/", "https://mesh.example.com:443"])
def test_the_port_may_be_spelled_out_or_not(public: str, spelling: str) -> None:
    assert fits(MESSAGE, signature(spelling + PATH, MESSAGE, TOKEN), public=public)


def test_a_public_url_may_hold_a_path_and_an_ipv6_host() -> None:
    assert fits(MESSAGE, signature("https://a.example/mesh" + PATH, MESSAGE, TOKEN), public="https://a.example/mesh/")
    assert fits(MESSAGE, signature("http://[::1]:8080" + PATH, MESSAGE, TOKEN), public="http://[::1]:8080")


@pytest.mark.parametrize("given_signature", ["", "é", "\udcff", "0" * 28, "=" * 10_000])
def test_a_senseless_signature_does_not_fit_and_does_not_crash(given_signature: str) -> None:
    assert not fits(MESSAGE, given_signature)


def test_another_token_does_not_fit() -> None:
    assert not fits(MESSAGE, signature(PUBLIC + PATH, MESSAGE, "secondary"))


@pytest.mark.parametrize(
    "public",
    [
        "",
        "mesh.example.com",
        "ftp://mesh.example.com",
        "https://",
        "https://a.example:port",
        PUBLIC + "/?a=1",
    ],
)
def test_a_public_url_that_could_never_fit_stops_start_up(public: str) -> None:
    with pytest.raises(Misconfigured, match="PUBLIC_URL"):
        Signatures(public, TOKEN)


def test_an_empty_token_stops_start_up_because_anybody_could_sign() -> None:
    with pytest.raises(Misconfigured, match="TWILIO_AUTH_TOKEN"):
        Signatures(PUBLIC, "")


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.text("ab \u200b\0é\n&=+%😀"))))
def test_whatever_was_signed_fits_after_the_wire(pairs: list[tuple[str, str]]) -> None:
    assert fits(parse_pairs(urlencode(pairs).encode()), signature(PUBLIC + PATH, pairs, TOKEN))


@pytest.mark.parametrize(
    "raw", [b"Body=%ff", b"Body=\xff", b"Body=%ED%A0%80", b"%C3=1", b"&".join([b"a=1"] * (MAX_FIELDS + 1))]
)
def test_a_form_that_is_not_utf8_or_far_too_long_is_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        parse_pairs(raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_malformed(raw: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(fits(parse_pairs(raw), "x"), bool)


def test_who_wrote_is_the_senders_address_and_never_the_profile_name() -> None:
    message = parse_inbound(MESSAGE)
    assert (message.sender, message.recipient) == ("+15551230001", "+14155238886")
    assert message.text == "Do you open on Sunday?"
    assert message.fields == dict(MESSAGE)
    assert message.chat == "+14155238886|+15551230001"


def test_an_identity_without_a_number_is_kept_whole() -> None:
    message = parse_inbound(with_field("From", "whatsapp:US.13491208655302741918"))
    assert message.sender == "whatsapp:US.13491208655302741918"


@pytest.mark.parametrize("who", ["+15551230001", "whatsapp:US.13491208655302741918"])
def test_addresses_and_identities_are_each_others_inverse(who: str) -> None:
    assert identity(address(who)) == who
    assert address(address(who)) == address(who)


@pytest.mark.parametrize(
    "sender",
    [
        "",
        "+15551230001",
        "sms:+15551230001",
        "whatsapp:",
        "whatsapp:+1|+2",
        "whatsapp: +1",
        "mesh",
        "whatsapp:\0",
    ],
)
def test_a_sender_who_is_not_on_whatsapp_is_malformed(sender: str) -> None:
    with pytest.raises(Malformed):
        parse_inbound(with_field("From", sender))


def test_digits_of_another_script_are_not_a_number() -> None:
    assert parse_inbound(with_field("From", "whatsapp:+١٥٥")).sender == "whatsapp:+١٥٥"


@pytest.mark.parametrize("missing", ["MessageSid", "From", "To"])
def test_a_form_without_what_we_act_upon_is_malformed(missing: str) -> None:
    with pytest.raises(Malformed):
        parse_inbound([pair for pair in MESSAGE if pair[0] != missing])


@pytest.mark.parametrize("name", ["MessageSid", "From", "To", "Body"])
def test_what_we_act_upon_may_not_be_given_twice(name: str) -> None:
    with pytest.raises(Malformed, match="couldn't"):
        parse_inbound([*MESSAGE, (name, "whatsapp:+15559999999")])


def test_unknown_and_repeated_fields_are_kept() -> None:
    message = parse_inbound([*MESSAGE, ("Novelty", "a"), ("Novelty", "b")])
    assert message.fields["Novelty"] == "a\nb"


def test_text_is_not_trimmed_and_loses_only_control_characters() -> None:
    kept = " hi\n\tthere \u202eabc\u202c 👋🏽\n"
    assert parse_inbound(with_field("Body", kept)).text == kept
    assert parse_inbound(with_field("Body", " \0hi\r\n\x1b[31m\x9f")).text == " hi\n[31m"
    assert parse_inbound([pair for pair in MESSAGE if pair[0] != "Body"]).text == ""


@pytest.mark.parametrize(("count", "media"), [("2", 2), ("0", 0), ("", 0), ("-1", 0), ("²", 0), ("9" * 5000, 0)])
def test_media_are_counted(count: str, media: int) -> None:
    assert parse_inbound(with_field("NumMedia", count)).media == media


def test_a_status_callback_is_not_taken_for_a_message_of_our_own_number() -> None:
    with pytest.raises(Malformed):
        parse_inbound([*MESSAGE, ("MessageStatus", "delivered")])


@pytest.mark.parametrize(
    ("state", "known_as"),
    [
        ("sent", "sent"),
        ("delivered", "delivered"),
        ("accepted", "queued"),
        ("canceled", "failed"),
        ("odd", "odd"),
    ],
)
def test_a_delivery_names_its_state(state: str, known_as: str) -> None:
    delivery = parse_delivery([("MessageSid", "SM1"), ("MessageStatus", state), ("ErrorCode", "63024")])
    assert (delivery.provider_id, delivery.state, delivery.error_code) == ("SM1", known_as, "63024")


@pytest.mark.parametrize("pairs", [[("MessageSid", "SM1")], [("MessageStatus", "sent")], []])
def test_a_delivery_without_state_or_sid_is_malformed(pairs: Pairs) -> None:
    with pytest.raises(Malformed):
        parse_delivery(pairs)


def test_the_webhook_side_does_not_load_the_sending_side() -> None:
    heavy = "('twilio.rest', 'aiohttp', 'requests', 'httpx', 'redis')"
    code = f"import sys, mesh.gateway.app; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
