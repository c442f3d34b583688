"""What a text says, without its wording."""

import re

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“'])")


def says(text: str, *facts: str) -> bool:
    """Whether one sentence of ``text`` holds all ``facts``: numbers, names, words that matter.

    Spaces, line breaks and capitals do not count.
    """
    plain = re.sub(r"\s+", " ", text.replace("\xa0", " "))
    wanted = [fact.lower() for fact in facts]
    return any(
        all(fact in sentence.lower() for fact in wanted) for sentence in _SENTENCE_END.split(plain)
    )
