"""The outline of a document."""

from stringd.documents import outline, parse

TEXT = """# Title

<!-- #intro -->
Words.
<!-- /intro -->

## Steps {#do-it} ##

```
# not a heading
```

## Steps

[!include:part](other.md#x)
"""


def test_headings_and_marked_blocks_come_in_their_order_and_includes_last() -> None:
    assert [(each.id, each.title, each.level) for each in outline(parse(TEXT))] == [
        ("title", "Title", 1),
        ("intro", "", 0),
        ("do-it", "Steps", 2),
        ("steps", "Steps", 2),
        ("part", "", 0),
    ]


def test_every_id_can_be_opened() -> None:
    document = parse(TEXT)
    assert all(document.has_block(each.id) for each in outline(document))


def test_the_first_of_two_blocks_of_one_id_counts() -> None:
    first, second = outline(parse("# A\n\n# A\n\n## B\n"))
    assert (first.id, second.id) == ("a", "b")
