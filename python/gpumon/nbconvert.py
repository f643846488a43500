"""Costs of cells with nbconvert: a preprocessor that is named beside ``--execute``, or in a
configuration file.

``jupyter nbconvert --execute --to notebook
--Exporter.preprocessors=gpumon.nbconvert.CostPreprocessor notebook.ipynb``
"""

from __future__ import annotations

from typing import Any

from nbconvert.preprocessors import ExecutePreprocessor, Preprocessor
from nbformat import NotebookNode

from gpumon._cells import CellCosts


class CostPreprocessor(Preprocessor):
    """Writes what each cell cost to `cell.metadata.gpumon`, where the exporter executes notebooks;
    else it does nothing.

    It hooks into the exporter's own `ExecutePreprocessor`, with whatever is configured for that
    one.
    """

    def __init__(self, **options: Any) -> None:
        """Find what executes notebooks among the exporter's preprocessors, all of which were made
        before those of users.
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
        """Wait for the numbers of the last cells."""
        for costs in self._costs:
            costs.finish()
        return nb, resources
