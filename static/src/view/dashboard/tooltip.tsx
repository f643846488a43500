import type { ComponentChild } from 'preact';

import type { Chart } from '../../chart/chart';
import { trans } from '../../lib/translation';
import { formatReadingTime, formatRange, tooltipValues } from '../../model/dashboard/readout';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import { notesAt, type Annotations } from './annotations';
import { LegendName, Swatch } from './legend';
import { earlierValue, pastRange, withValue, type PlotContext } from './plot-content';

/** The tooltip's widths, as in the style sheet: without and with the ranges of mean values. */
const WIDTH_PX = 200;
const WIDE_PX = 290;
const POINTER_DISTANCE_PX = 14;
/** The height of a row. A tooltip opens downward and has as many rows as fit into the window. */
const ROW_PX = 19;
const MIN_ROWS = 2;
const MAX_ROWS = 10;

/** The vertical position of the pointer, and the edges of the chart and its view. */
export interface Pointer {
  clientY: number;
  left: number;
  top: number;
  viewRight: number;
}

export interface TooltipProps {
  plot: Plot;
  /** The drawn lines of the chart. */
  lines: readonly PlotLine[];
  /** The ID of the line at the pointer. */
  near: string | null;
  chart: Chart | null;
  pointer: Pointer | null;
  at_ms: number | null;
  annotations: Annotations;
  context: PlotContext;
}

/**
 * The values of a chart's lines at the time under the pointer. Screen readers read them from the
 * legends instead.
 */
export function Tooltip({
  plot: { lines: all, stack, unit },
  lines,
  near,
  chart,
  pointer,
  at_ms,
  annotations,
  context,
}: TooltipProps): ComponentChild {
  const x_px = at_ms === null ? null : (chart?.xOf(at_ms) ?? null);
  if (chart === null || pointer === null || at_ms === null || x_px === null) {
    return null;
  }
  const isShown = ({ id }: PlotLine): boolean => !context.hidden.has(id);
  const { left, top, viewRight } = pointer;
  const room = Math.floor((window.innerHeight - top) / ROW_PX) - 3;
  const { rows, more } = tooltipValues(
    [...lines, ...stack].filter(isShown).map((line) => withValue(line, context)),
    near,
    Math.min(MAX_ROWS, Math.max(MIN_ROWS, room)),
  );
  const others = more + all.filter((line) => isShown(line) && !lines.includes(line)).length;
  const ranges = rows.map((line) => {
    if (context.compared === null || line.own !== undefined) {
      return formatRange(unit, pastRange(line, at_ms, context));
    }
    const earlier = earlierValue(line, at_ms, context);
    return Number.isNaN(earlier) ? '' : trans.__('earlier: %1', unit.text(earlier));
  });
  const hasRanges = ranges.some((range) => range !== '');
  const toLeft = left + x_px + (hasRanges ? WIDE_PX : WIDTH_PX) > viewRight;
  const side_px = `${(toLeft ? chart.width_px - x_px : x_px) + POINTER_DISTANCE_PX}px`;
  return (
    <div
      class="gpumon-tooltip"
      aria-hidden="true"
      data-means={hasRanges ? '' : undefined}
      style={toLeft ? { right: side_px, left: 'auto' } : { left: side_px, right: 'auto' }}
    >
      <div class="gpumon-tooltip-time">
        {formatReadingTime(at_ms, context.mean_ms, context.freshness.now_ms)}
      </div>
      {hasRanges && (
        <div class="gpumon-missing">
          {rows.some(({ own }) => own !== undefined)
            ? trans.__('median, 10 – 90 % of GPUs')
            : trans.__('mean, lowest – highest')}
        </div>
      )}
      <div class="gpumon-tooltip-rows">
        {rows.map((line, i) => (
          <div key={line.id} data-near={line.id === near ? '' : undefined}>
            <Swatch line={line} context={context} />
            <LegendName text={line.name ?? line.label} />
            <span class="gpumon-tooltip-value">{unit.text(line.value)}</span>
            {ranges[i] !== '' && <span class="gpumon-tooltip-range">{ranges[i]}</span>}
          </div>
        ))}
      </div>
      {(others > 0 || rows.length === 0) && (
        <div class="gpumon-missing">
          {rows.length === 0 ? trans.__('no sample at this time') : trans.__('%1 more', others)}
        </div>
      )}
      <div class="gpumon-tooltip-notes">
        {notesAt(at_ms, annotations, context.window).map(({ label, title = label, color }) => (
          <div key={title}>
            <span class="gpumon-swatch" style={{ background: color }} />
            <span>{title}</span>
          </div>
        ))}
      </div>
    </div>
  );
}
