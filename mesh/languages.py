"""Which language a text is in: by its script, its function words, and what tells it from its neighbours."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import regex

APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "‘": "'", "`": "'", "´": "'"})

# Words of one language that carry meaning in another (war, die, son, dos, era) are left out on purpose.
FUNCTION_WORDS = {
    "en": """a about also am an and any are as at be been but by can could did do does doing for from had has
    have he her hers him his how i if in into is it its itself just me my no nor not of on or our ours out
    please shall she should so some such than that the their them then there these they this those to too
    was we were what when where which while who whom whose why will with would you your yours
    dont doesnt didnt cant isnt arent wasnt im ive id youre whats wheres hows tell""",
    "es": """al algo algun alguna algunas algunos como con cual cuales cuando cuanta cuantas cuanto cuantos de
    del desde donde el ella ellas ellos en entre eran es esa esas ese eso esos esta estan estas este esto
    estos estaba fue fueron ha han hay hasta la las le lo los mas mi mis muy ni o para pero por porque puede
    pueden puedo que quien quienes se ser si sobre su sus tambien te tiene tienen tengo tu tus un una unas
    unos usted ustedes y ya yo hacia""",
    "hi": """का की के को में से पर ने है हैं था थी थे हो होता होती होते और या एक यह वह ये वे इस उस इन उन क्या कौन
    कब कहाँ कहां कैसे कितना कितनी कितने किस किसी किसने किसका किसके किसकी जो तो भी ही तक लिए साथ द्वारा कर
    करने करता करते करना किया गया गई गए कि जा मैं हम आप मेरा मेरे मेरी हमारे आपके आपका आपकी अपने अपनी कोई
    कुछ नहीं रहा रहे रही सकता सकते सकती हूँ हूं बारे बाद होगा क्यों कौनसा
    kya hai hain mein kitna kitne kitni kab kahan kaise kaun nahi mujhe sakte sakta milta milega hoga""",
    "fr": """aux avec ce ces cette dans des du elle est et eux il ils je leur lui mais mes ne nous ou pas qu
    quand quel quelle quels quelles qui ses sont une vos votre vous combien comment quoi""",
    "de": """aber als auf aus bei bis bist das dass dem den der ein eine einem einen einer er fur haben ich
    ihr im ist mit nach nicht noch nur oder sich sie sind und uns von vor wann wer wie wir wird wo zu zum
    zur""",
    "pt": """ao aos as com como da das do e ela ele em essa esse foi isso na nao os ou pela pelo qual quando
    quanto quantos quem sao sem seu sua tem um uma voce""",
}
# Besides the function words, which every search leaves out: words that tell a language and may well be what is asked
# about. Many stand with several languages. Written with an accent it counts only with that accent.
_TELLING = {
    "en": """hello hi hey thanks thank yes no morning evening good much many any there here not now later again also
    need want like get got know see work works open close closed price cost room book help sorry before after during
    between under over they going been let make made take say said old long first last new what's it's i'm there's
    where's all ask anything anyone something someone everyone nothing back right name called born die war eu
    welcome tomorrow today yesterday never always another other every each one two very too because until""",
    "es": """hola buenos buenas gracias adios saludos si no nada bueno buena bien aqui ahi alli ahora despues antes
    luego hoy manana ayer nunca siempre cada otro otra otros otras mismo misma nos nosotros vosotros les sin a e u
    aunque mientras donde cuesta vale quiero quiere quieren necesito necesita puedes podria quisiera hacer hace
    tener hay soy eres somos esta estoy estamos habia sido dime dice dijo cuentame abren cierran abierto cerrado
    funciona viene llegar llego llega años año mes día dos recuerda envio pedido precio queria ¿ ¡ qué cuál cuáles
    cómo dónde cuándo quién quiénes cuánto cuánta cuántos cuántas más sí él mí tú aquí ahí allí todo todos todas
    ninguna ningun entonces tampoco ti conmigo he has hemos van va voy eso algo incluye está están me día días
    nuestro nuestra nuestros nuestras dos cuyo según cada ayuda baja borrar olvidar archivo archivos compartir""",
    "fr": """bonjour bonsoir salut merci oui non bien a à au de la le les l' d' j' c' n' s' qu' m' t' jusqu' lorsqu'
    je tu on me te se y où ça cela celui celle en par sur sous chez entre depuis pendant avant apres mon ma mes ton
    ta son notre leurs êtes suis sommes avez avons ai as ont fait faire faut peut peux puis pouvez voudrais veux
    veut aimerais dois doit était sera plus moins très aussi alors donc car si que ni tout tous toute toutes rien
    jamais toujours encore pourquoi laquelle lequel lesquels ici hier demain aujourd'hui s'il il pas quelqu'un deux
    jour heure mois chambre besoin ouvert ouverts fermé dit es ferme voici voilà aucun aucune sans été autre autres
    même elles peuvent être plusieurs fois nos jours dont ainsi chaque aide arrêt arret oublier fichier fichiers
    supprimer partager privé annuler reprendre""",
    "de": """hallo guten danke bitte ja nein gut hier dort jetzt später heute morgen gestern immer nie schon auch
    sehr mehr was gibt es man wird wurde werden kann können könnten kannst darf dürfen muss müssen möchte will
    wollen soll habe hat hatte bin sind seid mein meine meinen meiner meinem dein deine ihre ihren unser unsere
    diese dieser dieses kein keine keinen doch wenn weil dann denn für über unter zwischen gegen ohne durch während
    warum wieso welche welcher welches wieviel viel viele etwas jemand alles ins zwei drei uhr zimmer kostet
    funktioniert dabei brauche braucht zeigen sagen sagt sagte schicken die war so wohin woher alle gern neu neue
    des dessen name namen mal hilfe stopp löschen datei dateien teilen vergessen abbrechen privat""",
    "pt": """olá oi bom boa obrigado obrigada tchau sim não nada bem aqui ali agora depois antes hoje amanhã ontem
    nunca sempre cada outro outra mesmo mesma nos nós eu vocês eles elas meu minha meus minhas nosso nossa deles
    delas me te lhe a e o é à às num numa sem até após desde entre sobre mas mais muito muita também já ainda só que
    onde quais quê cadê porque quero quer querem preciso precisa posso pode podem gostaria devo deve fazer faz ter
    temos têm tinha sou somos estou está estão são foi fui era será vou vai vem fica ficam tenho há dois duas fale
    fala diz disse lembre abre abrem fecha aberto fechado funciona custa chego chega mês dia ano anos tempo alguém
    para por se do da ou este esta estes estas esses isto aquele aquela todo todos todas tudo algo nenhum nenhuma
    novo nova qualquer nisso nele dele seus suas consigo consegue envie mande escreva diga tente pergunte jeito
    daqui inclui de dos cujo segundo conforme ao pelos pelas nas nos dia dias está estar ajuda sair apagar arquivo
    arquivos compartilhar esquecer""",
    "hi": """namaste dhanyavad shukriya haan nahin main aap tum hum mera meri mere apna apni apne hamara aapka aapki
    yeh ye woh wo ki ke ko se par aur ya bhi tha thi ho hoga hoti hota karna karni karo kijiye batao bataiye chahiye
    milta milti kyun kyu kidhar yahan wahan abhi baad kal aaj din saath liye wala wali raha rahi gaya gayi sakti
    diya ek do logon madad""",
}
_LETTERS_TELL = {
    "es": r"[ñ¿¡]|ci[oó]n(es)?\b|\p{L}{3}dad(es)?\b|[íóúá]|\p{L}{2}[ai]d[oa]s?\b",
    "fr": r"[èùûîœëï]|\p{L}eaux?\b|[êâôç]",
    "de": r"[äöß]|\p{L}{3}(ung|keit|heit|lich)(en)?\b|ü",
    "pt": r"[ãõ]|\bo que\b|\p{L}{2}dades?\b|[ln]h[aeo]s?\b|[íóúáêâôç]|\p{L}{2}[ai]d[oa]s?\b",
}
"""Each is worth half a word of that language."""
_SPOKEN = regex.compile(r"[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*|[¿¡]")
_SCRIPTS = {
    "hi": r"\p{Devanagari}",
    "ar": r"\p{Arabic}",
    "ja": r"[\p{Hiragana}\p{Katakana}]",
    "ko": r"\p{Hangul}",
    "zh": r"\p{Han}",
    "th": r"\p{Thai}",
    "ru": r"\p{Cyrillic}",
    "el": r"\p{Greek}",
    "he": r"\p{Hebrew}",
}


@lru_cache(maxsize=1)
def _telling() -> dict[str, set[str]]:
    """The languages that a word is of."""
    listed: dict[str, set[str]] = {}
    for every in (FUNCTION_WORDS, _TELLING):
        for code, each in every.items():
            for word in each.split():
                listed.setdefault(word, set()).add(code)
    return listed


def _tellers(text: str) -> Iterator[str]:
    """Words, and of those with an apostrophe both halves, too."""
    for found in _SPOKEN.finditer(text):
        word = found.group()
        head, quote, tail = word.partition("'")
        if not quote or word in _telling():
            yield word
        elif f"{head}'" in _telling():
            yield f"{head}'"
            yield from _tellers(tail)
        else:
            yield head if tail == "s" else word.replace("'", "")


@lru_cache(maxsize=1 << 14)
def _bare(word: str) -> str:
    """Without accents."""
    return unicodedata.normalize("NFC", regex.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFD", word)))


def language(text: str) -> str | None:
    """A two-letter guess by script, then by the words and letters that tell; None where they do not ("wifi password").
    /help and /why are everybody's."""
    letters = len(regex.findall(r"\p{L}", text))
    for code, script in _SCRIPTS.items():
        if 2 * len(regex.findall(script, text)) >= max(letters, 1):
            return code
    spoken = unicodedata.normalize("NFC", text.translate(APOSTROPHES)).casefold()
    spoken = regex.sub(r"^\s*/(?:help|why)\b", "", spoken)
    told = dict.fromkeys(FUNCTION_WORDS, 0.0)
    for code, form in _LETTERS_TELL.items():
        told[code] += 0.5 * len(regex.findall(form, spoken))
    for word in _tellers(spoken):
        for code in _telling().get(word) or _telling().get(_bare(word)) or ():
            told[code] += 1
    best, second = sorted(told, key=lambda code: -told[code])[:2]
    return best if told[best] > told[second] else None
