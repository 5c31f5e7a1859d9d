"""What web pages yield."""

from __future__ import annotations

import pytest

from agents.knowledge.chunking import chunk
from agents.knowledge.parsing import parse
from tests.unit.office_files import refused


async def text_of(page: str | bytes) -> str:
    parsed = await parse("page.html", page if isinstance(page, bytes) else page.encode())
    assert parsed.media_type == "text/html"
    assert not parsed.troubles
    (part,) = parsed.parts
    return part.text


async def test_headings_head_their_sections_under_the_title_of_the_page() -> None:
    page = "<title>Salon Ada</title><h1>Prices</h1><p>All with VAT.</p><h2>Cuts &amp; more</h2><p>A cut costs 25 €."
    parsed = await parse("page.html", page.encode())
    assert parsed.parts[0].text.startswith("# Salon Ada\n\n## Prices")
    paths = [each.heading_path for each in chunk(parsed.media_type, parsed.parts)]
    assert paths == [("Salon Ada", "Prices"), ("Salon Ada", "Prices", "Cuts & more")]


@pytest.mark.parametrize("name", ["prices", "prices.asp", "prices.txt", "prices.xls"])
async def test_a_page_has_its_sections_whatever_it_is_called(name: str) -> None:
    page = b"<html><h1>Prices</h1><h2>Rooms</h2><p>A double room costs 84 euros.<h2>Parking</h2><p>It costs 7 euros."
    found = []
    for called in (name, "prices.html"):
        parsed = await parse(called, page)
        found.append(chunk(parsed.media_type, parsed.parts))
    assert found[0] == found[1]
    assert [each.heading_path for each in found[0]] == [("Prices", "Rooms"), ("Prices", "Parking")]


async def test_a_title_that_the_first_heading_repeats_is_told_once() -> None:
    assert await text_of("<title>Prices</title><h1> Prices</h1><p>25 €") == "# Prices\n\n25 €"


@pytest.mark.parametrize(
    "unseen",
    [
        "<script>var a = '<p>secret</p>'</script>",
        "<style>.a { content: 'secret' }</style>",
        "<!-- secret -->",
        "<template><p>secret</p></template>",
        "<noscript>secret</noscript>",
        "<div hidden>secret</div>",
        '<div style="color: red; display:none">secret</div>',
        '<span style="visibility: hidden">secret</span>',
        '<p style="font-size:0">secret</p>',
        '<p style="opacity:0;">secret</p>',
        '<style>p.x, .preview { display: none !important }</style><p class="a preview">secret</p>',
        '<style>#gone{display:none}</style><p id="gone">secret</p>',
        '<input type="hidden" value="secret">',
        "<svg><text>secret</text></svg>",
    ],
)
async def test_what_a_browser_does_not_show_is_no_text(unseen: str) -> None:
    assert await text_of(f"<p>before {unseen} after</p><p>end") in ("before after\n\nend", "before\n\nafter\n\nend")


async def test_what_is_hidden_on_paper_alone_is_shown() -> None:
    page = "<style>@media print { .menu { display: none } } .menu { color: red }</style><p class=menu>Soup 4 €"
    assert await text_of(page) == "Soup 4 €"


async def test_lists_keep_their_depth_and_their_numbers() -> None:
    page = "<ul><li>One<ul><li>Inner</ul><li>Two</ul><ol start=3><li>three<li><p>four</p><p>still four</p></ol>"
    assert await text_of(page) == "- One\n  - Inner\n- Two\n3. three\n4. four\n\nstill four"


async def test_a_table_keeps_its_names_and_what_spans_several_cells() -> None:
    page = (
        "<table><caption>Rooms</caption><thead><tr><th rowspan=2>Room<th colspan=2>Price</tr>"
        "<tr><th>Low<th>High</thead>"
        "<tr><td rowspan=2>North<td>50<td>60<tr><td>55<td>65</table>"
    )
    rows = "| Room | Price Low | Price High |\n|---|---|---|\n| North | 50 | 60 |\n| North | 55 | 65 |"
    assert await text_of(page) == f"Rooms\n\n{rows}"


async def test_a_table_that_only_arranges_the_page_is_none() -> None:
    inner = "<table><tr><th>Dish<th>Price<tr><td>Soup<td>4<tr><td>Tea<td>2</table>"
    page = f"<table><tr><td><p>Dear Ada,</p>{inner}</td></tr><tr><td>Yours, Bo</td></tr></table>"
    assert await text_of(page) == "Dear Ada,\n\n| Dish | Price |\n|---|---|\n| Soup | 4 |\n| Tea | 2 |\n\nYours, Bo"


async def test_the_last_of_very_many_columns_is_not_lost() -> None:
    cells = "".join(f"<th>column {number}" for number in range(100))
    assert "column 99" in await text_of(f"<table><tr>{cells}<tr><td>x</table>")


async def test_lines_break_where_the_author_broke_them_and_nowhere_else() -> None:
    assert await text_of("<p>one\n  line<br>another</p><pre>a\nb</pre>") == "one line\nanother\n\na\nb"


async def test_text_that_looks_like_markdown_is_no_heading() -> None:
    page = "<p># not a heading</p><p>84<sup>1</sup> and the text of a picture: <img alt='a red door' src=x>"
    assert await text_of(page) == "\\# not a heading\n\n84¹ and the text of a picture: a red door"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<meta charset=windows-1251>", "cp1251"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', "koi8-r"),
        ('<?xml version="1.0" encoding="iso-8859-5"?><html>', "iso8859-5"),
        ("<html>", "utf-16"),
        ("<html>", "utf-8-sig"),
        ("<meta charset=iso-8859-1>", "utf-8"),
        ("<meta charset=no-such-thing>", "cp1251"),
    ],
)
async def test_a_page_is_decoded_as_it_says_or_as_it_is(head: str, encoding: str) -> None:
    page = f"{head}<p>Стрижка стоит пятьсот рублей, а покраска тысячу.</p>"
    assert await text_of(page.encode(encoding)) == "Стрижка стоит пятьсот рублей, а покраска тысячу."


async def test_latin_1_means_what_windows_makes_of_it() -> None:
    assert await text_of("<meta charset=iso-8859-1><p>“5 €”".encode("cp1252")) == "“5 €”"


async def test_a_page_that_a_program_fills_is_refused() -> None:
    failed = await refused("page.html", b"<html><body><div id=app></div><script>1</script></body></html>")
    assert failed.kind == "nothing"
    assert "print the page to PDF" in failed.user_text


async def test_a_page_nested_without_end_is_read_as_far_as_it_can_be_and_says_so() -> None:
    parsed = await parse("page.html", b"<p>first<p>" + b"<div>" * 30_000 + b"deep")
    assert parsed.parts[0].text == "first"
    assert "nested too deeply" in parsed.troubles[0]
    assert (await refused("page.html", b"<html>" + b"<div>" * 30_000 + b"deep")).kind == "limit"


async def test_a_page_of_many_cells_takes_no_more_time_than_its_length() -> None:
    page = b"<table>" + b"<tr><td rowspan=1000 colspan=1000>a<td>b" * 5_000 + b"</table>"
    assert "a" in (await parse("page.html", page)).parts[0].text
