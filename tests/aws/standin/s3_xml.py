"""The little XML that S3 speaks: written by hand because a key may hold any character,
read with the standard parser."""

import time
from xml.etree import ElementTree

from standin.errors import Refusal
from standin.wire import Reply

SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def text_of(value):
    """Escaped, control characters as references, as S3 writes them."""
    out = []
    for char in str(value):
        if char in "&<>\"":
            out.append({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[char])
        elif ord(char) < 0x20 and char not in "\t\n":
            out.append(f"&#x{ord(char):x};")
        else:
            out.append(char)
    return "".join(out)


def plain(value):
    value = str(value)
    if value.isascii() and value.isprintable() and not set(value) & set("&<>\""):
        return value
    return text_of(value)


class Markup(str):
    """Text that is XML already."""


def element(name, *content):
    inner = "".join(each if isinstance(each, Markup) else plain(each) for each in content if each is not None)
    return Markup(f"<{name}>{inner}</{name}>")


def document(name, *content):
    inner = "".join(each if isinstance(each, Markup) else plain(each) for each in content if each is not None)
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{SPACE}">{inner}</{name}>'
    return Reply(200, [("Content-Type", "application/xml")], body.encode("utf-8", "surrogateescape"))


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def malformed():
    return Refusal("MalformedXML", "The XML you provided was not well-formed or did not validate against our "
                   "published schema")


def parse(body, many=frozenset()):
    """A request's document as words and dictionaries; elements named in `many` are lists."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise malformed() from None

    def walk(node):
        if not len(node):
            return node.text or ""
        found = {}
        for child in node:
            name = child.tag.rpartition("}")[2]
            if name in many:
                found.setdefault(name, []).append(walk(child))
            else:
                found[name] = walk(child)
        return found

    found = walk(root)
    return found if isinstance(found, dict) else {}
