"""The names of the built-in tools."""

from typing import Final

# Names a strategy may use. `lsp_request` is known so that files naming it load; no language
# service is ever present, and it says so.
BUILT_IN_TOOLS: Final = (
    "read_file",
    "list_directory",
    "search_files",
    "glob",
    "create_file",
    "write_file",
    "edit_file",
    "delete_file",
    "restore_file",
    "move_file",
    "run_command",
    "webfetch",
    "list_skills",
    "load_skill",
    "list_strategy",
    "launch_strategy",
    "todo_add",
    "todo_complete",
    "todo_get",
    "todo_get_next",
    "todo_remove",
    "todo_clear",
    "ask_question",
    "lsp_request",
    "string",
    "request_privileged",
)
