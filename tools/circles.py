#!/usr/bin/env python3
"""Finds import cycles among the files of the Rust crates and of the TypeScript, and fails if one is
too large.

    tools/circles.py [--all]

A file imports another if one of its paths names an item that the other defines. Files in a cycle
can only be understood together. So a cycle may have at most three files, or be a module with its
direct children: a type and its parts. Tests are not checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The maximum number of files in a cycle.
MAX_PRINTED = 3
#: Larger cycles that are necessary, and the reasons.
REASONS = {
    "workload/src/cuda": "a context creates objects that refer to it, because it must outlive them",
}

Graph = dict[Path, set[Path]]


def main(arguments: list[str]) -> int:
    manifests = sorted([*ROOT.glob("*/Cargo.toml"), *ROOT.glob("workload/*/Cargo.toml")])
    graphs = [rust_graph(manifest.parent / "src") for manifest in manifests]
    graphs += [typescript_graph(ROOT / folder / "src") for folder in ("static", "labextension")]
    circles = sorted(
        (circle for graph in graphs for circle in find_circles(graph)), key=len, reverse=True
    )
    large = [
        circle
        for circle in circles
        if len(circle) > MAX_PRINTED
        and not is_module_with_children(circle)
        and describe_circle(circle) not in REASONS
    ]
    for circle in circles if "--all" in arguments else large:
        print(f"{len(circle)} files import each other in {describe_circle(circle)}:")
        for file in sorted(circle):
            print(f"    {file.relative_to(ROOT)}")
    print(f"{len(circles)} import cycles, {len(large)} of them too large")
    return 1 if large else 0


def describe_circle(circle: Iterable[Path]) -> str:
    """Return the folder that contains all files of a cycle."""
    parents = [list(reversed(file.relative_to(ROOT).parents)) for file in circle]
    shared = [level[0] for level in zip(*parents) if len(set(level)) == 1]
    return str(shared[-1])


def is_module_with_children(circle: set[Path]) -> bool:
    """Return whether the files are a module and its direct children."""
    heads = [file for file in circle if file.name == "mod.rs"]
    return any(
        all(file == head or _parent_module_file(file) == head for file in circle) for head in heads
    )


def _parent_module_file(file: Path) -> Path:
    return (file.parent.parent if file.name == "mod.rs" else file.parent) / "mod.rs"


def rust_graph(source: Path) -> Graph:
    """Return the files of a crate, each with the files that it imports."""
    modules = {
        _module_path(source, file): file for file in source.rglob("*.rs") if not _is_test(file)
    }
    exported = {
        module: dict(_reexported_items(module, file, modules)) for module, file in modules.items()
    }
    graph: Graph = {}
    for module, file in modules.items():
        targets = (
            _find_definition(path, modules, exported)
            for path in _find_paths(module, _source_without_tests(file))
        )
        graph[file] = {
            modules[target] for target in targets if target is not None and target != module
        }
    return graph


Module = tuple[str, ...]


def _module_path(source: Path, file: Path) -> Module:
    parts = file.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def _is_test(file: Path) -> bool:
    return any(
        part in ("tests.rs", "tests", "testing.rs", "testing", "fuzzing.rs") for part in file.parts
    )


def _source_without_tests(file: Path) -> str:
    text = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
    return re.split(
        r"^#\[cfg\(test\)\]\n(?:#.*\n)*(?:pub\(.*?\) )?mod ", text, maxsplit=1, flags=re.MULTILINE
    )[0]


def _find_paths(module: Module, text: str) -> Iterator[Module]:
    """Yield all paths in the text, from the crate's root."""
    for tree in re.findall(r"^ *use ([^;]+);", text, re.MULTILINE):
        for path in _expand_use_tree(re.sub(r"\s+", " ", tree)):
            yield from _absolute_paths(module, path)
    body = re.sub(r"\buse [^;]+;|\bpub\(in [^)]*\)", "", text)
    for path in re.findall(r"\b(?:crate|self|super)(?:::\w+)+", body):
        yield from _absolute_paths(module, path)
    for path in re.findall(r"(?<![:\w])[a-z_]\w*(?:::\w+)+", body):
        yield (*module, *path.split("::"))


def _expand_use_tree(tree: str) -> Iterator[str]:
    """Yield the paths of a tree such as `a::{b, c::{d, e as f}}`."""
    tree = tree.strip()
    opening = tree.find("{")
    if opening < 0:
        yield tree.split(" as ")[0].strip()
        return
    head, depth, start = tree[:opening], 0, opening + 1
    for place in range(opening, len(tree)):
        depth += {"{": 1, "}": -1}.get(tree[place], 0)
        if (tree[place] == "," and depth == 1) or depth == 0:
            if tree[start:place].strip():
                yield from (head + leaf for leaf in _expand_use_tree(tree[start:place]))
            start = place + 1
        if depth == 0:
            return


def _absolute_paths(module: Module, path: str) -> Iterator[Module]:
    parts = path.removesuffix("::self").split("::")
    if parts[0] == "crate":
        yield tuple(parts[1:])
    elif parts[0] in ("self", "super"):
        base = module
        while parts and parts[0] in ("self", "super"):
            base = base[:-1] if parts.pop(0) == "super" else base
        yield (*base, *parts)
    else:
        yield (*module, *parts)


def _reexported_items(
    module: Module, file: Path, modules: dict[Module, Path]
) -> Iterator[tuple[str, Module]]:
    """Yield the items that a module reexports, by name."""
    for tree in re.findall(r"\bpub(?:\([^)]*\))? use ([^;]+);", _source_without_tests(file)):
        for path in _expand_use_tree(re.sub(r"\s+", " ", tree)):
            for absolute in _absolute_paths(module, path):
                if absolute[:-1] in modules:
                    yield absolute[-1], absolute


def _find_definition(
    path: Module, modules: dict[Module, Path], exported: dict[Module, dict[str, Module]]
) -> Module | None:
    """Return the module whose file defines the item of a path."""
    for _hop in range(8):
        length = next(
            (length for length in range(len(path), -1, -1) if path[:length] in modules), None
        )
        if length is None or (length == 0 and len(path) == 0):
            return None
        module, rest = path[:length], path[length:]
        if rest and rest[0] in exported[module]:
            path = (*exported[module][rest[0]], *rest[1:])
            continue
        return module
    return None


def typescript_graph(source: Path) -> Graph:
    """Return the files of a package, each with the files that it imports. Imports of types count,
    too.
    """
    graph: Graph = {}
    for file in [*source.rglob("*.ts"), *source.rglob("*.tsx")]:
        if ".test." in file.name or "testing" in file.parts:
            continue
        text = file.read_text(encoding="utf-8")
        found = (_resolve_import(file, path) for path in re.findall(r"\bfrom '(\.[^']*)'", text))
        graph[file] = {target for target in found if target is not None}
    return graph


def _resolve_import(file: Path, path: str) -> Path | None:
    base = (file.parent / path).resolve()
    files = [base.with_name(base.name + kind) for kind in (".ts", ".tsx")]
    return next((at for at in [*files, base / "index.ts", base] if at.is_file()), None)


def find_circles(graph: Graph) -> list[set[Path]]:
    """Return the strongly connected components with more than one file, by Tarjan's algorithm."""
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[set[Path]] = []

    def visit(file: Path) -> None:
        index[file] = low[file] = len(index)
        stack.append(file)
        for target in graph.get(file, ()):
            if target not in index:
                visit(target)
                low[file] = min(low[file], low[target])
            elif target in stack:
                low[file] = min(low[file], index[target])
        if low[file] == index[file]:
            place = stack.index(file)
            part = set(stack[place:])
            del stack[place:]
            if len(part) > 1:
                found.append(part)

    sys.setrecursionlimit(10_000)
    for file in graph:
        if file not in index:
            visit(file)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
