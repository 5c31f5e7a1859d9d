"""Which questions take more than one look-up, and what the rules make of what is found."""

from __future__ import annotations

import pytest

from agents.analysis.comparing import Balance, Comparison
from agents.analysis.deciding import plan_of
from agents.analysis.extremes import Extreme
from agents.analysis.plans import Conclusion, Several
from agents.analysis.pricelists import entries
from agents.analysis.pricing import Item, Sum
from agents.analysis.scratchpad import Observation, Passage, Scratchpad
from agents.analysis.tools import ASK_DOCUMENTS, ASK_MEMORY, READ
from mesh.contracts.answers import Source

ROOMS = """# Prices

## Rooms

| Room | Sleeps | Price per night |
|---|---|---|
| Single room | 1 | 58 euros |
| Double room | 2 | 84 euros |
| Deluxe double room | 2 | 112 euros |

In winter every room costs 15 euros less a night.

## Breakfast

Breakfast costs 9 euros per person and 5 euros for children under twelve.
"""


@pytest.mark.parametrize(
    ("text", "items", "asked"),
    [
        ("How much would 3 nights in the deluxe double room cost?", [("deluxe double room", 1)], {"night": 3}),
        ("What do two single rooms cost for 2 nights?", [("single rooms", 2)], {"night": 2}),
        ("How much is breakfast for 2 adults and 1 child?", [("breakfast", 1)], {"adult": 2, "child": 1}),
        (
            "How much do three nights in the double room cost for two people with breakfast?",
            [("double room", 1), ("breakfast", 1)],
            {"night": 3, "person": 2},
        ),
        ("What do 4 adult tickets and 2 child tickets come to?", [("adult tickets", 4), ("child tickets", 2)], {}),
        ("How much is bicycle hire for 3 days?", [("bicycle hire", 1)], {"day": 3}),
        ("What would we pay to hire a bicycle for two days?", [("bicycle", 1)], {"day": 2}),
        ("¿Cuánto cuestan 3 noches en la habitación doble?", [("habitación doble", 1)], {"night": 3}),
    ],
)
def test_a_sum_is_taken_apart(text: str, items: list[tuple[str, int]], asked: dict[str, int]) -> None:
    assert plan_of(text) == Sum(tuple(Item(name, number, tuple(asked.items())) for name, number in items), text)


@pytest.mark.parametrize(
    ("text", "a", "b", "by_price"),
    [
        ("Which is cheaper, the single room or the garden suite?", "the single room", "the garden suite", True),
        ("Is the rye bread cheaper than the sourdough loaf?", "the rye bread", "the sourdough loaf", True),
        ("How much more does the suite cost than the single room?", "the suite", "the single room", True),
        ("¿Qué es más barato, la doble o la suite?", "la doble", "la suite", True),
        (
            "What is the difference between the standard and the premium plan?",
            "the standard",
            "the premium plan",
            False,
        ),
    ],
)
def test_a_comparison_is_taken_apart(text: str, a: str, b: str, by_price: bool) -> None:
    plan = plan_of(text)
    assert isinstance(plan, Comparison)
    assert (plan.a, plan.b, plan.by_price) == (a, b, by_price)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What is your cheapest room?", Extreme),
        ("Which is the most expensive plan you have?", Extreme),
        ("How much is left to pay after the deposit?", Balance),
        ("What is my favourite colour and how much is the suite?", Several),
    ],
)
def test_other_shapes(text: str, kind: type[object]) -> None:
    assert isinstance(plan_of(text), kind)


@pytest.mark.parametrize(
    "text",
    [
        "How much is the double room?",
        "How many people can stay in the family suite?",
        "Can I bring 2 dogs?",
        "What happens if I cancel 2 days before arrival?",
        "How much are parking and breakfast?",
        "When does breakfast start and where is it served?",
        "How much is the 60 minute massage?",
        "What does the 3 course menu cost?",
        "How long do I have left to pay after the deposit?",
        "How much is the partner for 2 hours and 1 hour?",
        "What is my favourite colour and when is my birthday?",
        "My room number is 12.",
        "",
    ],
)
def test_a_plain_question_is_no_investigation(text: str) -> None:
    assert plan_of(text) is None


# ── carried through, over documents that are given ────────────────────────────────────────────────────────────────


def carried_through(text: str, *documents: str) -> Conclusion | None:
    """Every search finds all of them, by their numbers."""
    plan = plan_of(text)
    assert plan is not None
    pad = Scratchpad()
    while call := plan.next(pad):
        numbers = [int(call.input)] if call.tool == READ else range(len(documents))
        passages = (
            Passage(documents[n], Source(kind="document", name=f"{n}.md", reference=f"{n}"), 0.9) for n in numbers
        )
        pad = plan.fold(pad, call, Observation(tuple(passages)))
    return plan.conclude(pad)


def told(text: str, *documents: str) -> str:
    found = carried_through(text, *documents)
    return found.text if found else ""


def test_nights_are_multiplied_and_what_may_change_the_price_is_quoted() -> None:
    text = told("How much do 3 nights in the deluxe double room cost?", ROOMS)
    assert "3 nights × 112 euros = 336 euros" in text
    assert "• In winter every room costs 15 euros less a night." in text
    assert "> Room: Deluxe double room, Sleeps: 2, Price per night: 112 euros" in text


def test_the_double_room_is_not_the_deluxe_double_room() -> None:
    assert "2 nights × 84 euros = 168 euros" in told("How much do 2 nights in the double room cost?", ROOMS)


def test_each_person_pays_their_own_price() -> None:
    text = told("How much is breakfast for 2 adults and 3 children?", ROOMS)
    assert "2 adults × 9 euros = 18 euros" in text
    assert "3 children × 5 euros = 15 euros" in text
    assert "Total: 33 euros" in text


def test_each_item_has_its_own_quantity() -> None:
    fees = "## Fees\n\n- Partner: €240 per hour\n- Paralegal: €75 per hour\n"
    text = told("How much is a partner for 2 hours and a paralegal for 4 hours?", fees)
    assert "2 hours × €240 = €480" in text
    assert "4 hours × €75 = €300" in text
    assert "Total: €780" in text


def test_what_is_not_priced_by_the_night_is_not_counted_and_said() -> None:
    text = told("How much do 3 nights in the double room cost with breakfast?", ROOMS)
    assert "3 nights × 84 euros = 252 euros" in text
    assert "Not counted: breakfast" in text
    assert "Total" not in text


@pytest.mark.parametrize(
    "price",
    [
        "The penthouse costs 900 euros per night.",
        "The suite costs 900 euros.",
        "The suite costs 900 euros per week.",
        "The suite costs 900 euros per night in summer and 700 euros per night in winter.",
        "The suite costs from 900 euros per night.",
        "The suite costs about 900 euros per night.",
        "The suite costs 700–900 euros per night.",
        "The suite costs 900 euros per night, minimum four nights.",
        "The suite costs 900 euros per night, half of it for members.",
        "The suite is 15 euros cheaper a night.",
        "Suite: €900 per night, cleaning €60",
        "Suite: €900 per night + 10%",
    ],
)
def test_no_sum_is_made_of_a_price_that_is_not_plain(price: str) -> None:
    assert carried_through("How much do 3 nights in the suite cost?", f"# Prices\n\n{price}\n") is None


def test_a_price_in_a_heading_is_that_of_the_heading() -> None:
    weddings = (
        "# Weddings\n\n### Petite – £850\nFour hours.\n\n### Classic – £1,450\nEight hours.\n\n- Extra hour £120\n"
    )
    assert "*Petite is cheaper, by £600.*" in told("Which is cheaper, Petite or Classic?", weddings)
    assert "*Petite: £850*" in told("Which wedding is cheapest?", weddings)
    assert "Total: £1,690" in told("What do the Classic and 2 extra hours cost?", weddings)


def test_a_sentence_above_a_table_gives_its_prices_their_unit() -> None:
    menus = "Prices per person, VAT included.\n\n| Menu | Price |\n|---|---|\n| Green | €16.50 |\n| Blue | €19 |\n"
    assert "40 people × €16.50 = €660" in told("How much is the Green menu for 40 people?", menus)
    assert carried_through("How much is the Green menu for 40 people?", menus.partition("\n\n")[2]) is None


def test_a_price_a_month_is_no_monday() -> None:
    plans = "| Plan | Price a month |\n|---|---|\n| Light | 55 € |\n| Regular | 95 € |\n\n- Joining fee 40 €, once\n"
    assert "*Light: 55 € per month*" in told("Which plan is the cheapest?", plans)
    assert "Total: 325 €" in told("What would the first 3 months on Regular cost with the joining fee?", plans)


@pytest.mark.parametrize(("weight", "sum_"), [("20 lb", "2 nights × $38"), ("60 lb", "2 nights × $44")])
def test_a_size_chooses_the_price_whose_bounds_it_is_within(weight: str, sum_: str) -> None:
    rates = "| Guest | Price per night |\n|---|---|\n| Dog up to 25 lb | $38 |\n| Dog 26–60 lb | $44 |\n"
    assert sum_ in told(f"How much are 2 nights for a {weight} dog?", rates)
    assert carried_through("How much are 2 nights for a 90 lb dog?", rates) is None


def test_what_is_left_of_ones_own_total_needs_no_word_of_the_deposit() -> None:
    quote = "| Item | Amount |\n|---|---|\n| Total | €1,890 |\n\nDeposit of €567 received on 2 May 2026.\n"
    assert "*€1,323*" in told("How much do I still have to pay?", quote)
    contract = "Total price: £2,380. First instalment: £595, paid. Second instalment: £595, due in June."
    assert "*£1,785*" in told("How much do we still owe after the first instalment?", contract)


def test_another_offers_price_is_no_condition_and_a_surcharge_is() -> None:
    text = told(
        "How much is the taster evening for 3 people?",
        "## Taster evening\n\n45€ per person.\n\n## Parties\n\nFrom 6 people, 38€ per person.\n\n## Holidays\n\n"
        "A surcharge of 8€ per person.\n",
    )
    assert "3 people × 45€ = 135€" in text
    assert "38€" not in text
    assert "A surcharge of 8€ per person." in text


def test_a_line_that_names_a_list_is_what_the_list_is_of() -> None:
    clay = "Clay, 10 kg bag\n\nWhite stoneware   12 €\nPorcelain   24 €\n"
    assert "*Porcelain: 24 €*" in told("Which clay is the most expensive?", clay)


def test_two_documents_that_disagree_give_no_sum() -> None:
    now, before = "## Spa\n\n- Massage: €35\n", "## Spa 2023\n\n- Massage: €29\n"
    assert "2 × €35 = €70" in told("How much are 2 massages?", now)
    assert carried_through("How much are 2 massages?", now, before) is None


def test_what_the_question_names_decides_between_two_columns() -> None:
    table = "| Room | Low per night | High per night |\n|---|---|---|\n| Suite | $140 | $185 |\n"
    assert "2 nights × $185 = $370" in told(
        "How much are 2 nights in the suite in high season?", table.replace("High", "High season")
    )
    assert carried_through("How much are 2 nights in the suite?", table) is None


def test_another_item_on_the_line_does_not_lend_its_price() -> None:
    shop = "Honey 500 g: €7,50. Manchego: €19,90 per kg.\n"
    assert carried_through("How much are 2 kg of honey?", shop) is None


def test_the_cheaper_one_is_named_with_the_difference() -> None:
    text = told("Which is cheaper, the single room or the double room?", ROOMS)
    assert "Single room: 58 euros per night" in text
    assert "Single room is cheaper, by 26 euros" in text


@pytest.mark.parametrize(
    "prices",
    [
        "- Boat: €50 per hour\n- Canoe: €40 per day\n",
        "- Boat: €50\n- Canoe: $40\n",
        "- Boat: €50\n",
        "- Boat: €50\n- Canoe: from €40\n",
        "- Boat and canoe: €50\n",
        "- Boat for 2: €50\n- Canoe: €40\n",
    ],
)
def test_what_is_not_alike_is_not_judged(prices: str) -> None:
    assert carried_through("Which is cheaper, the boat or the canoe?", prices) is None


def test_what_is_left_is_taken_from_one_document() -> None:
    total, deposit = "The total fee is 7,413 euros.\n", "A deposit of 2,224 euros was paid.\n"
    text = "How much is left to pay after the deposit?"
    assert "= *5,189 euros*" in told(text, f"{total}\n{deposit}")
    assert carried_through(text, total, deposit) is None
    assert carried_through(text, f"{total}\n{deposit}\nThe total including VAT is 8,821 euros.\n") is None
    assert carried_through(text, total) is None


def test_the_cheapest_is_that_of_a_whole_list() -> None:
    document = "# Prices\n\n## Rooms\n\n| Room | Price |\n|---|---|\n| Single | 58 euros |\n| Suite | 164 euros |\n"
    text = told("What is the cheapest room?", document)
    assert "Single: 58 euros" in text
    assert "cheapest of the 2" in text


@pytest.mark.parametrize("other", ["on request", "from 40 euros", "40–60 euros", "$40", "40 euros per week"])
def test_a_list_whose_prices_are_not_alike_has_no_cheapest(other: str) -> None:
    document = f"## Rooms\n\n| Room | Price |\n|---|---|\n| Single | 58 euros |\n| Suite | {other} |\n"
    assert carried_through("What is the cheapest room?", document) is None


def test_entries_carry_their_columns_and_headings() -> None:
    text = "# Menu\n\n## Cakes\n\n- Carrot cake: €32\n- Cheesecake: €36\n\n## Bread\n\n|Bread|Price|\n|-|-|\n|Rye|€4|\n"
    assert [(entry.listed_in, entry.name, entry.text, entry.section) for entry in entries(text)] == [
        (1, "Carrot cake", "Carrot cake: €32", "Menu › Cakes"),
        (1, "Cheesecake", "Cheesecake: €36", "Menu › Cakes"),
        (2, "Rye", "Bread: Rye, Price: €4", "Menu › Bread"),
    ]


def test_the_memory_is_asked_what_the_documents_do_not_say() -> None:
    text = "What is my favourite colour and how much is the suite?"
    plan = Several(text)
    pad = Scratchpad()
    call = plan.next(pad)
    assert call is not None
    assert call.tool == ASK_DOCUMENTS
    price = Passage("Suite: 164 euros", Source(kind="document", name="prices.md"))
    pad = plan.fold(pad, call, Observation((price,), ("What is my favourite colour?",)))
    call = plan.next(pad)
    assert call is not None
    assert (call.tool, call.input) == (ASK_MEMORY, "What is my favourite colour?")
    colour = Passage("You told me: green.", Source(kind="memory", name="today"))
    pad = plan.fold(pad, call, Observation((colour,)))
    assert plan.next(pad) is None
    found = plan.conclude(pad)
    assert found is not None
    assert found.text == "Suite: 164 euros\n\nYou told me: green."
