"""Commands install the right package, and no tracked file contains an address that somebody else
may own.

On the package index, on GitHub and elsewhere, the name gpumon belongs to other people. The name of
this package is in pyproject.toml. The project's only address is `repository` in Cargo.toml, which
is empty until the project has an address.
"""

import re
import subprocess
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

import gpumon._find as find
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python" / "build_backend"))
import gpumon_index  # noqa: E402

DISTRIBUTION = re.search(
    r'^\[project\]\nname = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
)[1]
#: The form of the package's name in file names.
FILE_NAME = DISTRIBUTION.replace("-", "_")
#: Files that are not checked: lists of packages by other projects, and this file, which contains
#: wrong names.
SKIPPED = (
    "package-lock.json",
    "Cargo.lock",
    "THIRD-PARTY-LICENSES.txt",
    "tests/python/test_names.py",
)

#: A command that installs or runs packages or images, up to its end in a shell, Markdown or a
#: string.
COMMAND = re.compile(
    r"\b(?P<tool>pip3?|pipx|uv|uvx|conda|mamba|micromamba|docker|podman)[ \t]+(?P<rest>[^\n`|;]*)",
)
SUBCOMMANDS = {
    "pip": {"install", "uninstall", "download", "show", "wheel", "index"},
    "pipx": {"install", "uninstall", "upgrade", "run", "inject"},
    "uv": {"pip", "tool", "add", "remove", "run"},
    "conda": {"install", "create", "remove", "update", "build"},
    "docker": {"run", "pull", "push", "build", "buildx", "create", "exec", "tag", "save", "load"},
}
CONTAINERS = ("docker", "podman")
#: An image that was built on this machine, or one in the reader's own registry.
IMAGE = re.compile(r"(?:localhost/|REGISTRY/)?gpumon(?::[\w.${}-]+)?")

#: Sites where anybody can register a name.
PUBLIC = (
    r"github\.com|githubusercontent\.com|ghcr\.io|gitlab\.com|codeberg\.org|docker\.io|"
    r"hub\.docker\.com|quay\.io|nvcr\.io"
    r"|npmjs\.com|npmjs\.org|crates\.io|anaconda\.org|pypi\.org|artifacthub\.io|"
    r"marketplace\.visualstudio\.com"
)
ADDRESS = re.compile(
    rf"(?:{PUBLIC})[/:][^\s\"'`)>\]]*gpumon[^\s\"'`)>\]]*"
    r"|\bgpumon[\w-]*\.(?:github|gitlab)\.io\b|\bgpumon[\w-]*\.readthedocs\.io\b|\bgpumon\.(?:org|"
    r"com|dev|net|ai|app)\b"
    r"|\bgpumon@[\w-]+\.(?!org\b|invalid\b)[\w.-]*[a-z]"
    r"|(?:--repo|--repository)[ =]gpumon/[\w-]+",
    re.IGNORECASE,
)


def tracked_lines() -> Iterator[tuple[str, str]]:
    """Yield each line that contains gpumon's name in a tracked file, with the name of the file. A
    line and its continuations count as one line.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in listed.split("\0"):
        path = ROOT / name
        if name.endswith(SKIPPED) or not path.is_file():
            continue
        text = path.read_bytes().decode(errors="replace").replace("\\\n", " ")
        for line in text.splitlines():
            if "gpumon" in line.lower():
                yield name, line


LINES = list(tracked_lines())


def find_commands(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the tool and the unquoted words of each command in a line."""
    for found in COMMAND.finditer(line):
        tool = found["tool"]
        words = re.split(r"&&|\s#\s", found["rest"])[0].split()
        kind = "docker" if tool in CONTAINERS else "conda" if "mamba" in tool else tool.rstrip("3")
        if kind == "uvx" or (words and words[0].strip("\"'") in SUBCOMMANDS[kind]):
            yield tool, [word.strip("\"'(),.:") for word in words]


def find_wrong_names(tool: str, words: list[str]) -> list[str]:
    """Return the words of a command that name gpumon, but are neither the name of its package nor
    that of its image.
    """
    if tool in CONTAINERS:
        return [word for word in words if is_gpumon_image(word) and not IMAGE.fullmatch(word)]
    named = [word for word in words if "gpumon" in word]
    own = [
        word
        for word in named
        if re.split(r"[\[=<>~@]", word)[0] == DISTRIBUTION
        or Path(word).name.startswith(f"{FILE_NAME}-")
    ]
    # The word `gpumon` is allowed in two cases. After `--from` or `--spec` and the package's name,
    # it is the command. In an `uninstall` that also names the package, it is the other package
    # called gpumon.
    may_be_short = {"--from", "--spec", "uninstall"} & set(words) and own
    return [word for word in named if word not in own and not (may_be_short and word == "gpumon")]


def is_gpumon_image(word: str) -> bool:
    # A word with a path after a colon, such as `gpumon-history:/var/lib/gpumon`, is a volume and
    # not an image.
    return (
        not word.startswith(("/", "-", "."))
        and ":/" not in word
        and bool(re.search(r"(?:^|/)gpumon(?::[^/]*)?$", word))
    )


class PackageNames(unittest.TestCase):
    def test_commands_use_name_from_pyproject(self) -> None:
        found = [(name, tool, words) for name, line in LINES for tool, words in find_commands(line)]
        self.assertGreater(
            len([words for _, _, words in found if any(FILE_NAME in word for word in words)]), 5
        )
        wrong = [
            (name, tool, " ".join(words), bad)
            for name, tool, words in found
            for bad in find_wrong_names(tool, words)
        ]
        self.assertEqual(wrong, [])

    def test_wrong_package_names_in_commands_are_found(self) -> None:
        bad = [
            "pip install gpumon",
            "`pip install --upgrade gpumon`",
            "pip install 'gpumon[jupyter]'   # the panel",
            "python -m pip3 install -q gpumon",
            "pip uninstall gpumon",
            "pip install --no-index dist/gpumon-*_x86_64.whl",
            "pipx install gpumon",
            "uvx gpumon",
            "uv tool install gpumon",
            "conda install -c conda-forge gpumon",
            "docker run --rm ghcr.io/somebody/gpumon top",
            "docker pull somebody/gpumon:latest",
        ]
        good = [
            f"pip install '{DISTRIBUTION}[jupyter]'",
            f"pip install target/wheels/release/{FILE_NAME}-*.whl",
            f"pip uninstall gpumon {DISTRIBUTION}",
            f"uvx --from {DISTRIBUTION} gpumon",
            "docker run --rm --volume /var/lib/gpumon:/var/lib/gpumon gpumon top",
            "docker build --tag gpumon dist",
            "pip install jupyter-server-proxy",
            "pip says that gpumon is missing",
        ]
        named = [
            [name for tool, words in find_commands(line) for name in find_wrong_names(tool, words)]
            for line in bad + good
        ]
        self.assertEqual(
            [bool(names) for names in named], [True] * len(bad) + [False] * len(good), named
        )

    def test_documented_wheels_are_named_after_package(self) -> None:
        words = [(name, word) for name, line in LINES if ".whl" in line for word in line.split()]
        wheels = [(name, word) for name, word in words if re.search(r"gpumon-.*\.whl", word)]
        self.assertGreater(len(wheels), 3)
        self.assertEqual([(name, wheel) for name, wheel in wheels if FILE_NAME not in wheel], [])

    def test_package_name_is_the_same_everywhere(self) -> None:
        self.assertEqual(find.DISTRIBUTION, DISTRIBUTION)
        recipe = yaml.safe_load((ROOT / "deploy/conda/recipe.yaml").read_text())
        self.assertEqual(recipe["package"]["name"], DISTRIBUTION)
        built = ROOT / "wheel/data/share/jupyter/labextensions/gpumon/install.json"
        self.assertEqual(yaml.safe_load(built.read_text())["packageName"], DISTRIBUTION)


class Addresses(unittest.TestCase):
    def test_tracked_files_do_not_contain_gpumon_address(self) -> None:
        found = [(name, address) for name, line in LINES for address in ADDRESS.findall(line)]
        self.assertEqual(
            [(name, address) for name, address in found if not is_allowed(name, address)], []
        )

    def test_gpumon_addresses_are_found_in_every_notation(self) -> None:
        bad = [
            "https://github.com/gpumon/gpumon/releases",
            "git@github.com:gpumon/gpumon.git",
            "https://raw.githubusercontent.com/gpumon/gpumon/main/a.png",
            "image: ghcr.io/gpumon/gpumon",
            "https://gpumon.github.io/gpumon/",
            "https://gpumon.readthedocs.io",
            "gpumon@users.noreply.github.com",
            "gh attestation verify FILE --repo gpumon/gpumon",
            "https://www.npmjs.com/package/gpumon",
        ]
        good = [
            "/run/gpumon/gpumon.sock",
            "gpumon@example.org",
            "https://hub.example.org/user/me/gpumon/",
            "gpumon.com_lines",
        ]
        self.assertEqual(
            [bool(ADDRESS.search(text)) for text in bad + good],
            [True] * len(bad) + [False] * len(good),
        )


def is_allowed(name: str, address: str) -> bool:
    """Return whether an address may be used: it belongs to the package, contains a placeholder, or
    is the repository in Cargo.toml.
    """
    is_repository = (
        name == "Cargo.toml"
        and bool(gpumon_index.repository_address())
        and gpumon_index.repository_address().endswith(address)
    )
    return is_repository or "/OWNER/" in address or address == f"pypi.org/project/{DISTRIBUTION}/"


if __name__ == "__main__":
    unittest.main()
