import type { ComponentChild } from 'preact';

import { trans } from '../../lib/translation';
import { momentText, rangeText } from '../../model/dashboard/moment';
import type { PlotLine } from '../../model/dashboard/plots';
import type { Unit } from '../../model/unit';
import { notesAt, type Annotations } from './annotations';
import { Name, Swatch } from './legend';
import { earlierValue, pastRange, type PlotContext } from './plot-content';

/** As wide as the style sheet allows, without ranges and with them. */
const WIDTH_PX = 200;
const WIDE_PX = 290;
const APART_PX = 14;

export interface TooltipProps {
  at_ms: number;
  /** The place of the pointer, and the room to its right, in pixels from the left edge of the chart. */
  x_px: number;
  width_px: number;
  room_px: number;
  rows: readonly (PlotLine & { value: number })[];
  /** How many lines are left out. */
  more: number;
  near: string | null;
  unit: Unit;
  annotations: Annotations;
  context: PlotContext;
}

/** The values of a chart's lines at the moment pointed at, next to the pointer. Legends have them for screen readers. */
export function Tooltip(props: TooltipProps): ComponentChild {
  const { at_ms, x_px, width_px, rows, more, near, unit, annotations, context } = props;
  const ranges = rows.map((line) => {
    if (context.compared === null || line.own !== undefined) {
      return rangeText(unit, pastRange(line, at_ms, context));
    }
    const earlier = earlierValue(line, at_ms, context);
    return Number.isNaN(earlier) ? '' : trans.__('earlier: %1', unit.text(earlier));
  });
  const hasRanges = ranges.some((range) => range !== '');
  const toLeft = x_px + (hasRanges ? WIDE_PX : WIDTH_PX) > props.room_px;
  const side_px = `${(toLeft ? width_px - x_px : x_px) + APART_PX}px`;
  return (
    <div
      class="gpumon-tooltip"
      aria-hidden="true"
      data-means={hasRanges ? '' : undefined}
      style={toLeft ? { right: side_px, left: 'auto' } : { left: side_px, right: 'auto' }}
    >
      <div class="gpumon-tooltip-time">
        {momentText(at_ms, context.mean_ms, context.freshness.now_ms)}
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
            <Name text={line.name ?? line.label} />
            <span class="gpumon-tooltip-value">{unit.text(line.value)}</span>
            {ranges[i] !== '' && <span class="gpumon-tooltip-range">{ranges[i]}</span>}
          </div>
        ))}
      </div>
      {(more > 0 || rows.length === 0) && (
        <div class="gpumon-missing">
          {rows.length === 0 ? trans.__('no sample at this time') : trans.__('%1 more', more)}
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
