import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.commands import NAMES, OPT_IN, OPT_OUT, TAKE_AN_ARGUMENT, Command, command_of


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("help", "help /help HELP Help! ? ?? /? ayuda AYUDA /ayuda aide hilfe ajuda मदद /मदद info"),
        ("stop", "STOP stop Stop. /stop STOPALL UNSUBSCRIBE QUIT END BAJA ARRET arrêt ARRÊT STOPP PARAR SAIR रोकें"),
        ("start", "START start /start UNSTOP ALTA alta शुरू reprendre INICIAR"),
        ("cancel", "cancel /cancel CANCEL cancelar annuler abbrechen रद्द"),
        ("why", "/why why? Why why?? pourquoi? warum? क्यों? /fuentes /sources /quellen /fontes ¿Porqué?"),
        ("mydata", "/mydata mydata /misdatos /mesdonnées /meinedaten /meusdados"),
        ("forget", "/forget forget /olvidar /oublier /vergessen /esquecer"),
        ("human", "/human human agent humano /humain Mensch atendente इंसान"),
        ("files", "/files files archivos fichiers Dateien arquivos फ़ाइलें फाइलें"),
        ("private", "private Private. /private privado privé privat निजी"),
        ("delete", "delete /delete borrar supprimer löschen loeschen apagar हटाएँ हटाएं"),
        ("share", "share /share compartir partager teilen compartilhar"),
    ],
)
def test_a_word_alone_is_a_command(name: str, said: str) -> None:
    assert {word: command_of(word) for word in said.split()} == {word: Command(name) for word in said.split()}  # type: ignore[arg-type]  # names from the table


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("help please", Command("help")),
        ("¿por qué?", Command("why")),
        ("¿Por qué?", Command("why")),
        ("why did you say that?", Command("why")),
        ("opt out", Command("stop")),
        ("please unsubscribe me", Command("stop")),
        ("por favor, ayuda", Command("help")),
        ("aide-moi s'il te plaît", Command("help")),
        ("मदद करें", Command("help")),
        ("I want to talk to a human", Command("human")),
        ("Can I speak to a real person?", Command("human")),
        ("quiero hablar con una persona", Command("human")),
        ("Je voudrais parler à quelqu’un", Command("human")),
        ("Ich möchte mit einem Menschen sprechen.", Command("human")),
        ("quero falar com um atendente", Command("human")),
        ("मुझे किसी इंसान से बात करनी है", Command("human")),
        ("mis datos", Command("mydata")),
        ("meine Daten löschen", Command("forget")),
        ("forget me", Command("forget")),
        ("forget everything about me", Command("forget")),
        ("/forget all", Command("forget", "all")),
        ("forget all", Command("forget", "all")),
        ("/olvidar todo", Command("forget", "all")),
        ("/forget everything", Command("forget", "all")),
        ("/forget my birthday", Command("forget", "my birthday")),
        ("/oublier mon anniversaire", Command("forget", "mon anniversaire")),
        ("send me that file", Command("send_file")),
        ("Could you send me that file, please?", Command("send_file")),
        ("Send me the original", Command("send_file")),
        ("/send", Command("send_file")),
        ("/send price list.pdf", Command("send_file", "price list.pdf")),
        ("send me Price_List 2026.PDF", Command("send_file", "Price_List 2026.PDF")),
        ("send me the file “notes.docx”", Command("send_file", "notes.docx")),
        ("send me Terms of Service.pdf", Command("send_file", "Terms of Service.pdf")),
        ("envíame ese archivo", Command("send_file")),
        ("¿Puedes enviarme el archivo?", Command("send_file")),
        ("mándame notas.pdf", Command("send_file", "notas.pdf")),
        ("envoyez-moi ce fichier", Command("send_file")),
        ("envoie moi ce fichier stp", Command("send_file")),
        ("Pouvez-vous m’envoyer le fichier ?", Command("send_file")),
        ("schick mir diese Datei", Command("send_file")),
        ("Können Sie mir bitte die Datei schicken?", Command("send_file")),
        ("me envie esse arquivo", Command("send_file")),
        ("वह फ़ाइल भेजें", Command("send_file")),
        ("मुझे वो फाइल भेजो", Command("send_file")),
        ("मुझे notes.pdf भेजो", Command("send_file", "notes.pdf")),
        ("woh file bhejo", Command("send_file")),
        ("delete it", Command("delete")),
        ("Please delete that file.", Command("delete")),
        ("delete notes.pdf", Command("delete", "notes.pdf")),
        ("delete the file _notes.pdf", Command("delete", "_notes.pdf")),
        ("/delete price list", Command("delete", "price list")),
        ("notizen.pdf löschen", Command("delete", "notizen.pdf")),
        ("make it private", Command("private")),
        ("make Notes.md private", Command("private", "Notes.md")),
        ("share it with everyone", Command("share")),
        ("compartir lista.pdf", Command("share", "lista.pdf")),
        ("partagez liste.pdf", Command("share", "liste.pdf")),
        ("save this", Command("save")),
        ("Save this, please", Command("save")),
        ("guarda esto", Command("save")),
        ("enregistrez ceci", Command("save")),
        ("speichern Sie das", Command("save")),
        ("salve isso", Command("save")),
        ("इसे सहेजें", Command("save")),
        ("my notes", Command("notes")),
        ("/notes this week #boat", Command("notes", "this week #boat")),
        ("mis notas", Command("notes")),
        ("delete the note", Command("delete")),
        ("delete buy milk and eggs 2026-11-30.md", Command("delete", "buy milk and eggs 2026-11-30.md")),
    ],
)
def test_a_phrase_is_a_command(said: str, command: Command) -> None:
    assert command_of(said) == command


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("note: the gate code is with Marta", "the gate code is with Marta"),
        ("Note : two\n\n- eggs  and\n- milk ", "two\n\n- eggs  and\n- milk"),
        ("note\nbuy milk\n- eggs", "buy milk\n- eggs"),
        ("note:\nbuy milk", "buy milk"),
        ("NOTE：wide", "wide"),
        ("*Note:* bold", "bold"),
        ("\u200fnote: \u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("save: a: b", "a: b"),
        ("nota: comprar pan", "comprar pan"),
        ("note : acheter du pain", "acheter du pain"),
        ("Notiz: Brot kaufen", "Brot kaufen"),
        ("anote: comprar pão", "comprar pão"),
        ("नोट करें: दूध लाना है", "दूध लाना है"),
        ("/note buy milk\nand eggs", "buy milk\nand eggs"),
        ("/nota: pan", "pan"),
        ("note:", ""),
        ("Note", ""),
        ("/note", ""),
        ("note: " + "long " * 20_000, ("long " * 20_000).strip()),
    ],
)
def test_what_follows_the_word_is_a_note_as_it_was_written(said: str, noted: str) -> None:
    assert command_of(said) == Command("note", noted)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "   ",
        "Note that the pool is closed on Monday",
        "Please note: we are closed",
        "Important note: we are closed",
        "a note about the pool: is it open?",
        "save me a seat",
        "http://example.org: what is it?",
        "notes on the pool",
        "I keep this in the drawer",
        "…",
        "/",
        "/nonsense",
        "when does the bus stop?",
        "please help me with my room",
        "delete is a key on the keyboard",
        "why is the sky blue?",
        "share your price list please",
        "can you stop?",
        "could you start the dishwasher?",
        "Stop the music",
        "start of the season",
        "don't cancel my booking",
        "cancel my booking",
        "What is the cancellation policy?",
        "yes",
        "is there a private room?",
        "private room",
        "my data plan is full",
        "forget my birthday",
        "How do I share a file?",
        "I want a person-to-person transfer",
        "one human year is seven dog years",
        "can I speak to a person about my room?",
        "send me the price list",
        "send me that",
        "send the file to my wife",
        "give me a quote from notes.pdf",
        "delete the second page of notes.pdf",
        "what does notes.pdf say?",
        "¿dónde para el autobús?",
        "¿por qué está cerrada la piscina?",
        "ayuda con mi reserva",
        "le bus s'arrête où ?",
        "aide-moi à réserver",
        "warum ist das Zimmer so teuer?",
        "wann hilft mir jemand",
        "preciso de ajuda com a reserva",
        "una persona",
        "uma pessoa",
        "बंद",
        "मेरी मदद कौन करेगा?",
        "help " * 100,
        f"send me {'x' * 300}.pdf",
    ],
)
def test_a_sentence_that_holds_such_a_word_is_none(said: str) -> None:
    assert command_of(said) is None


@pytest.mark.parametrize(
    "said",
    [
        "ＳＴＯＰ",
        "st\u200bop",
        "\ufeffSTOP\u200e",
        " stop \n",
        "*STOP*",
        "¡STOP!",
        "“stop”",
        "STOP 🛑",
        "stop✋",
    ],
)
def test_however_it_is_written_stop_is_stop(said: str) -> None:
    assert command_of(said) == Command("stop")


@given(st.sampled_from(sorted(OPT_OUT | OPT_IN)), st.sampled_from(["{}", "{}!", " {}.", "/{}", "“{}”"]))
def test_opt_words_are_about_being_written_to_whatever_stands_around_them(word: str, form: str) -> None:
    assert command_of(form.format(word.upper())) == Command("stop" if word in OPT_OUT else "start")


def test_no_word_opts_out_and_in_or_is_another_command() -> None:
    assert not OPT_OUT & OPT_IN
    assert not {"cancel", "yes"} & (OPT_OUT | OPT_IN)


@pytest.mark.parametrize("name", NAMES)
def test_a_button_is_a_command_whatever_stands_on_it(name: str) -> None:
    assert command_of("Yes, please", f"cmd:{name}") == Command(name)  # type: ignore[arg-type]  # one of the names
    assert command_of("stop", f"cmd:{name}:a: b.pdf") == Command(name, "a: b.pdf")  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("payload", ["", "cmd:", "cmd:nonsense", "help", "CMD:help", "order:help"])
def test_a_button_of_another_kind_says_what_stands_on_it(payload: str) -> None:
    assert command_of("help", payload) == Command("help")
    assert command_of("Blue", payload) is None


@given(st.text(max_size=400), st.text(max_size=20))
def test_any_text_is_read(text: str, button: str) -> None:
    command = command_of(text, button)
    assert command is None or command.name in NAMES


@given(st.text(alphabet="stop/ ?aSTforgetdelete.pdf all", max_size=40))
def test_an_argument_is_no_white_space_and_only_where_one_is_taken(text: str) -> None:
    command = command_of(text)
    if command:
        assert command.argument == command.argument.strip()
        assert not command.argument or command.name in TAKE_AN_ARGUMENT


def test_the_gateway_can_import_it_without_a_library() -> None:
    loaded = "import sys; before = set(sys.modules); import mesh.commands; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in run.stdout.split()}
    assert names - set(sys.stdlib_module_names) == {"mesh"}
