"""The IPython extension of ``%load_ext gpumon``: the magics ``%gpu``, ``%%gpu``, ``%gpu on`` and
``%gpu off``.

- `lines`: the line below each cell, which is updated when its numbers are final.
- `chart`: the readings during a cell as SVG.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from gpumon._errors import GpumonError
from gpumon._ipython.chart import Samples, cost_and_chart_html
from gpumon._ipython.lines import CellLines, Output
from gpumon._measurement import Measurement
from gpumon._results import limit_lines, snapshot_html
from gpumon._stream import snapshot

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

HELP = (
    "%gpu shows the GPUs, %gpu on adds a line below each cell, %gpu off removes these lines; "
    "%%gpu measures one cell"
)

#: The `CellLines` of each shell. The key is the `id` of the shell object.
_lines: dict[int, CellLines] = {}


def load_magics(shell: InteractiveShell) -> None:
    """Register the magics of a shell."""
    lines = _lines.setdefault(id(shell), CellLines(shell))
    shell.register_magics(GpuMagics(shell, lines))


def unload_magics(shell: InteractiveShell) -> None:
    """Remove the hooks of a shell, so that its cells no longer show a line."""
    lines = _lines.pop(id(shell), None)
    if lines is not None:
        lines.disable()


@magics_class
class GpuMagics(Magics):
    """The magics of one shell."""

    def __init__(self, shell: InteractiveShell, lines: CellLines) -> None:
        super().__init__(shell)
        self._of_shell = shell
        self._lines = lines

    @line_cell_magic
    def gpu(self, line: str, cell: str | None = None) -> None:
        """Show the GPUs, or the cost of cells.

        %gpu        show the GPUs now
        %gpu on     show a line below each cell: duration, GPU time, peak memory, energy, and the
                    first cause that limited the work
        %gpu off    stop showing these lines
        %%gpu NAME  show the cost of this cell, what limited it, and a chart, up to three seconds
                    after its end; the name is optional, and the cell cannot use `await` outside of
                    functions
        """
        word = line.strip()
        # Tracebacks leave out this function, because errors come from the cell.
        __tracebackhide__ = True
        if cell is not None:
            self._lines.skip_cell()
            _measure_cell(self._of_shell, word or None, cell)
        elif word == "on":
            self._lines.enable()
        elif word == "off":
            self._lines.disable()
        elif word:
            raise UsageError(f"%gpu has no argument {word!r}: {HELP}")
        else:
            _show_now()


def _show_now() -> None:
    try:
        now = snapshot()
    except GpumonError as error:
        Output.show_line(f"gpumon: {error}")
    else:
        Output(str(now), snapshot_html(now))


def _measure_cell(shell: InteractiveShell, name: str | None, cell: str) -> None:
    __tracebackhide__ = True
    measurement = Measurement(name)
    samples = Samples()
    try:
        with samples, measurement:
            _execute_cell(shell, cell)
    finally:
        cost = measurement.to_dict()
        text = "\n".join([str(measurement), *limit_lines(cost["limits"])])
        Output(text, cost_and_chart_html(cost, samples.samples_by_gpu()))


def _execute_cell(shell: Any, cell: str) -> None:
    """Run a cell within a cell, as IPython does: the last expression is displayed, and errors are
    passed on.
    """
    __tracebackhide__ = True
    source = shell.transform_cell(cell)
    # The source is cached under this name, so that tracebacks can show its lines.
    name = shell.compile.cache(source, shell.execution_count, raw_code=cell)
    tree: ast.Module = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), shell.user_ns)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
        # IPython's own check would look for the semicolon at the end of the statement that calls
        # this magic, and not at the end of the cell.
        if not _ends_with_semicolon(source, last):
            shell.displayhook(value)


def _ends_with_semicolon(source: str, last: ast.Expr) -> bool:
    """Return whether a semicolon suppresses the display of the last expression."""
    lines = source.split("\n")
    line, column = last.end_lineno or len(lines), last.end_col_offset or 0
    return lines[line - 1].encode()[column:].lstrip().startswith(b";")
