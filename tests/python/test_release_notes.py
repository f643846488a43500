"""The notes of a release are taken from the changelog. A tag or an image that does not match the
version is refused.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
from release_notes import VersionMismatch, extract_notes, read_version  # noqa: E402

CHANGELOG = """# Changelog

## Unreleased

## 1.10.0 (2027-01)

### Terminal
- Newer.

## 1.1.0 (2026-12)

The second.
"""


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, ROOT / "tools/release_notes.py", *arguments],
        capture_output=True,
        text=True,
    )


class Notes(unittest.TestCase):
    def test_release_notes_come_from_section_of_version(self) -> None:
        self.assertEqual(extract_notes(CHANGELOG, "1.10.0"), "### Terminal\n- Newer.\n")
        self.assertEqual(extract_notes(CHANGELOG, "1.1.0"), "The second.\n")

    def test_version_without_section_or_text_is_refused(self) -> None:
        for version in ("1.1", "1.1.1", "1x1.0", "Unreleased"):
            with (
                self.subTest(version),
                self.assertRaisesRegex(VersionMismatch, f"no section of {version}"),
            ):
                extract_notes(CHANGELOG, version)
        with self.assertRaisesRegex(
            VersionMismatch, "the section of 2.0.0 in CHANGELOG.md is empty"
        ):
            extract_notes("## 2.0.0 (2027-02)\n\n## 1.0.0 (2027-01)\nOld.\n", "2.0.0")


class Version(unittest.TestCase):
    def test_npm_packages_must_have_same_version(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "Cargo.toml").write_text('[workspace.package]\nversion = "1.1.0"\n')
            for package, version in (
                ("static", "1.1.0"),
                ("labextension", "1.0.0"),
                ("tests/browser", "1.1.0"),
            ):
                (root / package).mkdir(parents=True)
                (root / package / "package.json").write_text(json.dumps({"version": version}))
            with self.assertRaisesRegex(
                VersionMismatch, "labextension/package.json has version 1.0.0, Cargo.toml has 1.1.0"
            ):
                read_version(root)


class Command(unittest.TestCase):
    def test_current_version_has_release_notes(self) -> None:
        for arguments in ([], [read_version(ROOT)]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertGreater(len(done.stdout), 100)

    def test_tag_of_another_version_is_refused(self) -> None:
        done = run("9.9.9")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("not 9.9.9", done.stderr)


class Image(unittest.TestCase):
    WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())

    def workflow_error(self, image: str) -> str:
        """Return the workflow's error about this image name; empty if the name is accepted."""
        (step,) = [
            one
            for one in self.WORKFLOW["jobs"]["build"]["steps"]
            if one.get("name") == "Check the name of the container image"
        ]
        command = ["bash", "-e", "-c", step["run"]]
        done = subprocess.run(
            command, env={**os.environ, "IMAGE": image}, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout

    def test_image_of_other_registry_is_refused(self) -> None:
        for image in (
            "registry.example/owner/gpumon",
            "ghcr.io.example/owner/gpumon",
            "owner/gpumon",
            "ghcr.io/",
            "ghcr.io/image",
        ):
            self.assertIn("set it to ghcr.io/OWNER/gpumon", self.workflow_error(image), image)
        self.assertIn("IMAGE is not set", self.workflow_error(""))
        self.assertEqual(self.workflow_error("ghcr.io/OWNER/gpumon"), "")

    def test_token_is_sent_only_to_github_registry(self) -> None:
        steps = [step for job in self.WORKFLOW["jobs"].values() for step in job["steps"]]
        logins = [step["run"] for step in steps if "docker login" in step.get("run", "")]
        self.assertEqual([run.split("docker login ")[1].split()[0] for run in logins], ["ghcr.io"])


if __name__ == "__main__":
    unittest.main()
