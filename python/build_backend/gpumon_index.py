"""Writes gpumon's page for a package index: a README that needs no other files, and the project's
URLs.

The only URL is `repository` in Cargo.toml. While it is empty, the page has no URLs: links become
plain text, and paragraphs with pictures are left out.

Run this file to write the README. The build backend writes it before every wheel.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The README that pyproject.toml refers to.
README = Path(__file__).parent / "README.md"
#: A Markdown link or picture whose target is a file of the repository.
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)\s]+)\)")


def repository_address() -> str:
    """Return the URL of the project's repository, without a trailing slash; empty if there is no
    repository.
    """
    found = re.search(
        r'^repository = "(.*?)/?"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    return found[1] if found else ""


def write_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    README.write_text(make_readme(text, repository_address()), encoding="utf-8")


def make_readme(text: str, address: str) -> str:
    """Return the README with links to the repository; without links if `address` is empty."""
    if address:
        return LINK.sub(lambda link: _absolute_link(link, address), text)
    paragraphs = [paragraph for paragraph in text.split("\n\n") if not re.search(r"!\[", paragraph)]
    return LINK.sub(lambda link: link["text"], "\n\n".join(paragraphs))


def _absolute_link(link: re.Match[str], address: str) -> str:
    kind = "raw" if link["picture"] else "blob"
    return f"{link['picture']}[{link['text']}]({address}/{kind}/HEAD/{link['path']})"


def add_addresses_to_wheel(wheel: Path, address: str) -> None:
    """Write the URLs of the project into the metadata of a wheel, if there is a repository."""
    if not address:
        return
    unfinished = wheel.with_suffix(".unfinished")
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(unfinished, "w") as made:
        contents = {entry.filename: packed.read(entry) for entry in packed.infolist()}
        (name,) = (name for name in contents if name.endswith(".dist-info/METADATA"))
        record = name.replace("METADATA", "RECORD")
        contents[name] = _add_addresses(contents[name].decode(), address).encode()
        contents[record] = _update_checksum(
            contents[record].decode(), name, contents[name]
        ).encode()
        for entry in packed.infolist():
            made.writestr(entry, contents[entry.filename])
    unfinished.replace(wheel)


def add_addresses_to_metadata(folder: Path, address: str) -> None:
    """Write the project's URLs into the metadata that an installer requests before it requests the
    wheel.
    """
    if address:
        file = folder / "METADATA"
        file.write_text(_add_addresses(file.read_text(encoding="utf-8"), address), encoding="utf-8")


def _add_addresses(metadata: str, address: str) -> str:
    headers, _, description = metadata.partition("\n\n")
    paths = {
        "Source": "",
        "Documentation": "/blob/HEAD/docs/index.md",
        "Issues": "/issues",
        "Changelog": "/blob/HEAD/CHANGELOG.md",
    }
    lines = [f"Project-URL: {label}, {address}{path}" for label, path in paths.items()]
    return "\n".join([headers, *lines]) + f"\n\n{description}"


def _update_checksum(record: str, name: str, content: bytes) -> str:
    checksum = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    line = f"{name},sha256={checksum},{len(content)}"
    return re.sub(rf"^{re.escape(name)},.*$", line, record, flags=re.MULTILINE)


if __name__ == "__main__":
    write_readme()
