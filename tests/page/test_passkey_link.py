"""A question at the gate that a passkey may answer, on the daemon's page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from stringd.gate.audit import AuditLog
from stringd.wire.gate import AUDIT_LOG
from tests.page.support import World
from tests.support.daemon import Daemon

ASKED: dict[str, object] = {"pipeline": [["uptime"]], "privileged": False, "peer": {}}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two questions: one names a gate's page, one something that is not one."""
    with Daemon(tmp_path_factory.mktemp("page")) as daemon:
        log = AuditLog(daemon.data_dir / AUDIT_LOG)
        log.append("received", ASKED | {"id": "1", "page": "http://localhost:41233/"})
        for number, page in enumerate(["javascript:alert(1)", "http://localhost.evil.example/"]):
            log.append("received", ASKED | {"id": f"hostile {number}", "page": page})
        log.close()
        yield World(daemon)


@pytest.mark.parametrize("view", ["", "gate"])
def test_the_gates_own_page_is_one_click_away(page: Page, asked: World, view: str) -> None:
    page.goto(f"{asked.address}{view}")
    expect(page.get_by_text("uptime")).not_to_have_count(0)
    links = page.get_by_role("link", name="Approve with passkey")
    expect(links).to_have_count(1)
    expect(links).to_have_attribute("href", "http://localhost:41233/")
