/** Which row is selected: rows move, and what they are called does not. */

import { rowName, type Columns } from '../../model/fleet/columns';
import type { Place } from '../../model/fleet/state';

export class Selection {
  private last: { columns: Columns; key: string; row: number | null } | null = null;

  /** The row of a place; `null` where there is none. */
  row(columns: Columns, place: Place | null): number | null {
    if (place === null) {
      return null;
    }
    const key = JSON.stringify(place);
    if (this.last?.columns !== columns || this.last.key !== key) {
      const node = columns.fleet.nodes.name.indexOf(place.node);
      const rows = node < 0 ? [] : [...columns.rowsOf(node)];
      const row = rows.find((one) => columns.index[one] === place.gpu) ?? rows[0] ?? null;
      this.last = { columns, key, row };
    }
    return this.last.row;
  }

  place(columns: Columns, row: number): Place {
    const node = columns.fleet.nodes.name[columns.node[row] ?? 0] ?? rowName(columns, row);
    return { node, gpu: columns.byGpu ? (columns.index[row] ?? 0) : null };
  }
}
