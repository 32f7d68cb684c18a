"""What rules match, tried with everything that gets round rules elsewhere."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stringd.gate.judge import NOTHING_SAID, judge
from stringd.gate.program import Identity, ShownProgram
from stringd.gate.rule_file import parse_rules
from stringd.gate.rules import Effect, PathFact
from stringd.gate.trust import Weakness
from stringd.gate.versatile import needs_exact_words, runs_its_input
from tests.gate.rulebook import FILE, allow, attempt, program, rules
from tests.requirements import proves

# One rule of each kind that is useful, and nothing else.
BOOK = rules(
    allow('["/usr/bin/git", "status", "--short"]')
    + allow('["/usr/bin/find", "/etc", "-name", "*.conf"]')
    + allow('["/usr/bin/tar", "-tf", "/srv/a.tar"]')
    + allow('["/usr/bin/rsync", "-a", "/srv/a", "/srv/b"]')
    + allow('["/usr/bin/ssh", "host", "uptime"]')
    + allow('["/usr/bin/sort", "-n"]')
    + allow('["/usr/bin/apt", "list"]')
    + allow('["/usr/bin/curl", "-fsS", "https://example.org/"]')
    + allow('["/usr/bin/less", "/etc/hosts"]')
    + allow('["/usr/bin/sed", "-n", "1p", "/etc/hosts"]')
    + allow('["/usr/bin/awk", "{print $1}"]')
    + allow('["/usr/bin/docker", "ps"]')
    + allow('["/usr/bin/tee", "/srv/log"]')
    + allow('["/usr/bin/dash", "-c", "uptime"]')
    + allow('["/usr/bin/env"]')
    + allow('["/usr/bin/xargs", "-n1", "echo"]')
    + allow('["/usr/bin/nice", "uptime"]')
    + allow('["/usr/bin/timeout", "5", "uptime"]')
    + allow('["/usr/bin/sudo", "-n", "true"]')
    + allow('["/usr/bin/systemd-run", "uptime"]')
    + allow('["/usr/bin/systemctl", "restart", { one_of = ["nginx", "php-fpm"] }]')
    + allow('["/usr/bin/journalctl", "-u", { name = true }, "-n", { int = [1, 500] }]')
    + allow('["/usr/bin/cat", { path_under = "/var/log" }]')
    + allow('["/usr/bin/head"]')
    + allow('["/usr/bin/printenv", "LANG"]', 'env = { LANG = "C.UTF-8" }')
)
LOGS = {
    "/var/log/syslog": PathFact("/var/log/syslog", None),
    "/var/log/link": PathFact("/etc/shadow", None),
    "/var/log/app/own": PathFact("/var/log/app/own", "alice"),
    "/var/logs/x": PathFact("/var/logs/x", None),
}

MATCHING: list[Sequence[str]] = [
    ["git", "status", "--short"],
    ["/usr/bin/git", "status", "--short"],
    ["find", "/etc", "-name", "*.conf"],
    ["systemctl", "restart", "nginx"],
    ["systemctl", "restart", "php-fpm"],
    ["journalctl", "-u", "ssh.service", "-n", "1"],
    ["journalctl", "-u", "getty@tty1.service", "-n", "500"],
    ["cat", "/var/log/syslog"],
    ["dash", "-c", "uptime"],
    ["env"],
]

ASKED: list[tuple[Sequence[str], str]] = [
    # Arguments that make a harmless program run, read or write something else.
    (["git", "-c", "core.pager=touch x", "status", "--short"], "word 1"),
    (["git", "--exec-path=/tmp/x", "status", "--short"], "word 1"),
    (["git", "status", "--short", "--upload-pack=touch x"], "word 3"),
    (["git", "status"], "word 2 is missing"),
    (["git", "STATUS", "--short"], "word 1"),
    (["find", "/etc", "-name", "*.conf", "-exec", "touch", "x", ";"], "word 4"),
    (["find", "/etc", "-fprintf", "/tmp/x", "*.conf"], "word 2"),
    (["tar", "-tf", "/srv/a.tar", "--checkpoint-action=exec=touch x"], "word 3"),
    (["tar", "-I", "touch x", "-tf", "/srv/a.tar"], "word 1"),
    (["tar", "-tf", "/srv/a.tar", "--to-command=touch x"], "word 3"),
    (["rsync", "-a", "-e", "touch x", "/srv/a", "/srv/b"], "word 2"),
    (["ssh", "-oProxyCommand=touch x", "host", "uptime"], "word 1"),
    (["sort", "-n", "--compress-program=touch x"], "word 2"),
    (["apt", "-o", "APT::Update::Pre-Invoke::=touch x", "list"], "word 1"),
    (["curl", "-K", "/tmp/x", "https://example.org/"], "word 1"),
    (["curl", "-fsS", "https://example.org/", "-o", "/tmp/x"], "word 3"),
    (["less", "+!touch x", "/etc/hosts"], "word 1"),
    (["sed", "-n", "1e touch x", "/etc/hosts"], "word 2"),
    (["awk", 'BEGIN{system("touch x")}'], "word 1"),
    (["docker", "run", "-v", "/:/host", "x"], "word 1"),
    (["tee", "/etc/passwd"], "word 1"),
    (["tee", "/srv/log", "/etc/passwd"], "word 2"),
    # Wrappers: what is inside is never matched for itself.
    (["dash", "-c", "uptime; touch x"], "word 2"),
    (["dash", "-c", "uptime", "x"], "word 3"),
    (["sh", "-c", "uptime"], NOTHING_SAID),
    (["env", "git", "status", "--short"], "word 1"),
    (["xargs", "-n1", "rm"], "word 2"),
    (["nice", "git", "status", "--short"], "word 1"),
    (["timeout", "5", "git", "status", "--short"], "word 2"),
    (["sudo", "git", "status", "--short"], "word 1"),
    (["systemd-run", "git", "status", "--short"], "word 1"),
    # Slots.
    (["systemctl", "restart", "sshd"], "is not one of nginx php-fpm"),
    (["systemctl", "restart", "nginx", "sshd"], "one word too many"),
    (["systemctl", "restart", "--no-block"], "might be an option"),
    (["systemctl", "restart", "nginx "], "is not one of"),
    (["journalctl", "-u", "-f", "-n", "1"], "might be an option"),
    (["journalctl", "-u", "../x", "-n", "1"], "is not a plain name"),
    (["journalctl", "-u", "", "-n", "1"], "is not a plain name"),
    (["journalctl", "-u", "a b", "-n", "1"], "is not a plain name"),
    (["journalctl", "-u", "x" * 129, "-n", "1"], "is not a plain name"),
    (["journalctl", "-u", "ssh", "-n", "0"], "is not between 1 and 500"),
    (["journalctl", "-u", "ssh", "-n", "-1"], "might be an option"),
    (["journalctl", "-u", "ssh", "-n", "٣"], "is not a whole number"),
    (["journalctl", "-u", "ssh", "-n", "1e2"], "is not a whole number"),
    (["journalctl", "-u", "ssh", "-n", "+1"], "is not a whole number"),
    (["journalctl", "-u", "ssh", "-n", "9" * 40], "is not a whole number"),
    (["cat", "/var/log/../../etc/shadow"], "is not a plain path under /var/log"),
    (["cat", "/var/log/./syslog"], "is not a plain path"),
    (["cat", "/var/log//syslog"], "is not a plain path"),
    (["cat", "/var/log/"], "is not a plain path"),
    (["cat", "/var/log"], "is not a plain path"),
    (["cat", "/var/logs/x"], "is not a plain path under /var/log"),
    (["cat", "var/log/syslog"], "is not a plain path"),
    (["cat", "/var/log/link"], "leads to /etc/shadow, outside of /var/log"),
    (["cat", "/var/log/app/own"], "can be exchanged for another file by alice"),
    (["cat", "/var/log/none"], "leads to nothing"),
    (["cat", "--help"], "might be an option"),
    # Programs by other names.
    (["rm", "-rf", "/"], NOTHING_SAID),
    (["./git", "status", "--short"], "word 0"),
]


@proves("GATE-RULE-01")
@pytest.mark.parametrize("argv", MATCHING, ids=" ".join)
def test_what_a_rule_says_runs_and_the_rule_is_named(argv: Sequence[str]) -> None:
    decided = judge(BOOK, {}, attempt(argv, paths=LOGS))
    assert decided.effect is Effect.ALLOW
    assert decided.by == f"rule:{FILE}:{decided.rules[0].line}"


@proves("GATE-RULE-01")
@pytest.mark.parametrize(("argv", "why"), ASKED, ids=[" ".join(argv)[:60] for argv, _ in ASKED])
def test_everything_else_is_asked_and_the_word_is_named(argv: Sequence[str], why: str) -> None:
    name = argv[0].rpartition("/")[2]
    found = [program(argv[0], path=f"/usr/bin/{name}", real=f"/usr/bin/{name}")]
    decided = judge(BOOK, {}, attempt(argv, programs=found, paths=LOGS))
    assert (decided.effect, decided.by) == (Effect.ASK, "")
    assert why in decided.why
    if why != NOTHING_SAID:
        assert decided.why.startswith(f"{FILE}:")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"real": "/home/a/git"}, "leads to /home/a/git"),
        ({"real": None}, "leads to"),
        ({"path": None, "real": None, "identity": None}, NOTHING_SAID),
        ({"weaknesses": (Weakness("/usr/bin/git", "alice"),)}, "can be changed by alice"),
        ({"is_fixed": False}, "is not in a directory of the system"),
        ({"interpreters": (Weakness("/opt/py", "alice"),)}, "is run by /opt/py, which alice can"),
        ({"identity": Identity(1, 2, 3, 4, 6)}, "is another file than when the rules were read"),
        ({"identity": None}, "is another file than when the rules were read"),
    ],
)
@proves("GATE-RULE-02")
def test_another_or_changeable_program_is_asked_about(changes: dict[str, object], why: str) -> None:
    words = ["git", "status", "--short"]
    decided = judge(BOOK, {}, attempt(words, programs=[program("git", **changes)]))
    assert decided.effect is Effect.ASK
    assert why in decided.why


def test_a_program_under_another_name_is_asked_about() -> None:
    # One file under many names does what the name says.
    shell = ShownProgram("vi", "/usr/bin/vi", "/usr/bin/head", BOOK[0].identity, is_fixed=True)
    assert judge(BOOK, {}, attempt(["vi"], programs=[shell])).effect is Effect.ASK


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"LANG": "C"},
        {"LANG": "C.UTF-8", "HOME": "/tmp/evil"},
        {"LANG": "C.UTF-8", "TERM": "/tmp/x"},
        {"LANG": "C.UTF-8", "TZ": ":/tmp/x"},
        {"HOME": "C.UTF-8"},
    ],
)
@proves("GATE-RULE-03")
def test_another_environment_is_asked_about(env: dict[str, str]) -> None:
    decided = judge(BOOK, {}, attempt(["printenv", "LANG"], env=env))
    assert decided.effect is Effect.ASK
    assert "the environment is another" in decided.why


@proves("GATE-RULE-03")
def test_the_same_environment_is_allowed_and_the_default_is_none() -> None:
    same = attempt(["printenv", "LANG"], env={"LANG": "C.UTF-8"})
    assert judge(BOOK, {}, same).effect is Effect.ALLOW
    assert judge(BOOK, {}, attempt(["env"], env={"HOME": "/tmp/evil"})).effect is Effect.ASK


@proves("GATE-RULE-01")
def test_every_command_of_a_pipeline_must_be_allowed() -> None:
    both = attempt(["cat", "/var/log/syslog"], ["head"], paths=LOGS)
    decided = judge(BOOK, {}, both)
    assert decided.effect is Effect.ALLOW
    assert decided.by.count(f"rule:{FILE}:") == 2
    one = judge(BOOK, {}, attempt(["head"], ["rm", "x"]))
    assert (one.effect, one.stage) == (Effect.ASK, 1)


@pytest.mark.parametrize("argv", [["dash", "-c", "uptime"], ["env"], ["xargs", "-n1", "echo"]])
def test_what_may_run_its_input_is_asked_about_behind_a_pipe(argv: Sequence[str]) -> None:
    decided = judge(BOOK, {}, attempt(["head"], argv))
    assert decided.effect is Effect.ASK
    assert "may run what it reads from the pipe" in decided.why


def test_a_rule_that_only_filters_may_read_a_pipe_although_its_words_are_exact() -> None:
    assert judge(BOOK, {}, attempt(["head"], ["sort", "-n"])).effect is Effect.ALLOW


@proves("GATE-RULE-04")
def test_root_needs_a_rule_of_its_own_and_such_a_rule_is_for_root_only() -> None:
    assert judge(BOOK, {}, attempt(["head"], as_root=True)).effect is Effect.ASK
    ours = rules(allow('["/usr/bin/head"]', "root = true"))
    assert judge(ours, {}, attempt(["head"], as_root=True)).effect is Effect.ALLOW
    assert judge(ours, {}, attempt(["head"])).effect is Effect.ASK


@proves("GATE-RULE-04")
def test_the_own_file_allows_root_nothing() -> None:
    found = parse_rules(allow('["/usr/bin/head"]', "root = true"), FILE, for_root=False)
    assert found.rules == ()
    assert "only root can change" in found.problems[0].why


def test_the_agent_is_never_lent_by_a_rule() -> None:
    assert judge(BOOK, {}, attempt(["head"], forward_agent=True)).effect is Effect.ASK


@proves("GATE-RULE-05")
def test_beyond_its_limit_a_rule_asks() -> None:
    ours = rules(allow('["/usr/bin/head"]', "limit = 2"))
    for uses, effect in ((0, Effect.ALLOW), (1, Effect.ALLOW), (2, Effect.ASK)):
        decided = judge(ours, {}, attempt(["head"], uses={ours[0].name: uses}))
        assert decided.effect is effect
    assert "used 2 times in 60 seconds" in decided.why


DENIED = """
[[rule]]
effect = "deny"
argv = ["rm", { rest = true }]

[[rule]]
effect = "ask"
argv = ["/usr/bin/git", "push", { rest = true }]

[[rule]]
effect = "ask"
argv = ["mkfs", { any = true }]
"""


@pytest.mark.parametrize(
    ("word", "path", "real"),
    [
        ("rm", "/usr/bin/rm", "/usr/bin/rm"),
        ("/bin/rm", "/bin/rm", "/usr/bin/rm"),
        ("/tmp/harmless", "/tmp/harmless", "/usr/bin/rm"),
        ("rm", None, None),
        ("/opt/x/rm", "/opt/x/rm", "/opt/x/tool"),
    ],
)
@proves("GATE-RULE-06")
def test_a_denial_knows_a_program_by_every_name(
    word: str, path: str | None, real: str | None
) -> None:
    found = [ShownProgram(word, path, real)]
    decided = judge(rules(DENIED), {}, attempt([word, "-rf", "x"], programs=found))
    assert (decided.effect, decided.by) == (Effect.DENY, f"rule:{FILE}:2")


@proves("GATE-RULE-06")
def test_deny_is_before_ask_and_ask_before_allow_wherever_they_are_written() -> None:
    everything = rules(allow('["/usr/bin/rm", "x"]') + allow('["/usr/bin/git", "push"]') + DENIED)
    assert judge(everything, {}, attempt(["rm", "x"])).effect is Effect.DENY
    asked = judge(everything, {}, attempt(["git", "push"]))
    assert asked.effect is Effect.ASK
    assert asked.by.startswith("rule:")
    assert judge(everything, {}, attempt(["git", "push"], ["rm", "y"])).effect is Effect.DENY
    assert judge(everything, {}, attempt(["mkfs", "/dev/x"])).by.startswith("rule:")
    assert judge(everything, {}, attempt(["mkfs", "/dev/x", "y"])).by == ""


RUNNERS = (
    "sh bash dash busybox env xargs nice timeout sudo systemd-run python3 python3.11 perl5.36.0 "
    "ld-linux-x86-64.so.2 ssh docker docker-compose setarch choom sg run-one logsave qemu-x86_64"
)
VERSATILE = (
    "git find tar rsync sort apt apt-get curl less vim.basic sed gawk mawk tee gcc-12 awk.real"
)


@pytest.mark.parametrize("name", RUNNERS.split())
def test_what_runs_its_words_is_known_by_its_versions_too(name: str) -> None:
    assert runs_its_input(f"/usr/bin/{name}")
    assert needs_exact_words(f"/usr/bin/{name}")


@pytest.mark.parametrize(
    "name",
    [
        "git",
        "find",
        "tar",
        "rsync",
        "sort",
        "apt",
        "apt-get",
        "curl",
        "less",
        "vim.basic",
        "sed",
        "gawk",
        "mawk",
        "tee",
        "gcc-12",
        "zless",
        "patch",
    ],
)
def test_what_an_argument_makes_run_others_needs_exact_words(name: str) -> None:
    assert needs_exact_words(f"/usr/bin/{name}")
    text = allow(f'["/usr/bin/{name}", {{ name = true }}]')
    assert "only exact words" in parse_rules(text, FILE, for_root=True).problems[0].why


def test_rules_pinned_to_a_file_do_not_match_its_successor() -> None:
    older = [replace(rule, identity=Identity(1, 9, 3, 4, 5)) for rule in BOOK]
    assert judge(older, {}, attempt(["head"])).effect is Effect.ASK
