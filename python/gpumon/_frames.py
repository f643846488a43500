"""Rows as data frames of libraries that this package does not depend on."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    import polars


def needed(module: str, what: str) -> Any:
    """Import a library.

    Raises:
        ImportError: it is not installed; the text names the command that installs it.
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


def pandas_of(rows: list[dict[str, Any]], columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Return the rows as a `pandas.DataFrame`, with these columns where there may be no row."""
    frame: pandas.DataFrame = needed("pandas", "to_pandas()").DataFrame(rows, columns=columns)
    return frame


def polars_of(rows: list[dict[str, Any]], columns: Sequence[str] | None = None) -> polars.DataFrame:
    """Return the rows as a `polars.DataFrame`, with these columns where there may be no row."""
    # The first rows may have nothing but absent readings.
    frame: polars.DataFrame = needed("polars", "to_polars()").DataFrame(
        rows, schema=columns, infer_schema_length=None
    )
    return frame
