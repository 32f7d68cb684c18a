"""Cookies go back to the site that set them, and nowhere else."""

import pytest

from stringd.net.cookies import MAX_COOKIES, CookieJar

URL = "https://shop.example/cart/list"


@pytest.mark.parametrize(
    ("line", "asked", "sent"),
    [
        ("a=1", "https://shop.example/cart/pay", "a=1"),
        ("a=1", "https://shop.example/other", None),
        ("a=1; Path=/", "https://shop.example/other", "a=1"),
        ("a=1; Path=/car", URL, None),
        ("a=1; Path=/; Domain=example", "https://example/", None),
        ("a=1; Path=/; Domain=shop.example", "https://api.shop.example/", None),
        ("a=1; Path=/", "http://shop.example/", None),
        ("a=1; Path=/", "https://shop.example:8443/", None),
        ("a=1; Max-Age=0", URL, None),
        ("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", URL, "a=1"),
        ("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", URL, None),
        ("a=1; Expires=soon", URL, "a=1"),
        ("nothing", URL, None),
        ("a=1\r\nX: y", URL, None),
        (f"a={'x' * 5000}", URL, None),
    ],
)
def test_a_cookie_is_sent_where_it_belongs(line: str, asked: str, sent: str | None) -> None:
    jar = CookieJar()
    jar.take(URL, [line])
    assert jar.header(asked) == sent


def test_a_newer_cookie_replaces_and_an_ended_one_removes() -> None:
    jar = CookieJar()
    jar.take(URL, ["a=1", "a=2", "b=3"])
    assert jar.header(URL) == "a=2; b=3"
    other = jar.copy()
    jar.take(URL, ["a=; Max-Age=0"])
    assert (jar.header(URL), other.header(URL)) == ("b=3", "a=2; b=3")


def test_a_site_cannot_fill_the_memory() -> None:
    jar = CookieJar()
    jar.take(URL, [f"c{number}=1" for number in range(1000)])
    assert len((jar.header(URL) or "").split("; ")) == MAX_COOKIES
