"""How people begin, ask, correct themselves and say what is soon over: what extraction goes by, in English, Spanish and
Hindi."""

from __future__ import annotations

import re


def _starts(*listed: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:{'|'.join(listed)})", re.IGNORECASE)


PAUSE = r"(?:\s*[,.:;!…—–-]+\s*|\s+)"
GREETING = _starts(
    rf"(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening|day)|dear \w+|thanks?(?: you)?(?: so much"
    rf"| a lot)?|(?:cheers|great|well|right|sure|oh no)(?=\s*[,.:;!…—–-])"
    rf"|ok(?:ay)?|oh|ah|yes|yeah|yep|yup|so|and|also|but|plus|btw|by the way|fyi"
    rf"|for the record|in case it helps"
    rf"|just so you know|hola|oye|buenos días|buenas|gracias|sí|por cierto|además|y|bueno|por favor|please"
    rf"|pls|नमस्ते|हाँ|और"
    rf"|कृपया|धन्यवाद|वैसे)(?: there| again| everyone| all)?{PAUSE}"
)
HEDGE = _starts(
    r"(?:i (?:think|believe|guess|suppose|reckon)(?: that)?|i (?:told|said to) you(?: that)?"
    r"|did i mention(?: that)?|let me tell you(?: that)?"
    r"|(?:just )?(?:so )?you know(?: that)?|creo que|मुझे लगता है कि) (?=(?:i|i'm|my|we|our|mi|soy|मेर[ाीे]"
    r"|मैं)\b)",
    rf"(?:a |one |another |quick |small |just |more |last |final )*(?:update|note|thing|heads up|fact|info"
    rf"|change)\s*[:,]{PAUSE}?",
)
REMEMBER = _starts(
    r"(?:could you |can you |would you |will you |i (?:want|need|would like|'d like) you to |i'd like you to "
    r"|you (?:should|must|can) )?"
    r"(?:please |pls |kindly |always |also )*(?:remember|keep in mind|bear in mind|note|note down|make a note"
    r"|take note|write down"
    r"|don't forget|do not forget|never forget|memori[sz]e|save(?: this)?|store(?: this)?|know"
    r"|let me tell you|let it be known)"
    r"(?: for (?:me|later|next time|the future))?(?:\s*[:,—-]\s*| that (?!i (?:asked|told))| (?=(?:i|i'm|my"
    r"|we|our|the|his|her)\b))",
    rf"(?:por favor,? )?(?:recuerda|recuerde|ten en cuenta|anota|apunta|no olvides|toma nota de)(?: que|:"
    rf"|,){PAUSE}?",
    r"(?:कृपया )?(?:याद रख(?:ना|ें|ो|िए|िएगा)|ध्यान (?:रखें|रखना|रखो)|नोट (?:करें|कर लें|करो))(?:,? कि|:|,|\s)\s*",
)
NOT_A_NOTE = _starts(
    r"(?:please |can you |could you )*(?:remember|remind|don't forget|do not forget|recuerda) (?:to|me|us|it|de)\b"
)
CORRECTING = _starts(
    rf"(?:(?:oh|ah|hm+|oops|ups|whoops|wait|no wait|hold on|hang on|um+|uh|er)\b{PAUSE}?|\s)*"
    rf"(?:actually|correction|to correct myself|let me correct (?:that|myself|this)|i (?:have to|need to|must"
    rf"|want to|should)"
    rf" correct (?:that|myself|this|something)|sorry|apologies|my (?:mistake|bad|apologies)"
    rf"|i (?:made a mistake|was wrong"
    rf"|misspoke|mistyped|made an error|got that wrong|said that wrong|take that back"
    rf"|was mistaken)(?: (?:about|earlier|before|there)(?: \w+){{0,3}}?)?"
    rf"|i gave you (?:the|a) wrong \w+|that was (?:the|a) wrong \w+|wrong (?:number|address|date|name|day"
    rf"|time)(?=[,.:;!])|(?:a )?(?:slight |small |quick )?change of plans?|(?:the |my |our )?plans?(?:'ve| have"
    rf"| has)? changed"
    rf"|i(?:'ve| have)? changed my mind|(?:please )?(?:change|update|correct) (?:that|it|this)(?: to)?"
    rf"|scratch that|strike that"
    rf"|forget (?:that|what i said)|ignore (?:that|what i said)|that(?:'s| is| was) (?:wrong|not right"
    rf"|incorrect|a mistake|a typo|an error)"
    rf"|typo|update|oops|whoops|wait|no wait|nope|i meant(?: to (?:say|write|type))?|i mean|rather"
    rf"|make (?:that|it)|en realidad"
    rf"|perdón|perdona|lo siento|corrección|quise decir|quería decir|mejor dicho|me equivoqué|cambio|rectifico"
    rf"|error mío|espera|असल में"
    rf"|दरअसल|माफ़? ?(?:करें|करना"
    rf"|कीजिए)|माफ (?:करें|करना|कीजिए)|सुधार|मेरा मतलब(?: है| था)?(?: कि)?|गलती हो गई|नहीं)(?:{PAUSE}|$)",
    r"(?:no|not anymore)(?:\s*[,.:;!…—–-]+\s*|\s+(?=(?:it|that|i|my|our|we|the|wait|sorry|actually|mi|es)\b)|$)",
)
UNCAPPED = re.compile(r"(?<=\w{3}[.!?]) +(?=[a-zà-ÿ¿¡])")
"""Sentences of people who write without capitals."""
CLAUSES = re.compile(
    r"(?:,? (?:and|but|also|plus)(?: that| also| now)? |[,;] |\s[—–-] |,? so )(?=(?:i|i'm|i've|my|we|we're|we've"
    r"|our|call me|he's|she's|he is|she is|they're|they are)(?!\w))"
    r"|(?:,? (?:y|pero) |[,;] )(?=(?:mi|mis|soy|vivo|tengo|trabajo|me (?:llamo|gusta|encanta)|prefiero)\b)"
    r"|[,;] (?=the \w+(?: \w+)? (?:is|are|has|was)\b)"
    r"|(?:,? और |, )(?=(?:मेर[ाीे]|मैं|मुझे|हमार[ाीे])\s)|; ",
    re.IGNORECASE,
)
SHARED = re.compile(
    r"((?<!\w)I(?:'m|'ve)? [^.?!]{2,80}?),? (?:and|but) (?:now |also )*(live|work|study|prefer|love|like|hate"
    r"|play|speak|drive|moved to|don't)\b",
    re.IGNORECASE,
)
QUESTION = _starts(
    r"(?:what|when|where|who|whom|whose|why|which|how|is|are|am|was|were|do|does|did|can|could|will|would"
    r"|shall|should|may|might"
    r"|have (?:you|we|i)|has|had|any|qué|cuál|cuáles|cuándo|dónde|quién|cómo|cuánt[oa]s?|por qué|puedo|puedes"
    r"|podría|tienen|hay)\b",
    r"क्या(?:\s|$)",
)
HINDI_QUESTION = re.compile(r"(?:^|\s)(?:क्या|कब|कहाँ|कहां|कौन|कितन[ाेी]|कैसे|क्यों|किस)(?:\s|$)")
REQUEST = _starts(
    r"(?:i|we)(?:'m| am|'re| are)? (?:really |just |also |only |still |now )*(?:want(?:ed)?|would|wish|hope"
    r"|hoping|wonder(?:ing)?|looking"
    r"|trying|asking|calling|writing|texting|interested|curious|think|thought|guess|suppose|believe|know|knew"
    r"|see|saw|understand"
    r"|understood|agree|mean|meant|ask|asked|feel|felt|thank|appreciate|apologi[sz]e|will|shall|should|must"
    r"|may|might|could|did|promise"
    r"|bet|hear|heard|get(?! married)|tried|said|told|swear|say|found|forgot|lost my (?:link|password)"
    r"|can(?!'t|not| speak| swim| drive| only eat"
    r"| eat| play| cook| read))\b",
    r"(?:i|we)'(?:d|ll)\b",
    r"(?:i|we)(?: do not| don't| didn't| did not| can't| cannot)(?: really)? (?:know|understand|think|want"
    r"|see|need|remember|have (?:time|any idea)"
    r"|find|get|care|mind|believe|recall|agree|feel)\b",
    r"(?:i|we)(?:'ve| have)(?: still| also)? (?:a|an|another|some|one|no|any|two|the)? ?(?:quick |small "
    r"|other |more |urgent )*(?:questions?|problems?"
    r"|issues?|complaints?|doubts?|requests?|query|idea|ideas|time|minute|second|headache|trouble|feedback"
    r"|reservation here)\b",
    r"(?:i|we)(?:'ve| have) (?:just |already |not |never |been |also )*(?:been(?! married| living| working"
    r"| diagnosed| vegan| vegetarian| studying)|paid|sent|received|got your"
    r"|arrived|tried|read|seen|heard|asked"
    r"|booked|ordered|waited|lost|forgotten|noticed|checked|finished|attached|made|done|tested|had)\b",
    r"(?:i|we) have(?:n't| not)\b|(?:i|we) have to\b",
    r"(?:me gustaría|quiero|quisiera|necesito|querría|estoy buscando|tengo (?:una? |otra )?(?:pregunta|duda"
    r"|problema|hambre|sed|prisa|sueño|frío"
    r"|calor|que)|no (?:sé|entiendo|puedo|quiero|tengo tiempo)|creo|pienso|soy yo|ya sé)\b",
    r"(?:मुझे|हमें) .*(?:चाहिए|चाहती|जानना|बताइए|बताओ|बताएं|पता नहीं)",
    r"(?:मैं|हम) .*(?:चाहता|चाहती|चाहते|पूछना|जानना|सोच रह|कर रह|आ रह|जा रह|यहाँ|यहां|ठीक हूँ|ठीक हूं)",
)
NEED = _starts(r"(?:i|we)(?: always| also| only| now| really)* need\b", r"(?:i|we)'ll need\b")
LASTING_NEED = re.compile(
    r"\b(?:wheelchair|step-free|insulin|medication|medicines?|inhaler|hearing aid|gluten|lactose|oxygen"
    r"|interpreter|walking stick|crutches"
    r"|glasses|ground floor|lift|elevator|always|every (?:day|night|morning|week)|halal|kosher|vegan"
    r"|vegetarian|ramp|epipen|braille|large print"
    r"|because)\b",
    re.IGNORECASE,
)
SAID_TO_US = re.compile(
    r"\b(?:you|your|yours|this|here|today|tonight|it|that|that one|them|those|these)$|\b(?:yours?|you|this"
    r"|today|tonight|that one)\b",
    re.IGNORECASE,
)
"""Words that point: at us, at now, at what was just spoken of."""
TRANSIENT = _starts(
    r"(?:i|we) (?:was|were) (?!born|raised|diagnosed|married|divorced|adopted|named|an? |vegan|vegetarian|in )\w+",
    r"(?:i|we) (?:didn't|did not|wasn't|weren't|couldn't|wouldn't|accept|confirm|decline|authori[sz]e|recommend"
    r"|insist)\b",
    r"(?:my|our) \w+ (?:told|said|says|asked|recommended|sent|wants|needs|tried|paid|booked|ordered"
    r"|called (?!me\b))\b",
    r"(?:my|our) (?:room|table|order|bill|food|meal|car park|answer|reply) (?:has|have|had|is yes|is no)\b",
    r"(?:i|we) (?:was|were) \w+ing\b",
    r"(?:i|we)(?:'m| am|'re| are) (?:(?:so|very|really|just|now|still|currently|already|a bit|not|all|also"
    r"|too|quite|feeling|running|getting"
    r"|almost|nearly|right|back|out|over) )*(?:here|there|waiting|back|ready|fine|good|ok|okay|well|sorry"
    r"|sure|late|tired|hungry|thirsty|bored"
    r"|sad|happy|glad|busy|confused|coming|going|leaving|outside|inside|lost|stuck|done|home|in a"
    r"|in the (?:car|lobby|middle|room|queue|hotel)"
    r"|at the|on (?:my|our|the) (?:way|phone|train|bus)|afraid|excited|worried|upset|angry|cold|hot|sick|ill"
    r"|sleepy|free|available|"
    r"unable|able|aware|certain|right|wrong|having (?:trouble|a problem|issues)|about to|off|alone|next"
    r"|thinking|talking|doing|reading|eating"
    r"|walking|driving (?:to|now)|sitting|standing|using|getting|seeing|checking|sending|testing|having"
    r"|feeling|freezing|starving|grateful"
    r"|thankful|impressed|disappointed|frustrated|pleased|delighted|running|interested|surprised|serious"
    r"|joking|kidding)\b(?! married)",
    r"(?:i|we) (?:just|already) ",
    r"(?:i|we)(?:'ve| have)? (?:just |recently |now |also )*(?:changed|switched|moved|quit|lost|left)"
    r"(?: (?:my|our|the))?"
    r"(?: (?:jobs?|house|houses|flats?|phones?|numbers?|doctors?|plans?|minds?|schools?|rooms?|names?))?"
    r"(?: recently| lately| again)?$",
    r"(?:my|our) (?:order|payment|refund|parcel|package|delivery|internet|wi-?fi|question|problem|issue"
    r"|message|request|complaint|point|bad"
    r"|mistake|apologies|pleasure|goodness|god|turn|idea|guess|card (?:was|is)|screen|app|battery|link"
    r"|opinion|concern)\b(?!.*\b(?:number"
    r"|name|address)\b)",
    r"(?:my|our) [\w' ]+? (?:is|are|was|were|has|have|isn't|aren't|hasn't|haven't|doesn't|won't)(?: still"
    r"| too| very| so| really| not| all| been"
    r"| just| also)* (?:dirty|late|broken|cold|missing|declined|delayed|failed|ready|here|gone|working"
    r"|arrived|noisy|smelly|leaking|stuck|full"
    r"|empty|wet|open|closed|done|ok|okay|fine|hurting|not|work|coming|ringing|dead|slow|awful|terrible|great"
    r"|clean)\b",
    r"estoy (?!casad|jubilad|embarazad|divorciad|soltero|soltera|alérgic)",
)
PROGRESSIVE = re.compile(
    r"^(?:i|we)(?:'m| am|'re| are)(?: now| currently| still| also| not| just)* (\w+ing)\b", re.IGNORECASE
)
LASTING_ING = frozenset(
    [
        "living",
        "working",
        "studying",
        "learning",
        "expecting",
        "staying",
        "moving",
        "training",
        "retiring",
        "taking",
        "teaching",
        "raising",
        "dating",
        "seeing",
        "getting",
        "arriving",
        "flying",
        "travelling",
        "traveling",
        "visiting",
        "leaving",
        "coming",
        "going",
    ]
)
PLANNED_ING = frozenset(
    [
        "staying",
        "moving",
        "arriving",
        "flying",
        "travelling",
        "traveling",
        "visiting",
        "leaving",
        "coming",
        "going",
        "getting",
        "seeing",
    ]
)
PAST = re.compile(r"^(?:i|we)(?: also| just| recently| once| already| never| first| only)* (\w+)\b", re.IGNORECASE)
TAKEN = re.compile(
    r"^(?:i|we)(?:'ve| have)?(?: also| just| already)* (?:took|taken|made) (?:the|a|an|our|your) (?:\w+ ){0,3}?"
    r"(?:package|plan|menu|option|offer|course|class|tour|room|suite|membership|subscription|booking|reservation)\b",
    re.IGNORECASE,
)
"""What somebody has chosen of what is offered."""
LASTING_PAST = frozenset(
    [
        "moved",
        "married",
        "bought",
        "adopted",
        "got",
        "started",
        "quit",
        "retired",
        "graduated",
        "grew",
        "turned",
        "changed",
        "switched",
        "broke",
        "had",
        "stopped",
        "became",
        "joined",
        "relocated",
        "renamed",
        "founded",
        "was",
        "were",
        "used",
        "studied",
        "divorced",
        "separated",
        "gave",
        "lost",
        "need",
        "based",
        "born",
        "divorced",
        "turned",
        "worked",
        "lived",
        "booked",
        "reserved",
        "chose",
        "ordered",
        "hired",
        "rented",
    ]
)
IRREGULAR = frozenset(
    [
        "went",
        "came",
        "saw",
        "took",
        "made",
        "did",
        "sent",
        "paid",
        "called",
        "told",
        "said",
        "left",
        "ate",
        "drank",
        "slept",
        "woke",
        "read",
        "wrote",
        "forgot",
        "thought",
        "heard",
        "felt",
        "kept",
        "put",
        "ran",
        "sat",
        "stood",
        "spoke",
        "spent",
        "won",
        "wore",
        "gave",
        "met",
        "knew",
        "drove",
        "sold",
        "flew",
        "found",
        "held",
        "hit",
        "hurt",
        "let",
        "lay",
        "led",
    ]
)
CALLED = re.compile(r"^i(?:'d| would) (?:rather|prefer to|like to) be called ", re.I)
BACK_CALL = re.compile(
    r"call me (?:back|later|at|on|when|if|tomorrow|today|now|asap|please|again|in|after|before|as soon"
    r"|tonight|this|next|when)\b"
    r"|^(?:you can |please )*call me$",
    re.IGNORECASE,
)
OWN = re.compile(
    r"^(?:(?:i|i'm|i've|we|we're|we've|my|our)(?!\w)|(?:you can |you may |please |just )*call me\b)"
    r"|^the \w[\w ]* (?:of|for) (?:my|our)\b|.+ (?:is|are) (?:now )?(?:my|our) "
    r"|^(?:ahora |ya |yo |también )*(?:mi|mis|nuestr[oa]s?|soy|somos|vivo|vivimos|trabajo|tengo|tenemos"
    r"|me (?:llamo|gusta|gustan|encanta|encantan"
    r"|mudé|casé|dedico)|no (?:me gusta|como|bebo|soy|tengo|puedo comer)|prefiero|odio|nací|hablo|uso"
    r"|conduzco|estoy|cumplo|ll[aá]m[ae]me|juego"
    r"|toco|estudio|bebo|como)\b|^(?:el|la) \w+ de mis? \w+ (?:es|son|se llama)\b|.+ (?:es|son) mis? "
    r"|(?:^|\s)(?:मेर[ाीे]|हमार[ाीे]|मैं|मैंने|मुझे|हम|मुझको)(?:\s|$)",
    re.IGNORECASE,
)
CHANGED = (  # what was moved or changed is named, or was named before; what it was is not
    re.compile(
        r"^(?:they|you|reception|the \w+)(?:'ve| have| has)? (?:just )?(?:moved|put|transferred|switched"
        r"|upgraded) (?:me|us)"
        r" (?:to|in|into) (?P<subject>(?:the )?room) (?:number )?(?P<value>.+)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?P<subject>it|that|this|the [\w' ]+?)(?:'s| has| have| was| is| got| will be)?(?: just| now| actually)*"
        r"(?: been)? (?:changed|moved|rescheduled|postponed|shifted|pushed|switched|updated|delayed)"
        r"(?: back| forward| out)? (?:to|until|till) (?P<value>.+)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?:we|they|i|he|she|[\w'. ]{2,30}?)(?:'ve| have| had| has)?(?: just| now)? (?:changed|moved|rescheduled"
        r"|postponed|shifted"
        r"|pushed|switched|updated)(?: back| forward)? (?P<subject>it|(?:my|our|the) [\w' ]+?)"
        r"(?: back| forward)? (?:to|until|till) (?P<value>.+)$",
        re.IGNORECASE,
    ),
    re.compile(r"^(?P<subject>the [\w' ]+?) (?:is|are) (?:now|actually) (?P<value>.+)$", re.IGNORECASE),
    re.compile(r"^(?P<subject>the [\w' ]+?) (?:is|are) (?P<value>.+?) (?:now|instead)$", re.IGNORECASE),
)
ABOUT_WHOM = re.compile(
    r"^(?P<who>(?:my|our) [\w ]+?)(?:'s name)?(?: is|'s| are)?(?: called| named)? (?P<name>[A-Z][\w'-]+)?(?=$|[ ,.])",
    re.I,
)
OF_WHOM = re.compile(r"^(?:he|she|they)(?:'s|'re| is| are) ", re.I)
PRONOUN = re.compile(
    r"^(?:it|that|this|he|she|they|those|these|es|son)(?:'s|'re| is| are| was| were| will be| should be"
    r"| should read| must be| has to be)?"
    r"(?: actually| now| really| in fact| called| named| supposed to be)* (?P<value>.+)$",
    re.IGNORECASE,
)
POLITE = re.compile(
    r"^(?:thanks?|thank you|no|not?|nothing|never ?mind|that'?s? (?:all|it|fine|ok|okay|good|enough|right"
    r"|correct|great|wrong|true)|problem|worries"
    r"|please|later|it'?s? (?:ok|okay|fine|good|all|nothing|wrong|not)|all good|i'?m (?:good|fine)|need|what"
    r"|why|how|can|could|do|does|is|are"
    r"|will|would|when|where|who|which|help|stop|start|cancel|yes|yeah|sure|of course|you|your|don'?t|wrong"
    r"|right|correct|enough|way|idea|bother"
    r"|send|show|tell|give|book|find|look|let|go|get|try|gracias|nada|vale|ठीक|धन्यवाद|hello|hi|bye|good)\b",
    re.IGNORECASE,
)
INSTEAD = (  # what the person takes back; the rest is what holds
    re.compile(r"^not (?P<old>[^,]{1,30}), (?:but )?(?P<new>[^,]{1,40})$", re.I),
    re.compile(
        r"^(?P<old>[^,;]+?) (?:isn't|is not|is no longer) (?P<owned>(?:my|our) [^,;]+?)(?: any ?more)?\s*[,;—.-]+\s*"
        r"(?:it|that)(?:'s| is) (?:now )?(?P<new>.+)$",
        re.I,
    ),
    re.compile(
        r"^(?P<head>.*?) ?\b(?:not"
        r"|no longer) (?P<old>[^,;]+?)(?: any ?more)?,? but (?:rather |now )?(?P<new>.+)$",
        re.I,
    ),
    re.compile(
        r"^(?P<head>(?:my|our|mi|the) [\w' ]+? (?:is|are))(?:n't| not"
        r"| no longer) (?P<old>[^,;—]+?)(?: any ?more)?\s*[,;—.-]+\s*(?:it|they)(?:'s|'re| is"
        r"| are) (?:now )?(?P<new>.+)$",
        re.I,
    ),
    re.compile(
        r"^(?P<head>(?:it|that|this|he|she))(?:'s| is| was)? ?(?:not|isn't"
        r"|no longer) (?P<old>[^,;—]+?)(?: any ?more)?\s*[,;—.-]+\s*(?:it|that|this|he|she)(?:'s"
        r"| is) (?:now )?(?P<new>.+)$",
        re.I,
    ),
    re.compile(
        r"^(?P<new>.+?)(?:,| —| -)? (?:and )?(?:not|instead of|rather than|and no longer|y no|en vez de"
        r"|en lugar de) (?P<old>(?!just|only|too|very)[^,]+?)(?: any ?more| now)?$",
        re.I,
    ),
    re.compile(r"^(?P<new>.+?), no (?P<old>[^,]{1,30})$", re.I),
    re.compile(
        r"^(?P<head>.*?\b(?:moved|changed|switched|relocated|went|rescheduled"
        r"|postponed))(?: \w+)?? from (?P<old>.+?) (?P<new>to .+)$",
        re.I,
    ),
    re.compile(r"^(?P<new>.+?)\s*[,(;—-]+\s*(?:it )?(?:used to be|formerly|previously|was) (?P<old>[^)]+?)\)?$", re.I),
)
UNFINISHED = re.compile(
    r"(?:^|\s)(?:am|is|are|was|were|do|did|does|will|can|could|have|has|i|\w+'(?:m|s|re|ve|ll|d))$", re.I
)
TAIL = re.compile(
    r"(?:,? (?:just so you know|just to let you know|for your information"
    r"|by the way|btw|instead|nice to meet you|pleased to meet you|please|thanks|thank you|fyi|you know"
    r"|ok\??|okay|actually|sorry|if that helps"
    r"|por favor|gracias))+$",
    re.I,
)
EDGES = " \t\n.!;,:…।\"“”'*_-–—"
