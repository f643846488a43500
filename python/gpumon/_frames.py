"""Conversion of rows into data frames of optional libraries."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    import polars


def import_library(module: str, what: str) -> Any:
    """Import a library.

    Raises:
        ImportError: the library is not installed. The message names the command that installs it.
    """
    library = module.partition(".")[0]
    try:
        importlib.import_module(library)
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise ImportError(
            f"{what} needs {library}, which is not installed: run `pip install {library}`"
        ) from error


def make_pandas_frame(
    rows: list[dict[str, Any]], columns: Sequence[str] | None = None
) -> pandas.DataFrame:
    """Return the rows as a `pandas.DataFrame`. Pass the columns if there may be no rows."""
    frame: pandas.DataFrame = import_library("pandas", "to_pandas()").DataFrame(
        rows, columns=columns
    )
    return frame


def make_polars_frame(
    rows: list[dict[str, Any]], columns: Sequence[str] | None = None
) -> polars.DataFrame:
    """Return the rows as a `polars.DataFrame`. Pass the columns if there may be no rows."""
    # The first rows may contain only absent readings, so all rows are needed to infer the types.
    frame: polars.DataFrame = import_library("polars", "to_polars()").DataFrame(
        rows, schema=columns, infer_schema_length=None
    )
    return frame
