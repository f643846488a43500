"""JSON models of Grafana panels."""

from __future__ import annotations

from dataclasses import dataclass, field

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: The width of Grafana's layout grid, in columns.
COLUMNS = 24

#: Color thresholds: pairs of a lower bound and the color of values at or above this bound.
Steps = list[tuple[float | None, str]]
GREEN: Steps = [(None, "green")]
#: Color thresholds for a fraction (0 to 1) that should be low.
FULL: Steps = [(None, "green"), (0.85, "orange"), (0.95, "red")]
#: Color thresholds for a fraction (0 to 1) that should be high.
BUSY: Steps = [(None, "text"), (0.3, "yellow"), (0.7, "green")]
HOT: Steps = [(None, "green"), (75, "orange"), (85, "red")]
NONE_IS_GOOD: Steps = [(None, "green"), (1, "red")]
SOME_IS_NOTABLE: Steps = [(None, "green"), (1, "orange")]


@dataclass
class Query:
    """A PromQL expression and the name of its series in the legend."""

    expression: str
    legend: str = "__auto"


@dataclass
class Panel:
    """The contents and the appearance of one panel."""

    title: str
    queries: list[Query]
    #: The meaning of the values, and how to react to them.
    description: str
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 6
    height: int = 8
    steps: Steps = field(default_factory=lambda: GREEN)
    #: The fixed lower limit of the axis or bar. The next field, `most`, is the upper limit. If a
    #: limit is `None`, Grafana chooses it.
    least: float | None = None
    most: float | None = None
    is_stacked: bool = False
    decimals: int | None = None
    #: A table's columns. The key is a label or the letter of a query; the value is the title, the
    #: unit, and the color thresholds of the column.
    columns: dict[str, tuple[str, str | None, Steps | None]] = field(default_factory=dict)
    #: The column by which the rows of a table are sorted in descending order.
    sort: str | None = None
    #: The text and color of each value in state timelines and tables.
    words: dict[str, tuple[str, str]] = field(default_factory=dict)

    def to_model(self, number: int, x: int, y: int) -> dict:
        is_table = self.kind == "table"
        targets = [
            {
                "refId": chr(ord("A") + at),
                "datasource": DATASOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
                "format": "table" if is_table else "time_series",
                # Tables and single values show only the latest value. Charts show the whole time
                # range.
                "instant": self.kind in ("table", "stat", "bargauge"),
                "range": self.kind not in ("table", "stat", "bargauge"),
            }
            for at, query in enumerate(self.queries)
        ]
        model = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": targets,
            "fieldConfig": {
                "defaults": self._defaults(),
                "overrides": self._overrides() if is_table else [],
            },
            "options": self._panel_options(),
        }
        if is_table:
            model["transformations"] = self._transformations()
        return model

    def _defaults(self) -> dict:
        defaults: dict = {
            "unit": self.unit,
            "color": {
                "mode": "palette-classic-by-name" if self.kind == "timeseries" else "thresholds"
            },
            "thresholds": thresholds(self.steps),
            "mappings": value_mappings(self.words),
            "noValue": "-",
        }
        defaults |= {"min": self.least} if self.least is not None else {}
        defaults |= {"max": self.most} if self.most is not None else {}
        defaults |= {"decimals": self.decimals} if self.decimals is not None else {}
        if self.kind == "timeseries":
            has_limit = len(self.steps) > 1
            defaults["custom"] = {
                "lineWidth": 1,
                "fillOpacity": 40 if self.is_stacked else 8,
                "showPoints": "never",
                # The line has a gap where data is missing.
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.is_stacked else "none", "group": "A"},
                "thresholdsStyle": {"mode": "dashed" if has_limit else "off"},
            }
        if self.kind == "state-timeline":
            defaults["custom"] = {"fillOpacity": 80, "lineWidth": 0}
        return defaults

    def _panel_options(self) -> dict:
        shown = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        return {
            "timeseries": {
                "legend": {
                    "displayMode": "table",
                    "placement": "bottom",
                    "calcs": ["mean", "max"],
                    "showLegend": True,
                },
                "tooltip": {"mode": "multi", "sort": "desc"},
            },
            "stat": {
                "reduceOptions": shown,
                "colorMode": "value",
                "graphMode": "none",
                "textMode": "auto",
            },
            "bargauge": {
                "reduceOptions": shown,
                "orientation": "horizontal",
                "displayMode": "gradient",
                "valueMode": "color",
            },
            "state-timeline": {
                "mergeValues": True,
                "showValue": "never",
                "rowHeight": 0.8,
                "legend": {"showLegend": False},
            },
            "table": {
                "showHeader": True,
                "cellHeight": "sm",
                "sortBy": [{"displayName": self.sort, "desc": True}] if self.sort else [],
            },
        }[self.kind]

    def _overrides(self) -> list[dict]:
        return [
            {
                "matcher": {"id": "byName", "options": title},
                "properties": list(_field_properties(title, unit, steps, self.words)),
            }
            for title, unit, steps in self.columns.values()
        ]

    def _transformations(self) -> list[dict]:
        names = {name: title for name, (title, _, _) in self.columns.items()}
        order = {name: at for at, name in enumerate(self.columns)}
        return [
            # Metric names are removed before the merge, because rows with different names would not
            # be merged.
            {"id": "filterFieldsByName", "options": {"include": {"names": list(names)}}},
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"renameByName": names, "indexByName": order}},
        ]


def _field_properties(title: str, unit: str | None, steps: Steps | None, words: dict):
    if unit:
        yield {"id": "unit", "value": unit}
        yield {"id": "mappings", "value": []}
    elif steps and words:
        yield {"id": "mappings", "value": value_mappings(words)}
    else:
        yield {"id": "mappings", "value": []}
    if steps:
        yield {"id": "thresholds", "value": thresholds(steps)}
        is_share = unit == "percentunit"
        cell = {"type": "gauge", "mode": "gradient"} if is_share else {"type": "color-text"}
        yield {"id": "custom.cellOptions", "value": cell}
        if is_share:
            yield {"id": "min", "value": 0}
            yield {"id": "max", "value": 1}
    if title == NODE_COLUMN:
        link = {
            "title": "Readings of this node",
            "url": "/d/gpumon-node/?var-node=${__value.raw}&${datasource:queryparam}"
            "&${__url_time_range}",
        }
        yield {"id": "links", "value": [link]}


#: The values of this column link to the dashboard of the node.
NODE_COLUMN = "Node"


def thresholds(steps: Steps) -> dict:
    return {
        "mode": "absolute",
        "steps": [{"value": value, "color": color} for value, color in steps],
    }


def value_mappings(words: dict[str, tuple[str, str]]) -> list[dict]:
    if not words:
        return []
    options = {
        value: {"text": text, "color": color, "index": at}
        for at, (value, (text, color)) in enumerate(words.items())
    }
    return [{"type": "value", "options": options}]


def lay_out_panels(rows: list[tuple[str, list[Panel]]]) -> list[dict]:
    """Returns the models of the rows and their panels. Panels are placed from left to right, and a
    new line starts when the grid is full.
    """
    models, y = [], 0
    for title, panels in rows:
        models.append(
            {"id": len(models) + 1, "type": "row", "title": title, "collapsed": False, "panels": []}
            | {"gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}}
        )
        x, y, line = 0, y + 1, 0
        for panel in panels:
            if x + panel.width > COLUMNS:
                x, y, line = 0, y + line, 0
            models.append(panel.to_model(len(models) + 1, x, y))
            x, line = x + panel.width, max(line, panel.height)
        y += line
    return models
