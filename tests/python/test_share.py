"""The completions and manual pages of the wheel, as installed."""

import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from program import run_gpumon

SHARE = Path(sys.prefix) / "share"
COMPLETIONS = {
    "bash": SHARE / "bash-completion" / "completions" / "gpumon",
    "zsh": SHARE / "zsh" / "site-functions" / "_gpumon",
    "fish": SHARE / "fish" / "vendor_completions.d" / "gpumon.fish",
}
PAGES = SHARE / "man" / "man1"


def list_commands() -> set[str]:
    """Return the commands that `gpumon help` lists, and their subcommands in a form such as
    `alerts-check`.
    """
    own = commands_in_help("help") | {"help"}
    return own | {
        f"{command}-{action}"
        for command in own - {"smi"}
        for action in commands_in_help(command, "-h")
    }


def commands_in_help(*arguments: str) -> set[str]:
    found = re.findall(r"^Commands:\n((?:  .*\n)+)", run_gpumon(*arguments), re.MULTILINE)
    return {name for text in found for name in re.findall(r"^  (\w[\w-]*)", text, re.MULTILINE)} - {
        "help"
    }


class Completions(unittest.TestCase):
    def test_completions_match_program(self) -> None:
        for shell, path in COMPLETIONS.items():
            with self.subTest(shell):
                self.assertEqual(path.read_text(), run_gpumon("completions", shell))

    def test_bash_completes_commands_options_and_values(self) -> None:
        for typed, proposed in (
            (["gpumon", "wai"], "wait"),
            (["gpumon", "wait", "--fr"], "--free"),
            (["gpumon", "wait", "--format", "u"], "uuid"),
            (["gpumon", "--source", "nv"], "nvml"),
            (["gpumon", "-q", "-d", "ECC,POWER_S"], "ECC,POWER_SMOOTHING"),
            (["gpumon", "smi", "--query-gpu", "=", "name,uu"], "name,uuid"),
        ):
            with self.subTest(typed):
                script = (
                    f'source "{COMPLETIONS["bash"]}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                    'function=$(complete -p gpumon | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
                    '"$function" "$1" "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"; echo '
                    '"${COMPREPLY[*]}"'
                )
                done = subprocess.run(
                    ["bash", "--norc", "-c", script, "bash", *typed],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                self.assertEqual((done.stdout.strip(), done.stderr), (proposed, ""))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_loads_completions(self) -> None:
        script = (
            f'fpath=("{COMPLETIONS["zsh"].parent}" $fpath); autoload -Uz compinit; compinit -D; '
            f"echo $_comps[gpumon]"
        )
        done = subprocess.run(
            ["zsh", "-f", "-c", script], capture_output=True, text=True, check=True
        )
        self.assertEqual((done.stdout.strip(), done.stderr), ("_gpumon", ""))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes_commands_options_and_values(self) -> None:
        for typed, proposed in (
            ("gpumon wai", "wait"),
            ("gpumon wait --fr", "--free"),
            ("gpumon wait --format u", "uuid"),
            ("gpumon --source nv", "nvml"),
            ("gpumon -q -d ECC,POWER_S", "ECC,POWER_SMOOTHING"),
            ("gpumon smi --query-gpu=name,uu", "--query-gpu=name,uuid"),
        ):
            with self.subTest(typed):
                script = f'source "{COMPLETIONS["fish"]}"; complete --do-complete "{typed}"'
                done = subprocess.run(
                    ["fish", "--no-config", "-c", script],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                self.assertEqual(
                    [line.split("\t")[0] for line in done.stdout.splitlines()], [proposed]
                )


class ManualPages(unittest.TestCase):
    def test_each_command_has_manual_page(self) -> None:
        expected = {"gpumon.1", *(f"gpumon-{command}.1" for command in list_commands())}
        self.assertEqual({path.name for path in PAGES.glob("gpumon*.1")}, expected)

    def test_manual_pages_match_program(self) -> None:
        for command in list_commands():
            with self.subTest(command):
                page = (PAGES / f"gpumon-{command}.1").read_text()
                self.assertEqual(remove_date(page), remove_date(run_gpumon("man", command)))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_accepts_manual_pages(self) -> None:
        for page in PAGES.glob("gpumon*.1"):
            with self.subTest(page.name):
                done = subprocess.run(
                    ["groff", "-man", "-Tutf8", "-ww", "-z", str(page)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                self.assertEqual(done.stderr, "")


def remove_date(page: str) -> str:
    """Return the page without its date."""
    return re.sub(r"^(\.TH \S+ 1) \S+", r"\1", page, flags=re.MULTILINE)


if __name__ == "__main__":
    unittest.main()
