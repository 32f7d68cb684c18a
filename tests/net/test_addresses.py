"""However an address is written, it is known for what it is before anything connects."""

import pytest

from stringd.net.addresses import Reach, classify, resolve
from tests.support.names import lead

pytestmark = pytest.mark.anyio

LOOPBACK = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0X7F.0x0.0.0x1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "::1",
    "::",
    "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::7f00:1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:7f00:0:100::",
    "64:ff9b:1:7f:0:1::",
    "64:ff9b:1:0:7f:0:100:0",
    "2002:7f00:1::5efe:808:808",
    "2606:4700::5efe:7f00:1",
    "2606:4700::200:5efe:127.0.0.1",
    "fe80::5efe:7f00:1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "１２７.0.0.1",
    "127。0。0。1",
]
LOCAL = [
    "10.0.0.1",
    "10.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "0xc0a80101",
    "100.64.0.1",
    "169.254.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "fe80::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "ff02::1",
    "::ffff:192.168.1.1",
    "2002:c0a8:101::",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::808:808",
    "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
    "2001:0:4136:e378:8000:63bf:3f57:fefe",
    "2606:4700::5efe:192.168.1.1",
    "2002:808:808::5efe:a01:203",
    "0.1.2.3",
    "10.1.2.3",
    "192.168.0.1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "4000::1",
]
METADATA = [
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "025177524776",
    "169.254.43518",
    "169.16689662",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:0ec2:0:0::254",
    "fd20:ce::254",
    "::168.63.129.16",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1::a9fe:a9fe",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "2606:4700::5efe:a9fe:a9fe",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "metadata",
    "instance-data",
]
PUBLIC = [
    "93.184.216.34",
    "8.8.8.8",
    "2606:4700::1111",
    "2606:2800:220:1::1",
    "::ffff:8.8.8.8",
    "::ffff:93.184.216.34",
    "64:ff9b::808:808",
    "2002:808:808::",
    "2606:4700::5efe:808:808",
]


@pytest.mark.parametrize("host", LOOPBACK)
async def test_every_spelling_of_this_machine_is_loopback(host: str) -> None:
    assert (await resolve(host, 80)).reach == "loopback"


@pytest.mark.parametrize("host", LOCAL)
async def test_an_address_of_the_network_around_is_private(host: str) -> None:
    assert (await resolve(host, 80)).reach == "private"


@pytest.mark.parametrize("host", METADATA)
async def test_a_metadata_service_is_known(host: str) -> None:
    assert (await resolve(host, 80)).reach == "metadata"


@pytest.mark.parametrize("host", PUBLIC)
async def test_other_addresses_are_public(host: str) -> None:
    assert (await resolve(host, 80)).reach == "public"


@pytest.mark.parametrize(
    ("address", "reach"),
    [("127.0.0.1", "loopback"), ("fe80::1%eth0", "private"), ("8.8.8.8", "public")],
)
def test_an_address_is_judged_without_asking_anybody(address: str, reach: Reach) -> None:
    assert classify(address) == reach


@pytest.mark.parametrize("text", ["localhost", "127.1", "", "0x7f000001"])
def test_what_is_not_an_address_is_not_judged(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        classify(text)


async def test_a_name_is_what_it_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    inward, outward = ["127.0.0.1"], ["93.184.216.34"]
    both = [*outward, "10.0.0.1"]
    lead(monkeypatch, {"inward.test": inward, "outward.test": outward, "both.test": both})
    found = [await resolve(f"{name}.test", 80) for name in ("inward", "outward", "both")]
    assert [each.reach for each in found] == ["loopback", "public", "private"]
    assert [list(each.addresses) for each in found] == [inward, outward, both]


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254"])
async def test_a_name_that_leads_to_a_metadata_service_is_one(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    lead(monkeypatch, {"harmless.test": ["93.184.216.34", address]})
    assert (await resolve("harmless.test", 80)).reach == "metadata"


@pytest.mark.parametrize("host", ["a" * 64 + ".test", "a..b", "", "a\u2028b"])
async def test_what_is_no_name_cannot_be_resolved(host: str) -> None:
    with pytest.raises((OSError, UnicodeError)):
        await resolve(host, 80)
