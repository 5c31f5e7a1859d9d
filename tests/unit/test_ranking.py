import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.knowledge.ranking import fuse, spread
from mesh.settings import SearchMode

ids = st.integers(0, 60)
cosines = st.dictionaries(ids, st.floats(-1, 1), max_size=40)
sums = st.dictionaries(ids, st.floats(0, 60), max_size=40)
modes = st.sampled_from(("calibrated", "rrf"))


@given(cosines, sums, modes)
def test_each_thing_found_appears_once_best_first(
    dense: dict[int, float], sparse: dict[int, float], mode: SearchMode
) -> None:
    fused = fuse(dense, sparse, mode=mode)
    assert {key for key, _ in fused} == set(dense) | set(sparse)
    assert len(fused) == len({key for key, _ in fused})
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)


@given(cosines, sums, modes)
def test_the_order_does_not_depend_on_the_order_of_arrival(
    dense: dict[int, float], sparse: dict[int, float], mode: SearchMode
) -> None:
    turned = fuse(dict(reversed(dense.items())), dict(reversed(sparse.items())), mode=mode)
    assert [key for key, _ in turned] == [key for key, _ in fuse(dense, sparse, mode=mode)]


@given(cosines)
def test_without_words_in_common_the_cosine_decides(dense: dict[int, float]) -> None:
    assert dict(fuse(dense, {})) == dense


def test_rare_words_lift_a_passage_over_a_slightly_nearer_one() -> None:
    assert fuse({"near": 0.86, "exact": 0.85, "far": 0.80}, {"exact": 12.0})[0][0] == "exact"


def test_words_alone_do_not_beat_what_is_clearly_nearer() -> None:
    assert fuse({"near": 0.90, "a": 0.80, "b": 0.79}, {"b": 2.0})[0][0] == "near"


def test_what_only_the_words_found_is_given_the_lowest_cosine() -> None:
    scores = dict(fuse({"a": 0.9, "b": 0.8}, {"c": 0.0}))
    assert scores["c"] == scores["b"]


def test_a_list_too_short_to_show_its_spread_borrows_the_typical_one() -> None:
    assert spread({}) == pytest.approx(0.02)
    assert 0.015 < spread({"one": 0.9}) < 0.02


def test_an_embedder_that_spreads_its_cosines_gives_words_the_same_say() -> None:
    narrow = {key: 0.80 + 0.01 * key for key in range(20)}
    wide = {key: 0.20 + 0.04 * key for key in range(20)}
    ranked = [[key for key, _ in fuse(dense, {3: 9.0, 10: 4.0})] for dense in (narrow, wide)]
    assert ranked[0][0] == ranked[1][0]


def test_ranks_alone_decide_in_rrf() -> None:
    assert fuse({"a": 0.9, "b": 0.1}, {"b": 99.0, "a": 0.1}, mode="rrf") == fuse(
        {"a": 0.5, "b": 0.4}, {"b": 2.0, "a": 1.0}, mode="rrf"
    )
