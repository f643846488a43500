/** What is marked on the charts of GPUs: the runs of notebooks' cells, and what happened. */

import type { Band, Pin } from '../../chart/chart';
import { runLabel } from '../../model/cell-log';
import type { Holder } from '../../model/dashboard/plots';
import { marksByGpu } from '../../model/event';
import { kernelHolder } from '../../model/holders';
import type { Store } from '../../model/store';
import { colourOf, type Palette } from '../palette';
import type { PlotMarks } from './section';

/** By GPU; a cell has the colour of its notebook. */
export function marksOf(
  store: Store,
  palette: Palette,
  holders: ReadonlyMap<number, readonly Holder[]>,
  now_ms: number,
): PlotMarks {
  const bands = new Map<number, Band[]>();
  for (const { kernelId, count, running, cost } of store.cells.runs) {
    for (const gpu of cost.gpus) {
      const holder = holders.get(gpu)?.find((one) => one.holder === kernelHolder(kernelId));
      const colour = colourOf(palette, holder?.slot ?? 'text');
      const to_ms = running ? now_ms : cost.ended_ms;
      const band = { from_ms: cost.started_ms, to_ms, colour, label: runLabel(count) };
      bands.set(gpu, [...(bands.get(gpu) ?? []), band]);
    }
  }
  const pins = [...marksByGpu(store.events)].map(([gpu, marks]): [number, Pin[]] => [
    gpu,
    marks.map(({ at_ms, level }) => ({ at_ms, colour: palette.levels[level] })),
  ]);
  return { bands, pins: new Map(pins) };
}
