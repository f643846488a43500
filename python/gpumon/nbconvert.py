"""The cost of cells in nbconvert: a preprocessor that is passed together with ``--execute``, or
named in a configuration file.

``jupyter nbconvert --execute --to notebook
--Exporter.preprocessors=gpumon.nbconvert.CostPreprocessor notebook.ipynb``
"""

from __future__ import annotations

from typing import Any

from nbconvert.preprocessors import ExecutePreprocessor, Preprocessor
from nbformat import NotebookNode

from gpumon._cells import CellCosts


class CostPreprocessor(Preprocessor):
    """Writes the cost of each cell to `cell.metadata.gpumon` if the exporter executes notebooks.
    Otherwise it does nothing.

    The measuring hooks are added to the exporter's existing `ExecutePreprocessor`, so its
    configuration still applies.
    """

    def __init__(self, **options: Any) -> None:
        """Find the `ExecutePreprocessor` of the exporter. It already exists, because an exporter
        creates its own preprocessors before those of users.
        """
        super().__init__(**options)
        siblings = getattr(self.parent, "_preprocessors", [])
        executors = [one for one in siblings if isinstance(one, ExecutePreprocessor)]
        self._costs = [CellCosts(executor) for executor in executors if executor.enabled]
        for costs in self._costs:
            costs.start()

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Wait for the final numbers of the last cells."""
        for costs in self._costs:
            costs.finish()
        return nb, resources
