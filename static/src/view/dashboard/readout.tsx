/**
 * The readouts of a chart: the legend with the values of its lines, and the tooltip at the pointer.
 */

import type { Chart } from '../../chart/chart';
import { trans } from '../../lib/translation';
import {
  formatRange,
  formatReadingTime,
  isolateLine,
  toggleLine,
  tooltipValues,
} from '../../model/dashboard/readout';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import type { Unit } from '../../model/unit';
import { makeStripes } from '../palette';
import { PastValue, ReadingValue } from '../value';
import { notesAt, type Annotations } from './annotations';
import {
  comparedValue,
  lineColor,
  pastRange,
  pastValue,
  visibleLines,
  withValue,
  type PlotContext,
} from './plot-content';

/**
 * The width of the tooltip without the ranges of mean values. `WIDE_TOOLTIP_PX` is its width with
 * these ranges. Both are the same as in the style sheet.
 */
const TOOLTIP_WIDTH_PX = 200;
const WIDE_TOOLTIP_PX = 290;
const POINTER_DISTANCE_PX = 14;
/** The height of a row. A tooltip opens downward and has as many rows as fit into the window. */
const TOOLTIP_ROW_PX = 19;
const MIN_TOOLTIP_ROWS = 2;
const MAX_TOOLTIP_ROWS = 10;

interface LegendProps {
  lines: readonly PlotLine[];
  /** Notes with the reason why a line is in the legend, by line ID. */
  notes?: ReadonlyMap<string, string>;
  /** The IDs of all lines that the legend controls. */
  ids: readonly string[];
  /** The unit of the values. If it is missing, only names are shown. */
  unit?: Unit;
  context: PlotContext;
}

/**
 * A legend with the names of lines and their values at the displayed time. A click isolates or
 * hides a line.
 */
export function Legend({ lines, notes, ids, unit, context }: LegendProps) {
  const { hidden, change, onPoint } = context;
  const choose = (id: string, hides: boolean): void =>
    change((state) => ({
      ...state,
      hidden: (hides ? toggleLine : isolateLine)(state.hidden, id, ids),
    }));
  return (
    <div
      class="gpumon-legend gpumon-readouts"
      role="group"
      title={trans.__('Click to show only this line. Ctrl+click or Shift+click to hide it.')}
    >
      {lines.map((line) => {
        const { id, series } = line;
        const note = notes?.get(id);
        const content = (
          <>
            {note !== undefined && <span class="gpumon-readout-note">{note}</span>}
            <Swatch line={line} context={context} />
            <LegendName text={line.label} />
            {unit && <LineValue line={line} unit={unit} context={context} />}
          </>
        );
        // A computed line such as the median cannot be isolated or hidden, because it summarizes
        // all lines.
        return line.own !== undefined ? (
          <span key={series}>{content}</span>
        ) : (
          <button
            type="button"
            key={series}
            aria-pressed={!hidden.has(id)}
            onClick={(event) => choose(id, isHideClick(event))}
            onKeyDown={(event) => {
              // Some browsers send no click event if the key is pressed with a modifier.
              if ((event.key === 'Enter' || event.key === ' ') && isHideClick(event)) {
                event.preventDefault();
                choose(id, true);
              }
            }}
            onPointerEnter={() => onPoint(id)}
            onPointerLeave={() => onPoint(null)}
          >
            {content}
          </button>
        );
      })}
    </div>
  );
}

function LineValue({ line, unit, context }: { line: PlotLine; unit: Unit; context: PlotContext }) {
  const { at_ms, freshness } = context;
  if (at_ms === null) {
    const stale = freshness.stale || line.isStale === true;
    return (
      <ReadingValue
        id={line.series}
        reading={line.now}
        format={unit.text}
        freshness={{ ...freshness, stale }}
      />
    );
  }
  const past = pastValue(line, at_ms, context);
  return <PastValue id={line.series} text={Number.isNaN(past) ? null : unit.text(past)} />;
}

/** Returns whether a click hides a line instead of isolating it. */
function isHideClick(event: MouseEvent | KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.shiftKey;
}

/** The vertical position of the pointer, and the edges of the chart and its view. */
export interface Pointer {
  clientY: number;
  left: number;
  top: number;
  viewRight: number;
}

interface TooltipProps {
  plot: Plot;
  /** The drawn lines of the chart. */
  lines: readonly PlotLine[];
  /** The stacked lines with a visible height. */
  layers: readonly PlotLine[];
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
  plot: { lines: all, unit },
  lines,
  layers,
  near,
  chart,
  pointer,
  at_ms,
  annotations,
  context,
}: TooltipProps) {
  const x_px = at_ms === null ? null : (chart?.xOf(at_ms) ?? null);
  if (chart === null || pointer === null || at_ms === null || x_px === null) {
    return null;
  }
  const { left, top, viewRight } = pointer;
  const room = Math.floor((window.innerHeight - top) / TOOLTIP_ROW_PX) - 3;
  const { rows, more } = tooltipValues(
    visibleLines([...lines, ...layers], context).map((line) => withValue(line, context)),
    near,
    Math.min(MAX_TOOLTIP_ROWS, Math.max(MIN_TOOLTIP_ROWS, room)),
  );
  const others = more + visibleLines(all, context).filter((line) => !lines.includes(line)).length;
  const ranges = rows.map((line) => {
    if (context.compared === null || line.own !== undefined) {
      return formatRange(unit, pastRange(line, at_ms, context));
    }
    const earlier = comparedValue(line, at_ms, context);
    return Number.isNaN(earlier) ? '' : trans.__('earlier: %1', unit.text(earlier));
  });
  const hasRanges = ranges.some((range) => range !== '');
  const toLeft = left + x_px + (hasRanges ? WIDE_TOOLTIP_PX : TOOLTIP_WIDTH_PX) > viewRight;
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

function Swatch({ line, context }: { line: PlotLine; context: PlotContext }) {
  const { style, ...stripes } = makeStripes(line.color);
  const color = lineColor(line, context.palette);
  return (
    <span
      class="gpumon-swatch"
      aria-hidden="true"
      {...stripes}
      style={{ ...style, '--_swatch': color }}
    />
  );
}

/**
 * Shows a name. A name that is too long is truncated, but a number at its end, such as a PID, is
 * kept.
 */
function LegendName({ text }: { text: string }) {
  const number = /(?<=\S)\s\(?\d+\)?$/.exec(text)?.[0] ?? '';
  return (
    <>
      <span class="gpumon-readout-name">{text.slice(0, text.length - number.length)}</span>
      {number !== '' && <span class="gpumon-readout-number">{number}</span>}
    </>
  );
}
