"""A page that tries everything, put in the way of a user in every way there is."""

import json
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from stringd.system.trust import TrustStore, digest_of
from tests.support.daemon import Daemon
from tests.support.person import Person, Said
from tests.support.web import Asked, Reply, WebServer

SECRET = "sk-live-0123456789abcdef"
PAGE = """---
name: {name}
type: app
default: go
requires: [API_KEY]
{header}---
# Page

```act.go
CLI touch {opened}
```

```act.cli
CLI touch {called}; printf %s ran
```

```act.plain
GET {url}/plain
```

```act.named
GET {url}/named -H "X-Key: $API_KEY"
```

```act.where
GET {url}/where?home=$HOME&cwd=$CWD
```

```act.save
GET {url}/save
```

```act.save.response
save: Response.body
to: {saved}
done
```
"""


class Tried(NamedTuple):
    """What happened when a page was opened and each of its actions was called."""

    opened: Said
    ran_default: bool
    cli: Said
    ran_command: bool
    sent: dict[str, Asked]
    """The requests that arrived, by path."""
    saved: bool
    replies: dict[str, Said]


class Attempt:
    """One page with canaries of its own: files it may make, and a server that records."""

    def __init__(self, person: Person, directory: Path, web: WebServer) -> None:
        self.person = person
        self.web = web
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.name = f"n{uuid4().hex[:8]}"
        self.called = directory / f"called-{self.name}"
        self.opened = directory / f"opened-{self.name}"
        self.saved = f"saved-{self.name}.txt"
        web.answer = self._answer
        self.pages: dict[str, Reply] = {}
        """What the server has besides answers to the actions."""

    def text(self, header: str = "", url: str | None = None) -> str:
        return PAGE.format(
            name=self.name,
            header=header,
            url=url or self.web.url,
            called=self.called,
            opened=self.opened,
            saved=self.saved,
        )

    def declared(self) -> str:
        """The page as an app writes it that declares its host."""
        return self.text(f"hosts: ['{self.web.host}']\n")

    def file(self, directory: Path, text: str | None = None) -> Path:
        """The page in a file."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.name}.md"
        path.write_text(text or self.text(), encoding="utf-8")
        return path

    def install(self) -> str:
        """The page as an installed app; the topic it is used in."""
        path = self.file(self.directory / f"src-{self.name}", self.declared())
        self.person.gets(f"/install {path}", cwd=path.parent)
        topic = f"app:{self.name}"
        self.person.gets(f'/set $API_KEY = "{SECRET}"', topic)
        return topic

    def try_everything(self, topic: str, command: str, cwd: Path | None = None) -> Tried:
        """Open a page with a command, then call each action."""
        before = len(self.web.asked)
        opened = self.person.says(command, topic, cwd)
        ran_default = self.opened.exists()
        return self.try_actions(topic, opened, ran_default, before, cwd)

    def try_actions(
        self, topic: str, opened: Said, ran_default: bool, before: int, cwd: Path | None = None
    ) -> Tried:
        """Call each action of the page that is open."""
        replies = {
            name: self.person.says(f"/act.{name}", topic, cwd)
            for name in ("cli", "plain", "named", "where", "save")
        }
        sent = {asked.target.partition("?")[0]: asked for asked in self.web.asked[before:]}
        places = [self.person.home, self.directory, *([cwd] if cwd else [])]
        saved = any(next(place.rglob(self.saved), None) for place in places)
        actions = {path: asked for path, asked in sent.items() if path in ACTIONS}
        return Tried(
            opened, ran_default, replies["cli"], self.called.exists(), actions, saved, replies
        )

    def _answer(self, asked: Asked) -> Reply:
        return self.pages.get(asked.target) or Reply('{"ok": true}')


ACTIONS = ("/plain", "/named", "/where", "/save")


def trust(daemon: Daemon, path: Path) -> None:
    """What the owner types: `stringd trust <path>`."""
    store = TrustStore(daemon.directory / ".string" / "trust.json")
    store.trust(path, digest_of(path.read_bytes()))


def register(person: Person, name: str, path: Path) -> None:
    """An app of that name in `config.json`, as an earlier version or a hand wrote it."""
    file = person.home / "config.json"
    config = json.loads(file.read_text()) if file.exists() else {}
    config.setdefault("apps", {})[name] = path.as_uri()
    file.write_text(json.dumps(config), encoding="utf-8")
