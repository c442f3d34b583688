"""From a figure's SVG document to a drawing inside a page.

Small, described in words, in the page's own font and colours.
"""

import re
from xml.etree import ElementTree

from reticent.reporting.figures.palette import LIGHT

__all__ = ["inline"]

_NAMESPACE = re.compile(r"\{[^}]*\}")  # inside a page there are none
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_COLOUR = re.compile("|".join(LIGHT.values()))
_FAMILY = re.compile(r"font-family: [^;]*;? ?|(?<=px) '[^;]*")  # the page's own is used
_PIXELS = 100 / 72  # of a page, for a point of a figure
_ROLE = {light: name for name, light in LIGHT.items()}


def inline(document: str, name: str, title: str, description: str) -> str:
    """Give the ``svg`` element for a page.

    ``name`` keeps its ids apart from those of other drawings.
    """
    root = ElementTree.fromstring(document)
    root.remove(root[0])  # a style for all that is drawn, which the page has too
    for tag, text in (("desc", description), ("title", title)):
        element = ElementTree.Element(tag, {"id": tag})
        element.text = text
        root.insert(0, element)
    for element in root.iter():
        element.tag = _NAMESPACE.sub("", element.tag)
        element.attrib = {
            _NAMESPACE.sub("", key): _renewed(key, value, name) for key, value in element.items()
        }
    box = root.attrib["viewBox"]
    root.attrib = {
        "viewBox": box,
        "style": f"max-width: {float(box.split()[2]) * _PIXELS:.0f}px",
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-desc",
    }
    return ElementTree.tostring(root, encoding="unicode")


def _renewed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key.endswith("href"):
        return value.replace("#", f"#{name}-")
    if key == "style":
        value = _FAMILY.sub("", value).replace("font: ", "font-size: ")
        return _COLOUR.sub(lambda match: f"var(--{_ROLE[match[0]]})", value)
    value = _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.2f}", value)
    return re.sub(r"\s+", " ", value).replace("url(#", f"url(#{name}-")
