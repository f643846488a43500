/** One reading of all nodes, or of one, over the range that was chosen. */

import { wholeAxis } from '../../chart/axis';
import { Chart } from '../../chart/chart';
import { h, setShown } from '../../lib/dom';
import { remembered } from '../../lib/remembered';
import type { Unit } from '../../model/unit';
import type { Color } from '../../model/metric';
import type { FleetHistory } from '../../wire';
import { colorOf, type Palette } from '../palette';

/** What is left out for longer than so many steps is a hole. */
const GAP_STEPS = 2.5;

export class Trend {
  readonly element: HTMLElement;
  private readonly chart: Chart;
  private readonly content = remembered(contentOf);

  /** `id` is that of the reading, `of` that of what it is out of; `unitFor` is given the highest value. */
  constructor(
    private readonly id: string,
    private readonly unitFor: (most: number) => Unit,
    private readonly color: Color,
    private readonly of: string | null = null,
  ) {
    const host = h('div', { class: 'gpumon-fleet-trend' });
    this.element = host;
    this.chart = new Chart(host);
  }

  /** Shows what is known; without anything it keeps its room. Returns whether there is something. */
  update(history: FleetHistory | null, palette: Palette): boolean {
    const content =
      history === null
        ? null
        : this.content(history, this.id, this.of, this.unitFor, this.color, palette);
    const canvas = this.element.firstElementChild;
    if (canvas instanceof HTMLElement) {
      setShown(canvas, content !== null);
    }
    if (content !== null) {
      this.chart.draw(content);
    }
    return content !== null;
  }

  dispose(): void {
    this.chart.dispose();
  }
}

/** The newest value; NaN where there is none. */
function newest(history: FleetHistory | null, id: string): number {
  return valuesOf(history, id)?.findLast((value) => value !== null) ?? NaN;
}

function valuesOf(history: FleetHistory | null, id: string): readonly (number | null)[] | null {
  return history?.series.find((series) => series.id === id)?.values ?? null;
}

function contentOf(
  history: FleetHistory,
  id: string,
  of: string | null,
  unitFor: (most: number) => Unit,
  color: Color,
  palette: Palette,
): Parameters<Chart['draw']>[0] | null {
  const values = valuesOf(history, id);
  const [first, second] = history.at_ms;
  const last = history.at_ms.at(-1);
  if (
    values?.some((value) => value !== null) !== true ||
    first === undefined ||
    last === undefined ||
    second === undefined
  ) {
    return null;
  }
  const window = {
    times_ms: Float64Array.from(history.at_ms),
    revision: last,
    from_ms: first,
    to_ms: last,
    gap_ms: GAP_STEPS * (second - first),
  };
  const lines = [
    { values: Float64Array.from(values, (value) => value ?? NaN), color: colorOf(palette, color) },
  ];
  const limit = of === null ? NaN : newest(history, of);
  const most = values.reduce<number>(
    (highest, value) => Math.max(highest, value ?? 0),
    Number.isNaN(limit) ? 0 : limit,
  );
  const unit = unitFor(most);
  const [floor, ceiling] = wholeAxis(unit, Number.isNaN(limit) ? null : limit, lines, window);
  return { axis: unit, style: palette, window, lines, floor, ceiling, at_ms: null };
}
