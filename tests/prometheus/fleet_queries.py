"""The queries that `gpumon fleet` sends to Prometheus, as listed in
docs/reference/fleet-queries.md. run.py sends them to a real Prometheus.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/fleet-queries.md"
#: The recording rules that the queries use.
RULES = ROOT / "deploy/prometheus/fleet.yml"

#: Parts of queries for which the test has no data, each with the reason.
MISSING = {
    ":increase15m": "less than a quarter of an hour has passed",
    ":count15m": "less than a quarter of an hour has passed",
    "gpu:gpumon_gpu_up:zero": "all GPUs respond",
    "unless": "all nodes have been scraped since the start",
    'condition="held_idle"': "no GPU is held idle",
    "notebook!=": "no notebook holds a GPU",
    "pod_uid!=": "no pod holds a GPU",
}


def read_queries():
    """Yield each query of the documentation page, with time ranges that are short enough for a
    test.
    """
    text = PAGE.read_text(encoding="utf-8")
    cells = re.findall(r"^\| .* \| `(.*)`[^`]* \|$", text, re.MULTILINE)
    blocks = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    listed = [cell.replace("\\|", "|") for cell in cells] + [
        line for block in blocks for line in block.splitlines()
    ]
    return [shorten_query(query) for query in listed]


def shorten_query(query):
    """Return the query with ranges of seconds instead of minutes or days, and without its selection
    of nodes.
    """
    query = re.sub(
        r"\[(86400|720)s(:900s)?\]", lambda match: "[5s:1s]" if match[2] else "[5s]", query
    )
    return (
        query.replace("offset 86400s", "offset 2s")
        .replace('{instance=~"n2:9124"}', "")
        .replace('job=~"g|', 'job=~"')
    )


def find_reason(query):
    """Return the reason why a query may have no data."""
    return next((reason for words, reason in MISSING.items() if words in query), None)
