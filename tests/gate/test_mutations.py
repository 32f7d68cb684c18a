"""Every security claim rests on a line, and a test fails when that line is taken away.

Each entry changes one line of a copy of the package and runs one test of the claim against the
copy. A line that is no longer there, or there twice, fails here too: the table has to follow.
"""

import ast
from pathlib import Path

import pytest

from tests.gate.mutants import TESTS, Mutant, copy_with, run_against
from tests.gate.support import PATIENCE

CLAIMS = ["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"]
CLAIMS += ["R1", "R2", "R3", "R4", "R5", "R6"]

SECURITY = "test_claims.py::test_"
RESOURCES = "test_claims_resources.py::test_"
PASSED, FAILED = 0, 1
# What a broken gate never does is waited for in vain, so not for long.
SHORT = 1.5

ASKING = "self._approver.ask(self._question(), self._caller.watch)"
SCANNED = ("reason", "session", "host", "version", "id", "client", "directory", "tool")
SCAN = f"    *{SCANNED},".replace("'", '"')
EVERY_CHARACTER = SECURITY + "c6_every_forbidden_character_is_found_and_no_other"


def without(field: str) -> str:
    return f"    *{tuple(name for name in SCANNED if name != field)},"


def refused(carrier: str) -> str:
    return SECURITY + f"c6_an_escape_in_any_displayed_field_is_refused[{carrier}]"


def asking(answered: str) -> str:
    """A way round the question for some requests."""
    answered = answered.replace("Answer(", "self._question() and Answer(")
    return answered.replace("request.", "self._request.").replace("None", ASKING)


MUTANTS = [
    Mutant(
        "C1",
        "gate/display.py",
        'c in "-_/.:,@%+="',
        'c in "-_/.:,@%+=|"',
        SECURITY + "c1_different_pipelines_never_look_the_same",
    ),
    Mutant(
        "C1",
        "gate/pipeline.py",
        "words = list(self._request.pipeline[index])",
        'words = " ".join(self._request.pipeline[index]).split()',
        SECURITY + "c1_what_runs_is_byte_identical_to_what_was_shown",
    ),
    Mutant(
        "C1",
        "gate/resolve.py",
        "if not same or _real(program.path) != program.real:",
        "if False:",
        SECURITY + "c1_a_file_swapped_after_approval_is_not_run",
    ),
    Mutant(
        "C1",
        "gate/resolve.py",
        'return f"/proc/self/fd/{held.file}", None',
        "return path, None",
        "test_attacks.py::test_a1_a_parent_exchanged_after_approval_changes_nothing[binary]",
    ),
    Mutant(
        "C1",
        "gate/resolve.py",
        "held.file if held.copy is None else held.copy",
        "held.file",
        "test_attacks.py::test_a1_a_script_rewritten_in_place_after_approval_runs_as_it_was_shown",
    ),
    Mutant(
        "C1",
        "gate/question.py",
        '    yield from labelled("Runs:    ", _how_it_runs(question), columns)\n',
        "",
        "test_question.py::test_where_it_runs_and_as_whom_is_said",
    ),
    Mutant(
        "C1",
        "gate/sudo.py",
        'items()), "--", *command]',
        "items()), *command]",
        SECURITY + "c1_sudo_reads_no_word_of_a_command_as_its_own",
    ),
    Mutant(
        "C1",
        "gate/validate.py",
        'if name.startswith("-") or "=" in name:',
        'if name.startswith("-"):',
        SECURITY + "c1_sudo_reads_no_word_of_a_command_as_its_own",
    ),
    Mutant(
        "C2",
        "gate/keys.py",
        "else Key.NO)",
        "else Key.YES)",
        SECURITY + "c2_of_all_keys_and_none_only_y_is_a_yes",
    ),
    Mutant(
        "C2",
        "gate/decide.py",
        "(State.ASKED, Event.SILENCE): State.TIMED_OUT",
        "(State.ASKED, Event.SILENCE): State.APPROVED",
        SECURITY + "c2_neither_a_no_nor_silence_runs_anything[silence]",
    ),
    Mutant(
        "C2",
        "gate/decide.py",
        "(State.ASKED, Event.NO): State.DENIED",
        "(State.ASKED, Event.NO): State.APPROVED",
        SECURITY + "c2_neither_a_no_nor_silence_runs_anything[no]",
    ),
    Mutant(
        "C2",
        "gate/arming.py",
        "elif now < self._armed_at:",
        "elif False:",
        "test_arming.py::test_a_key_counts_after_the_silence_and_not_before",
    ),
    Mutant(
        "C2",
        "gate/arming.py",
        "        self._dropped = why\n        self._start_silence(now)\n",
        "        self._dropped = why\n",
        "test_arming.py::test_every_dropped_key_starts_the_silence_again",
    ),
    Mutant(
        "C2",
        "gate/arming.py",
        "elif now < self._pressed_at.get(keys[0], _NEVER) + self._quiet * _REPEAT_FACTOR:",
        "elif False:",
        "test_arming.py::test_a_key_held_down_never_approves",
    ),
    Mutant(
        "C2",
        "gate/arming.py",
        "now + self._quiet * _CHANGE_FACTOR",
        "now",
        "test_arming.py::test_after_a_question_left_by_itself_the_next_one_is_armed_later",
    ),
    Mutant(
        "C3",
        "gate/replay.py",
        "if key in self._seen:",
        "if False:",
        SECURITY + "c3_an_approval_is_used_once_however_many_ask_with_its_id",
    ),
    Mutant(
        "C3",
        "gate/replay.py",
        "        with self._lock:\n",
        "        if True:\n",
        SECURITY + "c3_looking_an_id_up_and_remembering_it_are_one_step",
    ),
    Mutant(
        "C3",
        "gate/replay.py",
        "MAX_AGE_SECONDS + max_future + MARGIN_SECONDS",
        "MAX_AGE_SECONDS",
        SECURITY + "c3_no_bytes_are_fresh_again_after_their_id_is_forgotten",
    ),
    Mutant(
        "C3",
        "gate/validate.py",
        "(lead := lead_seconds(instant, now)) > max_future",
        "(lead := lead_seconds(instant, now)) > 10**12",
        SECURITY + "c3_a_stamp_from_the_future_is_refused",
    ),
    Mutant(
        "C3",
        "gate/decide.py",
        "        self.advance(Event.START)\n",
        "",
        SECURITY + "c3_a_permit_is_handed_out_once_and_only_after_a_yes",
    ),
    Mutant(
        "C4",
        "gate/case.py",
        ASKING,
        asking('Answer(Event.YES) if request.session == "always" else None'),
        SECURITY + "c4_no_field_of_a_request_switches_asking_off",
    ),
    Mutant(
        "C4",
        "gate/case.py",
        ASKING,
        asking('Answer(Event.YES) if "HOME" in request.env else None'),
        SECURITY + "c4_no_field_of_a_request_switches_asking_off",
    ),
    Mutant(
        "C5",
        "gate/pipeline.py",
        '["sudo", "-v"]',
        '["sudo", "-S", "-v"]',
        SECURITY + "c5_no_password_is_read",
    ),
    Mutant(
        "C5",
        "gate/audit.py",
        "    os.fchmod(descriptor, 0o600)\n",
        '    Path(f"{path}.cache").touch()\n',
        SECURITY + "c5_nothing_is_stored_but_the_audit_log",
    ),
    *[Mutant("C6", "gate/validate.py", SCAN, without(field), refused(field)) for field in SCANNED],
    Mutant("C6", "gate/validate.py", "if not is_clean(word):", "if False:", refused("word")),
    Mutant("C6", "gate/validate.py", "if not is_clean(name):", "if False:", refused("env key")),
    Mutant(
        "C6",
        "gate/validate.py",
        "if not all(map(is_clean, request.env.values())):",
        "if False:",
        refused("env value"),
    ),
    Mutant(
        "C6",
        "gate/instants.py",
        "_INSTANT.fullmatch(text)",
        "_INSTANT.match(text)",
        refused("time"),
    ),
    *[
        Mutant("C6", "gate/characters.py", span, "", EVERY_CHARACTER)
        for span in ("    (0x7F, 0x9F),\n", "    (0x2028, 0x202E),\n", "    (0xE0000, 0xE0FFF),\n")
    ],
    Mutant(
        "C6",
        "gate/display.py",
        "text = render(span.text)",
        "text = span.text",
        SECURITY + "c6_nothing_is_painted_that_a_reader_cannot_see",
    ),
    Mutant(
        "C6",
        "gate/characters.py",
        "return 1 if character.isascii() else 2",
        "return 1",
        "test_characters.py::test_whatever_is_not_ascii_may_take_two_columns",
    ),
    Mutant(
        "C7",
        "wire/gate.py",
        '_flag(members, "privileged", default=True)',
        '_flag(members, "privileged", default=False)',
        SECURITY + "c7_a_raw_socket_caller_is_gated_like_any_other",
    ),
    Mutant(
        "C7",
        "gate/server.py",
        "if peer.uid != os.getuid():",
        "if False:",
        SECURITY + "c7_another_user_is_hung_up_on",
    ),
    Mutant(
        "C7",
        "gate/validate.py",
        "            raise RefusalError(message)\n",
        "            break\n",
        SECURITY + "c7_what_a_client_would_never_send_is_refused_all_the_same",
    ),
    Mutant(
        "C8",
        "gate/case.py",
        ASKING,
        asking(
            "Answer(Event.YES) if _DECISIONS.setdefault(request.session, request.id) "
            "is not request.id and not request.privileged else None"
        ),
        SECURITY + "c8_every_command_is_asked_about_however_often_it_was_approved[False]",
    ),
    Mutant(
        "C8",
        "gate/case.py",
        ASKING,
        asking(
            "Answer(Event.YES) if _DECISIONS.setdefault(request.session, request.id) "
            "is not request.id else None"
        ),
        SECURITY + "c8_every_command_is_asked_about_however_often_it_was_approved[True]",
    ),
    Mutant(
        "C9",
        "gate/case.py",
        ASKING,
        asking('Answer(Event.YES) if request.host == "127.1.2.3" else None'),
        SECURITY + "c9_no_name_for_this_machine_changes_how_it_is_asked",
    ),
    Mutant(
        "C10",
        "gate/case.py",
        ASKING,
        asking('Answer(Event.YES) if request.host not in ("", "localhost") else None'),
        SECURITY + "c10_an_alias_nobody_detects_reaches_a_gate_that_asks_for_itself",
    ),
    Mutant(
        "R1",
        "gate/server.py",
        "self.deadline = time.monotonic() + HANDSHAKE_SECONDS",
        "self.deadline = time.monotonic() + 3600",
        RESOURCES + "r1_a_handshake_that_does_not_end_is_ended[silent]",
    ),
    Mutant(
        "R1",
        "gate/server.py",
        "        elif self._handler.places.are_full:\n",
        "        elif self.handshakes >= 64:\n",
        RESOURCES + "r1_64_hostile_connections_do_not_keep_an_honest_one_from_being_served",
    ),
    Mutant(
        "R1",
        "gate/server.py",
        "            self._make_room()\n",
        "",
        RESOURCES + "r1_a_crowd_makes_room_for_whoever_comes",
    ),
    Mutant(
        "R1",
        "gate/callers.py",
        "return self.taken >= self._limit",
        "return False",
        "test_server.py::test_over_the_cap_the_answer_is_busy_without_the_request_being_read",
    ),
    Mutant(
        "R1",
        "gate/callers.py",
        "if self.are_full or self._taken[caller] >= self._per_caller:",
        "if self.are_full:",
        "test_attacks.py::test_a8_one_caller_does_not_take_all_places_nor_all_turns",
    ),
    Mutant(
        "R2",
        "gate/case.py",
        "if (missed := self._shop.ration.admit()) is not None:",
        "if (missed := self._shop.ration.admit() or 0) is not None:",
        "test_attacks.py::test_a9_requests_that_are_withdrawn_do_not_fill_the_disk",
    ),
    Mutant(
        "R2",
        "gate/capture.py",
        "self._cap = cap",
        "self._cap = cap * 2",
        RESOURCES + "r2_a_stream_is_kept_up_to_16_mib",
    ),
    Mutant(
        "R2",
        "wire/jsonlines.py",
        "if len(self._buffer) > self._limit:",
        "if False:",
        RESOURCES + "r2_a_line_is_read_up_to_1_mib",
    ),
    Mutant(
        "R2",
        "gate/requests.py",
        "self._large = Callers(MAX_LARGE_IN_FLIGHT, MAX_LARGE_IN_FLIGHT)",
        "self._large = Callers(64, 64)",
        RESOURCES + "r2_few_large_requests_are_held_at_a_time",
    ),
    Mutant(
        "R2",
        "gate/server.py",
        "if len(self._threads) >= MAX_THREADS:",
        "if False:",
        RESOURCES + "r2_there_are_never_more_threads_than_can_be_served",
    ),
    Mutant(
        "R2",
        "gate/replay.py",
        "if len(self._seen) >= self._capacity:",
        "if False:",
        RESOURCES + "r2_the_memory_of_ids_is_bounded",
    ),
    Mutant(
        "R3",
        "gate/processes.py",
        "_end_all(family(ours), ours, sudo, deadline)",
        "_end_all(sorted(ours), ours, sudo, deadline)",
        RESOURCES + "r3_an_overrun_leaves_no_process_behind",
    ),
    Mutant(
        "R3",
        "gate/pipeline.py",
        "        self.end()\n        self._end_guard()\n",
        "        self._end_guard()\n",
        RESOURCES + "r3_a_stage_that_cannot_start_ends_the_ones_before_it",
    ),
    Mutant(
        "R4",
        "gate/listener.py",
        "umask = os.umask(0o177)",
        "umask = os.umask(0)",
        RESOURCES + "r4_the_socket_never_was_wider_than_0600",
    ),
    Mutant(
        "R4",
        "gate/listener.py",
        "if stat.S_ISSOCK(found.st_mode) and _answers(path):",
        "if False:",
        RESOURCES + "r4_a_living_gate_is_never_clobbered",
    ),
    Mutant(
        "R4",
        "gate/listener.py",
        "        _lock(descriptor)\n",
        "",
        "test_listener.py::test_two_gates_that_find_a_dead_socket_do_not_take_each_others",
    ),
    Mutant(
        "R5",
        "gate/instants.py",
        "hour * 3600",
        "hour * 60",
        RESOURCES + "r5_a_later_stamp_is_a_later_instant",
    ),
    Mutant(
        "R5",
        "gate/instants.py",
        "    except ValueError:\n        return None\n",
        "    except ZeroDivisionError:\n        return None\n",
        RESOURCES + "r5_every_text_is_an_instant_or_none",
    ),
    Mutant(
        "R5",
        "gate/instants.py",
        "return max(0, (now - instant) // SECOND)",
        "return (now - instant) // SECOND",
        RESOURCES + "r5_age_and_lead_are_total_and_monotone",
    ),
    Mutant(
        "R6",
        "gate/terminal.py",
        "saved, self._saved = self._saved, None",
        "saved, self._saved = None, None",
        RESOURCES + "r6_the_terminal_is_restored_after_a_crash",
    ),
    Mutant(
        "R6",
        "gate/terminal.py",
        "typed = self._typed_ahead()",
        'typed = b""',
        RESOURCES + "r6_what_was_typed_before_the_question_is_discarded",
    ),
]


def name_of(mutant: Mutant) -> str:
    return f"{mutant.claim} {mutant.line.strip()[:40]}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_a_claim_fails_without_the_line_it_rests_on(mutant: Mutant, tmp_path: Path) -> None:
    copy_with(mutant, tmp_path)
    code, output = run_against(tmp_path, mutant.test, patience=SHORT)
    assert code == FAILED, output


def test_a_test_of_every_claim_passes_on_an_unchanged_copy(tmp_path: Path) -> None:
    """Else a mutant might fail for being a copy."""
    copy_with(None, tmp_path)
    tests = {mutant.claim: mutant.test for mutant in MUTANTS}.values()
    code, output = run_against(tmp_path, *tests, patience=PATIENCE)
    assert code == PASSED, output


def test_every_claim_has_tests_of_its_name_and_a_mutant() -> None:
    source = [TESTS / name for name in ("test_claims.py", "test_claims_resources.py")]
    found = [
        node.name.split("_")[1].upper()
        for path in source
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert [claim for claim in CLAIMS if claim not in found] == []
    assert sorted({mutant.claim for mutant in MUTANTS}) == sorted(CLAIMS)
