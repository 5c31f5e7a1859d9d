"""Text and tables of separated values, in any encoding."""

from __future__ import annotations

import pytest

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import parse
from tests.unit.office_files import refused

SAID = {
    "cp1252": "Öffnungszeiten: täglich 9–17 Uhr, außer Sonntag. Gebühr 20 €, ermäßigt 15 €.",
    "cp1250": "Otwarte codziennie od dziewiątej, w święta zamknięte. Strzyżenie kosztuje 20 zł, żeński krój więcej.",
    "cp1251": "Мы открыты каждый день с девяти, кроме воскресенья. Стрижка стоит пятьсот рублей.",
    "koi8-r": "Мы открыты каждый день с девяти, кроме воскресенья. Стрижка стоит пятьсот рублей.",
    "cp866": "Мы открыты каждый день с девяти, кроме воскресенья. Стрижка стоит пятьсот рублей.",
    "iso8859-5": "Мы открыты каждый день с девяти, кроме воскресенья. Стрижка стоит пятьсот рублей.",
    "cp1253": "Είμαστε ανοιχτά κάθε μέρα από τις εννέα. Το κούρεμα κοστίζει δεκαπέντε ευρώ.",
    "cp1254": "Her gün dokuzda açığız, pazar günü kapalıyız. Saç kesimi beş yüz lira, boya bin lira.",
    "cp1255": "אנחנו פתוחים כל יום מתשע, חוץ משבת. תספורת עולה חמישים שקל.",
    "cp1256": "نحن نفتح كل يوم من التاسعة ما عدا الجمعة. قص الشعر بخمسين ريالا.",
    "cp874": "เราเปิดทุกวันตั้งแต่เก้าโมง ยกเว้นวันอาทิตย์ ตัดผมราคาห้าสิบบาท",
    "shift_jis": "毎日九時から営業しています。カットは三千円、パーマは八千円です。",
    "euc_jp": "毎日九時から営業しています。カットは三千円、パーマは八千円です。",
    "gb18030": "我们每天九点开始营业，星期天休息。剪发五十元，染发二百元。",
    "big5": "我們每天九點開始營業，星期天休息。剪髮三百元，染髮一千元。",
    "cp949": "매일 아홉 시에 문을 열고 일요일은 쉽니다. 커트는 만오천 원입니다.",
    "cp500": "We are open every day from nine, but on Sundays. A cut costs twenty-five euros.",
    "iso2022_jp": "毎日九時から営業しています。",
}


@pytest.mark.parametrize("encoding", SAID)
async def test_text_is_read_in_the_encoding_that_it_is_in(encoding: str) -> None:
    (part,) = (await parse("hours.txt", SAID[encoding].encode(encoding))).parts
    assert part.text == SAID[encoding]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("language", ["cp1252", "cp1251", "gb18030", "cp1256", "cp949"])
async def test_unicode_is_read_with_and_without_a_mark(language: str, encoding: str) -> None:
    text = f"{SAID[language]}\n{SAID[language]}\n"
    (part,) = (await parse("hours.txt", text.encode(encoding))).parts
    assert (part.text, part.trouble) == (text, "")


async def test_a_doubtful_encoding_is_told() -> None:
    (part,) = (await parse("word.txt", "שלום, המחיר 50".encode("cp1255"))).parts
    assert part.text
    assert part.trouble.startswith("word.txt: some of its letters may be wrong: it does not say its encoding")


async def test_a_few_bytes_that_are_wrong_do_not_make_utf_8_something_else() -> None:
    raw = ("Öffnungszeiten täglich, Gebühr. " * 20).encode()
    parsed = await parse("a.txt", raw[:99] + b"\xff" + raw[99:200] + b"\xfe" + raw[200:])
    assert "Gebühr" in parsed.parts[0].text
    assert parsed.troubles == ("a.txt: 2 of its letters could not be read",)
    assert not (await parse("a.txt", raw + "€".encode()[:2])).troubles, "cut off within the last letter"


@pytest.mark.parametrize("raw", [bytes(range(256)) * 20, b"\x00\x01\x02\x03" * 500, b"\x93\x00\x07" * 700])
async def test_bytes_that_are_no_text_are_refused(raw: bytes) -> None:
    assert (await refused("notes.txt", raw)).kind == "unsupported"


# ── separated values ──────────────────────────────────────────────────────────────────────────────────────────────

ROWS = (("Service", "Minutes", "Price"), ("Cut, short", "30", "25"), ("Colour", "90", "60"))
TABLE = "| Service | Minutes | Price |\n|---|---|---|\n| Cut, short | 30 | 25 |\n| Colour | 90 | 60 |"


@pytest.mark.parametrize(
    ("name", "sign"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.csv", "|")]
)
async def test_what_separates_values_is_found(name: str, sign: str) -> None:
    raw = "\r\n".join(sign.join(f'"{value}"' if "," in value else value for value in row) for row in ROWS).encode()
    parsed = await parse(name, raw)
    assert parsed.media_type == "text/csv"
    assert parsed.parts[0].text == TABLE


async def test_decimal_commas_separate_nothing() -> None:
    raw = b"Service;Price\nCut;12,50\nColour;30,00\nPerm;45,00\n"
    assert (await parse("a.csv", raw)).parts[0].text.startswith("| Service | Price |\n|---|---|\n| Cut | 12,50 |")


async def test_the_separator_may_be_stated() -> None:
    assert (await parse("a.csv", b"sep=;\nA;B\nx, y;1\n")).parts[0].text == "| A | B |\n|---|---|\n| x, y | 1 |"


async def test_the_header_stays_with_every_block_of_a_long_file() -> None:
    raw = "Service,Price\n" + "".join(f"Service number {number},{number}\n" for number in range(300))
    parsed = await parse("a.csv", raw.encode())
    chunks = chunk(parsed.media_type, parsed.parts)
    assert len(chunks) > 5
    assert all(each.text.startswith("| Service | Price |\n|---|---|") for each in chunks)


async def test_values_have_no_headings() -> None:
    parsed = await parse("a.csv", b"# 1,5\n# 2,7\n# 3,9\n")
    (found,) = chunk(parsed.media_type, parsed.parts)
    assert (found.heading_path, found.text) == ((), parsed.parts[0].text)


async def test_a_quotation_mark_that_is_never_closed_swallows_nothing() -> None:
    raw = 'Item,Price\n24" wheel,30\n"Saddle,20\n' + "".join(f"Part {number},{number}\n" for number in range(200))
    text = (await parse("a.csv", raw.encode())).parts[0].text
    assert "| Part 199 | 199 |" in text


async def test_a_text_that_is_only_named_a_table_is_kept_as_it_is() -> None:
    text = "Just a note, with a comma\nand another line\nno more"
    assert (await parse("a.csv", text.encode())).parts[0].text == text


async def test_values_in_another_encoding_are_decoded() -> None:
    text = "名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,25,大阪\n"
    parsed = await parse("名簿.csv", text.encode("cp932"))
    assert "| 佐藤太郎 | 30 | 東京 |" in parsed.parts[0].text


async def test_rows_beyond_what_can_be_taken_are_named() -> None:
    parsed = await parse("a.csv", b"A,B\n" + b"x,1\n" * 200_001)
    assert parsed.troubles == ("a.csv: the rows from 200,001 on were left out: 200,000 are the most that I can take",)
