#!/usr/bin/env python3
"""Writes the dashboards next to this file: gpumon-fleet.json from fleet.py, gpumon-node.json from
node.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import fleet
import node
from panels import DATASOURCE, lay_out_panels

HERE = Path(__file__).resolve().parent


def make_variable(name: str, label: str, query: str, *, is_single: bool = False) -> dict:
    every = (
        {}
        if is_single
        else {
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }
    )
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        # Grafana reloads the list of nodes whenever the time range changes, because nodes are added
        # and removed.
        "refresh": 2,
        "sort": 7,
    } | every


SOURCE = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
}
JOB = make_variable("job", "Job", "label_values(gpumon_build_info, job)")


def make_dashboard(
    name: str, title: str, description: str, rows: list, variables: list[dict]
) -> dict:
    others = {
        "title": "gpumon",
        "type": "dashboards",
        "tags": ["gpumon"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
    }
    return {
        # This version of the schema needs Grafana 10.4 or newer.
        "schemaVersion": 39,
        "uid": f"gpumon-{name}",
        "title": title,
        "description": description,
        "tags": ["gpumon", "gpu"],
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "links": [others],
        "templating": {"list": [SOURCE, JOB, *variables]},
        "annotations": {"list": []},
        "panels": lay_out_panels(rows),
    }


def make_dashboards() -> dict[str, dict]:
    """Returns all dashboards. The keys are their file names."""
    nodes = 'label_values(gpumon_gpu_up{job=~"$job"}, instance)'
    gpus = 'label_values(gpumon_gpu_up{job=~"$job", instance=~"$node"}, gpu)'
    of_fleet = (
        "Nodes and GPUs by utilization, memory and power; conditions and errors; users and jobs"
    )
    return {
        "gpumon-fleet.json": make_dashboard(
            "fleet", "gpumon: fleet", of_fleet, fleet.ROWS, [make_variable("node", "Node", nodes)]
        ),
        "gpumon-node.json": make_dashboard(
            "node",
            "gpumon: node",
            "All readings of the GPUs of one node and of its host",
            node.ROWS,
            [
                make_variable("node", "Node", nodes, is_single=True),
                make_variable("gpu", "GPU", gpus),
            ],
        ),
    }


def to_json_text(model: dict) -> str:
    return json.dumps(model, indent=1) + "\n"


if __name__ == "__main__":
    for name, model in make_dashboards().items():
        (HERE / name).write_text(to_json_text(model), encoding="utf-8")
