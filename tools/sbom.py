"""The crates of the program, and its software bill of materials in CycloneDX format.

The document only depends on Cargo.lock: it contains no time, random number or folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: The dependencies of the program, without those for building and testing.
TREE = "cargo tree --locked --package=gpumon --edges=normal,no-proc-macro --prefix=depth".split()


class Crate(NamedTuple):
    name: str
    version: str
    license: str
    repository: str
    #: Whether the crate belongs to the project and is not on a registry.
    is_own: bool


def linked_crates(architecture: str) -> dict[Crate, list[Crate]]:
    """Return the crates of the program, each with its dependencies. The program's own crate comes
    first.
    """
    command = [*TREE, f"--target={architecture}-unknown-linux-gnu", "--format= {p} \t{l}\t{r}\t"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(TREE)}` failed with code {done.returncode}; its output is above")
    found: dict[Crate, list[Crate]] = {}
    above: list[Crate] = []
    for line in done.stdout.splitlines():
        # cargo lists the dependencies of a crate only below the first line with this crate. Further
        # lines with the crate end with (*).
        package, license_, repository, _ = line.split("\t")
        depth, name, version, *path = package.split()
        crate = Crate(
            name, version.removeprefix("v"), license_.replace("/", " OR "), repository, bool(path)
        )
        found.setdefault(crate, [])
        above[int(depth) :] = [crate]
        if len(above) > 1:
            found[above[-2]].append(crate)
    return found


def write_sbom(architecture: str, file: Path) -> None:
    crates = linked_crates(architecture)
    program, *libraries = map(make_component, crates)
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{program['bom-ref']}?architecture={architecture}")
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial.urn,
        "version": 1,
        "metadata": {"component": program | {"type": "application"}},
        "components": libraries,
        "dependencies": [
            {"ref": crate_reference(crate), "dependsOn": list(map(crate_reference, needed))}
            for crate, needed in crates.items()
        ],
    }
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def crate_reference(crate: Crate) -> str:
    return f"{crate.name}@{crate.version}"


def make_component(crate: Crate) -> dict:
    made = {
        "type": "library",
        "bom-ref": crate_reference(crate),
        "name": crate.name,
        "version": crate.version,
    }
    made["licenses"] = [{"expression": crate.license}]
    if not crate.is_own:
        made["purl"] = f"pkg:cargo/{crate_reference(crate)}"
    if crate.repository:
        made["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
    return made
