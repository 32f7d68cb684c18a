"""What the guard answers when something is not allowed."""


class Denied(Exception):  # noqa: N818  # an answer, told to the model; no failure of ours
    """Not allowed; the text says what and by whom."""
