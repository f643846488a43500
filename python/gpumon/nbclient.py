"""The cost of cells in nbclient: ``python -m gpumon.nbclient --inplace notebook.ipynb`` works like
``jupyter execute``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import nbclient
import nbclient.cli
from nbclient.util import run_sync
from nbformat import NotebookNode

from gpumon._cells import CellCosts, cell_costs

__all__ = ["MeasuredNotebookClient", "cell_costs", "main"]


class MeasuredNotebookClient(nbclient.NotebookClient):
    """nbclient's client, extended to write the cost of each cell to `cell.metadata.gpumon`.

    For a client of another class, ``with cell_costs(client): ...`` measures the cells that it
    executes in the block.
    """

    async def async_execute(self, reset_kc: bool = False, **options: Any) -> NotebookNode:
        """Execute all cells in the same way as nbclient's own client."""
        costs = CellCosts(self)
        costs.start()
        try:
            return await super().async_execute(reset_kc, **options)
        finally:
            costs.restore_client_hooks()
            # `finish` blocks, so it runs in a thread: other tasks may share this event loop.
            await asyncio.to_thread(costs.finish)

    execute = run_sync(async_execute)


def main() -> None:
    """Run ``jupyter execute`` with this process's arguments."""
    # nbclient's command creates a client of this class, and passes no configuration that could add
    # hooks.
    nbclient.cli.NotebookClient = MeasuredNotebookClient
    nbclient.cli.main()


if __name__ == "__main__":
    main()
