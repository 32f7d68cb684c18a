"""Rendering: exactly what an agent reads."""

from itertools import pairwise

from stringd.documents import (
    Included,
    IncludeFailure,
    Menu,
    MenuEntry,
    Resolve,
    parse,
    parse_menu,
    render,
    render_text,
)

HANDBOOK = """---
title: Crew Handbook
---

# Crew Handbook

[!nav:main](./nav/main.md)

<!-- #hello -->
## Hello

Write to the [@desk front desk](https://desk.test).
<!-- /hello -->
"""


def text(source: str) -> str:
    return render(parse(source)).text


def test_the_handbook() -> None:
    assert text(HANDBOOK) == (
        "[nav] main — /nav <name>\n\n\n# Crew Handbook\n\n\n## Hello\n\n"
        "Write to the [front desk][@desk]."
    )


def test_a_block_view_has_no_hints() -> None:
    rendered = render(parse(HANDBOOK), block="hello")
    assert rendered.text == "## Hello\n\nWrite to the [front desk][@desk]."
    assert render(parse(HANDBOOK), block="nope").text == ""


def test_a_menu_is_unfolded_the_first_time() -> None:
    entries = tuple(MenuEntry(f"main.e{n}", f"E{n}", f"{n}.md") for n in range(22))
    menus = {"main": Menu("main", "file:///nav.md", entries)}
    first = render(parse(HANDBOOK), menus=menus, seen_menus=())
    lines = first.text.split("\n")
    assert lines[:2] == ["[nav] main — first view", "[E0][@main.e0]"]
    assert lines[20:22] == ["[E19][@main.e19]", "... 2 more — /nav main"]
    assert first.unfolded_menus == {"file:///nav.md"}
    again = render(parse(HANDBOOK), menus=menus, seen_menus=first.unfolded_menus)
    assert again.text.startswith("[nav] main — /nav <name>\n\n")


def test_actions_are_hidden_and_hinted_at() -> None:
    source = (
        "# Page\n\n```act.now\nGET https://n.test\n```\n\n~~~act.now.response\nx\n~~~\n\n"
        "```act.ping\nCLI ping\n```\n\n```sh\nls\n```\n"
    )
    assert text(source) == (
        "[actions] now, ping  ·  /act --help (all)  ·  /act.<name> --help\n\n"
        "# Page\n\n\n\n\n```sh\nls\n```"
    )


def test_missing_variables_are_announced() -> None:
    rendered = render(parse("# P"), missing_env=["A", "B"], requirements="requirements.md")
    assert rendered.text == (
        "[!] Missing required env: $A, $B\n"
        '    Set: /set $A="..." ; /set $B="..."\n'
        "    Setup: /open requirements.md\n\n# P"
    )


def test_links_become_shortcuts() -> None:
    source = (
        "See [Docs](https://a.test) and [Docs](https://b.test), or [C++ (2024)](https://e.test). "
        "[Home](./index.md)"
    )
    rendered = render(parse(source))
    assert rendered.text == (
        "See [Docs][@docs] and [Docs][@docs-2], or [C++ (2024)][@link-1]. [Home](./index.md)"
    )
    assert rendered.auto_shortcuts == {
        "docs": "https://a.test",
        "docs-2": "https://b.test",
        "link-1": "https://e.test",
    }


def test_a_label_may_go_on_in_the_next_line() -> None:
    source = (
        "[Plain\r\nlink](https://a.test), [a reference\nof three\nlines][r] [@own My\nown](o.md)\n"
        "[r]: https://r.test\n"
    )
    assert render(parse(source)).text == (
        "[Plain\nlink][@plain-link], [a reference\nof three\nlines][@link-1] [My\nown][@own]"
    )


def test_a_label_that_does_not_reach_its_target_makes_no_link() -> None:
    source = (
        "[a\n\nb](https://1.test) `c [d` e\nf](https://2.test) \\[g\nh](https://3.test)\n"
        "[i]\nj](https://4.test)\n```\n[k\n```\nl](https://5.test) [m](https://6.test)"
    )
    rendered = render(parse(source))
    assert rendered.text == source.replace("(https://6.test)", "[@m]")
    assert rendered.auto_shortcuts == {"m": "https://6.test"}


def test_an_auto_id_never_means_two_things_nor_hides_an_author_id() -> None:
    source = (
        "[Docs 2](https://1.test) [Docs](https://2.test) [Docs](https://3.test) "
        "[Mine](https://4.test) [@mine M](m.md)"
    )
    rendered = render(parse(source))
    assert rendered.text == (
        "[Docs 2][@docs-2] [Docs][@docs] [Docs][@docs-3] [Mine][@mine-2] [M][@mine]"
    )
    assert render(parse("[A](https://a.test)"), taken=["a"]).auto_shortcuts == {
        "a-2": "https://a.test"
    }


def test_long_targets_are_shortened_and_short_ones_left() -> None:
    assert text(f"[x](./{'y' * 40}.md) [z](./z.md) [v](@docs)") == "[x][@x] [z](./z.md) [v](@docs)"


def test_images_stay_titles_go_and_empty_labels_show_their_id() -> None:
    assert text('![a](https://i.test) [T](https://t.test "Title") [](https://e.test)') == (
        "![a](https://i.test) [T][@t] [link-1][@link-1]"
    )
    assert text("[![logo](l.png)](https://x.test)") == "[![logo](l.png)][@link-1]"
    assert text("[Wiki](https://w.test/C_(lang))") == "[Wiki][@wiki]"


def test_code_is_never_rewritten() -> None:
    source = (
        "`[a](https://a.test)` ``[b][ref] ` ``\n\n```\n[c](https://c.test)\n[ref]: x\n```\n\n"
        "[ref]: https://r.test"
    )
    assert text(source) == (
        "`[a](https://a.test)` ``[b][ref] ` ``\n\n```\n[c](https://c.test)\n[ref]: x\n```"
    )


def test_references_become_links_and_their_lines_go() -> None:
    assert text("[text][r] [short][s] [r][] [unknown][u]\n\n[r]: https://r.test\n[s]: s.md") == (
        "[text][@text] [short](s.md) [r][@r] [unknown][u]"
    )


def test_images_by_reference_keep_their_address() -> None:
    assert text("![pic][p]\n\n[p]: https://i.test/p.png") == "![pic](https://i.test/p.png)"


def test_a_use_of_a_menu_entry_shows_its_full_id() -> None:
    menu = parse_menu("main", "[@docs Docs](d.md)", "file:///nav.md")
    rendered = render(parse("[See][@docs] [Other][@nope]"), menus={"main": menu})
    assert rendered.text == "[See][@main.docs] [Other][@nope]"


def test_a_duplicate_definition_shows_the_id_that_resolves() -> None:
    assert text("[@d One](a.md)\n[@d Two](b.md)\n[@bare](c.md)") == (
        "[One][@d]\n[Two][@d2]\n[bare][@bare]"
    )


def test_unknown_directives_stay() -> None:
    assert text("[!chart:x](https://data.test)\ntext") == "[!chart:x](https://data.test)\ntext"


def files(**pages: str) -> Resolve:
    def resolve(path: str, base: str) -> Included | IncludeFailure:
        name = path.removeprefix("./").removesuffix(".md")
        if name not in pages:
            return IncludeFailure("File not found")
        return Included(f"file:///d/{name}.md", pages[name])

    return resolve


def test_an_include_shows_the_block_it_names() -> None:
    other = (
        "# Other\n<!-- #part -->\n\n[@s Site](./s.md) and [W](https://w.test)\n\n<!-- /part -->\n"
    )
    page = parse("top\n[!include:part](./other.md)\nend\n", "file:///d/main.md")
    rendered = render(page, include=files(other=other))
    assert rendered.text == "top\n[Site][@s] and [W][@w]\nend"
    assert rendered.auto_shortcuts == {"s": "file:///d/s.md", "w": "https://w.test"}
    assert render(page, block="part", include=files(other=other)).text == "[Site][@s] and [W][@w]"


def test_only_the_full_view_expands_includes() -> None:
    source = "<!-- #b -->\nin\n[!include:part](./o.md)\nend\n<!-- /b -->\n"
    page = parse(source, "file:///d/main.md")
    resolve = files(o="## Part\nincluded\n")
    assert render(page, include=resolve).text == "in\n## Part\nincluded\nend"
    assert render(page, block="b", include=resolve).text == "in\nend"


def test_the_view_of_a_heading_goes_on_to_the_next_one_across_markers() -> None:
    source = "<!-- #x -->\n## In\nbody\n<!-- /x -->\ntail\n<!-- #y -->\n## Next\n<!-- /y -->\n"
    page = parse(source, "file:///d/main.md")
    assert render(page, block="in").text == "## In\nbody\ntail"
    assert render(page, block="x").text == "## In\nbody"
    including = parse("[!include:in](./o.md)", "file:///d/main.md")
    assert render(including, include=files(o=source)).text == "## In\nbody\ntail"


def test_included_text_uses_its_own_references_then_those_around_it() -> None:
    other = "## P\n[a][r] [b][s] [c][t]\n[r]: https://own.test\n"
    page = parse("[!include:p](./sub/o.md)\n[r]: https://no.test\n[s]: ./s.md\n", "file:///d/m.md")
    rendered = render(page, include=files(**{"sub/o": other}))
    assert rendered.text == "## P\n[a][@a] [b](./s.md) [c][t]"
    assert rendered.auto_shortcuts == {"a": "https://own.test"}


def test_an_include_may_name_the_block_in_its_path() -> None:
    page = parse("[!include:x](./o.md#real-one)", "file:///d/main.md")
    assert render(page, include=files(o="## Real one\nyes\n")).text == "## Real one\nyes"


def test_failed_includes_say_why_in_place() -> None:
    page = parse("[!include:a](./gone.md)\n[!include:b](./o.md)", "file:///d/main.md")
    lines = render(page, include=files(o="# O\n")).text.split("\n")
    assert lines[0] == "⚠ Include failed: ./gone.md - File not found"
    assert lines[1:3] == ["⚠ Include failed: Block #b not found in ./o.md", "Supported formats:"]
    assert len(lines) == 6


def test_circular_includes_end() -> None:
    resolve = files(
        a="<!-- #x -->\n[!include:y](./b.md)\n<!-- /x -->",
        b="<!-- #y -->\nB\n[!include:x](./a.md)\n<!-- /y -->",
    )
    page = parse("[!include:x](./a.md)", "file:///d/main.md")
    assert render(page, include=resolve).text == (
        "B\n⚠ Circular include detected: ./a.md (already included in this chain)"
    )


def test_includes_that_multiply_are_cut_off() -> None:
    names = [f"n{n}" for n in range(30)]
    pages = {
        name: f"<!-- #x -->\n[!include:x](./{after}.md)\n[!include:x](./{after}.md)\n<!-- /x -->"
        for name, after in pairwise(names)
    }
    pages[names[-1]] = "<!-- #x -->\nend\n<!-- /x -->"
    page = parse("[!include:x](./n0.md)", "file:///d/main.md")
    assert "more than 1000 includes" in render(page, include=files(**pages)).text


def test_answers_of_actions_include_nothing() -> None:
    rendered = render_text("[!include:x](/etc/passwd)\n[L](https://l.test)\n", taken=["l"])
    assert rendered.text == "[!include:x](/etc/passwd)\n[L][@l-2]"
    assert rendered.auto_shortcuts == {"l-2": "https://l.test"}


def test_answers_of_actions_declare_nothing() -> None:
    data = "<!-- #b -->\n[@go Go](./a.md)\n```act.x\nGET http://x.test\n```\n[r]: ./b.md"
    rendered = render_text(data, taken=["go"])
    assert rendered.text == data.replace("[@go Go](./a.md)", "[Go][@go-2]")
    assert rendered.auto_shortcuts == {"go-2": "./a.md"}


def test_crlf_documents_read_like_any_other() -> None:
    assert text(HANDBOOK.replace("\n", "\r\n")) == text(HANDBOOK)


def test_a_ten_megabyte_line_is_one_line() -> None:
    line = "word [x](https://x.test) " * 400_000
    rendered = render(parse(line))
    assert len(rendered.auto_shortcuts) == 400_000


def test_a_view_that_is_remembered_is_the_one_that_was_asked_for() -> None:
    document = parse("# One\n\n[Docs](https://docs.test/)\n\n## Two\n\nmore\n")
    whole = render(document)
    assert render(document) == whole
    assert "[Docs][@docs-2]" in render(document, taken=["docs"]).text
    assert render(document, block="two").text == "## Two\n\nmore"
    assert "Missing required env: $KEY" in render(document, missing_env=["KEY"]).text
    menu = Menu("m", "file:///m.md", (MenuEntry("m.x", "X", "x.md"),))
    assert render(document, menus={"m": menu}) == whole
    assert render(document) == whole
