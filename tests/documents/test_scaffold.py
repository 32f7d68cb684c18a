"""The scaffold of a menu file."""

from stringd.documents import NO_LINKS, nav_scaffold, parse


def test_shortcuts_come_first_then_plain_links_each_once() -> None:
    source = (
        "[!nav:old](./old.md)\n[Guide to everything there is](guide.md) [@docs Docs](docs.md)\n"
        "[Docs](docs.md) ![i](i.png) [Guide](guide.md) [!!](odd.md)\n`[code](c.md)`\n"
    )
    text = nav_scaffold(parse(source))
    assert text is not None
    lines = text.split("\n")
    assert lines[lines.index("```markdown") + 1 : lines.index("```")] == [
        "[@docs Docs](docs.md)",
        "[@guide-to-everything Guide to everything there is](guide.md)",
    ]
    assert lines[-1] == "[!nav:main](./nav/main.md)"


def test_an_id_is_short_even_when_labels_begin_alike() -> None:
    links = "".join(f"[A very long label, number {n}]({n}.md)\n" for n in range(12))
    text = nav_scaffold(parse(links))
    assert text is not None
    ids = [line.partition(" ")[0] for line in text.split("\n") if line.startswith("[@")]
    assert len(set(ids)) == 12
    assert max(map(len, ids)) <= len("[@") + 20


def test_a_page_without_links_has_none() -> None:
    assert nav_scaffold(parse("text")) is None
    assert NO_LINKS.startswith("No links found on this page.")
