"""The type annotations of the package match its behavior."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gpumon

ROOT = Path(__file__).resolve().parents[2]
#: The source folder of the package. In an installed package, a type checker would also check
#: neighboring files as if they were part of it.
PACKAGE = ROOT / "python" / "gpumon"

#: Modules that use optional libraries, which have no type information.
OF_OTHERS = (
    r"gpumon\.(_cells\.NotebookClient|_papermill|nbclient\.\w+|nbconvert\.\w+|trackers\.[a-z]\w+)"
)

#: Folders with programs that no test runs, because they need a GPU or much time.
PROGRAMS = ("tests/bench", "tests/bench/fleet", "tests/real-gpu")

#: Typical code of users with the expected types.
USE = Path(__file__).with_name("typed_use.py")


def run_mypy(path: object) -> str:
    """Return the errors of mypy."""
    # Values parsed from JSON have the type Any. With `--no-warn-return-any`, a function may return
    # such a value under its declared return type.
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-warn-return-any",
        "--cache-dir=/dev/null",
    ]
    command += ["--config-file", str(ROOT / "pyproject.toml"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def run_pyright(path: Path) -> str:
    """Return the errors that pyright finds with all of its rules. It is installed by npm."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, folder)
        Path(folder, "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
        command = [
            str(ROOT / "node_modules/.bin/pyright"),
            "--warnings",
            "--project",
            folder,
            "--pythonpath",
            sys.executable,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


class Types(unittest.TestCase):
    def test_package_passes_mypy(self) -> None:
        self.assertEqual(run_mypy(PACKAGE), "")

    def test_documented_types_are_inferred(self) -> None:
        self.assertEqual(run_mypy(USE), "")
        used = USE.read_text()
        self.assertEqual([name for name in gpumon.__all__ if f"gpumon.{name}" not in used], [])

    def test_pyright_accepts_user_code(self) -> None:
        self.assertEqual(run_pyright(USE), "")
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder, USE.name)
            wrong.write_text(USE.read_text() + "assert_type(step.measurements, int)\n")
            self.assertIn("deque[Measurement]", run_pyright(wrong))

    def test_stubs_match_runtime(self) -> None:
        with tempfile.NamedTemporaryFile("w") as others:
            others.write(OF_OTHERS)
            others.flush()
            command = [
                sys.executable,
                "-m",
                "mypy.stubtest",
                "gpumon",
                "--mypy-config-file",
                ROOT / "pyproject.toml",
            ]
            done = subprocess.run(
                [*command, "--allowlist", others.name], capture_output=True, text=True
            )
        self.assertEqual((done.returncode, done.stdout if done.returncode else ""), (0, ""))

    def test_programs_without_tests_import_existing_names(self) -> None:
        for folder in PROGRAMS:
            command = [sys.executable, "-m", "mypy", "--cache-dir=/dev/null"]
            files = [path.name for path in (ROOT / folder).glob("*.py")]
            done = subprocess.run(
                [*command, "--ignore-missing-imports", *files],
                cwd=ROOT / folder,
                capture_output=True,
                text=True,
            )
            self.assertIn("source file", done.stdout, done.stderr)
            self.assertNotRegex(done.stdout, r'Module "\w+" has no attribute')

    def test_all_public_names_exist(self) -> None:
        for name in gpumon.__all__:
            self.assertTrue(getattr(gpumon, name).__doc__, name)
        self.assertLessEqual(set(gpumon.__all__), set(dir(gpumon)))
        with self.assertRaisesRegex(AttributeError, "no attribute 'mesure'"):
            gpumon.mesure


if __name__ == "__main__":
    unittest.main()
