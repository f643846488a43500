#!/usr/bin/env python3
"""Writes the software bill of materials of the program, in CycloneDX: gpumon's own crates and those they depend on.

    tools/sbom.py TARGET FILE

The same Cargo.lock makes the same document: it has no time, no random number and no folder in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "gpumon"


def main(target: str, file: str) -> None:
    metadata = json.loads(_cargo("metadata", "--format-version=1", "--locked", f"--filter-platform={target}"))
    packages = {package["id"]: package for package in metadata["packages"]}
    (program,) = (package for package in packages.values() if package["name"] == PROGRAM)
    needed = linked(metadata["resolve"]["nodes"], program["id"])
    components = {name: component(packages[name]) for name in needed}
    components[program["id"]].type = ComponentType.APPLICATION
    bom = Bom(
        components=[one for name, one in components.items() if name != program["id"]],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{PROGRAM}@{program['version']}?target={target}"),
    )
    bom.metadata = BomMetaData(component=components[program["id"]])
    for name, others in needed.items():
        bom.register_dependency(components[name], [components[other] for other in others])
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["metadata"]["timestamp"]
    Path(file).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def linked(nodes: list[dict], start: str) -> dict[str, list[str]]:
    """What goes into the program, each with what it depends on: neither what builds it nor what tests it."""
    edges = {
        node["id"]: [other["pkg"] for other in node["deps"] if any(kind["kind"] is None for kind in other["dep_kinds"])]
        for node in nodes
    }
    found, waiting = {}, [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = edges[name]
            waiting.extend(edges[name])
    return found


def component(package: dict) -> Component:
    made = Component(
        name=package["name"],
        version=package["version"],
        purl=PackageURL("cargo", name=package["name"], version=package["version"]),
        bom_ref=f"{package['name']}@{package['version']}",
        description=" ".join((package["description"] or "").split()) or None,
        licenses=[LicenseFactory().make_from_string(package["license"].replace("/", " OR "))] if package["license"] else [],
    )
    if package["source"] is None:
        # The project's own crates are on no registry.
        made.purl = None
    if package["repository"]:
        made.external_references.add(ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(package["repository"])))
    return made


def _cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: tools/sbom.py TARGET FILE")
    main(*sys.argv[1:])
