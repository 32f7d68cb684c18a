"""What callers read about an action."""

from stringd.actions.schema import listing, schema, usage
from tests.actions.support import action

SEARCH = action(
    'GET http://h.test/?key=$KEY\n  query, -q: string (required) "Terms"\n'
    '  limit: number (optional, min:1, max:50) "Max" = "5"\n  unit: string (optional, c|f)\n'
)


def test_a_schema_shows_flags_and_limits() -> None:
    assert schema(SEARCH).splitlines() == [
        "   -q, --query <string> (required) — Terms",
        "   --limit <number> (optional) — Max [min:1, max:50]",
        "   --unit <string> (optional) [c|f]",
    ]


def test_a_listing_names_every_action_and_hides_how_it_works() -> None:
    text = listing([SEARCH, action("CLI rm -rf /tmp/x")], "/tool:t.")
    assert text.startswith("/tool:t.x\n   -q")
    assert text.endswith("\n\n/tool:t.x\n   (no flags)")
    assert "http" not in text
    assert "rm -rf" not in text


def test_usage_lists_what_is_needed() -> None:
    assert usage(SEARCH) == (
        "Usage:\n  --query <string> (required)\n  --limit <number>\n  --unit <string>"
    )
