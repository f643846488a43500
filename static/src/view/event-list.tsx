import type { ComponentChild } from 'preact';
import { useMemo, useState } from 'preact/hooks';

import { since } from '../lib/format';
import { trans } from '../lib/translation';
import { eventRows, processEvents } from '../model/event';
import type { GpuState } from '../model/gpu';
import type { Event, Sample } from '../wire';
import { SeverityIcon, severityLabel } from './severity-icon';
import { ShowAllButton } from './show-all-button';

/** The number of events until all are asked for. */
const SHORT = 5;

export interface EventListProps {
  events: readonly Event[];
  sample: Sample | null;
  gpus: readonly GpuState[];
  now_ms: number;
}

/** Recent events, the newest first. Those of processes are frequent, and shown on demand. */
export function EventList({ events, sample, gpus, now_ms }: EventListProps): ComponentChild {
  const [withProcesses, setWithProcesses] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const rows = useMemo(
    () => eventRows(events, withProcesses, sample, gpus),
    [events, withProcesses, sample],
  );
  const hidden = processEvents(events);
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
          {rows
            .slice(0, isWhole ? rows.length : SHORT)
            .map(({ key, at_ms, gpu, text, more, level, resolved }) => (
              <li class="gpumon-event" key={key} data-level={resolved ? 'done' : level}>
                <SeverityIcon />
                <time class="gpumon-event-time" dateTime={new Date(at_ms).toISOString()}>
                  {since(at_ms, now_ms)}
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
      <ShowAllButton count={rows.length} short={SHORT} isWhole={isWhole} onChange={setWhole} />
    </section>
  );
}
