import type { ComponentChild } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { Band, EventMarker } from '../../chart/content';
import { formatTimeOfDay } from '../../lib/format';
import { trans } from '../../lib/translation';
import { useViewParts } from '../component-view';
import { MIN_ROWS, type AnnotationSet } from './annotations';

/**
 * If a flag is farther to the right than this share of the annotation lane, its text is on the left
 * of the flag.
 */
const FLAG_FLIP_SHARE = 0.8;
/**
 * The minimum share of the annotation lane that a flag needs to show its text. With less room, the
 * text would be cut to one or two letters.
 */
const MIN_TEXT_SHARE = 0.05;
/**
 * A band that is shorter than this share of the annotation lane is omitted if it is next to another
 * band. The share is about three pixels.
 */
const MIN_BAND_SHARE = 0.003;
/** Flags are merged if their distance is at most this share of the annotation lane. */
const MAX_FLAG_DISTANCE = 0.01;

/**
 * The annotation lane: a strip with the names of marks, cells and conditions, over the same span as
 * the charts below.
 */
export function AnnotationLane({
  content,
  from_ms,
  to_ms,
  isOneGpu,
}: {
  content: AnnotationSet['lane'];
  from_ms: number;
  to_ms: number;
  isOneGpu: boolean;
}) {
  const { cursor } = useViewParts();
  const [isWhole, setWhole] = useState(false);
  const lane = useRef<HTMLElement>(null);
  const span = useRef({ from_ms, to_ms });
  span.current = { from_ms, to_ms };
  useLayoutEffect(() => {
    const track = lane.current?.querySelector('ul');
    if (lane.current !== null && track != null) {
      const timeAt = (clientX: number): number => {
        const { left, width } = track.getBoundingClientRect();
        const share = Math.min(1, Math.max(0, (clientX - left) / width));
        return Math.round(
          span.current.from_ms + share * (span.current.to_ms - span.current.from_ms),
        );
      };
      cursor.track(lane.current, { timeAt });
    }
  }, []);

  const share = (at_ms: number): number =>
    Math.min(1, Math.max(0, (at_ms - from_ms) / (to_ms - from_ms)));
  const percent = (part: number): string => `${(100 * part).toFixed(2)}%`;
  const bandItem = ({
    label,
    title = label,
    color,
    gpus = [],
    ...band
  }: Band & { gpus?: readonly number[] }) => {
    const isJoined = gpus.length > 1;
    const clause = title.replace(/\.$/, '');
    const begin = share(band.from_ms);
    const width = percent(share(band.to_ms) - begin);
    return (
      <li
        key={`${title} ${band.from_ms}`}
        class="gpumon-lane-band"
        title={isJoined ? `${title}\n${trans.__('GPUs %1', gpus.join(', '))}` : title}
        style={{ left: percent(begin), width, '--_mark': color }}
      >
        {isJoined ? trans._n('%2 · %1 GPU', '%2 · %1 GPUs', gpus.length, clause) : title}
      </li>
    );
  };
  const flags = groupFlags(content.flags, MAX_FLAG_DISTANCE * (to_ms - from_ms));
  const beginOf = (place: number): number => share(flags[place]?.[0].at_ms ?? NaN);
  const flagItem = (group: FlagGroup, place: number) => {
    const [{ at_ms, label, color }] = group;
    const begin = share(at_ms);
    const isLast = begin > FLAG_FLIP_SHARE;
    const room = isLast ? begin - (beginOf(place - 1) || 0) : (beginOf(place + 1) || 1) - begin;
    return (
      <li
        key={`${at_ms} ${label}`}
        class="gpumon-lane-flag"
        data-last={isLast ? '' : undefined}
        title={group.map((flag) => `${formatTimeOfDay(flag.at_ms)} ${flag.label}`).join('\n')}
        style={{
          left: isLast ? 'auto' : percent(begin),
          right: isLast ? percent(1 - begin) : 'auto',
          maxWidth: percent(room),
          '--_mark': color,
        }}
      >
        {room < MIN_TEXT_SHARE
          ? null
          : group.length > 1
            ? trans.__('%1 (+%2)', label, group.length - 1)
            : label}
      </li>
    );
  };
  const row = (
    label: string,
    items: ComponentChild,
    key = label,
    button: ComponentChild = null,
  ) => (
    <div class="gpumon-lane-row" key={key}>
      <span class="gpumon-lane-label" title={label}>
        <span>{label}</span>
        {button}
      </span>
      <ul aria-label={label}>{items}</ul>
    </div>
  );
  const rows = content.conditions;
  const labelOf = ([gpu = 0, ...others]: readonly number[]): string =>
    others.length > 0
      ? trans._n('%1 GPU', '%1 GPUs', others.length + 1)
      : isOneGpu
        ? trans.__('Conditions')
        : trans.__('GPU %1', gpu);
  const shown = isWhole ? rows : rows.slice(0, MIN_ROWS);
  const more = rows.length > MIN_ROWS && (
    <button
      type="button"
      class="gpumon-lane-more"
      aria-expanded={isWhole}
      title={isWhole ? trans.__('Show fewer conditions') : trans.__('Show all conditions')}
      onClick={() => setWhole(!isWhole)}
    >
      {isWhole ? '−' : `+${rows.length - MIN_ROWS}`}
    </button>
  );
  const empty = Array.from({ length: MIN_ROWS - shown.length }, (_, place) =>
    row(
      rows.length + place === 0 ? trans.__('Conditions') : '',
      rows.length + place === 0 && <li class="gpumon-missing">{trans.__('none')}</li>,
      `empty ${place}`,
    ),
  );
  return (
    <section class="gpumon-lane" aria-label={trans.__('Conditions and marks')} ref={lane}>
      {row(trans.__('Marks'), flags.map(flagItem))}
      {content.cells.length > 0 &&
        row(
          trans.__('Cells'),
          omitShortBands(content.cells, MIN_BAND_SHARE * (to_ms - from_ms)).map(bandItem),
        )}
      <div class="gpumon-lane-conditions" tabIndex={isWhole ? 0 : undefined}>
        {shown.map(({ gpus, bands }, place) =>
          row(
            labelOf(gpus),
            bands.map(bandItem),
            `condition ${place}`,
            place === MIN_ROWS - 1 && more,
          ),
        )}
        {empty}
      </div>
      {cursor.at_ms !== null && (
        <span class="gpumon-lane-cursor" style={{ '--_at': String(share(cursor.at_ms)) }} />
      )}
    </section>
  );
}

/**
 * Omits bands that are shorter than `least_ms` and start less than `least_ms` after the start of
 * the previous band that is not omitted.
 */
function omitShortBands(bands: readonly Band[], least_ms: number): Band[] {
  const shown: Band[] = [];
  for (const band of bands) {
    const last_ms = shown.at(-1)?.from_ms ?? -Infinity;
    if (band.to_ms - band.from_ms >= least_ms || band.from_ms - last_ms >= least_ms) {
      shown.push(band);
    }
  }
  return shown;
}

type FlagGroup = [EventMarker, ...EventMarker[]];

/** Groups flags. A group contains the flags that are at most `near_ms` after its first flag. */
function groupFlags(flags: readonly EventMarker[], near_ms: number): FlagGroup[] {
  const groups: FlagGroup[] = [];
  for (const flag of flags) {
    const last = groups.at(-1);
    if (last !== undefined && flag.at_ms - last[0].at_ms <= near_ms) {
      last.push(flag);
    } else {
      groups.push([flag]);
    }
  }
  return groups;
}
