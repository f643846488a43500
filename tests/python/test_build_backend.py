"""Errors of the wheel's build backend, as seen by an installer."""

import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from email.parser import Parser
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
BACKEND = ROOT / "python" / "build_backend"
sys.path.append(str(BACKEND))
import gpumon_index  # noqa: E402

ADDRESS = "https://forge.example/owner/gpumon"
#: A program that calls a hook in the same way as an installer. maturin is replaced by a mock that
#: returns `asked`.
ASK = """
import os, sys
from unittest import mock
def unknown(name):
    raise OSError(22, "Invalid argument")
if sys.argv[1] == "musl":
    os.confstr = unknown
sys.modules["maturin"] = mock.Mock(**{f"{sys.argv[2]}.return_value": ["asked"]})
import gpumon_build
print(getattr(gpumon_build, sys.argv[2])())
"""


def run_hook(libc: str, hook: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", ASK, libc, hook]
    return subprocess.run(
        command, env={"PYTHONPATH": str(BACKEND)}, capture_output=True, text=True, check=False
    )


class Refusal(unittest.TestCase):
    def test_missing_glibc_is_refused_with_advice(self) -> None:
        for hook in (
            "get_requires_for_build_wheel",
            "get_requires_for_build_editable",
            "build_wheel",
            "build_editable",
        ):
            with self.subTest(hook):
                done = run_hook("musl", hook)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(
                    done.stderr,
                    "^gpumon: this system has no glibc, .* NVIDIA's driver libraries .*Debian",
                )

    def test_build_hooks_call_maturin_if_glibc_exists(self) -> None:
        for hook in (
            "get_requires_for_build_wheel",
            "get_requires_for_build_editable",
            "get_requires_for_build_sdist",
        ):
            with self.subTest(hook):
                self.assertEqual(run_hook("glibc", hook).stdout, "['asked']\n")


#: A program that calls a hook in a folder with a manifest and a README. A fake maturin writes the
#: metadata.
CALL = """
import sys
from pathlib import Path
from unittest import mock
folder = Path(sys.argv[1])
import gpumon_frontend, gpumon_index, gpumon_share
gpumon_frontend.build_if_needed = gpumon_share.build = lambda: None
gpumon_index.ROOT, gpumon_index.README = folder, folder / "made.md"
def write(where, *arguments):
    assert gpumon_index.README.read_text() == \
"[a](https://forge.example/owner/gpumon/blob/HEAD/b.md)"
    Path(where, "x.dist-info").mkdir()
    Path(where, "x.dist-info/METADATA").write_text("Name: x\\n\\nText")
    return "x.dist-info"
sys.modules["maturin"] = mock.Mock(**{f"{sys.argv[2]}.side_effect": write})
import gpumon_build
print(getattr(gpumon_build, sys.argv[2])(sys.argv[1]))
print(Path(folder, "x.dist-info/METADATA").read_text())
"""


class Index(unittest.TestCase):
    """The README and the project's URLs for a package index."""

    README = (ROOT / "README.md").read_text(encoding="utf-8")

    def test_readme_has_no_links_without_repository_address(self) -> None:
        shown = gpumon_index.make_readme(self.README, "")
        self.assertNotIn("![", shown)
        self.assertEqual(re.findall(r"\]\((?!https:)[^)]*\)", shown), [])
        for words in (
            "## Install",
            "pip install",
            "Installation describes the requirements of the build",
            "| `gpumon top` |",
        ):
            self.assertIn(words, shown)
        # The index's README lacks only the paragraphs with pictures.
        lost = [paragraph for paragraph in self.README.split("\n\n") if "![" in paragraph]
        self.assertGreater(len(lost), 3)
        for paragraph in lost:
            text = re.sub(r"!\[.*?\]\(.*?\)", "", paragraph)
            self.assertEqual(
                re.findall(r"\w+", text), ["Light", "Dark"] if "|" in paragraph else [], paragraph
            )

    def test_readme_links_are_absolute_with_repository_address(self) -> None:
        shown = gpumon_index.make_readme(self.README, ADDRESS)
        for text, kind in ((r"(?<=!)\[[^\]]*\]", "raw"), (r"(?<!!)\[[^\]]*\]", "blob")):
            targets = re.findall(rf"{text}\(([^)]+)\)", shown)
            self.assertGreater(len(targets), 3)
            for target in targets:
                self.assertTrue(target.startswith(f"{ADDRESS}/{kind}/HEAD/"), target)
                path = target.removeprefix(f"{ADDRESS}/{kind}/HEAD/").partition("#")[0]
                self.assertTrue((ROOT / path).exists(), target)

    def test_repository_address_comes_from_cargo_toml(self) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(gpumon_index, "ROOT", Path(folder)),
        ):
            manifest = Path(folder, "Cargo.toml")
            for line, expected in (
                ("", ""),
                ('repository = ""', ""),
                (f'repository = "{ADDRESS}/"', ADDRESS),
            ):
                manifest.write_text(f"[workspace.package]\n{line}\npublish = false\n")
                self.assertEqual(gpumon_index.repository_address(), expected)

    def test_each_hook_writes_readme_before_maturin(self) -> None:
        metadata = [f"prepare_metadata_for_build_{kind}" for kind in ("wheel", "editable")]
        for hook in ("build_sdist", *metadata):
            with self.subTest(hook), tempfile.TemporaryDirectory() as folder:
                Path(folder, "Cargo.toml").write_text(f'repository = "{ADDRESS}"\n')
                Path(folder, "README.md").write_text("[a](b.md)")
                command = [sys.executable, "-c", CALL, folder, hook]
                done = subprocess.run(
                    command,
                    env={"PYTHONPATH": str(BACKEND)},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(
                    f"Project-URL: Source, {ADDRESS}\n" in done.stdout,
                    hook in metadata,
                    done.stdout,
                )

    def test_wheel_metadata_has_links_only_with_repository(self) -> None:
        name = "jupyterlab_gpumon-1.dist-info/METADATA"
        metadata = (
            "Metadata-Version: 2.4\nName: jupyterlab-gpumon\nVersion: 1\n\n# README\n\nText.\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            wheel = Path(folder, "a.whl")
            with zipfile.ZipFile(wheel, "w") as packed:
                packed.writestr("gpumon/__init__.py", "")
                packed.writestr(name, metadata)
                packed.writestr(
                    "jupyterlab_gpumon-1.dist-info/RECORD",
                    f"gpumon/__init__.py,,\n{name},sha256=x,1\n",
                )
            before = wheel.read_bytes()
            gpumon_index.add_addresses_to_wheel(wheel, "")
            self.assertEqual(wheel.read_bytes(), before)
            gpumon_index.add_addresses_to_wheel(wheel, ADDRESS)
            self.assertEqual([path.name for path in Path(folder).iterdir()], ["a.whl"])
            with zipfile.ZipFile(wheel) as packed:
                self.assertEqual(len(packed.namelist()), 3)
                changed, record = (
                    packed.read(name),
                    packed.read("jupyterlab_gpumon-1.dist-info/RECORD").decode(),
                )
        headers = Parser().parsestr(changed.decode())
        self.assertIn(f"Source, {ADDRESS}", headers.get_all("Project-URL"))
        self.assertEqual(headers.get_payload(), "# README\n\nText.\n")
        checksum = base64.urlsafe_b64encode(hashlib.sha256(changed).digest()).decode().rstrip("=")
        self.assertEqual(record, f"gpumon/__init__.py,,\n{name},sha256={checksum},{len(changed)}\n")
        for url in headers.get_all("Project-URL"):
            path = url.partition("/HEAD/")[2]
            self.assertTrue((ROOT / path).exists(), url)
