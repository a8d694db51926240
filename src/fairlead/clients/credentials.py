"""Whom we trust and who we are: authorities and secrets, from files that may be rotated."""

import ssl
from pathlib import Path

from fairlead import errors


def authority(file: Path | None) -> ssl.SSLContext | bool:
    """The authorities in this file, or those of the system; Rejected where it holds none."""
    if file is None:
        return True
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise errors.Rejected(
            f"cannot read the CA file: {file}",
            hint="it must hold certificates in PEM format",
        ) from error
    # On from Python 3.13; authorities that people made by hand often lack what it asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def secret(file: Path) -> str:
    """What stands in the file now: one line, for it may have to stand in a header."""
    lines = secrets(file)
    if len(lines) != 1:
        raise errors.Rejected(
            f"secret file must have one line, has {len(lines)}: {file}", hint="write one line"
        )
    return lines[0]


def secrets(file: Path) -> list[str]:
    """The lines of the file that hold something; what they are is never told."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.Rejected(
            f"cannot read the secret file: {file}", hint="check its path and its permissions"
        ) from error
    found = [line.strip() for line in lines if line.strip()]
    if not all(line.isprintable() for line in found):
        raise errors.Rejected(
            f"secret file holds control characters: {file}", hint="write it as plain text"
        )
    return found


def path(text: str) -> Path | None:
    """A setting that names a file, where it does."""
    return Path(text).expanduser() if text else None
