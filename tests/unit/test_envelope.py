from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mesh.envelope import MESH, Request, digest, pseudonym

texts = st.text(max_size=40)


def request(client: str = "+15551230001", skill: str = "a.b", key: str = "k") -> Request:
    return Request(client=client, skill=skill, payload=None, trace="t", key=key, deadline=1.0)


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_different_parts_have_different_digests(a: list[str], b: list[str]) -> None:
    assert (digest(*a) == digest(*b)) == (a == b)


@given(texts, texts)
def test_another_clients_key_never_names_the_same_job(one: str, other: str) -> None:
    assert (request(client=one).job_id == request(client=other).job_id) == (one == other)


def test_a_job_id_holds_no_phone_number() -> None:
    assert "5551230001" not in request().job_id


def test_a_pseudonym_is_stable_and_no_phone_number() -> None:
    assert pseudonym("+15551230001") == pseudonym("+15551230001") != pseudonym("+15551230002")
    assert "555" not in pseudonym("+15551230001")
    assert pseudonym(MESH) == MESH
