#!/usr/bin/env python3
"""Writes alerts.yml: all rules of deploy/alerts.toml, in the format of `gpumon alerts export`.

python3 deploy/prometheus/generate.py GPUMON
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RULES = HERE / "alerts.yml"
EXAMPLE = HERE.parent / "alerts.toml"
#: The prefix of the lines in the example alert file that are commented out.
INACTIVE = "#: "


def make_rules(program: str) -> str:
    """Returns the text of Prometheus' rule file."""
    active = "\n".join(
        line.removeprefix(INACTIVE) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, EXAMPLE.name)
        file.write_text(active, encoding="utf-8")
        # gpumon refuses an alert file that contains a webhook address if other users can read the
        # file.
        file.chmod(0o600)
        command = [program, "alerts", "export", "--prometheus", str(file)]
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
        ).stdout


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: generate.py GPUMON, with the path of the program")
    RULES.write_text(make_rules(sys.argv[1]), encoding="utf-8")
