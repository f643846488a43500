/** What is marked on charts: cells and runs as bands, conditions as bars above, events and marks as markers. */

import type { Band, EventMarker, TimeWindow } from '../../chart/content';
import { trans } from '../../lib/translation';
import { levelRank } from '../../model/condition';
import type { ConditionSpan } from '../../model/dashboard/condition-spans';
import type { Markers } from '../event-markers';
import type { Palette } from '../palette';

export interface Annotations {
  bands: readonly Band[];
  bars: readonly Band[];
  markers: readonly EventMarker[];
}

type ByGpu<T> = ReadonlyMap<number, readonly T[]>;

/** How near the pointer has to be to a marker, as a share of what is shown. */
const NEAR = 0.015;
const MOST_NOTES = 4;

/** The annotations of charts, each GPU's and those of several. */
export class AnnotationSet {
  private readonly bars: ByGpu<Band & { grave: boolean }>;
  private readonly shared: Annotations;
  /** Of the machine's charts: what ran on GPUs and what people marked, and not how GPUs fared. */
  readonly machine: Annotations;

  constructor(
    private readonly bands: ByGpu<Band>,
    spans: ByGpu<ConditionSpan>,
    private readonly markers: Markers,
    /** Those that are shown. */
    gpus: readonly number[],
    palette: Palette,
    private readonly window: TimeWindow,
  ) {
    const bar = ({ from_ms, to_ms, level, text }: ConditionSpan): Band & { grave: boolean } => {
      const grave = levelRank(level) < levelRank('notice');
      return { from_ms, to_ms, color: palette.levels[level], label: text, grave };
    };
    // The gravest is drawn last.
    const sorted = (all: readonly ConditionSpan[]): ConditionSpan[] =>
      all.filter(this.isShown).sort((a, b) => levelRank(b.level) - levelRank(a.level));
    this.bars = new Map([...spans].map(([gpu, all]) => [gpu, sorted(all).map(bar)]));
    const named = <T extends { label: string }>(gpu: number, all: readonly T[]): T[] =>
      all.map((one) => ({ ...one, label: trans.__('GPU %1: %2', gpu, one.label) }));
    this.shared = {
      bands: merged(gpus.flatMap((gpu) => bands.get(gpu) ?? []).filter(this.isShown)),
      // Charts of many GPUs would be full of what is ordinary.
      bars: gpus.flatMap((gpu) =>
        named(gpu, this.bars.get(gpu)?.filter(({ grave }) => grave) ?? []),
      ),
      markers: [
        ...gpus.flatMap((gpu) =>
          named(gpu, markers.byGpu.get(gpu) ?? []).map((one) => ({ ...one, small: true })),
        ),
        ...markers.ofAll,
      ],
    };
    this.machine = { bands: this.shared.bands, bars: [], markers: markers.ofAll };
  }

  /** Those of a GPU's chart, or of a chart of all where `gpu` is `null`. */
  of(gpu: number | null): Annotations {
    return gpu === null
      ? this.shared
      : {
          bands: this.bands.get(gpu)?.filter(this.isShown) ?? [],
          bars: this.bars.get(gpu) ?? [],
          markers: [...(this.markers.byGpu.get(gpu) ?? []), ...this.markers.ofAll],
        };
  }

  private readonly isShown = ({ from_ms, to_ms }: { from_ms: number; to_ms: number }): boolean =>
    to_ms >= this.window.from_ms && from_ms <= this.window.to_ms;
}

/** What is marked at a moment: events first, then what went on. */
export function notesAt(
  at_ms: number,
  { bands, bars, markers }: Annotations,
  window: TimeWindow,
): Band[] {
  const near_ms = NEAR * (window.to_ms - window.from_ms);
  const events = markers.filter((marker) => Math.abs(marker.at_ms - at_ms) <= near_ms);
  const going = [...bars, ...bands].filter(
    ({ from_ms, to_ms }) => from_ms <= at_ms && at_ms <= to_ms,
  );
  const notes: Band[] = [
    ...events.map((marker) => ({ ...marker, from_ms: marker.at_ms, to_ms: marker.at_ms })),
    ...going,
  ];
  const seen = new Set<string>();
  return notes
    .filter(({ label, title = label }) => !seen.has(title) && seen.add(title))
    .slice(0, MOST_NOTES);
}

/** Bands of one name that meet are one: a cell or a step that ran on several GPUs. */
function merged(bands: readonly Band[]): Band[] {
  const all: Band[] = [];
  const last = new Map<string, Band>();
  for (const band of [...bands].sort((a, b) => a.from_ms - b.from_ms)) {
    const name = `${band.title ?? band.label} ${band.color}`;
    const before = last.get(name);
    if (before !== undefined && band.from_ms <= before.to_ms) {
      before.to_ms = Math.max(before.to_ms, band.to_ms);
    } else {
      const own = { ...band };
      last.set(name, own);
      all.push(own);
    }
  }
  return all;
}
