"""Commands as the feed shows them."""

import pytest

from stringd.server.feed.commands import shown_command


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/open a.md", "/open a.md"),
        ("/set $TOKEN s3cret", "/set $TOKEN …"),
        ("/set --app $TOKEN=s3cret", "/set --app $TOKEN …"),
        ("/SET $TOKEN s3cret", "/SET $TOKEN …"),
        ("/set $TOKEN", "/set $TOKEN"),
        ('/install https://x -H "Authorization: Bearer s3cret"', "/install https://x -H …"),
        (
            "/install https://x --header='X-Key: s3cret' --as y",
            "/install https://x --header=… --as y",
        ),
        ("/install https://x -H X-Key:s3cret", "/install https://x -H …"),
        ("/write a.md\ns3cret body", "/write a.md"),
        ("echo $HOME", "echo $HOME"),
    ],
)
def test_secrets_are_left_out(text: str, shown: str) -> None:
    assert shown_command(text) == shown
