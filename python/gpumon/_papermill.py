"""The engine ``gpumon`` of papermill: ``papermill --engine gpumon in.ipynb out.ipynb``.

papermill alone imports this, by its entry point, while it is imported itself.
"""

from __future__ import annotations

from typing import Any

from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager
from papermill.log import logger

from gpumon._cells import cell_costs, forget

#: What papermill tells an engine and its client does not know.
NOT_OF_THE_CLIENT = ("input_path", "timeout")


class GpumonEngine(NBClientEngine):
    """papermill's own engine, which also writes what each cell cost to `cell.metadata.gpumon`."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: NotebookExecutionManager,
        kernel_name: str,
        start_timeout: int = 60,
        execution_timeout: int | None = None,
        **options: Any,
    ) -> None:
        """Execute a notebook, as papermill's own engine does."""
        # The outputs of all cells are gone, also of those that are not executed.
        for cell in nb_man.nb.cells:
            forget(cell)
        known = {name: value for name, value in options.items() if name not in NOT_OF_THE_CLIENT}
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
