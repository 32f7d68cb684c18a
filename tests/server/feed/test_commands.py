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
        ("/act.login --token s3cret --city Seoul", "/act.login --token … --city Seoul"),
        ("/act.login --api-key=s3cret", "/act.login --api-key=…"),
        ('/act.login {"password": "s3cret"}', '/act.login {"password": …'),
        ("/act.login password=s3cret", "/act.login password=…"),
        ("export TOKEN=s3cret", "export TOKEN=…"),
        ("export A=1 GITHUB_TOKEN='s3 cret'; ls", "export A=1 GITHUB_TOKEN=…; ls"),
        ('API_KEY=s3"cr et" make', "API_KEY=… make"),
        ("DB_PASSWORD=" + "s3cret" * 20, "DB_PASSWORD=…"),
        ('X_SECRET="' + "s3 cret" * 20, "X_SECRET=…"),
        ("curl -H 'Authorization: Bearer " + "s3 cret" * 20 + "'", "curl -H …"),
        ("curl -u me:s3cret https://x", "curl -u me:… https://x"),
        ("git clone https://me:s3cret@host/x", "git clone https://me:…@host/x"),
        ("echo ghp_s3crets3crets3cret", "echo …"),
        ("--token $TOKEN --no-auth --x", "--token $TOKEN --no-auth --x"),
        ("make CITY=Seoul PATH=/bin", "make CITY=Seoul PATH=/bin"),
        ("git show 0123456789abcdef0123456789abcdef01234567", None),
    ],
)
def test_secrets_are_left_out(text: str, shown: str | None) -> None:
    assert shown_command(text) == (text if shown is None else shown)
