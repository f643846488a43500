"""Costs of cells with nbclient: ``python -m gpumon.nbclient --inplace notebook.ipynb`` is ``jupyter
execute`` with them.
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
    """nbclient's client, which also writes what each cell cost to `cell.metadata.gpumon`.

    Of a client of another class, ``with cell_costs(client): ...`` measures the cells that it
    executes in the block.
    """

    async def async_execute(self, reset_kc: bool = False, **options: Any) -> NotebookNode:
        """Execute all cells, as nbclient's own client does."""
        costs = CellCosts(self)
        costs.start()
        try:
            return await super().async_execute(reset_kc, **options)
        finally:
            costs.detach()
            # It waits, and others may run in this loop.
            await asyncio.to_thread(costs.finish)

    execute = run_sync(async_execute)


def main() -> None:
    """Be ``jupyter execute``, with the same arguments."""
    # It makes its client of this name, and hands it no configuration that could have hooks.
    nbclient.cli.NotebookClient = MeasuredNotebookClient
    nbclient.cli.main()


if __name__ == "__main__":
    main()
