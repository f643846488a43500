#!/usr/bin/env python3
"""Reads the conda recipe with rattler-build, and compares it with the wheels in dist/. These must
contain the files that the recipe packages.

The requirements are not resolved and nothing is built, because Python and pip would come from
conda-forge.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
from pathlib import Path

from command import ROOT
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

RECIPE = ROOT / "deploy" / "conda" / "recipe.yaml"
PLATFORMS = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}


def main() -> None:
    wheels = {wheel.name for wheel in (ROOT / "dist").glob("*.whl")} or sys.exit(
        "dist/ has no wheel: run `make dist` first"
    )
    os.environ["GPUMON_VERSION"] = re.match(r"jupyterlab_gpumon-([^-]+)-", min(wheels))[1]
    checked = []
    for platform, machine in PLATFORMS.items():
        recipe = render_recipe(platform)
        (wheel,) = (
            Path(source["path"]) for source in recipe["source"] if source["path"].endswith(".whl")
        )
        if not any(name.endswith(f"_{machine}.whl") for name in wheels):
            continue
        if wheel.name not in wheels:
            sys.exit(
                f"the recipe uses {wheel.name} for {platform}, but dist/ contains "
                f"{', '.join(sorted(wheels))}"
            )
        check_contents(recipe, ROOT / "dist" / wheel.name)
        checked.append(platform)
    print(
        f"conda recipe: parsed for {' and '.join(PLATFORMS)}; the wheels for "
        f"{' and '.join(checked)} contain all expected files"
    )


def render_recipe(platform: str) -> dict:
    for_platform = PlatformConfig(
        target_platform=platform, build_platform="linux-64", host_platform=platform
    )
    (variant,) = Stage0Recipe.from_file(str(RECIPE)).render(
        VariantConfig(), RenderConfig(platform=for_platform)
    )
    return variant.recipe.to_dict()


def check_contents(recipe: dict, wheel: Path) -> None:
    (expected,) = (
        test["package_contents"] for test in recipe["tests"] if "package_contents" in test
    )
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    # These paths are relative to the environment into which the wheel is installed.
    installed = {name.split(".data/data/")[1] for name in names if ".data/data/" in name}
    for name in expected["files"]:
        if name not in installed:
            sys.exit(f"the recipe expects {name}, which {wheel.name} does not contain")


if __name__ == "__main__":
    main()
