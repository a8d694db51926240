"""What the checks in this folder need of Markdown: links, headings and their anchors."""

import re
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^(?P<mark>```+|~~~+).*?^(?P=mark)\s*$", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
OWN_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")


def links(text: str) -> Iterator[str]:
    """Targets of all links and images outside code."""
    prose = INLINE_CODE.sub("", FENCE.sub("", text))
    yield from LINK.findall(prose)
    yield from DEFINITION.findall(prose)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to headings, and those set by hand."""
    found: set[str] = set()
    prose = FENCE.sub("", text)
    for heading in HEADING.findall(prose):
        anchor = base = slug(heading)
        count = 0
        while anchor in found:
            count += 1
            anchor = f"{base}-{count}"
        found.add(anchor)
    return found | set(OWN_ANCHOR.findall(prose))


def slug(heading: str) -> str:
    said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", said).strip().lower().replace(" ", "-")


def broken(page: Path) -> Iterator[str]:
    """Relative links of the page that lead nowhere."""
    for target in links(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z][a-z0-9+.-]*:", target, re.IGNORECASE):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{page.name}: no such file: {target}"
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{page.name}: no such heading: {target}"
