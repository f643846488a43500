#!/usr/bin/env python3
"""Checks the links and pictures of a folder of HTML pages: each must lead to an existing file and
anchor.

    tools/links.py [--external] FOLDER

With `--external`, it prints each address of another site once instead, and does not check it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that name another file.
TARGETS = {"a": "href", "img": "src", "link": "href", "script": "src"}
#: Addresses of a running gpumon, which are not part of a site.
LOOPBACK = ("127.0.0.1", "localhost")


class Page(HTMLParser):
    """The links of a page, and its anchors."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(
            filter(None, [given.get("id"), given.get("name") if tag == "a" else None])
        )
        link = given.get(TARGETS.get(tag, ""))
        if link is not None:
            self.links.append(link)


def external_links(page: Page) -> Iterator[str]:
    return (
        link
        for link in page.links
        if urlsplit(link).scheme and urlsplit(link).hostname not in LOOPBACK
    )


def find_complaints(pages: Mapping[Path, Page]) -> Iterator[str]:
    """Yield the errors in the links of these pages, given by path."""
    for path, page in pages.items():
        for link in page.links:
            complaint = _check_link(path, link, pages)
            if complaint:
                yield f"{path}: {link or 'an empty link'} {complaint}"


def _check_link(path: Path, link: str, pages: Mapping[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.hostname in LOOPBACK:
        return None
    if parts.scheme or parts.netloc:
        is_good = (
            parts.scheme == "https"
            and "." in (parts.hostname or "")
            and link.isascii()
            and not set(link) & set(" \\")
        )
        return None if is_good else "is not an address such as https://host/path"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not link or not target.exists():
        return "points to a file that does not exist"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "points to an anchor that the page does not have"
    return None


def main(arguments: list[str]) -> int:
    *options, folder = arguments
    # 404.html is not checked: the site shows it at any address, so its links start at the root of
    # the site and not in this folder.
    files = [
        file for file in sorted(Path(folder).resolve().rglob("*.html")) if file.name != "404.html"
    ]
    if not files:
        sys.exit(f"there are no pages in {folder}: run `make docs`")
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    if options:
        print("\n".join(sorted({link for page in pages.values() for link in external_links(page)})))
        return 0
    wrong = list(find_complaints(pages))
    print(
        "\n".join(
            [
                *wrong,
                f"{sum(len(page.links) for page in pages.values())} links, {len(wrong)} of them "
                f"broken",
            ]
        )
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:-1] not in ([], ["--external"]) or len(sys.argv) < 2:
        sys.exit("usage: tools/links.py [--external] FOLDER")
    sys.exit(main(sys.argv[1:]))
