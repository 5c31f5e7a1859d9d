"""Commands in chat, in six languages: a whole message that is one, never a sentence that merely holds its word.

The gateway imports this: the standard library alone, and nothing that reads a file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

Name = Literal[
    "help",
    "stop",
    "start",
    "cancel",
    "why",
    "mydata",
    "forget",
    "human",
    "files",
    "private",
    "delete",
    "share",
    "send_file",
    "note",
    "save",
    "notes",
]
NAMES: tuple[Name, ...] = get_args(Name)
TAKE_AN_ARGUMENT = frozenset({"forget", "private", "delete", "share", "send_file", "note", "notes"})
ALL = "all"
"""The argument of `forget` for everything; only who writes it in full has it."""

_HEAD = 60
"""In characters: the words before a note's colon are fewer."""
_LONGEST = 300
"""In characters. What is longer, and begins with no slash, is no command."""


@dataclass(frozen=True, slots=True)
class Command:
    """`argument` is a file's name as it was written, what is to be forgotten, or a note with its lines; often empty."""

    name: Name
    argument: str = ""


# ── what is said, a comma between phrases; without accents, which are levelled ────────────────────────────────────────

# Twilio's words but for two: CANCEL interrupts, and YES is small talk.
_STOP = """stop, stopall, stop all, unsubscribe, unsubscribe me, quit, end, revoke, optout, opt out, opt me out,
    stop messages, stop messaging me, stop texting me, stop writing to me, stop sending me messages, baja, darme de
    baja, dame de baja, parar, detener, arret, arrete, arreter, desabonner, desinscription, me desabonner, stopp,
    abmelden, abbestellen, sair, descadastrar, cancelar inscricao, रोकें, रोको, रोकिए, बंद करें, बंद करो, बंद
    कीजिए, संदेश बंद करें"""
_START = """start, unstop, subscribe, optin, opt in, alta, darme de alta, dame de alta, empezar, comenzar, iniciar,
    demarrer, reprendre, commencer, starten, anmelden, comecar, शुरू, शुरू करें, शुरू करो, शुरू कीजिए"""

_ALONE: dict[Name, str] = {
    "help": """help, help me, info, commands, ayuda, ayudame, comandos, aide, aidez-moi, aide-moi, commandes,
        hilfe, hilf mir, befehle, ajuda, me ajuda, मदद, मदद करें, मदद करो, मदद कीजिए, सहायता, madad""",
    "stop": _STOP,
    "start": _START,
    "cancel": """cancel, cancel that, cancelar, cancela, cancelalo, annuler, annule, annulez, abbrechen, abbruch,
        brich ab, रद्द, रद्द करें, रद्द करो, रद्द कीजिए""",
    "why": """why, why did you say that, how do you know, how do you know that, what is your source, sources, por
        que, porque, por que dices eso, como lo sabes, fuente, fuentes, pourquoi, comment le savez-vous, source,
        warum, wieso, weshalb, woher wissen sie das, woher weisst du das, quelle, quellen, fonte, fontes, por que
        voce disse isso, como voce sabe, क्यों, क्यूं, आपको कैसे पता, स्रोत, kyun, kyon""",
    "mydata": """mydata, my data, mis datos, mes donnees, meine daten, meus dados, मेरा डेटा, मेरी जानकारी""",
    "forget": """forget, forget me, forget everything, forget everything about me, delete my data, erase my data,
        erase everything, olvidar, olvidame, olvidalo todo, borra mis datos, borrar mis datos, oublier,
        oubliez-moi, oublie-moi, effacer mes donnees, effacez mes donnees, vergessen, vergiss mich, losche meine
        daten, meine daten loschen, esquecer, me esqueca, apagar meus dados, apague meus dados, भूल जाओ, भूल जाइए,
        भूलें, मुझे भूल जाइए, मेरा डेटा मिटाएं, मेरा डेटा हटाएं""",
    "human": """human, a human, agent, operator, real person, a real person, humano, agente, operador, humain, un
        humain, conseiller, mensch, mitarbeiter, kundendienst, atendente, इंसान, एजेंट""",
    "files": """files, my files, list files, list my files, show my files, documents, my documents, list documents,
        show my documents, archivos, mis archivos, documentos, mis documentos, fichiers, mes fichiers, mes
        documents, dateien, meine dateien, dokumente, meine dokumente, arquivos, meus arquivos, meus documentos,
        फाइलें, मेरी फाइलें, दस्तावेज, मेरे दस्तावेज""",
    "private": """private, privado, privada, prive, privee, privat, निजी, निजी करें, निजी करो""",
    "delete": """delete, borrar, borra, borralo, eliminar, elimina, eliminalo, supprimer, supprime, supprimez,
        supprime-le, supprimez-le, loschen, losche, loeschen, loesche, apagar, apague, apague-o, excluir, exclua,
        हटाएं, हटाओ, हटाइए, मिटाएं, मिटाओ""",
    "share": """share, compartir, comparte, compartelo, partager, partage, partagez, partage-le, partagez-le,
        teilen, teile, compartilhar, compartilhe, साझा, साझा करें, साझा करो, साझा कीजिए""",
    "send_file": """send it to me, send me it, enviamelo, mandamelo, envoyez-le-moi, envoie-le-moi, schick sie mir,
        schicken sie sie mir, me envie ele""",
    "save": """save this, save that, save it, save this message, save this note, save this as a note, save that as a
        note, save it as a note, save as a note, save as note, note this, note that, note it, note this down, note
        that down, note it down, keep this, keep this as a note, guarda esto, guardar esto, guarda eso, guardalo,
        guarde esto, guarda este mensaje, guardalo como nota, guarda esto como nota, anota esto, anotalo, apunta
        esto, apuntalo, enregistre ca, enregistre cela, enregistre ceci, enregistrez ca, enregistrez cela, enregistrez
        ceci, enregistre-le, enregistrez-le, enregistre ce message, enregistrez ce message, enregistre ca comme
        note, note ca, note cela, notez ca, notez cela, note-le, notez-le, garde ca, gardez ca, speichere das,
        speichere dies, speicher das, das speichern, speichern sie das, speichern sie dies, diese nachricht speichern,
        speichere diese nachricht, notiere das, notier das, notieren sie das, als notiz speichern, speichere das als
        notiz, merke das, salva isso, salva isto, salve isso, salve isto, salvar isso, salvar isto, guarda isso,
        guarda isto, guarde isso, guarde isto, guardar isso, salve essa mensagem, salve esta mensagem, anota isso,
        anote isso, anote isto, salve como nota, इसे सेव करो, इसे सेव करें, इसे सेव कर लो, यह सेव करो, यह सेव करें,
        इसे सहेजें, इसे सहेजो, यह सहेजें, इसे नोट करो, इसे नोट करें, इसे नोट कर लो, यह नोट करो, यह नोट करें, ise
        save karo, isko save karo""",
    "notes": """notes, my notes, list notes, list my notes, show notes, show my notes, show me my notes, all my notes,
        notas, mis notas, todas mis notas, mostrar mis notas, muestra mis notas, muestrame mis notas, mes notes,
        toutes mes notes, montre-moi mes notes, montrez-moi mes notes, notizen, meine notizen, alle meine notizen,
        zeig mir meine notizen, zeige meine notizen, minhas notas, as minhas notas, todas as minhas notas, mostre
        minhas notas, minhas anotacoes, नोट्स, मेरे नोट, मेरे नोट्स, मेरी टिप्पणियां, मेरे सारे नोट्स""",
}

_SLASHED: dict[Name, str] = {
    "why": "why, porque, fuentes, sources, pourquoi, warum, quellen, fontes",
    "mydata": "mydata, data, misdatos, mesdonnees, meinedaten, meusdados",
    "human": "human, person, agent, humano, persona, humain, mensch, pessoa",
    "save": "save, guardar, enregistrer, speichern, salvar",
    "send_file": "send, sendfile, send_file, file, get, enviar, archivo, envoyer, fichier, senden, datei, arquivo, भेजें",
}
"""What only a slash makes a command, besides all of the above."""

_NOTED = """note, a note, my note, new note, note to self, note for me, note this, note that, note down, make a note,
    take a note, save, save this, save a note, save as note, save as a note, save this as a note, nota, una nota, nota
    nueva, nueva nota, nota para mi, anota, anotar, anote, apunta, apuntar, guarda, guardar, guarda esto, guarda esta
    nota, anota esto, apunta esto, note pour moi, une note, nouvelle note, noter, notez, noter ceci, note ceci, note
    cela, enregistre, enregistrer, enregistre ceci, enregistrez ceci, notiz, eine notiz, neue notiz, notiz an mich,
    notiere, notieren, notier, speichere, speichern, speichere das, uma nota, nova nota, nota para mim, anotacao,
    anota isto, anote isto, anota isso, anote isso, salva, salvar, salve, salve isto, salve isso, guarde, नोट, एक
    नोट, नया नोट, मेरा नोट, नोट करो, नोट करें, नोट कर लो, यह नोट करो, इसे नोट करो, टिप्पणी, सेव करो, सेव करें,
    सहेजें"""
"""Before a colon: what follows is a note."""
_A_NOTE = (
    "note, a note, new note, nota, una nota, nueva nota, une note, nouvelle note, notiz, neue notiz, uma nota, नोट"
)
"""The same on a line of its own, or after a slash."""

_TALK = """talk to …, speak to …, speak with …, talk with …, chat with …, get me …, i want to talk to …, i want to
    speak to …, i need to talk to …, i need to speak to …, i would like to talk to …, i'd like to talk to …, i'd
    like to speak to …, can i talk to …, can i speak to …, could i talk to …, could i speak to …, let me talk to …,
    i want …, i need …, hablar con …, quiero hablar con …, puedo hablar con …, necesito hablar con …, quisiera
    hablar con …, parler a …, parler avec …, je veux parler a …, je voudrais parler a …, puis-je parler a …, mit …
    sprechen, mit … reden, ich mochte mit … sprechen, ich will mit … sprechen, kann ich mit … sprechen, falar com
    …, quero falar com …, posso falar com …, preciso falar com …, gostaria de falar com …, … से बात, … से बात करें,
    … से बात करनी है, मुझे … से बात करनी है, … से बात करना है, मुझे … से बात करना है, … से बात कराएं, … से बात
    करवाएं"""
_PERSON = """human, a human, a human being, person, a person, real person, a real person, someone, somebody, agent,
    an agent, human agent, a human agent, operator, an operator, staff, support, humano, un humano, persona, una
    persona, una persona real, alguien, un agente, un operador, humain, un humain, personne, une personne,
    quelqu'un, un conseiller, un agent, mensch, einem menschen, einem mitarbeiter, jemandem, einer person, um
    humano, pessoa, uma pessoa, alguem, um atendente, इंसान, किसी इंसान, किसी, किसी व्यक्ति, एजेंट"""

_OF_A_FILE: dict[Name, str] = {
    "private": """private …, make … private, keep … private, privado …, privada …, haz … privado, prive …, privee
        …, rendre … prive, rends … prive, privat …, … privat, mach … privat, mache … privat, machen sie … privat, …
        निजी करें, … निजी करो, … को निजी करें, निजी …, torne … privado, deixe … privado""",
    "delete": """delete …, remove …, erase …, borrar …, borra …, eliminar …, elimina …, supprimer …, supprime …,
        supprimez …, effacer …, effacez …, loschen …, losche …, … loschen, loschen sie …, … loeschen, loeschen …,
        apagar …, apague …, apaga …, excluir …, exclua …, हटाएं …, हटाओ …, … हटाएं, … हटाओ, … हटाइए, … को हटाएं, …
        मिटाएं, … मिटाओ, … हटा दो, … हटा दें""",
    "share": """share …, share … with everyone, make … public, compartir …, comparte …, partager …, partage …,
        partagez …, teilen …, teile …, … teilen, teilen sie …, compartilhar …, compartilhe …, साझा करें …, … साझा
        करें, … साझा करो, … को साझा करें""",
    "send_file": """send me …, send …, give me …, send … to me, enviame …, mandame …, envieme …, pasame …, dame …,
        enviar …, enviarme …, mandarme …, pasarme …, me envias …, me mandas …, envoie-moi …, envoyez-moi …, envoyer
        …, m'envoyer …, donnez-moi …, schick mir …, schicke mir …, schicken sie mir …, sende mir …, senden sie mir
        …, mir … schicken, mir … senden, gib mir …, geben sie mir …, me envie …, me manda …, me mande …, me enviar
        …, me mandar …, envie-me …, envie …, manda …, mande …, me passa …, … भेजें, … भेजो, … भेजिए, … भेज दो, …
        भेज दें, मुझे … भेजें, मुझे … भेजो, मुझे … भेजिए, मुझे … भेज दो, … भेज सकते हैं, मुझे … भेज सकते हैं, …
        bhejo, mujhe … bhejo, … bhej do""",
}
_THE_FILE = """the file, that file, this file, my file, the document, that document, this document, the original,
    the original file, that pdf, the pdf, this pdf, el archivo, ese archivo, este archivo, el documento, ese
    documento, este documento, mi archivo, ese pdf, le fichier, ce fichier, le document, ce document, mon fichier,
    ce pdf, die datei, diese datei, das dokument, dieses dokument, meine datei, o arquivo, esse arquivo, este
    arquivo, o documento, esse documento, este documento, meu arquivo, esse pdf, वह फाइल, वो फाइल, यह फाइल, ये
    फाइल, उस फाइल, इस फाइल, फाइल, वह दस्तावेज, यह दस्तावेज, file, woh file, wo file, yeh file, the note, that
    note, this note, my note, la nota, esa nota, esta nota, mi nota, la note, cette note, ma note, die notiz, diese
    notiz, meine notiz, a nota, essa nota, minha nota, यह नोट, वह नोट, इस नोट, उस नोट, नोट"""
_IT = "it, that, this, that one, this one, esto, eso, ese, este, cela, ca, das, es, isso, isto, esse, इसे, उसे, यह, वह"
"""As good as a file's name for what is done to the file that was just sent; too little to ask for one."""
_CALLED = """the file, the document, file, document, my, the, el archivo, el documento, archivo, documento, le
    fichier, le document, fichier, die datei, das dokument, datei, dokument, o arquivo, o documento, arquivo,
    फाइल"""
"""What may stand before a file's name."""
_EVERYTHING = "all, everything, todo, tout, alles, tudo, सब, सब कुछ"
_SAY_ALL = (
    "forget all, olvidar todo, oublier tout, vergessen alles, alles vergessen, esquecer tudo, सब भूल जाइए, सब भूल जाओ"
)
_POLITE = "please, pls, plz, por favor, porfa, s'il vous plait, s'il te plait, svp, stp, bitte, कृपया"
_ASKING = """can you, could you, can you please, could you please, would you, would you please, puedes, podrias,
    puede, podria, pouvez-vous, pourriez-vous, peux-tu, konnen sie, konnten sie, kannst du, konntest du, voce pode,
    pode, क्या आप"""
"""Before what is to be done with a file; "can you stop?" is no command."""
_CONNECTING = """a, an, of, from, in, on, about, with, and, or, you, your, for, to, that, which, is, are, de, del,
    en, con, y, o, que, para, sobre, un, una, du, des, dans, avec, et, ou, von, aus, im, mit, und, oder, das, der,
    die, den, zu, do, da, no, na, com, e, os, as, um, uma, का, की, के, में, से, और, या, पर"""
"""In a sentence that ends with a file's name; in a name of several words only where it begins with a capital."""

_FILE_NAME = re.compile(
    r"\S.*\.(?:pdf|docx?|md|markdown|txt|rtf|odt|xlsx?|ods|csv|tsv|pptx?|odp|html?|xml|json|ya?ml|eml|epub|tex|"
    r"jpe?g|png|webp|gif|tiff?|ogg|opus|mp3|m4a|amr|wav|mp4|3gp|vcf|zip)",
    re.IGNORECASE,
)
_DATED = re.compile(r".+ \d{4}-\d\d-\d\d(?: \(\d+\))?\.md", re.IGNORECASE)
"""As notes are called, which begin with any word."""
_COLONS = str.maketrans("：﹕꞉", ":::")
_QUESTION_MARKS = re.compile(r"/?[?¿؟]+")
_AROUND = " \t\r\n.,;:!?¡¿…。！？।॥*_~`\"'“”„‘’«»‹›()[]"
_ACCENTS = re.compile("[\u0300-\u036f\u093c\ufe0e\ufe0f]")
"""Of Latin; the dot that few type under a Devanagari letter; and what only chooses how a sign is drawn."""


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────


def command_of(text: str, button: str = "") -> Command | None:
    """`button` is the payload of the one that was pressed: `cmd:<name>`, or `cmd:<name>:<argument>`."""
    if pressed := _pressed(button):
        return pressed
    if _QUESTION_MARKS.fullmatch(_seen(text).strip()):
        return Command("help")
    if (noted := _noted(text)) is not None:
        return Command("note", noted)
    said = _Said.of(text)
    if said.words and said.words[0].startswith("/"):
        return _slashed(said)
    if len(text) > _LONGEST:
        return None
    said = said.without("polite")
    return _alone(said) or _of_a_file(said)


@dataclass(frozen=True, slots=True)
class _Said:
    """A message word by word, as it was written and levelled."""

    written: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Said:
        pairs = [(word, level) for word in text.split() if (level := _level(word))]
        return cls(tuple(word for word, _ in pairs), tuple(level for _, level in pairs))

    def __getitem__(self, part: slice) -> _Said:
        return _Said(self.written[part], self.words[part])

    def without(self, listed: str) -> _Said:
        """Without these phrases at either end."""
        for phrase in _phrases(listed):
            if self.words[: len(phrase)] == phrase:
                return self[len(phrase) :].without(listed)
            if self.words[-len(phrase) :] == phrase:
                return self[: -len(phrase)].without(listed)
        return self

    @property
    def argument(self) -> str:
        return " ".join(self.written).strip(_AROUND.replace("_", ""))


def _pressed(button: str) -> Command | None:
    kind, _, rest = button.partition(":")
    name, _, argument = rest.partition(":")
    return Command(name, argument) if kind == "cmd" and name in NAMES else None


def _noted(text: str) -> str | None:
    """A note as it was written; empty where the word stands alone."""
    first, _, below = text.strip().partition("\n")
    head, colon, rest = (first[:_HEAD].translate(_COLONS) + first[_HEAD:]).partition(":")
    slash = _seen(head).lstrip().startswith("/")
    if colon and _words_of(head.replace("/", "", 1) if slash else head) in _phrases("noted"):
        bold = head.lstrip()[:1] in ("*", "_", "~")  # *note:* is as good
        return f"{rest.lstrip('*_~') if bold else rest}\n{below}".strip()
    if _words_of(first) in _phrases("a note"):
        return below.strip()
    word, _, rest = first.strip().partition(" ")
    if slash and _words_of(word.replace("/", "", 1)) in _phrases("a note"):
        return f"{rest}\n{below}".strip()
    return None


def _words_of(text: str) -> tuple[str, ...]:
    return _Said.of(text).words if len(text) <= _HEAD else ()


def _slashed(said: _Said) -> Command | None:
    """The longest phrase that the words begin with; what follows is the argument."""
    first = said.words[0][1:]
    said = _Said((_seen(said.written[0]).lstrip("/"), *said.written[1:]), (first, *said.words[1:]))[0 if first else 1 :]
    if _slash_words().get(said.words[:1]) == "forget" and said.words[1:] in _phrases("everything"):
        return Command("forget", ALL)
    if exact := _alone(said) or _of_a_file(said):
        return exact
    for length in range(min(len(said.words), 4), 0, -1):
        if name := _slash_words().get(said.words[:length]):
            return Command(name, said[length:].argument if name in TAKE_AN_ARGUMENT else "")
    return None


def _alone(said: _Said) -> Command | None:
    if said.words in _phrases("say all"):
        return Command("forget", ALL)
    if name := _words_alone().get(said.words):
        return Command(name)
    return Command("human") if any(each.words in _phrases("person") for each in _middles(said, "talk")) else None


def _of_a_file(said: _Said) -> Command | None:
    said = said.without("asking")
    for name in _OF_A_FILE:
        for meant in _middles(said, name):
            if meant.words in _phrases("the file") or (name != "send_file" and meant.words in _phrases("it")):
                return Command(name)
            if named := _file_name(meant):
                return Command(name, named)
    return None


def _file_name(said: _Said) -> str:
    called = next((phrase for phrase in _phrases("called") if said.words[: len(phrase)] == phrase), ())
    name = said[len(called) :].argument
    if not _FILE_NAME.fullmatch(name) or (
        not (name[0].isupper() or _DATED.fullmatch(name))
        and any((word,) in _phrases("connecting") for word in said.words[len(called) :])
    ):
        return ""
    return name


def _middles(said: _Said, listed: Name | Literal["talk"]) -> Iterator[_Said]:
    """What stands where `…` does, for each pattern that fits; the longest pattern first."""
    for before, after in _patterns(listed):
        end = len(said.words) - len(after)
        if len(before) < end and said.words[: len(before)] == before and said.words[end:] == after:
            yield said[len(before) : end].without("polite")


# ── levelling ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _seen(text: str) -> str:
    """Full-width forms as the usual ones, without marks of no width."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def _level(word: str) -> str:
    letters = "".join(c for c in _seen(word) if unicodedata.category(c) != "So")  # STOP 🛑
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", letters.casefold()))
    return "".join(bare.replace("’", "'").replace("\u0901", "\u0902").strip(_AROUND).split())


def _split(listed: str) -> list[tuple[str, ...]]:
    """Longest first; envoie-moi is envoie moi, too."""
    every = [each for phrase in listed.split(",") for each in (phrase, phrase.replace("-", " "))]
    phrases = {tuple(_level(word) or word for word in phrase.split()) for phrase in every}
    return sorted(phrases, key=lambda phrase: (-len(phrase), phrase))


@cache
def _phrases(listed: str) -> Mapping[tuple[str, ...], None]:
    """In order, and looked up at once."""
    every = {
        "polite": _POLITE,
        "asking": _ASKING,
        "person": _PERSON,
        "the file": _THE_FILE,
        "it": _IT,
        "called": _CALLED,
        "everything": _EVERYTHING,
        "say all": _SAY_ALL,
        "connecting": _CONNECTING,
        "noted": _NOTED,
        "a note": _A_NOTE,
    }
    return dict.fromkeys(_split(every[listed]))


@cache
def _patterns(listed: Name | Literal["talk"]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    written = _split(_TALK if listed == "talk" else _OF_A_FILE[listed])
    return [(phrase[: (at := phrase.index("…"))], phrase[at + 1 :]) for phrase in written]


@cache
def _words_alone() -> dict[tuple[str, ...], Name]:
    return {phrase: name for name, listed in _ALONE.items() for phrase in _split(listed)}


@cache
def _slash_words() -> dict[tuple[str, ...], Name]:
    slashed = {phrase: name for name, listed in _SLASHED.items() for phrase in _split(listed)}
    return {**slashed, **_words_alone()}


OPT_OUT = frozenset(" ".join(phrase) for phrase in _split(_STOP))
OPT_IN = frozenset(" ".join(phrase) for phrase in _split(_START))
"""As `_level` leaves them. Written alone they are about being written to, and nothing else."""
