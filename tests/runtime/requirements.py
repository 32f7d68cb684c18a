"""What documents and commands promise: replies, files, web pages, sessions, ChanFlow."""

from tests.requirements import Requirement

_FORMAT = "response format page"
_TRANSPORT = "transport page"
_SPEC = "documents and commands {}".format
_TRUST = "trust, section 2"
_RULING = "ruling {}".format


def _numbered(prefix: str, *promises: tuple[str, str]) -> list[Requirement]:
    return [
        Requirement(f"{prefix}-{number:02}", sentence, source)
        for number, (sentence, source) in enumerate(promises, 1)
    ]


COMMANDS = _numbered(
    "CMD",
    ("A reply with content is the system message, a line ---, the content.", _FORMAT),
    ("A confirmation is the system message alone, without ---.", _FORMAT),
    ("An error is ERROR(code): message, without ---.", _FORMAT),
    ("/open path answers Opened path and the rendered document.", _FORMAT),
    ("/open path#block answers Opened path#block and the rendered block.", _FORMAT),
    ("/open without argument is a usage error.", _FORMAT),
    ("/back answers Back to path and the rendered document.", _FORMAT),
    ("/refresh answers Refreshed path and the rendered document.", _FORMAT),
    ("/edit path answers [editing: path] and the numbered source.", _FORMAT),
    ("/edit path#block answers [editing: path#block] and the block's source.", _FORMAT),
    ("/edit path with a body answers Edited path (n lines, whole file).", _FORMAT),
    ("/edit path#block with a body answers Edited path#block (n lines).", _FORMAT),
    ("/help answers String Commands and the help text.", _FORMAT),
    ("/ls answers Listing path/ and the entries.", _FORMAT),
    ("/nav answers Menus and the menu list.", _FORMAT),
    ("/nav name answers Menu: name and the entries.", _FORMAT),
    ("/nav scaffold answers Nav Scaffold and a template.", _FORMAT),
    ("/info answers Session info and key-value pairs.", _FORMAT),
    ("/verify path#block answers Verified path#block and a preview.", _FORMAT),
    ("/set alone answers Variables and the list.", _FORMAT),
    ("/set {var} = value answers {var} = value in quotes.", _FORMAT),
    ("/write answers Written: path (n bytes, n lines), for new files too.", _FORMAT),
    ("/append answers Appended to: path (now n bytes).", _FORMAT),
    ("/undo answers Undo: reverted path (n lines).", _FORMAT),
    ("/close answers Closed: path.", _FORMAT),
    ("A missing file is named as it was typed.", _FORMAT),
    ("/source answers [source: uri] and the source before any conversion.", _SPEC("9.9")),
    (
        "/replace changes lines, a block, or exact text, of a path or the open document.",
        _SPEC("10.4"),
    ),
    ("The head's meta names uri, title and current_block of the open document.", _SPEC("4.3")),
    ("/topics and /session list, filter and close topics.", _SPEC("9.13")),
    ("Command names are not case-sensitive, // is one slash outside bash topics.", _SPEC("3")),
    ("HTTP replies never show diffs.", _RULING(1)),
    ("A failed /open changes nothing.", _SPEC("8")),
    ("/open #block changes the view without pushing history.", _SPEC("9.1")),
    ("Opening a directory lists it and becomes where the topic stands.", _SPEC("9.1")),
    ("An image is described and the document stays.", _SPEC("14")),
    ("/open --edit is /edit; /close <topic> closes another topic.", _SPEC("14")),
)

CHANFLOW = _numbered(
    "CF",
    ("Absent topics are file:main, bare names are file topics.", _TRANSPORT),
    ("A block carries one command; its content starts on the next line.", _TRANSPORT),
    ("Plain text is refused with COMMAND_UNSUPPORTED.", _TRANSPORT),
    ("Bash topics take plain text; // makes a command of it.", _TRANSPORT),
    ("Replies are content, ✓ feedback or ✗ CODE: message.", _TRANSPORT),
    ("Reply tags carry the time as ISO 8601.", _TRANSPORT),
    ("An edit answers ✓ with a summary, the diff below it, and mode=edit.", _TRANSPORT),
    ("Several topics are answered by separate blocks in order.", _TRANSPORT),
    ("Other channels are left alone.", _TRANSPORT),
    ("First contact creates the session.", _TRANSPORT),
    ("Variables, history and location persist across turns.", _TRANSPORT),
    ("/close discards state; the topic can be reopened fresh.", _TRANSPORT),
    ("Blocks of different topics run side by side.", _RULING(7)),
    ("Blocks of one topic run in order.", _RULING(7)),
    ("A broken block is answered with ✗ INVALID_PAYLOAD and runs nothing.", _RULING(13)),
    ("Content that looks like a tag cannot forge a block.", _RULING(13)),
    ("Bodies are JSON or text/plain; other types are 415.", _RULING(6)),
    ("Overwriting unread text keeps an undo copy and says so.", _RULING(15)),
    ("cwd counts for /chanflow as for /exec.", _RULING(17)),
)

FILES = _numbered(
    "FILE",
    (
        "Home and allowed paths are reached; the rest is FILE_NOT_ALLOWED with a way on.",
        _RULING(17),
    ),
    ("Links are judged by where they lead.", _RULING(17)),
    ("A vouched-for directory counts for its request only.", _RULING(17)),
    ("./ and ../ start at it while no document is open.", _RULING(17)),
    ("Bare names start at home; if they exist there, NOT_FOUND says so.", _RULING(17)),
    ("The daemon's data is never reachable.", _RULING(17)),
    ("A crash during a write leaves the old text or the new one.", "safe files"),
    ("Writing keeps the mode.", "safe files"),
    ("Writing keeps line ends and the byte order mark.", "safe files"),
    ("An edit of a file that changed underneath is refused.", "safe files"),
    ("A failed edit leaves the file untouched.", "safe files"),
    ("/undo is per topic, checked against a hash, and outlives a restart.", _SPEC("10.5")),
    ("/write --new refuses to overwrite.", _RULING(15)),
    ("What is no regular file never blocks a reader.", "safe files"),
    ("Bytes that are no UTF-8 survive an edit elsewhere in the file.", "safe files"),
    ("Every odd file has a clear reply.", "safe files"),
)

WEB = _numbered(
    "WEB",
    ("404, other statuses and network failures have their own messages.", _SPEC("6.5")),
    ("HTML is converted, announced, and kept for /source.", _SPEC("6.5")),
    ("A redirect's final address is the base of relative links.", "defect 18"),
    ("Time and size of an answer are limited.", "defect 18"),
    ("A public page never leads to a private address.", "web documents"),
    ("A manifest opens as its string.md and its links are looked up in it first.", _SPEC("6.5")),
    ("Text is decoded as it declares itself.", "web documents"),
    ("A page may link to the web only.", "web documents"),
    ("A NOT_FOUND of a URL names shortcuts of the current page.", _SPEC("6.5")),
)

SESSIONS = _numbered(
    "KEEP",
    ("Document, block, history and variables come back after kill -9.", "sessions survive"),
    ("An open web page comes back without the network.", "sessions survive"),
    ("/close and DELETE leave nothing behind.", "sessions survive"),
    ("A document deleted meanwhile is named, not a failure of the topic.", "sessions survive"),
    ("A kill during an installation leaves the old app or the new one, whole.", "our own promise"),
)

DEFECTS = [
    Requirement(f"DEF-{number:02}", sentence, f"defect {number}")
    for number, sentence in (
        (3, "Spaces and non-ASCII letters are shown as they are, everywhere."),
        (4, "Inside home is decided by path components."),
        (5, "Block markers count only alone on their line, in order, outside fences."),
        (6, "A heading that is the last line without newline can be edited."),
        (7, "Headings inside fences are no headings."),
        (8, "Headings of any script are addressable."),
        (9, "Auto-shortcuts never collide with each other or with an author's ids."),
        (10, "Code is never rewritten."),
        (11, "Images stay; titles of links are no part of the address."),
        (12, "A duplicate shortcut is shown under the id that resolves, with a warning."),
        (13, "A body keeps its final newline, and a file can be emptied."),
        (14, "New text is literal."),
        (15, "A name with spaces is never split into file and text."),
        (17, "A directory opens through a shortcut or a file URI."),
        (19, "Persistent values are masked."),
        (20, "A failed /set applies nothing."),
        (22, "/close clears the history."),
        (23, "Undoing an edit of an empty file keeps the file."),
        (24, "/session is an exact verb and means nothing to a shell."),
        (25, "A scaffold lists each address once and no directives."),
        (26, "An include's id opens what it includes."),
        (27, "A menu entry keeps its fragment."),
    )
]

PROVENANCE = _numbered(
    "PRV",
    ("Opening runs nothing but an installed app's default; a file of one's own names it.", _TRUST),
    ("What a page may do depends on where its files really are, however it was opened.", _TRUST),
    ("Actions of apps and of the user's own files run, with the names they may use.", _TRUST),
    ("Any other file runs no command, and the refusal says what to type.", _TRUST),
    ("A web page sends actions to its own origin only and runs no command.", _TRUST),
    ("$NAMES, and those that tell where the user is, are for apps and own files only.", _TRUST),
    ("None of an MCP resource's actions is sent.", _TRUST),
    ("An app's secrets go to the hosts it declares, and nowhere else.", _TRUST),
    ("A package that is not what was installed has no rights, and the reply says so.", _TRUST),
    ("What was installed before there was a record is taken over once.", _TRUST),
    ("An installation by what the daemon started has no rights until it is confirmed.", _TRUST),
    ("An app topic's secrets, and what its answers set, serve no other page.", _TRUST),
    ("to: writes neither into stringd's own files nor into a repository's .git.", _TRUST),
    ("Nothing fetched, mounted or redirected reaches a port of the daemon.", _TRUST),
    ("Other files and web pages reach public addresses only.", _TRUST),
    ("Trusting a file, and taking it back, counts for a page that is open.", _TRUST),
    ("An agent's String commands are asked about where their effects happen.", _TRUST),
    ("What was decided about a page is decided again after a restart.", _TRUST),
    ("A file that an agent's String command would write is asked about as its tools are.", _TRUST),
)

ALL = [*COMMANDS, *CHANFLOW, *FILES, *WEB, *SESSIONS, *DEFECTS, *PROVENANCE]
