/** The executions of notebooks' cells, as bands behind the lines of charts. */

import type { Band } from '../../chart/content';
import { executionLabel, type CellExecution } from '../../model/cell-log';
import type { Holder } from '../../model/dashboard/plots';
import { kernelHolder } from '../../model/holders';
import { colorOf, type Palette } from '../palette';

/** By GPU, besides those that are in `byGpu` already; a cell has the color of its notebook, and its name. */
export function bandsOf(
  executions: readonly CellExecution[],
  notebookOf: (execution: CellExecution) => string,
  palette: Palette,
  holders: ReadonlyMap<number, readonly Holder[]>,
  now_ms: number,
  byGpu: Map<number, Band[]>,
): Map<number, Band[]> {
  for (const execution of executions) {
    const { kernelId, count, running, cost } = execution;
    for (const gpu of cost.gpus) {
      const holder = holders.get(gpu)?.find((one) => one.holder === kernelHolder(kernelId));
      const color = colorOf(palette, holder?.slot ?? 'text');
      const to_ms = running ? now_ms : cost.ended_ms;
      const bands = byGpu.get(gpu) ?? [];
      byGpu.set(gpu, bands);
      const label = executionLabel(count);
      bands.push({
        from_ms: cost.started_ms,
        to_ms,
        color,
        label,
        title: `${notebookOf(execution)} ${label}`,
      });
    }
  }
  return byGpu;
}
