"""Words as they are written in a command of the daemon."""


def quote(word: str) -> str:
    """Quote a word so that the tokeniser restores it; single quotes need no escapes.

    What begins with a quote is a value, so the name of `--name=two words` stays outside.
    """
    if word and not any(c.isspace() or c in "\"'" for c in word):
        return word
    name, equals, value = word.partition("=")
    if equals and name.startswith("--") and name[2:].replace("-", "_").isidentifier():
        return f"{name}={quote(value)}"
    pieces: list[str] = []
    for index, run in enumerate(word.split("'")):
        if index and pieces and pieces[-1].endswith("'\""):
            pieces[-1] = pieces[-1][:-1] + "'\""
        elif index:
            pieces.append('"\'"')
        if run:
            pieces.append(f"'{run}'")
    return "".join(pieces) or "''"
