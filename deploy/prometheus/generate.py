#!/usr/bin/env python3
"""Writes alerts.yml: the rules of deploy/alerts.toml, all of them active, as `gpumon alerts export`
gives them.

    python3 deploy/prometheus/generate.py GPUMON
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RULES = HERE / "alerts.yml"
EXAMPLE = HERE.parent / "alerts.toml"
#: What marks the inactive lines of the example.
INACTIVE = "#: "


def rules(program: str) -> str:
    """The rule file of Prometheus."""
    active = "\n".join(
        line.removeprefix(INACTIVE) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, EXAMPLE.name)
        file.write_text(active, encoding="utf-8")
        # It refuses files with the address of a webhook that others can read.
        file.chmod(0o600)
        command = [program, "alerts", "export", "--prometheus", str(file)]
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
        ).stdout


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: generate.py GPUMON, with the path of the program")
    RULES.write_text(rules(sys.argv[1]), encoding="utf-8")
