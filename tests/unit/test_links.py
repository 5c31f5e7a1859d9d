"""A signed link says what it was made to say, for as long as it was made for, and nothing else."""

from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh import clock
from mesh.connections import connect
from mesh.errors import NotFound
from mesh.files import Link, readable
from mesh.links import KEY, Addresses, Links, links
from tests.people import ASHA, BEN

HERE, ELSEWHERE = Links(b"k" * 32), Links(b"K" * 32)
DOCUMENT = "0123456789abcdef0123456789abcdef"


def token(made: str) -> str:
    _, files, found, _ = made.split("/")
    assert files == "files"
    return found


def test_what_was_put_in_comes_out() -> None:
    before = clock.now()
    link = HERE.read(token(HERE.make(DOCUMENT, ASHA, "Prices.pdf", 60)))
    assert (link.document_id, link.client) == (DOCUMENT, ASHA)
    assert before + 59 <= link.expires <= clock.now() + 60


def test_it_lives_for_fifteen_minutes_unless_told_otherwise() -> None:
    link = HERE.read(token(HERE.make(DOCUMENT, ASHA, "Prices.pdf")))
    assert link.expires - clock.now() == pytest.approx(900, abs=2)


def test_an_expired_one_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made = token(HERE.make(DOCUMENT, ASHA, "Prices.pdf", 60))
    monkeypatch.setattr(clock, "_offset", 59 + clock._offset - (time.time() % 1) - 1)
    assert HERE.read(made)
    monkeypatch.setattr(clock, "_offset", clock._offset + 3)
    with pytest.raises(NotFound, match="not valid, or not any more"):
        HERE.read(made)


@given(st.data())
def test_an_altered_one_is_not_read(data: st.DataObject) -> None:
    made = token(HERE.make(DOCUMENT, ASHA, "Prices.pdf"))
    at = data.draw(st.integers(0, len(made) - 1))
    other = data.draw(st.sampled_from("ABCDEFGHabcdefgh0123456789-_=./%é").filter(lambda c: c != made[at]))
    with pytest.raises(NotFound):
        HERE.read(made[:at] + other + made[at + 1 :])
    with pytest.raises(NotFound):
        HERE.read(made[:at])


@given(st.text(max_size=700))
def test_no_text_is_a_link(text: str) -> None:
    with pytest.raises(NotFound):
        HERE.read(text)


def test_a_later_end_or_another_person_cannot_be_put_under_an_old_signature() -> None:
    body, _, signature = token(HERE.make(DOCUMENT, ASHA, "Prices.pdf")).partition(".")
    content = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    for changed in ([DOCUMENT, BEN, content[2]], [DOCUMENT, ASHA, content[2] + 1], ["f" * 32, ASHA, content[2]]):
        raw = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
        with pytest.raises(NotFound):
            HERE.read(f"{raw}.{signature}")


def test_another_key_reads_nothing_of_it() -> None:
    with pytest.raises(NotFound):
        ELSEWHERE.read(token(HERE.make(DOCUMENT, ASHA, "Prices.pdf")))


@pytest.mark.parametrize("client", ["*", "", "mesh", "+1"])
def test_a_link_for_nobody_is_none(client: str) -> None:
    with pytest.raises(NotFound):
        HERE.read(token(HERE.make(DOCUMENT, client, "Prices.pdf")))


@pytest.mark.parametrize("key", [b"", b"k" * 16, b"k" * 33])
def test_a_weak_key_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Links(key)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Price list.pdf", "Price%20list.pdf"),
        ("Grüße.md", "Gr%C3%BC%C3%9Fe.md"),
        ('a"b\r\nSet-Cookie: x.txt', "a%22bSet-Cookie%3A%20x.txt"),
        ("a\u202egpj.exe", "agpj.exe"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "file"),
        ("", "file"),
    ],
)
def test_the_name_in_it_is_harmless_and_whole(name: str, shown: str) -> None:
    assert HERE.make(DOCUMENT, ASHA, name).rpartition("/")[2] == shown


@given(st.text(max_size=300))
def test_whatever_the_name_it_is_a_path_of_plain_characters(name: str) -> None:
    made = HERE.make(DOCUMENT, ASHA, name)
    assert made.isascii()
    assert made.isprintable()
    assert made.count("/") == 3
    assert HERE.read(token(made)).document_id == DOCUMENT


def test_letters_that_need_joiners_keep_them() -> None:
    assert readable("क्\u200dष 👩\u200d🌾.pdf") == "क्\u200dष 👩\u200d🌾.pdf"


async def test_all_processes_share_one_key_that_the_first_one_makes(redis_url: str) -> None:
    one, other = connect(redis_url), connect(redis_url)
    made = (await links(one)).make(DOCUMENT, ASHA, "Prices.pdf")
    assert isinstance((await links(other)).read(token(made)), Link)
    key = await one.get(KEY)
    assert key is not None
    assert len(key) == 32
    await one.aclose()
    await other.aclose()


async def test_an_address_is_below_the_public_one(redis_url: str) -> None:
    redis = connect(redis_url)
    made = await Addresses(redis, "https://mesh.example.com/in/").address(DOCUMENT, ASHA, "Prices.pdf")
    assert made.startswith("https://mesh.example.com/in/files/")
    assert made.endswith("/Prices.pdf")
    await redis.aclose()
