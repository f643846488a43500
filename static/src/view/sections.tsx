/** The sections below the processes: recent events, and the machine. */

import type { ComponentChild } from 'preact';
import { useMemo, useState } from 'preact/hooks';

import {
  formatBytesPerSecond,
  formatMemoryNumber,
  formatMemorySize,
  formatMemoryTotal,
  formatPercent,
  formatTimeWithDateUnlessToday,
} from '../lib/format';
import { trans } from '../lib/translation';
import { eventRows, countProcessEvents } from '../model/event';
import type { GpuState } from '../model/gpu';
import { valueOf } from '../model/reading';
import type { Event, HostSample, RamSample, Reading, Sample } from '../wire';
import { SeverityIcon, severityLabel } from './alerts';
import { Meter, ReadingValue, type Freshness } from './value';

/** The number of displayed events before the list is expanded. */
const INITIAL_ROWS = 5;

/**
 * Recent events, newest first. Events of processes are frequent, so they are hidden until the user
 * asks for them.
 */
export function EventList({
  events,
  sample,
  gpus,
  now_ms,
}: {
  events: readonly Event[];
  sample: Sample | null;
  gpus: readonly GpuState[];
  now_ms: number;
}) {
  const [withProcesses, setWithProcesses] = useState(false);
  const rows = useMemo(
    () => eventRows(events, withProcesses, sample, gpus),
    [events, withProcesses, sample],
  );
  const [shown, showAllButton] = useShortList(rows, INITIAL_ROWS);
  const hidden = countProcessEvents(events);
  return (
    <section class="gpumon-section" aria-label={trans.__('Events')}>
      <div class="gpumon-section-head">
        <h2>{trans.__('Events')}</h2>
        {hidden > 0 && (
          <button
            type="button"
            class="gpumon-chip"
            aria-pressed={withProcesses}
            title={trans.__('Show when processes start and exit')}
            onClick={() => setWithProcesses(!withProcesses)}
          >
            {trans.__('Processes (%1)', hidden)}
          </button>
        )}
      </div>
      {rows.length === 0 ? (
        <p class="gpumon-empty">{trans.__('No events.')}</p>
      ) : (
        <ol class="gpumon-events" data-testid="gpumon-events">
          {shown.map(({ key, at_ms, gpu, text, more, level, resolved }) => (
            <li class="gpumon-event" key={key} data-level={resolved ? 'done' : level}>
              <SeverityIcon />
              <time class="gpumon-event-time" dateTime={new Date(at_ms).toISOString()}>
                {formatTimeWithDateUnlessToday(at_ms, now_ms)}
              </time>
              <span class="gpumon-event-gpu">
                {gpu === null ? trans.__('all') : trans.__('GPU %1', gpu)}
              </span>
              <span class="gpumon-event-text">
                <span class="gpumon-visually-hidden">{severityLabel(level)}</span>
                <bdi>{text}</bdi>
                {more !== '' && <span class="gpumon-event-more">{` ${more}`}</span>}
              </span>
            </li>
          ))}
        </ol>
      )}
      {showAllButton}
    </section>
  );
}

/**
 * Returns the displayed rows of a list, and a button that shows all rows or only the first `short`
 * ones. If the list has no further rows, the button is `false`.
 */
export function useShortList<T>(rows: readonly T[], short: number) {
  const [isWhole, setWhole] = useState(false);
  const button = rows.length > short && (
    <button
      type="button"
      class="gpumon-chip"
      aria-expanded={isWhole}
      onClick={() => setWhole(!isWhole)}
    >
      {isWhole ? trans.__('Show fewer') : trans.__('Show all %1', rows.length)}
    </button>
  );
  return [isWhole ? rows : rows.slice(0, short), button] as const;
}

/** The readings of the machine. */
export function HostStrip({
  host: { cpu, memory, swap, disk, network },
  freshness,
}: {
  host: HostSample;
  freshness: Freshness;
}) {
  const count = valueOf(cpu.count);
  const total = valueOf(memory.total_bytes);
  const used = valueOf(memory.used_bytes);
  const rate = (label: string, id: string, reading: Reading<number>) => (
    <span class="gpumon-direction">
      <span class="gpumon-direction-label">{label}</span>
      <ReadingValue
        id={`host.${id}_bytes_per_second`}
        class="gpumon-rate"
        format={formatBytesPerSecond}
        {...{ reading, freshness }}
      />
    </span>
  );
  const items: [label: string, content: ComponentChild][] = [
    [
      trans.__('CPU'),
      <>
        <Meter share={(valueOf(cpu.busy_percent) ?? 0) / 100} />
        <ReadingValue
          id="host.cpu.busy_percent"
          reading={cpu.busy_percent}
          format={formatPercent}
          freshness={freshness}
          rest={count === null ? '' : trans._n('of %1 core', 'of %1 cores', count)}
        />
      </>,
    ],
    [
      trans.__('RAM'),
      <>
        <Meter share={total === null ? 0 : (used ?? 0) / total} title={describeSwap(swap)} />
        <ReadingValue
          id="host.memory.used_bytes"
          reading={memory.used_bytes}
          format={formatMemoryNumber}
          freshness={freshness}
          rest={formatMemoryTotal(total)}
        />
      </>,
    ],
    [
      trans.__('Disk'),
      <>
        {rate(trans.__('read'), 'disk.read', disk.read_bytes_per_second)}
        {rate(trans.__('write'), 'disk.written', disk.written_bytes_per_second)}
      </>,
    ],
    [
      trans.__('Net'),
      <>
        {rate(trans.__('RX'), 'network.received', network.received_bytes_per_second)}
        {rate(trans.__('TX'), 'network.sent', network.sent_bytes_per_second)}
      </>,
    ],
  ];
  return (
    <section class="gpumon-section" aria-label={trans.__('Machine')}>
      <h2>{trans.__('Machine')}</h2>
      <dl class="gpumon-host" data-testid="gpumon-host">
        {items.map(([label, content], place) => (
          <div class="gpumon-host-item" key={place}>
            <dt>{label}</dt>
            <dd>{content}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function describeSwap(swap: RamSample): string | undefined {
  const total = valueOf(swap.total_bytes);
  const used = valueOf(swap.used_bytes);
  if (total === null || used === null) {
    return undefined;
  }
  return total === 0
    ? trans.__('no swap space')
    : trans.__('swap space: %1 of %2', formatMemorySize(used), formatMemorySize(total));
}
