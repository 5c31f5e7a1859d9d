"""What an investigation may do: ask the other agents, over the bus and with the caller's grant, and calculate. There is
no other way to a document or a memory from here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.analysis.arithmetic import calculate
from agents.analysis.scratchpad import Observation, Passage
from mesh.cards import Routable
from mesh.context import Context
from mesh.contracts.answers import Answer, Ask, Source
from mesh.contracts.documents import (
    ANSWER_FROM_DOCUMENTS,
    FIND_SOURCE_DOCUMENT,
    GET_DOCUMENT_TEXT,
    RETRIEVE_KNOWLEDGE_BASE,
    SEARCH_WITHIN_DOCUMENT,
    DocumentName,
    DocumentRef,
    Findings,
    Found,
    Search,
    SearchWithin,
)
from mesh.contracts.memory import ANSWER_FROM_MEMORY
from mesh.errors import MeshError, Unavailable
from mesh.skills import In, Out, Skill

ASK_DOCUMENTS = "ask_documents"
SEARCH = "search"
SEARCH_IN = "search_in"
READ = "read"
ASK_MEMORY = "ask_memory"
CALCULATE = "calculate"

Run = Callable[[str], Awaitable[Observation]]


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    what: str
    """For a model: what it does, and what it takes."""
    run: Run
    offered: bool = True
    """Whether a model may choose it; the others are for the rules alone."""


Serves = Callable[[Skill[Any, Any]], Awaitable[bool]]


def toolbox(ask: Ask, ctx: Context[Any], serves: Serves, cards: list[Routable]) -> Mapping[str, Tool]:
    """Only those that the grant covers. Every other agent that answers questions is one, too. `serves` tells whether a
    skill's agent is switched on: nobody is waited for in vain."""
    question = ask.text

    async def asked(skill: Skill[In, Out], payload: In) -> Out:
        if not await serves(skill):
            raise Unavailable(detail=f"{skill.name} is switched off")
        return await ctx.ask(skill, payload)

    async def documents(text: str) -> Observation:
        return _answered(await asked(ANSWER_FROM_DOCUMENTS, Ask(text=text, message_id=ask.message_id)))

    async def memory(text: str) -> Observation:
        return _answered(await asked(ANSWER_FROM_MEMORY, Ask(text=text, message_id=ask.message_id)))

    async def search(text: str) -> Observation:
        return _found(await asked(RETRIEVE_KNOWLEDGE_BASE, Search(text=text)))

    async def search_in(name: str) -> Observation:
        """In the document of that name, for what the person asked."""
        cards = await asked(FIND_SOURCE_DOCUMENT, DocumentName(name=name))
        if not cards.documents:
            return Observation(trouble=f"There is no document called {name}.")
        wanted = SearchWithin(document_id=cards.documents[0].document_id, text=question)
        return _found(await asked(SEARCH_WITHIN_DOCUMENT, wanted))

    async def read(document_id: str) -> Observation:
        whole = await asked(GET_DOCUMENT_TEXT, DocumentRef(document_id=document_id))
        source = Source(kind="document", name=whole.document.name, reference=document_id)
        return Observation((Passage(whole.text, source),))

    async def arithmetic(expression: str) -> Observation:
        return Observation((Passage(calculate(expression), Source(kind="tool", name="calculation")),))

    tools = [
        Tool(ASK_DOCUMENTS, "answers one simple question from the documents, with a quotation", documents),
        Tool(SEARCH, "finds passages of the documents about some words", search),
        Tool(SEARCH_IN, "finds what bears on the question in one document; takes the document's name", search_in),
        Tool(READ, "reads a whole document", read, offered=False),
        Tool(ASK_MEMORY, "answers one simple question from what the person told earlier", memory),
        Tool(CALCULATE, "calculates, such as 3 * 112 + 2 * 9; only with numbers that were found or asked", arithmetic),
    ]
    needs = {
        ASK_DOCUMENTS: ANSWER_FROM_DOCUMENTS.needs,
        SEARCH: RETRIEVE_KNOWLEDGE_BASE.needs,
        SEARCH_IN: SEARCH_WITHIN_DOCUMENT.needs,
        READ: GET_DOCUMENT_TEXT.needs,
        ASK_MEMORY: ANSWER_FROM_MEMORY.needs,
    }
    covered = {tool.name: tool for tool in tools if tool.name not in needs or ctx.grant.covers(needs[tool.name])}
    return covered | _others(ask, ctx, cards)


def _others(ask: Ask, ctx: Context[Any], cards: list[Routable]) -> dict[str, Tool]:
    """The skills of agents that this one was not written for, as their cards have them."""
    known = {ANSWER_FROM_DOCUMENTS.name, ANSWER_FROM_MEMORY.name}
    found = {}
    for routable in cards:
        skill, card = routable.skill, routable.card
        if skill.name in known or card.hears not in ("question", "any") or not ctx.grant.covers(skill.needs):
            continue

        async def run(text: str, skill: Any = skill) -> Observation:
            return _answered(await ctx.ask(skill, Ask(text=text, message_id=ask.message_id)), skill.name)

        name = skill.name.replace(".", "_")
        found[name] = Tool(name, card.summary, run)
    return found


async def use(tool: Tool, text: str) -> Observation:
    """What goes wrong is an observation, too."""
    try:
        return await tool.run(text)
    except MeshError as error:
        return Observation(trouble=error.user_text)


def _answered(answer: Answer, name: str = "answer") -> Observation:
    if not answer.grounded:
        return Observation()
    quoted = tuple(Passage(source.quote or answer.text, source, answer.confidence) for source in answer.sources) or (
        Passage(answer.text, Source(kind="tool", name=name), answer.confidence),
    )
    return Observation(quoted, answer.unanswered)


def _found(findings: Findings) -> Observation:
    return Observation(tuple(Passage(found.passage, _source(found), found.similarity) for found in findings.found))


def _source(found: Found) -> Source:
    return Source(
        kind="document",
        name=found.document.name,
        section=" › ".join(found.heading_path),
        quote=found.passage,
        reference=found.document.document_id,
    )
