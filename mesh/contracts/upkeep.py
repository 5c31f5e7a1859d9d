"""The knowledge agent, for the system's owner alone: folders, tags, thresholds, rebuilding, and why."""

from __future__ import annotations

from datetime import timedelta

from mesh.access import OWN_SYSTEM
from mesh.contracts.documents import DocumentCard
from mesh.envelope import Wire
from mesh.skills import Skill


class ReadFolders(Wire):
    """`turn`: how many times there was not enough time before."""

    turn: int = 0


class FolderRead(Wire):
    """What a look at a watched folder came to, in files. `trouble` is why it could not be looked at, or which of
    its files have one name."""

    path: str
    files: int = 0
    added: int = 0
    withdrawn: int = 0
    refused: int = 0
    later: int = 0
    left: int = 0
    trouble: str = ""


class FoldersRead(Wire):
    folders: tuple[FolderRead, ...]


READ_FOLDERS = Skill(
    name="knowledge.read_folders",
    takes=ReadFolders,
    returns=FoldersRead,
    needs=OWN_SYSTEM,
    kept=True,
    within=timedelta(minutes=10),
)
"""Those of the settings. It is asked for every hour, and asks itself again where there was not enough time."""


class TagChunks(Wire):
    """`after` is what the page before said is `following`."""

    dry_run: bool = True
    after: int | str | None = None


class TaggedDocument(Wire):
    name: str
    owner: str
    shelved: bool
    """Whether its file is here, too."""
    chunks: int


class TaggedChunks(Wire):
    """One page. `left` is how many there were before it; `following` is None after the last one."""

    left: int
    documents: tuple[TaggedDocument, ...]
    following: int | str | None = None


TAG_CHUNKS = Skill(
    name="knowledge.tag_chunks",
    takes=TagChunks,
    returns=TaggedChunks,
    needs=OWN_SYSTEM,
    within=timedelta(seconds=60),
    fresh=True,
)
"""Of chunks that do not say who may see them, a page becomes private."""


class WhyWithheld(Wire):
    client: str
    text: str


class Held(Wire):
    reason: str
    count: int


class ReadPath(Wire):
    """One way to a document: the rule for this client, how many `counted` (documents or passages) matched without it,
    how many of them the client may see, and why not the others."""

    name: str
    rule: str
    counted: str
    matched: int
    seen: int
    held: tuple[Held, ...]


class Withheld(Wire):
    paths: tuple[ReadPath, ...]
    answered: bool
    """Whether what the client may see was enough for an answer; if not, all of it was below the floor."""


WHY_WITHHELD = Skill(
    name="knowledge.why_withheld",
    takes=WhyWithheld,
    returns=Withheld,
    needs=OWN_SYSTEM,
    within=timedelta(seconds=30),
    fresh=True,
)
"""Counts alone, for the system owner."""


class SoundOut(Wire):
    """`after` is what the page before said is `following`."""

    after: int = 0


class Sounding(Wire):
    """One question that was made from a document: how clearly it was answered with its passage, and without. Logits."""

    viewer: str
    """The client who sees it; empty for what everybody sees."""
    present: float
    removed: float


class Soundings(Wire):
    total: int
    found: tuple[Sounding, ...]
    following: int | None = None


SOUND_OUT = Skill(
    name="knowledge.sound_out",
    takes=SoundOut,
    returns=Soundings,
    needs=OWN_SYSTEM,
    within=timedelta(minutes=2),
    fresh=True,
)
"""A page of the questions by which a corpus is calibrated; nothing is kept."""


class Calibrate(Wire):
    found: tuple[Sounding, ...]


class Threshold(Wire):
    viewer: str
    asked: int
    before: float
    """Logits that an answer must have more than by default."""
    after: float
    answered: tuple[float, float]
    """Shares of the questions whose passage is there, before and after, in [0, 1]."""
    invented: tuple[float, float]
    """Of those whose passage was taken away."""


class Thresholds(Wire):
    learnt: tuple[Threshold, ...]


CALIBRATE = Skill(
    name="knowledge.calibrate",
    takes=Calibrate,
    returns=Thresholds,
    needs=OWN_SYSTEM,
    within=timedelta(seconds=30),
    fresh=True,
)
"""What all pages came to is kept, in the place of what was kept before."""


class Rebuild(Wire):
    document_id: str
    anew: bool = False
    """Its vectors, too: none is taken from what was embedded before."""


class Rebuilt(Wire):
    document: DocumentCard
    kept: str = ""
    """Why its text is still the one that was read earlier; empty where the file was read again."""


REBUILD = Skill(
    name="knowledge.rebuild",
    takes=Rebuild,
    returns=Rebuilt,
    needs=OWN_SYSTEM,
    within=timedelta(minutes=10),
    fresh=True,
)
"""A document's passages again, from its file as it is read today."""
