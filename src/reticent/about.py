"""What people ask about a release besides its numbers: who answers for it, and what it is for.

A data-protection officer asks for the controller, the purpose, where the records come from and of
which time they are, whom to write to, and who confirmed what the guarantee assumes. All of it is
public text, written by a person: it is stored with the model and shown in its report.
"""

from collections.abc import Mapping
from difflib import get_close_matches

from reticent.errors import BadInput

__all__ = ["ABOUT", "checked_about"]

# keys, and what stands before each in a report
ABOUT = {
    "title": "Title",
    "controller": "Controller",
    "purpose": "Purpose",
    "source": "Source of the records",
    "period": "Period",
    "contact": "Contact",
    "confirmed_by": "Assumptions confirmed by",
    "note": "Note",
}
_LONGEST = 2000  # characters of one text


def checked_about(about: object) -> dict[str, str]:
    """The texts in the order of a report, without empty ones; refuse what is none.

    >>> checked_about({"contact": "dpo@example.org", "title": "Weight by age"})
    {'title': 'Weight by age', 'contact': 'dpo@example.org'}
    """
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        raise BadInput(
            "about must be a dict of texts, for example "
            f"{{'controller': 'City hospital'}}, not {type(about).__name__}.",
            parameter="about",
        )
    for key, text in about.items():
        if key not in ABOUT:
            raise BadInput(
                f"about has {str(key)!r}, which means nothing. Known: {', '.join(ABOUT)}."
                f"{_near(str(key))}",
                parameter="about",
            )
        _check_text(key, text)
    return {key: about[key].strip() for key in ABOUT if about.get(key, "").strip()}


def _check_text(key: str, text: object) -> None:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise BadInput(
            f"about[{key!r}] must be a text of at most {_LONGEST:,} characters.", parameter="about"
        )
    if not all(letter.isprintable() or letter == "\n" for letter in text):
        raise BadInput(f"about[{key!r}] must be printable text.", parameter="about")


def _near(key: str) -> str:
    close = get_close_matches(key.lower(), ABOUT, 1)
    if not close:
        return ""
    return f" Did you mean {close[0]!r}?"
