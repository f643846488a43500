/** Generated notebook files. */

/** The kernel of a notebook in the format of the file. */
export interface KernelSpec {
  display_name: string;
  language: string;
  name: string;
}

const PYTHON: KernelSpec = { display_name: 'Python 3', language: 'python', name: 'python3' };

/** Returns a notebook with these cells, which have not been run. */
export function notebookOf(cells: readonly string[], kernelspec = PYTHON): string {
  return JSON.stringify({
    cells: cells.map((source, index) => ({
      cell_type: 'code',
      execution_count: null,
      id: `cell-${index}`,
      metadata: {},
      outputs: [],
      source,
    })),
    metadata: { kernelspec },
    nbformat: 4,
    nbformat_minor: 5,
  });
}
