"""Every way to a document or a memory, and the test that holds it to the rule. What is new here fails
`test_registry.py` until it has its line: either the test of its isolation, or why there is nothing to see.

A way is a skill, a page or a file that is served, a command of the command line, or a command in chat."""

from __future__ import annotations

MATRIX = "tests/boundary/test_matrix.py::test_nothing_foreign_is_shown_and_nothing_tells_that_it_is_there"
WISHES = "tests/boundary/test_matrix.py::test_who_changes_a_foreign_document_is_told_as_of_an_absent_one"
INGESTED = "tests/boundary/test_matrix.py::test_a_document_of_the_same_name_and_words_is_ones_own_and_no_other"
TAGS = "tests/boundary/test_untagged.py::test_nobody_else_tags_anything_whatever_a_tier_says"
WHY = "tests/boundary/test_withheld.py::test_nobody_else_is_told_whatever_a_tier_says"
CALIBRATED = "tests/boundary/test_calibrating.py::test_nobody_else_calibrates_whatever_a_tier_says"
OWNERS = "tests/boundary/test_owners.py::test_what_is_the_system_owners_alone_is_refused_to_everybody_else"
MEMORY = "tests/boundary/test_memories.py::test_what_another_person_told_is_in_no_answer_and_changes_none"
FORGOTTEN = (
    "tests/contract/test_memory_agent.py::test_everything_is_forgotten_also_what_was_replaced_long_ago_and_nobody_elses"
)
NOTES = "tests/contract/test_notes.py::test_no_step_leads_to_anothers_note_or_tells_that_it_is_there"
ANALYSIS = "tests/boundary/test_hijacked.py::test_a_hijacked_model_reaches_nothing_that_its_asker_may_not"
CONVERSED = "tests/journey/test_mesh.py::test_a_private_contract_is_there_for_its_owner_and_absent_for_another"
FILES = "tests/contract/test_file_links.py::test_a_link_for_another_person_shows_nothing_of_a_private_document"
HOST = "tests/journey/test_dashboard.py::test_another_host_name_is_refused"
COMMANDS = "tests/boundary/test_owners.py::test_the_commands_show_a_client_what_that_client_may_see"
WHOSE = "tests/journey/test_channel_attacks.py::test_whose_files_they_are_and_which_one_is_meant"

TESTED = {
    "skill knowledge.retrieve_knowledge_base": MATRIX,
    "skill knowledge.search_within_document": MATRIX,
    "skill knowledge.find_source_document": MATRIX,
    "skill knowledge.get_document_text": MATRIX,
    "skill knowledge.get_document": MATRIX,
    "skill knowledge.show_document": MATRIX,
    "skill knowledge.list_documents": MATRIX,
    "skill knowledge.answer": MATRIX,
    "skill knowledge.find_notes": MATRIX,
    "skill knowledge.save_note": NOTES,
    "skill knowledge.ingest": INGESTED,
    "skill knowledge.set_visibility": WISHES,
    "skill knowledge.delete_document": WISHES,
    "skill knowledge.rebuild": OWNERS,
    "skill knowledge.read_folders": OWNERS,
    "skill knowledge.sound_out": CALIBRATED,
    "skill knowledge.calibrate": CALIBRATED,
    "skill knowledge.tag_chunks": TAGS,
    "skill knowledge.why_withheld": WHY,
    "skill memory.recall": MEMORY,
    "skill memory.answer": MEMORY,
    "skill memory.export": MEMORY,
    "skill memory.forget": FORGOTTEN,
    "skill memory.remember": "tests/contract/test_memory_agent.py::test_a_correction_touches_nobody_elses_facts",
    "skill memory.note": "tests/contract/test_memory_agent.py::test_a_correction_touches_nobody_elses_facts",
    "skill analysis.ask": ANALYSIS,
    "skill orchestrator.converse": CONVERSED,
    "gateway GET /files/{token}/{name:path}": FILES,
    "dashboard GET /": HOST,
    "dashboard GET /board": HOST,
    "command kb list": COMMANDS,
    "command kb show": COMMANDS,
    "command kb withheld": WHY,
    "command kb migrate": TAGS,
    "command kb rebuild": OWNERS,
    "command kb remove": OWNERS,
    "command kb calibrate": CALIBRATED,
    "command chat": CONVERSED,
    "chat files": WHOSE,
    "chat send_file": WHOSE,
    "chat why": WHOSE,
    "chat private": WISHES,
    "chat share": WISHES,
    "chat delete": WISHES,
    "chat mydata": MEMORY,
    "chat forget": FORGOTTEN,
    "chat notes": "tests/contract/test_notes.py::test_anothers_notes_are_in_no_list",
    "chat note": NOTES,
    "chat save": NOTES,
}

NOTHING_TO_SEE = {
    "skill orchestrator.take_turns": "returns nothing; only the mesh itself may ask it",
    "skill orchestrator.clear_to_send": "returns nothing",
    "gateway POST /whatsapp/twilio": "takes messages, and answers with an empty form",
    "gateway POST /whatsapp/twilio/status": "takes delivery states, and answers with nothing",
    "gateway GET /whatsapp/meta": "repeats Meta's challenge to whoever knows the word",
    "gateway POST /whatsapp/meta": "takes messages and states, and answers with nothing",
    "gateway GET /healthz": "one word",
    "gateway GET /readyz": "one word",
    "dashboard GET /healthz": "one word",
    "dashboard /static": "the page's own script and style",
    "command up": "starts processes, and tells their addresses",
    "command run": "starts a process",
    "command demo": "plays its own people and documents, in a folder of its own",
    "command queues": "counts of jobs",
    "command doctor": "settings and servers; counts of clients",
    "command health": "one line",
    "command migrate": "versions of stores",
    "command clients register": "a client's name and tier",
    "command clients list": "clients' names and tiers",
    "command clients waiting": "who waits",
    "command clients hand-back": "who is handed back",
    "command tiers list": "tiers",
    "command tiers show": "tiers, and who is on them",
    "command tiers grant": "tiers",
    "command tiers revoke": "tiers",
    "command agents list": "agents",
    "command agents show": "agents",
    "command agents scale": "agents",
    "command kb add": "the names of the files that are on this machine's disk, given with the command",
    "command kb watch": "the names of the files in a folder of this machine's disk",
    "chat help": "the same words for everybody",
    "chat stop": "the same words for everybody",
    "chat start": "the same words for everybody",
    "chat cancel": "the same words for everybody",
    "chat human": "the same words for everybody",
}
