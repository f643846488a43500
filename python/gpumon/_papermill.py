"""The papermill engine ``gpumon``: ``papermill --engine gpumon in.ipynb out.ipynb``.

Only papermill imports this module, through its entry point, when papermill itself is imported.
"""

from __future__ import annotations

from typing import Any

from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager
from papermill.log import logger

from gpumon._cells import cell_costs, remove_cost

#: Options that papermill passes to an engine and that its client does not accept.
NON_CLIENT_OPTIONS = ("input_path", "timeout")


class GpumonEngine(NBClientEngine):
    """papermill's own engine, extended to write the cost of each cell to `cell.metadata.gpumon`."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: NotebookExecutionManager,
        kernel_name: str,
        start_timeout: int = 60,
        execution_timeout: int | None = None,
        **options: Any,
    ) -> None:
        """Execute a notebook in the same way as papermill's own engine."""
        # papermill has removed the outputs of all cells, even of cells that will not run. So the
        # costs of all cells are removed, too.
        for cell in nb_man.nb.cells:
            remove_cost(cell)
        known = {name: value for name, value in options.items() if name not in NON_CLIENT_OPTIONS}
        client = PapermillNotebookClient(
            nb_man,
            **{
                **known,
                "kernel_name": kernel_name,
                "log": logger,
                "startup_timeout": start_timeout,
                "timeout": execution_timeout or options.get("timeout"),
            },
        )
        with cell_costs(client):
            client.execute()
