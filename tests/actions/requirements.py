"""What apps are promised, sentence by sentence."""

from tests.requirements import Requirement

_DEFINITION = "actions spec, section 2"
_RESPONSES = "actions spec, section 3"
_SECRETS = "actions spec, section 4"
_TOOLS = "actions spec, section 5"
_PACKAGES = "actions spec, section 6"
_OURS = "our own promise"

ALL = [
    Requirement("ACT-01", "The worked example of a shop answers word for word.", "section 12"),
    Requirement("ACT-02", "/act lists flags, and never the method, address or body.", _DEFINITION),
    Requirement(
        "ACT-03", "A bare call shows the schema when something required is missing.", _DEFINITION
    ),
    Requirement(
        "ACT-04", "The id of an action keeps its case, with a forgiving fallback.", _DEFINITION
    ),
    Requirement(
        "ACT-05", "Arguments that do not fit are refused with the fixed sentences.", _DEFINITION
    ),
    Requirement("ACT-06", "Actions without a document, or unknown ones, are refused.", _DEFINITION),
    Requirement(
        "ACT-07", "Remaining values become query parameters or a flat JSON object.", _DEFINITION
    ),
    Requirement(
        "ACT-08", "A query without leftover values is sent exactly as written.", _DEFINITION
    ),
    Requirement(
        "ACT-09", "404, other statuses and network failures have their own messages.", _DEFINITION
    ),
    Requirement(
        "ACT-10", "Markdown and HTML answers open, all others are returned as text.", "ruling 8"
    ),
    Requirement(
        "ACT-11", "A command runs in its document's directory, output merged.", _DEFINITION
    ),
    Requirement("ACT-12", "A command sees a minimal environment.", _DEFINITION),
    Requirement("ACT-13", "Context variables are available in definitions.", _DEFINITION),
    Requirement("ACT-14", "A remote document cannot run a command.", _DEFINITION),
    Requirement(
        "ACT-15", "Values come from files, variables, shortcuts and quoted lines.", _DEFINITION
    ),
    Requirement(
        "ACT-16", "The default action runs after opening unless it needs something.", _RESPONSES
    ),
    Requirement(
        "ACT-17", "Time limits end a request or a command with a clear error.", _DEFINITION
    ),
    Requirement("ACT-18", "No caller's value changes which commands the shell runs.", _OURS),
    Requirement("ACT-19", "A value stays inside its part of a URL, header or JSON string.", _OURS),
    Requirement("ACT-20", "Types, ranges and value lists are checked.", _DEFINITION),
    Requirement(
        "ACT-21",
        "Assignments, loops and value shortcuts of templates work, nested too.",
        _RESPONSES,
    ),
    Requirement("ACT-22", "A missing reference stays visible and is reported.", _RESPONSES),
    Requirement(
        "ACT-23", "save, decode and to write what an answer holds, or say why not.", _RESPONSES
    ),
    Requirement(
        "ACT-24", "Data of an answer is never read as template, include or directive.", _RESPONSES
    ),
    Requirement(
        "ACT-25", "A failed command answers EXIT_n unless its template handles it.", _DEFINITION
    ),
    Requirement("ACT-26", "Secrets show in no reply, error, variable, session or log.", _SECRETS),
    Requirement(
        "ACT-27", "Variables are read from configuration, then app, then global.", _SECRETS
    ),
    Requirement("ACT-28", "Secrets are not forwarded to another host.", _OURS),
    Requirement("ACT-29", "A secret is not part of a command line.", _DEFINITION),
    Requirement("ACT-30", "Missing requirements are announced with the setup page.", _SECRETS),
    Requirement("ACT-31", "The system keyring can hold persistent values.", _OURS),
    Requirement("ACT-32", "A tool runs without leaving the page; its own schema is shown.", _TOOLS),
    Requirement("ACT-33", "Variables a tool declares are required, defaults apply.", _TOOLS),
    Requirement("ACT-34", "A folder is installed whole, opened, used and removed.", _PACKAGES),
    Requirement("ACT-35", "A name is taken over only by the same package.", _PACKAGES),
    Requirement("ACT-36", "URLs, manifests and GitHub directories are sources.", _PACKAGES),
    Requirement("ACT-37", "A manifest cannot write outside its package.", _PACKAGES),
    Requirement("ACT-38", "An MCP server's tools are actions, its resources documents.", _OURS),
    Requirement(
        "ACT-39", "A mounted server stops when idle, uninstalled or with the daemon.", _OURS
    ),
    Requirement("ACT-40", "Fifty topics act at the same time.", _OURS),
    Requirement("ACT-41", "A command in which a value could become a command is refused.", _OURS),
    Requirement(
        "ACT-42", "A value that begins with a dash is an option only if the author says so.", _OURS
    ),
    Requirement("ACT-43", "Archives are installed whole, bounded, and write nowhere else.", _OURS),
    Requirement("ACT-44", "An app of several pages is installed from its address.", _OURS),
    Requirement("ACT-45", "Updates come from the source on record and lose nothing.", _OURS),
    Requirement("ACT-46", "A version that asks for more than before waits for a word.", _OURS),
    Requirement("ACT-47", "Fields of type list, lines and json have that shape.", _OURS),
    Requirement("ACT-48", "A tuple without all its parts is refused, or said.", _OURS),
    Requirement("ACT-49", "Templates split text into lines, words, cells and JSON.", _OURS),
]
