/**
 * The card of a GPU: four values with their lines, and details on demand. If there are many GPUs,
 * the card is shown as a row.
 */

import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';

import { computeUnzoomedAxis } from '../chart/axis';
import type { Band, ChartContent, TimeWindow } from '../chart/content';
import { formatMemoryShare, formatMemorySize } from '../lib/format';
import { joinParts, plainText } from '../lib/text';
import { nearestIndex } from '../lib/timeline';
import { trans } from '../lib/translation';
import { worstLevel, summarizeState, type Alert } from '../model/alerts';
import { seriesKey, isUnified, type GpuState } from '../model/gpu';
import { SORT_KEYS, type SortKey } from '../model/gpu-list';
import type { HolderRow } from '../model/holders';
import { describeMainLimit } from '../model/limits';
import {
  describeAvailableUnifiedMemory,
  describeReservedMemory,
  describeUnifiedMemory,
  memorySegments,
  describeMemorySegments,
} from '../model/memory';
import { isNearLimit, limitLineOf, limitOf, METRICS, type Metric } from '../model/metric';
import { absenceOf, valueOf } from '../model/reading';
import type { Store } from '../model/store';
import { formatValue, type FormattedValue } from '../model/unit';
import { vendorSpecificTitle } from '../model/vendor-words';
import { AlertList, SeverityIcon } from './alerts';
import { ChartCanvas } from './chart-canvas';
import type { Markers } from './chart-marks';
import { useViewParts, useThrottledRender } from './component-view';
import { colorOf, makePaint, type Palette } from './palette';
import { Part } from './part';
import { PastValue, ReadingValue, type Freshness } from './value';

/**
 * A holder's name is shown in the memory bar if the holder has at least this share of the bar.
 * `SHORT_LABEL_SHARE` is the minimum share in short bars.
 */
const LABEL_SHARE = 0.22;
const SHORT_LABEL_SHARE = 0.45;
/** The columns in which a row shows the metrics of an overview. */
const COLUMNS_BY_METRIC: Readonly<Record<string, SortKey>> = {
  'utilization.gpu_percent': 'use',
  'memory.used_bytes': 'mem',
  'temperature.gpu_celsius': 'temp',
  'power.draw_watts': 'power',
};

/** The state that all cards of a view share. */
export interface CardContext {
  store: Store;
  now_ms: number;
  window: TimeWindow;
  palette: Palette;
  markers: Markers;
  /** The spans that are highlighted in the charts, by GPU index. */
  bands: ReadonlyMap<number, readonly Band[]>;
  /** The layout of closed cards as rows; `null` if there are few GPUs. */
  layout: RowLayout | null;
  /** The ID of the highlighted holder. */
  highlighted: string | null;
  /** Opens the charts of a GPU. */
  onOpenGpu: ((index: number) => void) | undefined;
}

interface GpuCardProps {
  gpu: GpuState;
  rows: readonly HolderRow[];
  alerts: readonly Alert[];
  context: CardContext;
  isOpen: boolean;
  /** The ID of the element with the numbers. */
  id: string;
  onToggle: () => void;
}

interface CardContentProps extends GpuCardProps {
  onScreen: boolean;
  freshness: Freshness;
  /** The layout if the card is shown as a row; `null` if it is shown as a card. */
  layout: RowLayout | null;
}

export function GpuCard(props: GpuCardProps) {
  const { gpu, alerts, context, isOpen, onToggle } = props;
  const { now_ms, store } = context;
  const { cursor } = useViewParts();
  const card = useRef<HTMLElement>(null);
  const { now, index } = gpu;
  const layout = isOpen ? null : context.layout;
  const isLate = now !== null && now_ms - now.at_ms > store.gap_ms + 2000;
  const freshness = { now_ms, stale: now?.health.state !== 'ok' || isLate };
  const content = useThrottledRender(
    card,
    now_ms,
    (onScreen) => <CardContent {...props} {...{ onScreen, freshness, layout }} />,
    index,
  );
  /**
   * The left and right keys move the cursor in time, the up and down keys move the focus, and
   * Escape returns the cursor to now.
   */
  const onKeyDown = (event: KeyboardEvent): void => {
    const element = card.current;
    if (element === null || event.target !== element) {
      return;
    }
    const step_ms = event.shiftKey ? 10_000 : 1000;
    const at_ms = cursor.at_ms ?? now_ms;
    if (event.key === 'ArrowLeft') {
      cursor.set(at_ms - step_ms);
    } else if (event.key === 'ArrowRight') {
      cursor.set(at_ms + step_ms > now_ms ? null : at_ms + step_ms);
    } else if (event.key === 'Escape') {
      cursor.set(null);
    } else if (event.key === 'Enter') {
      onToggle();
    } else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      const next = event.key === 'ArrowUp' ? 'previousElementSibling' : 'nextElementSibling';
      if (element[next] instanceof HTMLElement) {
        element[next].focus();
      }
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <article
      class="gpumon-gpu"
      tabIndex={0}
      ref={card}
      aria-label={trans.__('GPU %1, %2', index, plainText(gpu.name))}
      data-gpu-index={index}
      data-gpu-health={now?.health.state ?? 'unread'}
      data-worst-level={worstLevel(alerts.map(({ level }) => level)) ?? undefined}
      data-row={layout === null ? undefined : ''}
      data-open={layout === null ? isOpen : undefined}
      onKeyDown={onKeyDown}
      onClick={({ target }) => {
        if (layout !== null && target instanceof Element && target.closest('button') === null) {
          onToggle();
        }
      }}
      onBlur={() => cursor.set(null)}
    >
      {content}
    </article>
  );
}

function CardContent(props: CardContentProps) {
  const { gpu, rows, alerts, context, isOpen, id, layout, freshness, onToggle } = props;
  const { index, now } = gpu;
  const { onOpenGpu } = context;
  const limit = freshness.stale ? null : describeMainLimit(now);
  // The title contains the text, which can be cut off.
  const limitTitle =
    limit === null ? '' : joinParts([limit.text, limit.evidence, limit.advice], '\n');
  const ownState = summarizeState(gpu, alerts, context.now_ms);
  // A row has no line for the limit, so the limit is shown instead of an empty state.
  const state =
    layout !== null && limit !== null && ownState.text === ''
      ? { ...ownState, text: limit.text, title: limitTitle }
      : ownState;
  const openTitle = trans.__('Open charts');
  const toggleTitle = isOpen
    ? trans.__('Hide charts and details')
    : trans.__('Show charts and details');
  return (
    <>
      <div class="gpumon-gpu-head">
        <span
          class="gpumon-gpu-index"
          title={joinParts([plainText(gpu.fullName), gpu.uuid, gpu.busId], '\n')}
        >
          {index}
        </span>
        {(layout === null || layout.has('name')) && (
          <span class="gpumon-gpu-name">{plainText(gpu.name)}</span>
        )}
        <span
          class="gpumon-gpu-state"
          data-testid="gpumon-gpu-state"
          data-level={state.level}
          title={state.title || undefined}
        >
          <SeverityIcon />
          <span>{state.text}</span>
        </span>
        {layout === null && onOpenGpu !== undefined && (
          <button
            type="button"
            class="gpumon-open"
            aria-label={openTitle}
            title={openTitle}
            onClick={() => onOpenGpu(index)}
          />
        )}
        <button
          type="button"
          class="gpumon-toggle"
          aria-controls={id}
          aria-expanded={isOpen}
          aria-label={toggleTitle}
          title={toggleTitle}
          // The button of a row is not reachable by keyboard, because the row itself can be
          // focused, and Enter opens it.
          tabIndex={layout === null ? undefined : -1}
          onClick={onToggle}
        />
      </div>
      <div class="gpumon-metrics" id={id}>
        {METRICS.map(
          (metric) =>
            (layout === null || layout.has(COLUMNS_BY_METRIC[metric.id] ?? 'index')) && (
              <MetricCell key={metric.id} metric={metric} {...props}>
                {metric.id === 'memory.used_bytes' && (
                  <>
                    {layout === null && isUnified(now) && (
                      <span class="gpumon-available">
                        {joinParts(
                          // A closed card does not show the label “Unified memory”, so the text
                          // contains it.
                          [
                            isOpen ? '' : trans.__('Unified memory'),
                            describeAvailableUnifiedMemory(now),
                          ],
                          ': ',
                        )}
                      </span>
                    )}
                    <MemoryBar
                      gpu={gpu}
                      rows={rows}
                      leastShare={layout?.isColumns === true ? SHORT_LABEL_SHARE : LABEL_SHARE}
                      highlighted={context.highlighted}
                    />
                  </>
                )}
              </MetricCell>
            ),
        )}
        {layout === null && hasLimits(gpu) && (
          <p class="gpumon-limit" data-testid="gpumon-limit" title={limitTitle || undefined}>
            {limit?.evidence ? trans.__('%1: %2', limit.text, limit.evidence) : limit?.text}
          </p>
        )}
      </div>
      {isOpen && <AlertList alerts={alerts} />}
      {isOpen && (
        <Part load={() => import('./details')}>
          {({ Details }) => <Details gpu={gpu} freshness={freshness} />}
        </Part>
      )}
    </>
  );
}

/**
 * Returns whether the server reports what limits a GPU. The card of such a GPU reserves a line, so
 * that it keeps its height.
 */
function hasLimits({ now }: GpuState): boolean {
  const limits = now?.limits;
  return limits !== undefined && absenceOf(limits)?.absent !== 'not_supported';
}

/** A metric of a GPU: its name, value and line. */
function MetricCell({
  metric,
  gpu,
  context,
  freshness,
  isOpen,
  layout,
  onScreen,
  children,
}: CardContentProps & { metric: Metric; children: ComponentChildren }) {
  const { at_ms } = useViewParts().cursor;
  /** The last known limit, so that the axis does not change while the limit cannot be read. */
  const knownLimit = useRef<ReturnType<typeof limitLineOf>>(null);
  knownLimit.current = limitLineOf(metric, gpu) ?? knownLimit.current;
  const limitLine = knownLimit.current;
  const { store, palette, markers, bands } = context;
  const { id, unit, color } = metric;
  const { now } = gpu;
  const series = (): Float64Array => store.timeline.values(seriesKey(gpu, id));
  const window = { ...context.window, times_ms: store.timeline.times_ms };

  const limit = limitOf(metric, now);
  const isShort = layout !== null && id === 'memory.used_bytes';
  // A row has no room for limits. Only the memory is shown with its limit, in a short form.
  const written = (value: number | null): FormattedValue =>
    isShort
      ? formatMemoryShare(value ?? 0, limit)
      : formatValue(unit, value, layout === null ? limit : null);
  const format = (value: number): string => written(value).main;
  const reading = now === null ? null : metric.read(now);
  const past =
    at_ms === null ? null : (series()[nearestIndex(window.times_ms, at_ms, window.gap_ms)] ?? NaN);
  const shown = past ?? valueOf(reading) ?? NaN;
  const shared = {
    id,
    rest: written(null).rest,
    nearLimit:
      limitLine !== null &&
      isNearLimit(metric, limitLine.value, shown, at_ms === null ? now : null),
    // In a row, a bar behind the number shows the value.
    style: unit.bounded ? { backgroundSize: `${Number.isNaN(shown) ? 0 : shown}% 100%` } : {},
  };

  const hasChart = isOpen || (unit.bounded && (layout === null || layout.has('line')));
  const chart = (): ChartContent => {
    const lines = [{ values: series(), color: colorOf(palette, color) }];
    const line = limitLine?.value ?? null;
    const [floor, ceiling] = computeUnzoomedAxis(unit, line, lines, window);
    return {
      axis: unit,
      style: palette,
      window,
      lines,
      floor,
      ceiling,
      limit: line,
      ...(limitLine?.name !== undefined && { limitName: limitLine.name }),
      at_ms,
      markers: [...(markers.byGpu.get(gpu.index) ?? []), ...markers.ofAll],
      bands: bands.get(gpu.index) ?? [],
    };
  };
  return (
    <div class="gpumon-cell" data-metric={color}>
      <span class="gpumon-label">{vendorSpecificTitle(id, metric.label(), [gpu])}</span>
      {past === null ? (
        <ReadingValue {...shared} reading={reading} format={format} freshness={freshness} />
      ) : (
        <PastValue {...shared} text={Number.isNaN(past) ? null : format(past)} />
      )}
      {children}
      {hasChart && <ChartCanvas content={onScreen ? chart() : null} />}
    </div>
  );
}

/** A bar of a GPU's memory, divided by holder. */
function MemoryBar({
  gpu: { now },
  rows,
  leastShare,
  highlighted,
}: {
  gpu: GpuState;
  rows: readonly HolderRow[];
  leastShare: number;
  highlighted: string | null;
}) {
  const segments = now === null ? [] : memorySegments(now, rows);
  const unified = describeUnifiedMemory(now);
  const reserved = describeReservedMemory(now);
  const sentence =
    joinParts([describeMemorySegments(segments), reserved], ', ') || trans.__('unknown');
  const more = unified || reserved;
  return (
    <div
      class="gpumon-bar"
      role="img"
      data-testid="gpumon-memory-bar"
      aria-label={
        unified === '' ? trans.__('Memory: %1', sentence) : joinParts([unified, sentence], '. ')
      }
      title={more || undefined}
      data-highlighting={segments.some(({ key }) => key === highlighted) ? '' : undefined}
    >
      {segments.map(({ key, paint, label, bytes, share }) => {
        const { style, ...attributes } = makePaint(paint);
        return (
          <div
            class="gpumon-bar-part"
            key={key}
            {...attributes}
            style={{ ...style, width: `${(share * 100).toFixed(2)}%` }}
            title={joinParts([`${label}: ${formatMemorySize(bytes)}`, more], '\n')}
            data-highlighted={key === highlighted ? '' : undefined}
          >
            {typeof paint === 'number' && key !== 'other' && share >= leastShare && (
              <span class="gpumon-bar-label">{label}</span>
            )}
          </div>
        );
      })}
    </div>
  );
}

/** The widths of the columns of a wide row. */
const WIDTHS = {
  index: '26px',
  name: 'minmax(64px, 110px)',
  use: '54px',
  line: 'minmax(50px, 1fr)',
  bar: 'minmax(40px, 2fr)',
  mem: '94px',
  temp: '46px',
  power: '50px',
  /** The width of this column is computed from the width of the row. */
  state: '',
  toggle: '12px',
};
/** The widths of the columns of a narrow row, which has two lines. */
const NARROW_WIDTHS = ['22px', '46px', 'minmax(0, 1fr)', '42px', '50px'];
const NARROW_HEADS: readonly SortKey[] = ['index', 'use', 'state', 'mem', 'temp', 'power'];
type ColumnName = keyof typeof WIDTHS;

/** The minimum width of a column if a list arranges its rows in several columns. */
const COLUMN_PX = 440;
/**
 * The minimum width of a narrow row that shows the temperature. `COLUMN_TEMP_PX` is the
 * corresponding width if rows are arranged in several columns. `LINE_PX` is the minimum width of a
 * row that shows a chart line.
 */
const NARROW_TEMP_PX = 286;
const COLUMN_TEMP_PX = 500;
const LINE_PX = 700;
/** A wide list with more GPUs than this arranges its rows in several columns. */
const MAX_ONE_COLUMN_ROWS = 16;

interface RowLayout {
  /** The maximum number of columns in which rows are arranged. */
  columns: number;
  isColumns: boolean;
  has: (place: ColumnName) => boolean;
  /** The columns of a row that have a header, in order. */
  heads: readonly SortKey[];
  /** The custom properties of the list, which define the grid of each row. */
  style: Record<`--_${string}`, string>;
}

/**
 * Returns the layout of `count` rows. If the GPUs have different names, each row shows its name.
 */
export function rowLayoutOf(
  count: number,
  { width_px, isWide, hasNames }: { width_px: number; isWide: boolean; hasNames: boolean },
): RowLayout {
  const isColumns = isWide && count > MAX_ONE_COLUMN_ROWS;
  const columns = isColumns ? Math.max(1, Math.floor(width_px / COLUMN_PX)) : 1;
  const row_px = width_px / columns;
  const hasTemp =
    row_px >=
    (!isWide ? NARROW_TEMP_PX : (isColumns ? COLUMN_TEMP_PX : 620) + (hasNames ? 110 : 0));
  const places = (Object.keys(WIDTHS) as ColumnName[]).filter(
    (place) =>
      (place !== 'name' || hasNames) &&
      (place !== 'temp' || hasTemp) &&
      (place !== 'line' || (isWide && !isColumns && row_px >= LINE_PX)),
  );
  const narrow: ColumnName[][] = [
    ['index', 'use', 'state', hasTemp ? 'temp' : 'state', 'power'],
    ['index', 'bar', 'bar', 'mem', 'mem'],
  ];
  const named: ColumnName[][] = hasNames ? [['index', 'name', 'name', 'name', 'name']] : [];
  // If rows are arranged in several columns, all states have the same width, so that the columns
  // are aligned.
  const stateWidth = isColumns ? '122px' : `minmax(40px, ${row_px < LINE_PX ? 132 : 210}px)`;
  const lines = isWide ? [places] : [...named, ...narrow];
  const widths = isWide
    ? places.map((place) => (place === 'state' ? stateWidth : WIDTHS[place]))
    : NARROW_WIDTHS;
  const heads = isWide ? SORT_KEYS : NARROW_HEADS;
  return {
    columns,
    isColumns,
    has: (place) => places.includes(place),
    heads: heads.filter((place) => places.includes(place)),
    style: {
      '--_areas': lines.map((line) => `'${line.join(' ')}'`).join(' '),
      '--_row': widths.join(' '),
      '--_columns': String(columns),
    },
  };
}
