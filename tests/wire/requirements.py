"""What ChanFlow promises on the wire."""

from tests.requirements import Requirement

_PAGE = "transport page"

ALL = [
    Requirement(
        "CHAN-01", "A block is <𝒞=string:topic>payload</𝒞>; text around it is free.", _PAGE
    ),
    Requirement("CHAN-02", "Everything after string: is the topic; it may be absent.", _PAGE),
    Requirement("CHAN-03", "A payload keeps its lines exactly.", _PAGE),
    Requirement("CHAN-04", "Replies may carry time and mode after the topic.", _PAGE),
    Requirement("CHAN-05", "Readers ignore attributes they do not know.", _PAGE),
    Requirement("CHAN-06", "Several blocks in one text are read in order.", _PAGE),
    Requirement("CHAN-07", "Other channels are left alone.", _PAGE),
    Requirement(
        "CHAN-08", "An unclosed or malformed block is reported and runs nothing.", "ruling 13"
    ),
    Requirement("CHAN-09", "Content that looks like a tag is escaped visibly.", "ruling 13"),
    Requirement("CHAN-10", "What is encoded is decoded exactly.", "ours"),
]
