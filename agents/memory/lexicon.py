"""The words that memory knows: everyday subjects in English, Spanish and Hindi as concepts, and kinds of values."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from mesh.text import function_words, words

# Words that name one subject, whatever the language. The first word of a line is the concept.
_CONCEPTS = """
name names named called call nombre nombres llamo llama llaman llamame llámame नाम नामक goby surname apellido
home live lives living lived reside resides residing house address moved move moving based vivo vive vives viven vivir
 vivimos casa hogar dirección domicilio mudé mude रहता रहती रहते घर पता मकान
work works working worked job jobs profession occupation career employer employed trabajo trabaja trabajas trabajamos
 profesión oficio empleo dedico काम नौकरी पेशा
birthday birthdate birthdays born bday cumpleaños nací naci nacimiento जन्मदिन जन्म पैदा
age edad aged उम्र आयु
favourite favorite favourites favorites fav favorito favorita favoritos favoritas preferido preferida पसंदीदा मनपसंद
like likes liked love loves loved enjoy enjoys fond gusta gustan encanta encantan gustaba पसंद hate hates hated
 dislike dislikes loathe detest odio detesto नापसंद नफ़रत नफरत
prefer prefers preferred preference preferences prefiero prefiere preferencia
allergy allergic allergies alergia alergias alérgico alérgica alergico alergica एलर्जी
diet diets dieta आहार
marital
speak speaks hablo habla बोलता बोलती language languages idioma idiomas भाषा
colour color colours colors colores रंग
food foods dish comida plato खाना भोजन
book books libro libros किताब
film films movie movies película películas pelicula फिल्म फ़िल्म
song songs canción गाना
sport sports deporte खेल
hobby hobbies pastime afición hobby शौक
dog dogs puppy retriever labrador poodle bulldog beagle spaniel terrier dachshund husky perro perra perros कुत्ता कुत्ते
cat cats kitten gato gata gatos बिल्ली
pet pets mascota mascotas पालतू
sister sisters hermana hermanas बहन
brother brothers hermano hermanos भाई
mother mom mum mama mamá madre mommy माँ मां माता मम्मी
father dad papa papá padre daddy पिता पापा
parent parents padres
son sons hijo बेटा बेटे
daughter daughters hija बेटी
child children kid kids hijos niños बच्चे बच्चा बच्चों
wife esposa mujer पत्नी
husband esposo marido पति
partner pareja girlfriend boyfriend novia novio fiancé fiance fiancee fiancée
friend friends amigo amiga दोस्त
boss manager jefe jefa
doctor gp physician médico médica medico डॉक्टर
dentist dentista
therapist terapeuta
teacher profesor profesora maestro शिक्षक अध्यापक
grandmother grandma granny abuela दादी नानी
grandfather grandpa abuelo दादा नाना
uncle tío चाचा मामा
aunt tía चाची मौसी
cousin primo prima
nephew sobrino
niece sobrina
neighbour neighbor vecino vecina पड़ोसी
phone telephone mobile cell cellphone teléfono telefono móvil celular फोन फ़ोन मोबाइल
number numbers número numero नंबर संख्या
email mail correo ईमेल
room rooms habitación habitacion cuarto कमरा कमरे
car cars coche carro कार गाड़ी
flight flights vuelo उड़ान फ्लाइट
train tren ट्रेन
appointment appointments cita अपॉइंटमेंट
meeting meetings reunión reunion बैठक मीटिंग
checkout salida चेकआउट
checkin llegada
wedding boda शादी विवाह
anniversary aniversario सालगिरह
school escuela colegio स्कूल
university college universidad विश्वविद्यालय
team equipo टीम
coffee café cafe कॉफी कॉफ़ी
tea té चाय
size talla साइज
shoe shoes zapato zapatos जूते
medicine medication medications medicines pills medicina medicamento दवा दवाई
passport pasaporte पासपोर्ट
company empresa कंपनी
origin hometown origen
country país pais देश
religion religión धर्म
blood sangre रक्त खून
height altura estatura कद
weight peso वज़न वजन
seat seats asiento सीट
"""

BEINGS = frozenset(
    [
        "dog",
        "cat",
        "pet",
        "sister",
        "brother",
        "mother",
        "father",
        "parent",
        "son",
        "daughter",
        "child",
        "wife",
        "husband",
        "partner",
        "friend",
        "boss",
        "doctor",
        "dentist",
        "therapist",
        "teacher",
        "grandmother",
        "grandfather",
        "uncle",
        "aunt",
        "cousin",
        "nephew",
        "niece",
        "neighbour",
    ]
)
ATTRIBUTES = frozenset(
    [
        "name",
        "home",
        "work",
        "birthday",
        "age",
        "favourite",
        "like",
        "prefer",
        "allergy",
        "diet",
        "marital",
        "speak",
        "number",
        "phone",
        "email",
        "usedto",
    ]
)
"""Concepts that say which side of somebody a statement is about, wherever in the sentence they stand."""
ONE_ONLY = frozenset(
    [
        "name",
        "home",
        "work",
        "birthday",
        "age",
        "favourite",
        "diet",
        "marital",
        "number",
        "phone",
        "email",
        "size",
        "height",
        "weight",
        "blood",
        "religion",
    ]
)
"""A person has one of these at a time: another value replaces the one before."""
MANY = frozenset(["like", "allergy", "speak", "hobby", "medicine", "usedto"])

_IMPLIED = {  # words that are a value, and by that name their subject
    "diet": """vegetarian vegan pescatarian veggie omnivore vegetariano vegetariana vegano vegana halal kosher coeliac
     celiac keto शाकाहारी मांसाहारी""",
    "marital": "married single divorced widowed engaged casado casada soltero soltera divorciado विवाहित शादीशुदा",
}
_PHRASES = (  # what several words say together
    (r"\byears? old\b|\bhow old\b|\bcu[aá]ntos años\b|\baños de edad\b", " age "),
    (
        r"\b(?:turned|turning|i am|i'm|tengo) (?=\d{1,3}\b(?! (?:kids|child|cats|dogs|sis|bro|hij"
        r"|herman))(?:\s*(?:now|today|already)?\s*$|\s*años))",
        " age ",
    ),
    (r"\bturn(?:ed|ing|s) (?=\d{1,3}\b(?! \w+s\b))|\bturned (?=\d{1,3} years)", " age "),
    (r"\baddress me\b", " name "),
    (r"\bdate of birth\b|\bfecha de nacimiento\b", " birthday "),
    (r"\bfor a living\b|\bme dedico\b", " work "),
    (
        r"\b(?:work|works|working|worked|employed) (?:at|for|in|with)\b|\btrabaj[oa] (?:en|para)\b",
        " work workplace ",
    ),
    (r"\b(?:like|love|enjoy)s? (?:the )?(?:best|most)\b|\bmás me gusta\b", " favourite "),
    (r"\b(?:go|goes|went) by\b", " name "),
    (r"\bused to\b|\bformerly\b|\bantes\b", " usedto "),
    (r"\be-?mail(?: address)?\b|\bcorreo(?: electrónico)?\b", " email "),
    (r"\bcheck(?:ing)?[- ]out\b", " checkout "),
    (r"\bcheck(?:ing)?[- ]in\b", " checkin "),
    (r"\b(?:am i|are we) from\b|\b(?:do|did) (?:i|we) come from\b|\bde d[oó]nde soy\b", " origin "),
    (r"\bteams? (?:do|does|did) (?:i|we) (?:support|follow|root for|like)\b", " favourite team "),
    (r"\bdo (?:i|we) drive\b", " car "),
    (r"\broom number\b|\bn[uú]mero de (?:la )?habitaci[oó]n\b|कमरा नंबर|कमरे का नंबर", " room "),
    (r"\bwho am i\b|\bquién soy\b|\bquien soy\b", " name "),
    (r"(?<=\s)(?:can't|cannot|can not) stand\b", " hate "),
    (r"\bstay(?:ing)? in room\b", " room "),
    (r"\blook(?:s|ing)? after\b", " care "),
)
_NUMBERS = """one un uno una एक|two dos दो couple|three tres तीन|four cuatro चार|five cinco पाँच पांच|six seis छह
|seven siete सात|eight ocho आठ|nine nueve नौ|ten diez दस|eleven once|twelve doce"""

_SILENT = """
 now currently actually also too just really anymore longer still always today new nowadays please ya ahora hoy
 actualmente también अब भी आजकल remember know knows tell told say said mention mentioned recall sabes sabe
 recuerdas recuerda dije dicho याद बताया बताओ जानते पता_है something anything everything thing things stuff algo
 nada least ever yet again got get gets getting go goes going attend attends good best exactly kind type sort
 actual current latest recent recently last change changed changes switched become became hai name_is ser estar
 yes no not never dont doesnt didnt isnt arent wasnt wont cant yourself myself want need hey hello hi ok okay
 thanks like_to to_be"""
_TYPES = """city town place country kind type day date time year month instrument song breed language thing
 ciudad sitio lugar día fecha hora año शहर जगह दिन तारीख समय drink drinks eat eats beber bebo comer como"""

_DATE = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:january|february|march|april|may|june|july|august|september"
    r"|october|november|december|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)(?=\W|$))|tomorrow|tonight|today"
    r"|lunes|martes|miércoles|jueves|viernes|sábado|domingo|enero|febrero|marzo|abril|mayo|junio|julio|agosto"
    r"|septiembre|octubre|noviembre|diciembre|mañana|christmas(?: day| eve)?|easter|diwali|holi|eid"
    r"|thanksgiving|navidad"
    r"|valentine'?s day|new year'?s(?: day| eve)?|(?:in|since|from|desde|en) (?:19|20)\d\d"
)
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun"
    r"|jul|aug|sept?|oct|nov|dec|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre"
    r"|diciembre)"
)
_HINDI_DAY = (
    "सोमवार|मंगलवार|बुधवार|गुरुवार|शुक्रवार|शनिवार|रविवार|जनवरी|फरवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|अक्टूबर|नवंबर|दिसंबर|कल"
)
_COLOURS = (
    "red blue green teal yellow orange purple pink black white grey gray brown violet indigo turquoise maroon navy "
    "beige gold silver crimson magenta cyan lavender lilac burgundy azul verde rojo roja amarillo negro blanco gris "
    "morado rosa naranja marrón नीला हरा लाल पीला काला सफेद सफ़ेद गुलाबी बैंगनी नारंगी भूरा"
)


def any_of(listed: str) -> str:
    return r"(?<!\w)(?:" + "|".join(sorted(listed.split(), key=len, reverse=True)) + r")(?![\w\u0900-\u097f])"


SPANS: dict[str, re.Pattern[str]] = {
    "day": re.compile(
        rf"\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of| de)? {_MONTH}\b(?:,? \d{{4}})?"
        rf"|\b{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\b\d{{4}}-\d\d-\d\d\b"
        rf"|\b\d{{1,2}}[/.]\d{{1,2}}(?:[/.]\d{{2,4}})?\b|\d{{1,2}} (?:{_HINDI_DAY})|\b(?:{_DATE})\b"
        rf"|(?:{_HINDI_DAY})"
        r"|\bthe \d{1,2}(?:st|nd|rd|th)\b",
        re.IGNORECASE,
    ),
    "clock": re.compile(
        r"\b\d{1,2}(?:[:.]\d\d)? ?(?:a\.?m\b\.?|p\.?m\b\.?|o'clock)|\b\d{1,2}:\d\d\b|\b(?:noon|midnight|mediodía)\b"
        r"|\d{1,2}(?::\d\d)? बजे|\blas \d{1,2}(?::\d\d)?\b",
        re.IGNORECASE,
    ),
    "daypart": re.compile(
        any_of("morning mornings afternoon afternoons evening evenings nights night mañanas tardes noches"),
        re.IGNORECASE,
    ),
    "colour": re.compile(any_of(_COLOURS), re.IGNORECASE),
    "side": re.compile(any_of("window aisle middle ventana pasillo"), re.IGNORECASE),
    "drink": re.compile(any_of("tea coffee water juice beer wine té café चाय कॉफी कॉफ़ी"), re.IGNORECASE),
    "number": re.compile(
        r"\b[A-Za-z]{1,3}-?\d[\w-]*|\+?\d[\d\s().-]*\d[A-Za-z]?\b|\d+[A-Za-z]?\b|\d+|"
        + any_of(_NUMBERS.replace("|", " ").replace(" un ", " ").replace(" una ", " ")),
        re.IGNORECASE,
    ),
}

NAME = re.compile(r"(?<=\s)(?!I\b)[A-ZÀ-Þ][\w'’.-]+")
DEVANAGARI = re.compile(r"[\u0900-\u0963\u0966-\u097f]+")


def tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("’", "'").replace("‘", "'")).strip().strip(' .!;,…।?¿¡"“”')


@lru_cache(maxsize=1)
def _listed() -> tuple[tuple[str, list[str]], ...]:
    lines = re.sub(r"\n ", " ", _CONCEPTS.strip()).splitlines()
    numbers = ((str(number), line.split()) for number, line in enumerate(_NUMBERS.split("|"), start=1))
    return (*((line.split()[0], line.split()) for line in lines), *numbers, ("workplace", ["workplace"]))


@lru_cache(maxsize=1)
def _lexicon() -> dict[str, str]:
    """Index term → concept."""
    found: dict[str, str] = {}
    for concept, listed in _listed():
        for word in listed:
            if not DEVANAGARI.search(word):
                found |= {term: concept for term in words(word) if term not in found}
    return {term: concept for term, concept in found.items() if term not in function_words()}


@lru_cache(maxsize=1)
def _hindi() -> dict[str, str]:
    """Whole Hindi words → concept: their stems are too short to tell a brother from a suffix."""
    return {
        unicodedata.normalize("NFKC", word): concept
        for concept, listed in _listed()
        for word in listed
        if DEVANAGARI.search(word)
    }


@lru_cache(maxsize=1)
def implied() -> dict[str, str]:
    return {term: concept for concept, listed in _IMPLIED.items() for term in words(listed)}


@lru_cache(maxsize=1)
def _quiet() -> frozenset[str]:
    kept = {term for term in words("like love work home name age") if term in _lexicon()}
    return (function_words() | frozenset(words(_SILENT))) - kept


@lru_cache(maxsize=1)
def types() -> frozenset[str]:
    return frozenset(words(_TYPES))


@lru_cache(maxsize=2048)
def concepts(text: str) -> tuple[str, ...]:
    """Concepts and content words in reading order, without function words."""
    for pattern, meaning in _compiled():
        text = pattern.sub(meaning, text)
    text = re.sub(r"\S+@\S+", lambda address: re.sub(r"\W", "", address[0]), text)
    text = re.sub(r"(\d+)(?:st|nd|rd|th)\b", r"\1", text)
    text = DEVANAGARI.sub(lambda word: _hindi().get(word[0], word[0]), unicodedata.normalize("NFKC", text))
    lexicon, quiet = _lexicon(), _quiet()
    return tuple(lexicon.get(term, term) for term in words(text) if term in lexicon or term not in quiet)


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in _PHRASES)


def known(term: str) -> bool:
    return term in _lexicon().values()


def kinds_in(text: str) -> frozenset[str]:
    found = {kind for kind, pattern in SPANS.items() if pattern.search(text)}
    if found & {"day", "clock"}:
        rest = SPANS["clock"].sub(" ", SPANS["day"].sub(" ", text))
        if not SPANS["number"].search(rest):
            found.discard("number")
    if NAME.search(SPANS["day"].sub(" ", text)):
        found.add("name")
    return frozenset(found)
