/**
 * Annotations of charts and of the annotation lane, the strip above the charts: cells, runs,
 * conditions, events and marks.
 */

import type { Band, EventMarker, TimeWindow } from '../../chart/content';
import { groupBy } from '../../lib/collections';
import { trans } from '../../lib/translation';
import { executionLabel, executionName, type CellExecution } from '../../model/cell-log';
import { levelRank, sortBySeverity } from '../../model/alerts';
import type { ConditionSpan } from '../../model/dashboard/condition-spans';
import type { Holder } from '../../model/dashboard/plots';
import type { Level } from '../../model/describe';
import { kernelHolderId } from '../../model/holders';
import type { Markers } from '../chart-marks';
import { colorOf, type Palette } from '../palette';

/** The bands and markers of a chart, and the conditions that its tooltip lists. */
export interface Annotations {
  bands: readonly Band[];
  conditions: readonly Band[];
  markers: readonly EventMarker[];
}

/**
 * A row of the annotation lane above the charts. It shows the conditions of one GPU, or one
 * condition of several GPUs.
 */
interface ConditionRow {
  gpus: readonly number[];
  bands: readonly (Band & { level: Level; gpus: readonly number[] })[];
}

export type AnnotationSet = ReturnType<typeof annotationsOf>;

type ByGpu<T> = ReadonlyMap<number, readonly T[]>;

/**
 * The note of a marker is shown if the pointer is at most this far from the marker, as a share of
 * the displayed span.
 */
const MAX_MARKER_DISTANCE = 0.015;
const MAX_NOTES = 4;
/**
 * Bands of the same name are merged if the gap between them is at most this share of the displayed
 * span.
 */
const MAX_GAP = 0.002;
/** The minimum number of rows for conditions, so that a new condition does not move the charts. */
export const MIN_ROWS = 2;

/**
 * Returns the annotations for the charts of `gpus` and of the machine. `bands` contains cells and
 * runs.
 */
export function annotationsOf(
  gpus: readonly number[],
  bands: ByGpu<Band>,
  spans: ByGpu<ConditionSpan>,
  markers: Markers,
  palette: Palette,
  { from_ms, to_ms }: Pick<TimeWindow, 'from_ms' | 'to_ms'>,
) {
  const isShown = (span: Pick<TimeWindow, 'from_ms' | 'to_ms'>): boolean =>
    span.to_ms >= from_ms && span.from_ms <= to_ms;
  /** The displayed conditions of each GPU that has at least one. */
  const conditions = new Map(
    gpus.flatMap((gpu) => {
      const shown = (spans.get(gpu) ?? []).filter(isShown).map(({ level, text, ...span }) => ({
        ...span,
        level,
        color: palette.levels[level],
        label: text,
      }));
      return shown.length === 0 ? [] : [[gpu, sortBySeverity(shown)] as const];
    }),
  );
  const named = <T extends { label: string }>(gpu: number, all: readonly T[]): T[] =>
    all.map((one) => ({ ...one, label: trans.__('GPU %1: %2', gpu, one.label) }));
  const cells = mergeBands(gpus.flatMap((gpu) => bands.get(gpu) ?? []).filter(isShown), 0);
  const events = gpus.flatMap((gpu) => {
    const own = markers.byGpu.get(gpu) ?? [];
    return gpus.length > 1 ? named(gpu, own) : own;
  });
  return {
    /**
     * Returns the annotations for the charts of a GPU. If `gpu` is `null`, returns those for charts
     * that show all GPUs.
     */
    of: (gpu: number | null): Annotations =>
      gpu === null
        ? {
            bands: cells,
            // Conditions of level `notice` are omitted, because the notices of all GPUs together
            // would fill the tooltip.
            conditions: [...conditions].flatMap(([one, all]) =>
              named(
                one,
                all.filter(({ level }) => levelRank(level) < levelRank('notice')),
              ),
            ),
            markers: [...events.map((one) => ({ ...one, small: true })), ...markers.ofAll],
          }
        : {
            bands: bands.get(gpu)?.filter(isShown) ?? [],
            conditions: conditions.get(gpu) ?? [],
            markers: [...(markers.byGpu.get(gpu) ?? []), ...markers.ofAll],
          },
    /**
     * The annotations of the machine's charts: cells, runs and marks, without the states of GPUs.
     */
    machine: { bands: cells, conditions: [], markers: markers.ofAll },
    /**
     * The annotations of the annotation lane above all charts. The most severe conditions come
     * first.
     */
    lane: {
      flags: [...events, ...markers.ofAll]
        .filter(({ at_ms }) => at_ms >= from_ms && at_ms <= to_ms)
        .sort((a, b) => a.at_ms - b.at_ms),
      cells,
      conditions: conditionRows(conditions, from_ms, to_ms),
    },
  };
}

/**
 * Returns the rows of conditions, sorted by severity. If there are too many rows, ongoing
 * conditions of several GPUs are merged.
 */
function conditionRows(
  conditions: ByGpu<Band & { level: Level }>,
  from_ms: number,
  to_ms: number,
): ConditionRow[] {
  const gap_ms = MAX_GAP * (to_ms - from_ms);
  const all = [...conditions].flatMap(([gpu, bands]) =>
    mergeBands(bands, gap_ms).map((band) => ({ ...band, gpus: [gpu] })),
  );
  const isOpen = (band: Band): boolean => band.to_ms >= to_ms;
  const single = toConditionRows(all);
  if (single.length <= MIN_ROWS) {
    return single;
  }
  const open = groupBy(all.filter(isOpen), ({ label }) => label);
  const isJoined = ({ label }: Band): boolean => (open.get(label)?.length ?? 0) > 1;
  const joined = groupBy(all.filter(isJoined), ({ label }) => label);
  const rows = [...joined].map(([label, bands]): ConditionRow => {
    const gpus = (open.get(label) ?? []).flatMap((band) => band.gpus).sort((a, b) => a - b);
    const merged = mergeBands(bands, gap_ms);
    return { gpus, bands: merged.map((band) => (isOpen(band) ? { ...band, gpus } : band)) };
  });
  return sortRows([...rows, ...toConditionRows(all.filter((band) => !isJoined(band)))]);
}

/** Returns rows of one GPU each, without overlapping bands. */
function toConditionRows(all: ConditionRow['bands']): ConditionRow[] {
  const byGpu = groupBy(all, ({ gpus }) => gpus[0]);
  return sortRows(
    [...byGpu.values()].flatMap((bands) =>
      packBands(sortBySeverity(bands)).map((packed) => ({
        gpus: packed[0]?.gpus ?? [],
        bands: packed,
      })),
    ),
  );
}

/** Sorts rows by their most severe band, then by GPU. */
function sortRows(rows: readonly ConditionRow[]): ConditionRow[] {
  const rank = ({ bands }: ConditionRow): number => levelRank(bands[0]?.level ?? 'none');
  return [...rows].sort((a, b) => rank(a) - rank(b) || (a.gpus[0] ?? 0) - (b.gpus[0] ?? 0));
}

/**
 * Distributes bands over rows, so that no two bands of a row overlap. Each band gets the first row
 * with room for it, in the order of the list.
 */
function packBands<B extends Band>(bands: readonly B[]): B[][] {
  const rows: B[][] = [];
  for (const band of bands) {
    const free = rows.find((row) =>
      row.every(({ from_ms, to_ms }) => to_ms <= band.from_ms || from_ms >= band.to_ms),
    );
    if (free === undefined) {
      rows.push([band]);
    } else {
      free.push(band);
    }
  }
  return rows;
}

/** Returns the executions of cells as bands by GPU. A cell has the color of its notebook. */
export function cellBands(
  executions: readonly CellExecution[],
  notebookOf: (execution: CellExecution) => string,
  palette: Palette,
  holders: ReadonlyMap<number, readonly Holder[]>,
  now_ms: number,
): Map<number, readonly Band[]> {
  const bands = executions.flatMap((execution) => {
    const { kernelId, count, running, cost } = execution;
    return cost.gpus.map((gpu) => {
      const holder = holders.get(gpu)?.find((one) => one.holder === kernelHolderId(kernelId));
      return {
        gpu,
        from_ms: cost.started_ms,
        to_ms: running ? now_ms : cost.ended_ms,
        color: colorOf(palette, holder?.slot ?? 'text'),
        label: executionLabel(count),
        title: `${executionName(execution)} · ${notebookOf(execution)}`,
      };
    });
  });
  return groupBy(bands, ({ gpu }) => gpu);
}

/** Returns the notes about a time: events first, then bands. */
export function notesAt(
  at_ms: number,
  { bands, conditions, markers }: Annotations,
  window: Pick<TimeWindow, 'from_ms' | 'to_ms'>,
): Band[] {
  const near_ms = MAX_MARKER_DISTANCE * (window.to_ms - window.from_ms);
  const notes: Band[] = [
    ...markers
      .filter((marker) => Math.abs(marker.at_ms - at_ms) <= near_ms)
      .map((marker) => ({ ...marker, from_ms: marker.at_ms, to_ms: marker.at_ms })),
    ...[...conditions, ...bands].filter(({ from_ms, to_ms }) => from_ms <= at_ms && at_ms <= to_ms),
  ];
  return [...new Map(notes.map((note) => [note.title ?? note.label, note])).values()].slice(
    0,
    MAX_NOTES,
  );
}

/**
 * Merges adjacent bands of the same name and color. Such bands exist, for example, if a cell or a
 * step ran on several GPUs.
 */
function mergeBands<B extends Band>(bands: readonly B[], gap_ms: number): B[] {
  const all: B[] = [];
  const last = new Map<string, B>();
  for (const band of [...bands].sort((a, b) => a.from_ms - b.from_ms)) {
    const name = `${band.title ?? band.label} ${band.color}`;
    const before = last.get(name);
    if (before !== undefined && band.from_ms <= before.to_ms + gap_ms) {
      before.to_ms = Math.max(before.to_ms, band.to_ms);
    } else {
      const own = { ...band };
      last.set(name, own);
      all.push(own);
    }
  }
  return all;
}
