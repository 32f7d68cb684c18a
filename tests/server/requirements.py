"""What the daemon promises on its HTTP wire, and what a client of it promises."""

from tests.requirements import Requirement

PAGE = "protocol page"
RULING = "ruling {}".format
SPEC = "daemon §{}".format


def _numbered(prefix: str, *promises: tuple[str, str]) -> list[Requirement]:
    return [
        Requirement(f"{prefix}-{number:02}", sentence, source)
        for number, (sentence, source) in enumerate(promises, 1)
    ]


TRUST = _numbered(
    "TRUST",
    ("The daemon listens on 127.0.0.1 and on no other interface.", PAGE),
    ("The port is 3100, or what STRINGD_PORT says.", PAGE),
    ("X-User-Id selects the user; any caller may name any registered one.", PAGE),
    ("No request needs a token or a signature.", PAGE),
    ("A body above 10 MiB is refused with 413 and a JSON error.", f"{PAGE}, {RULING(6)}"),
    ("/exec runs its argument under bash.", PAGE),
    (
        "Every request but GET /health is refused with 403 when its Host is not loopback.",
        RULING(5),
    ),
    (
        (
            "Every request but GET /health is refused with 403 when its Origin is neither loopback "
            "nor listed in STRINGD_ALLOW_ORIGINS; null is neither."
        ),
        RULING(5),
    ),
    ("The WebSocket upgrade passes the same check.", RULING(5)),
    (
        (
            "A connection of another account than the daemon's own and root, or of one the kernel "
            "cannot name any more, is answered 403 on every path of every port."
        ),
        RULING(19),
    ),
    (
        "A Unix socket, 0600, speaks HTTP and /ws beside the port; its peers are checked.",
        RULING(19),
    ),
    (
        (
            "A process the daemon started, or an earlier daemon, cannot decide: permissions, "
            "questions, inputs, policies and keys are refused on every wire."
        ),
        "our own promise",
    ),
    (
        "With STRINGD_ORIGINS=strict only the daemon's own and listed pages pass.",
        "our own promise",
    ),
    ("To a page that is refused, GET /health says only that the daemon is well.", RULING(5)),
    ("Clients send nothing to a listener of another account.", RULING(19)),
    (
        (
            "Nothing that a daemon started outlives it, kill -9 included, and nothing else is "
            "ended with it."
        ),
        "our own promise",
    ),
)

HTTP = _numbered(
    "HTTP",
    ("All endpoints are on one port of 127.0.0.1.", PAGE),
    ("Endpoints without a user (/users, /health, /shutdown) ignore X-User-Id.", PAGE),
    ("Every response carries Access-Control-Allow-Origin: *.", PAGE),
    ("Every response allows the headers Content-Type and X-User-Id.", PAGE),
    ("OPTIONS is answered 204 without content on any path, for anybody.", PAGE),
    ("A body that is declared as something else than JSON is answered 415.", RULING(6)),
    ("A missing Content-Type is tolerated.", RULING(6)),
    ("Errors are JSON objects whose error says what was wrong.", PAGE),
    ("Errors with a machine-readable code carry it as error, and a message.", PAGE),
    ("An unknown path or method is 404 and names both.", SPEC("1.2")),
    ("JSON answers declare their type and length.", SPEC("1.2")),
    ("A connection serves many requests, one after the other.", PAGE),
    ("Pipelined requests are answered in their order.", "HTTP/1.1"),
    ("What cannot be read as a request is answered with a 4xx JSON error.", "our own promise"),
    ("Expect: 100-continue is answered before the body is read.", "HTTP/1.1"),
    ("Bodies may be chunked.", "HTTP/1.1"),
)

USER = _numbered(
    "USER",
    ("GET /users lists users with id, home, allowedPaths and createdAt.", PAGE),
    ("createdAt is UTC in ISO 8601 with milliseconds and Z.", PAGE),
    ("POST /users registers a user and answers created: true.", PAGE),
    ("Registering again updates home, keeps createdAt and answers created: false.", PAGE),
    ("Without an id the answer is 400, id required.", PAGE),
    ("Without a home the answer is 400, home required.", PAGE),
    ("home must be an absolute path.", PAGE),
    ("DELETE /users/:id removes the record and answers deleted: true.", PAGE),
    ("Deleting an unknown user answers deleted: false.", PAGE),
    ("Deleting a user ends its sessions and shells.", PAGE),
    ("Deleting a user leaves the files in its home.", PAGE),
    ("Users survive a restart in users.json of the data directory.", PAGE),
    ("The data directory is .stringd in the working directory unless told otherwise.", PAGE),
    ("id is also taken from user_id; id wins.", SPEC("1.3")),
    ("id and home are trimmed.", SPEC("1.3")),
    ("allowed_paths is stored and kept by an update without it.", SPEC("1.3")),
    ("A changed home drops what was loaded for the old one.", SPEC("1.3")),
    ("users.json is an array, indented by two, ending in a newline, mode 0600.", SPEC("1.3")),
    ("A kill at any moment leaves the old users.json or the new one.", SPEC("1.3")),
    ("A missing or unreadable users.json means no users, and is kept aside.", SPEC("1.3")),
    ("id and home that are no strings are 400 and named.", RULING(14)),
    ("The id in a path is percent-decoded.", SPEC("1.3")),
)

SESSION = _numbered(
    "SESSION",
    ("GET /sessions lists the sessions of all users, or of user_id.", PAGE),
    (
        "An item has user_id, topic, topic_type, executing, queue_length and doc.",
        PAGE,
    ),
    ("doc is null while no document is open.", PAGE),
    ("POST /sessions makes a session without running anything: created is true.", PAGE),
    ("A second POST /sessions answers created: false.", PAGE),
    ("Without user_id the answer is 400, user_id required.", PAGE),
    ("An unknown user is 401 and named.", PAGE),
    ("A topic that does not parse is 400 and quoted.", PAGE),
    ("DELETE /sessions/:user_id/:topic closes a session: deleted is true.", PAGE),
    ("Deleting what does not exist answers deleted: false.", PAGE),
    ("A path without both parts is 400 and says what was expected.", PAGE),
    ("Deleting a session ends its shell.", PAGE),
    ("The checks of POST /sessions run in the order user_id, user, topic.", SPEC("1.3")),
    ("The topic of a DELETE is canonicalised and percent-decoded.", SPEC("1.3")),
    ("doc names uri, title and current_block of the open document.", PAGE),
)

TOPIC = _numbered(
    "TOPIC",
    ("A topic is type:name with the types file, app, web and bash.", PAGE),
    ("An app topic may have a third segment.", PAGE),
    ("A blank or absent topic means file:main, a bare name file:<name>.", SPEC("1.3")),
    ("A topic belongs to a user: the same name of another user is another topic.", PAGE),
    ("A topic keeps its state between commands.", PAGE),
)

SSE = _numbered(
    "SSE",
    ("POST /exec runs one command and answers 200 with the four SSE headers.", PAGE),
    ("The body is exactly head, content, done, in this order.", PAGE),
    ("Each event is an event line, one data line of compact JSON, an empty line.", PAGE),
    ("head has ok, code, cmd, request_id, user_id, topic, topic_type, meta in order.", PAGE),
    ("ok is true and code null on success; on failure code is a short word.", PAGE),
    ("cmd is the first line of the command, cut to 77 and ... when above 80.", PAGE),
    ("request_id is echoed in head and in brackets in the content, or null.", PAGE),
    ("topic is canonical and topic_type its type.", PAGE),
    ("meta is null when no document is loaded.", PAGE),
    ("content is one JSON string that begins with re: and the command.", PAGE),
    ("A failed command answers ERROR(CODE): message in a complete stream.", f"{PAGE}, ruling 2"),
    ("done carries an empty object and ends the stream.", PAGE),
    ("Without X-User-Id the answer is 400, X-User-Id header required.", PAGE),
    ("An unknown user is 401 and named.", PAGE),
    ("A body that is no JSON object is 400 and says what was expected.", PAGE),
    ("A missing or blank cmd is 400 and says so.", PAGE),
    ("A topic that does not parse is 400 and quoted.", PAGE),
    ("The checks run in the order header, user, JSON, cmd, topic.", SPEC("1.4")),
    ("cmd, topic and request_id that are no strings are 400 and named.", RULING(14)),
    ("A command without its slash is answered in band.", SPEC("1.4")),
    ("Events are sent whatever the request accepts.", PAGE),
    ("Text outside ASCII is not escaped.", SPEC("1.4")),
    ("The headers leave when the command starts, before it finishes.", SPEC("1.4")),
    ("A defect in a command is INTERNAL_ERROR in a complete stream.", SPEC("1.4")),
    ("cwd must be an absolute directory; its files are reachable for the request.", RULING(17)),
    ("meta names uri, title and current_block of the open document first.", PAGE),
)

QUEUE = _numbered(
    "QUEUE",
    ("A topic runs one command at a time; the next wait in order of arrival.", PAGE),
    ("Sixteen may wait; the next is answered 429 QUEUE_FULL at once.", f"{PAGE}, ruling 3"),
    ("Who waits longer than the limit is answered 504 QUEUE_TIMEOUT.", PAGE),
    ("The limit is 60 seconds, or STRINGD_QUEUE_TIMEOUT_MS.", RULING(3)),
    ("Who leaves while waiting is forgotten: nothing runs, nothing is answered.", PAGE),
    ("Other topics run side by side.", SPEC("1.4")),
    ("Who leaves while its command runs does not stop it.", SPEC("1.4")),
    ("/sessions shows who executes and how many wait.", PAGE),
    ("What waits for a topic that is closed is answered so, and never runs.", "our own promise"),
)

HEALTH = _numbered(
    "HEALTH",
    ("GET /health answers ok and counts users and sessions, for anybody.", PAGE),
    ("It also carries status, uptime, activeRuns and connectedClients.", RULING(4)),
    ("POST /shutdown answers ok and a message, then the process ends.", PAGE),
    ("SIGINT and SIGTERM close the server and exit 0.", SPEC("1.1")),
    ("A port in use is a clear message and exit 1.", SPEC("1.1")),
    ("A port value that cannot be used is an error naming variable and value.", SPEC("1.1")),
    ("At the start the daemon prints where it listens, and how many users it loaded.", SPEC("1.1")),
    ("Logging is off unless asked for, and writes one line an event.", SPEC("1.1")),
    ("What was acknowledged survives kill -9, whole and once.", "our own promise"),
    ("Two daemons on one data directory lose and double nothing.", "our own promise"),
)

CLIENT = _numbered(
    "CLIENT",
    ("Our client names its user on every /exec and accepts events.", PAGE),
    ("It makes sure that the user exists, and starts the daemon when none answers.", PAGE),
    ("It returns ok, code and content without the re: line.", PAGE),
    ("A stream without content or done is STREAM_INCOMPLETE.", PAGE),
    ("429 and 504 keep their own codes; other refusals are HTTP_ERROR.", PAGE),
    ("It never sends a command twice.", PAGE),
    ("It reads data as JSON, never as raw bytes.", PAGE),
    ("It accepts a head whose meta is null.", PAGE),
    ("It reuses a kept-alive connection and tolerates that an idle one was closed.", PAGE),
)

ALL = [
    *TRUST,
    *HTTP,
    *USER,
    *SESSION,
    *TOPIC,
    *SSE,
    *QUEUE,
    *HEALTH,
    *CLIENT,
]
