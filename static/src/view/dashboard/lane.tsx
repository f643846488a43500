import type { ComponentChild } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { Band, EventMarker } from '../../chart/content';
import { timeOfDay } from '../../lib/format';
import { trans } from '../../lib/translation';
import { useView } from '../component-view';
import type { LaneContent } from './annotations';

/** Rows of conditions that are always there, so that no chart moves when a condition comes or goes. */
const ROWS = 2;
/** Flags in this last part of the lane have their text on the left. */
const LAST_PART = 0.8;

export interface LaneProps {
  content: LaneContent;
  from_ms: number;
  to_ms: number;
  isOneGpu: boolean;
}

/** Marks, cells and conditions over the time that the charts below show, with their names. */
export function Lane({ content, from_ms, to_ms, isOneGpu }: LaneProps): ComponentChild {
  const { cursor } = useView();
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
  const bandItem = ({ label, title = label, color, ...band }: Band): ComponentChild => {
    const begin = share(band.from_ms);
    const width = percent(share(band.to_ms) - begin);
    return (
      <li
        key={`${title} ${band.from_ms}`}
        class="gpumon-lane-band"
        title={title}
        style={{ left: percent(begin), width, '--_mark': color }}
      >
        {title}
      </li>
    );
  };
  const flagItem = ({ at_ms, label, color }: EventMarker, place: number): ComponentChild => {
    const begin = share(at_ms);
    const isLast = begin > LAST_PART;
    const room = share(content.flags[place + 1]?.at_ms ?? to_ms) - begin;
    return (
      <li
        key={`${at_ms} ${label}`}
        class="gpumon-lane-flag"
        data-last={isLast ? '' : undefined}
        title={`${timeOfDay(at_ms)} ${label}`}
        style={{
          left: isLast ? 'auto' : percent(begin),
          right: isLast ? percent(1 - begin) : 'auto',
          maxWidth: percent(isLast ? begin : room),
          '--_mark': color,
        }}
      >
        {label}
      </li>
    );
  };
  const row = (label: string, items: ComponentChild, key = label): ComponentChild => (
    <div class="gpumon-lane-row" key={key}>
      <span class="gpumon-lane-label" title={label}>
        {label}
      </span>
      <ul aria-label={label}>{items}</ul>
    </div>
  );
  const rows = content.conditions.flatMap(({ gpu, bands }) =>
    packed(bands).map((packedBands, place) => ({
      label: isOneGpu ? trans.__('Conditions') : trans.__('GPU %1', gpu),
      key: `${gpu} ${place}`,
      bands: packedBands,
    })),
  );
  const shown = isWhole ? rows : rows.slice(0, ROWS);
  const empty = Array.from({ length: ROWS - shown.length }, (_, place) =>
    row(
      rows.length + place === 0 ? trans.__('Conditions') : '',
      rows.length + place === 0 && <li class="gpumon-missing">{trans.__('none')}</li>,
      `empty ${place}`,
    ),
  );
  return (
    <section class="gpumon-lane" aria-label={trans.__('Conditions and marks')} ref={lane}>
      {row(trans.__('Marks'), content.flags.map(flagItem))}
      {content.cells.length > 0 && row(trans.__('Cells'), content.cells.map(bandItem))}
      {shown.map(({ label, key, bands }) => row(label, bands.map(bandItem), key))}
      {empty}
      {rows.length > ROWS && (
        <button type="button" class="gpumon-chip" onClick={() => setWhole(!isWhole)}>
          {isWhole ? trans.__('Show fewer') : trans.__('%1 more', rows.length - ROWS)}
        </button>
      )}
      {cursor.at_ms !== null && (
        <span class="gpumon-lane-cursor" style={{ '--_at': String(share(cursor.at_ms)) }} />
      )}
    </section>
  );
}

/** Distributes bands over as few rows as possible, so that none covers another; the first bands are in the first rows. */
function packed(bands: readonly Band[]): Band[][] {
  const rows: Band[][] = [];
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
