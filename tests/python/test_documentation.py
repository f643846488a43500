"""Links, pictures and the names of commands in the documentation.

`tests/end-to-end/docs.rs` runs the commands in blocks marked `console`. Other commands need a GPU,
a clone or much time. For these, this module checks that the names exist: targets of `make`, scripts
of npm, crates, files, options of gpumon.
"""

import json
import re
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import links  # noqa: E402

MARKDOWN = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=6)
DOCS = ROOT / "docs"
FILES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
]
TEXTS = {file: file.read_text(encoding="utf-8") for file in FILES}
PAGES = {file: links.Page(MARKDOWN.render(text)) for file, text in TEXTS.items()}
#: Generated folders, which may be missing.
MADE = ("target", "dist", "node_modules", "wheel")


def find_code_pieces(text: str) -> Iterator[str]:
    """Yield each piece of code in a page: command blocks line by line, with continuations, and code
    within text.
    """
    for token in MARKDOWN.parse(text):
        if token.type == "fence" and token.info in ("sh", "console"):
            yield from (
                re.sub(r"^\$ ", "", line)
                for line in token.content.replace("\\\n", " ").splitlines()
            )
        yield from (child.content for child in token.children or () if child.type == "code_inline")


CODE = [(file, piece) for file, text in TEXTS.items() for piece in find_code_pieces(text)]


def read_gpumon_options() -> "dict[str, set[str]]":
    """Return the options of each command from the generated reference page. Options that all
    commands have are stored under an empty name.
    """
    found: "dict[str, set[str]]" = {}
    for section in re.split(r"^## ", TEXTS[DOCS / "reference/commands.md"], flags=re.MULTILINE)[1:]:
        name = (
            section.splitlines()[0].removeprefix("gpumon").strip().replace("Common options", "all")
        )
        found[name] = set(re.findall(r"`(--?[a-z][a-z-]*)", section)) | {
            "--help",
            "-h",
            "--version",
            "-V",
        }
    return found


class Links(unittest.TestCase):
    def test_each_link_leads_to_file_and_anchor(self) -> None:
        self.assertGreater(sum(len(page.links) for page in PAGES.values()), 200)
        self.assertEqual(list(links.find_complaints(PAGES)), [])

    def test_site_pages_link_only_to_site_files(self) -> None:
        inside = [
            (file, link)
            for file, page in PAGES.items()
            if DOCS in file.parents
            for link in page.links
        ]
        outside = [
            (file, link)
            for file, link in inside
            if not urlsplit(link).scheme
            and DOCS not in (file.parent / urlsplit(link).path).resolve().parents
        ]
        self.assertEqual([one for one in outside if urlsplit(one[1]).path], [])

    def test_readme_uses_relative_links(self) -> None:
        """Links and pictures of the README must work in a clone. The build rewrites them for the
        package index.
        """
        found = PAGES[ROOT / "README.md"].links
        self.assertGreater(len(found), 40)
        self.assertEqual(
            [
                link
                for link in found
                if urlsplit(link).scheme and urlsplit(link).hostname not in links.LOOPBACK
            ],
            [],
        )

    def test_site_summary_lists_each_page(self) -> None:
        listed = {(DOCS / link).resolve() for link in PAGES[DOCS / "SUMMARY.md"].links}
        self.assertEqual(
            {file for file in FILES if DOCS in file.parents} - listed, {DOCS / "SUMMARY.md"}
        )

    def test_broken_links_are_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            page, other = Path(folder, "page.html").resolve(), Path(folder, "other.html").resolve()
            other.write_text('<h1 id="there"></h1>')
            bad = [
                "none.html",
                "other.html#none",
                "#none",
                "none.png",
                "",
                "http://example.org",
                "https://host",
                "//x.org",
            ]
            good = [
                "other.html",
                "other.html#there",
                "https://example.org/a",
                "http://127.0.0.1:9123/",
                "#here",
            ]
            images = '<img src="none.png"><script src="none.js"></script>'
            page.write_text(
                "<p id=here>" + images + "".join(f'<a href="{link}"></a>' for link in bad + good)
            )
            pages = {file: links.Page(file.read_text()) for file in (page, other)}
            self.assertEqual(len(list(links.find_complaints(pages))), len(bad) + 2)
            self.assertIn("http://example.org", set(links.external_links(pages[page])))


class Commands(unittest.TestCase):
    def find_names_in_code(self, pattern: str) -> "list[tuple[Path, str]]":
        found = [(file, name) for file, piece in CODE for name in re.findall(pattern, piece)]
        self.assertTrue(found, f"no code in the documentation matches {pattern}")
        return found

    def assert_names_exist(self, named: "list[tuple[Path, str]]", known: "set[str]") -> None:
        self.assertEqual(
            [(str(file.relative_to(ROOT)), name) for file, name in named if name not in known], []
        )

    def test_named_make_targets_exist(self) -> None:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        known = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
        self.assert_names_exist(self.find_names_in_code(r"^make ([a-z][a-z0-9-]*)"), known)
        workflows = [
            (file, file.read_text(encoding="utf-8"))
            for file in (ROOT / ".github/workflows").glob("*.yml")
        ]
        run = [
            (file, name)
            for file, text in workflows
            for name in re.findall(r"\bmake ([a-z][a-z0-9-]*)$", text, re.MULTILINE)
        ]
        self.assertGreater(len(run), 2)
        self.assert_names_exist(run, known)

    def test_named_npm_scripts_exist(self) -> None:
        packages = {
            "": "package.json",
            **{one: f"{one}/package.json" for one in ("static", "labextension", "tests/browser")},
        }
        scripts = {
            f"{name} {folder}".strip()
            for folder, file in packages.items()
            for name in json.loads((ROOT / file).read_text(encoding="utf-8"))["scripts"]
        }
        named = self.find_names_in_code(
            r"^npm (?:run )?(?!ci\b|install\b)([a-z-]+(?: (?:-w|--workspace) \S+)?)"
        )
        self.assert_names_exist(
            [(file, re.sub(r" (-w|--workspace)", "", name)) for file, name in named], scripts
        )

    def test_named_crates_exist(self) -> None:
        manifests = [file for file in ROOT.glob("*/**/Cargo.toml") if "target" not in file.parts]
        manifests += [*ROOT.glob("*/Cargo.toml"), ROOT / "Cargo.toml"]
        names = {
            re.search(r'^name = "(.+?)"', file.read_text(), re.MULTILINE)[1] for file in manifests
        }
        self.assert_names_exist(
            self.find_names_in_code(r"\bcargo \w+ (?:-p|--package) ([a-z-]+)"), names
        )

    def test_named_files_exist(self) -> None:
        folders = "|".join(
            re.escape(one.name) for one in ROOT.iterdir() if one.is_dir() and one.name not in MADE
        )
        named = self.find_names_in_code(rf"(?:^|(?<=[ =]))((?:{folders})/[\w./*-]*)")
        self.assert_names_exist(
            named, {name for _, name in named if any(ROOT.glob(name.rstrip("/")))}
        )

    def test_named_options_exist(self) -> None:
        known, wrong, checked = read_gpumon_options(), [], 0
        # Two pages are left out. One of them is generated. The commands on the other one accept
        # options of nvidia-smi.
        pieces = [
            (file, piece)
            for file, piece in CODE
            if file.name not in ("commands.md", "nvidia-smi.md")
        ]
        for file, piece in pieces:
            for words in re.findall(r"(?:^|[|;&] *)gpumon(?= |$)([^|;&#]*)", piece):
                own = words.split(" -- ")[0].split()
                named = (
                    " ".join(own[at : at + length]) for length in (2, 1) for at in range(len(own))
                )
                commands = (name for name in named if name in known and name not in ("all", "help"))
                command = next(commands, "")
                if command == "smi":
                    continue
                given = {word.split("=")[0] for word in own if re.match(r"--?[a-z]", word)}
                checked += len(given)
                wrong += [
                    (str(file.relative_to(ROOT)), piece, one)
                    for one in given - known[command] - known["all"]
                ]
        self.assertEqual(wrong, [])
        self.assertGreater(checked, 50)


if __name__ == "__main__":
    unittest.main()
