/** The header of a view: the status of the connection, alerts, and a summary of all GPUs. */

import { useRef } from 'preact/hooks';

import { formatDateAndTime, formatDuration, formatTimeWithDateUnlessToday } from '../lib/format';
import { findOwnProperty } from '../lib/collections';
import { joinParts, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Level } from '../model/describe';
import type { GpuState } from '../model/gpu';
import { ALERT_LEVELS, type AlertLevel } from '../model/gpu-list';
import { valueOf } from '../model/reading';
import type { Request } from '../model/request';
import { isFresh, type Status } from '../model/status';
import type { Store } from '../model/store';
import type { Driver, Platform } from '../wire';
import { VENDORS } from '../wire/vendors';
import { HeadActions, type HeadAction } from './menu';
import { Part } from './part';
import { SeverityIcon } from './alerts';

/** The selectable time ranges in minutes. The server keeps enough history for the longest one. */
const SPANS_MIN = [2, 5] as const;

/** The number of GPUs with an alert of a level. */
interface AlertCount {
  level: Level;
  text: string;
  /** Whether the list only shows the GPUs with this alert level. */
  isChosen: boolean;
  onClick: () => void;
}

/**
 * Counts GPUs by the level of their most severe alert. `isChosen` and `choose` are called with a
 * level and the indexes of the GPUs of that level.
 */
export function countGpusByAlertLevel(
  gpus: readonly GpuState[],
  levelOf: (gpu: GpuState) => Level,
  isChosen: (level: AlertLevel, gpus: readonly number[]) => boolean,
  choose: (level: AlertLevel, gpus: readonly number[]) => void,
): AlertCount[] {
  return ALERT_LEVELS.flatMap((level) => {
    const indices = gpus.filter((gpu) => levelOf(gpu) === level).map(({ index }) => index);
    const count = indices.length;
    const text =
      level === 'critical'
        ? trans._n('%1 critical', '%1 critical', count)
        : trans._n('%1 warning', '%1 warnings', count);
    const isPressed = isChosen(level, indices);
    return count > 0 || isPressed
      ? [{ level, text, isChosen: isPressed, onClick: () => choose(level, indices) }]
      : [];
  });
}

interface HeaderProps {
  title: string;
  store: Store;
  status: Status;
  summary: readonly string[];
  alerts?: readonly AlertCount[];
  /** The time under the pointer; `null` for now. */
  at_ms: number | null;
  /** The displayed span of paused charts; `null` while they are live. */
  paused?: readonly [from: string, to: string] | null;
  /** The time range of the lines in minutes; missing if the time range is selected elsewhere. */
  span?: { minutes: number; onChange: (minutes: number) => void };
  actions: readonly HeadAction[];
  onRetry: () => void;
  /** Called when paused charts should resume. */
  onResume?: () => void;
  /** Sends HTTP requests, to control a recording that the server plays. */
  request?: Request | undefined;
}

export function Header(props: HeaderProps) {
  const { title, store, summary, alerts = [], span, request } = props;
  const platform = platformParts(store);
  const playback = store.inventory?.playback;
  const played_ms = playback && (store.sample?.at_ms ?? playback.from_ms);
  const version = store.version && `gpumon ${plainText(store.version)}`;
  return (
    <div class="gpumon-head">
      <div class="gpumon-head-row">
        <StatusLine {...props} />
        {alerts.map(({ level, text, isChosen, onClick }) => (
          <button
            type="button"
            key={level}
            class="gpumon-chip gpumon-head-alert"
            data-testid={`gpumon-head-${level}`}
            data-level={level}
            aria-pressed={isChosen}
            title={trans.__('Show only these GPUs')}
            onClick={onClick}
          >
            <SeverityIcon />
            {text}
          </button>
        ))}
        {store.inventory?.platform.source === 'simulated' && (
          <span
            class="gpumon-simulated"
            data-testid="gpumon-simulated"
            title={trans.__('These GPUs are simulated by gpumon. No driver is read.')}
          >
            {trans.__('simulated')}
          </span>
        )}
        {playback && played_ms !== undefined && (
          <span
            class="gpumon-simulated"
            title={trans.__(
              'Recorded from %1 to %2',
              formatDateAndTime(playback.from_ms),
              formatDateAndTime(playback.to_ms),
            )}
          >
            {trans.__('recording of %1', formatDateAndTime(played_ms))}
          </span>
        )}
        <h1 class="gpumon-title" title={joinParts([...platform, version], '\n')}>
          {title}
        </h1>
        <span class="gpumon-platform gpumon-wide">{joinParts(platform)}</span>
        <HeadActions actions={props.actions} />
      </div>
      <div class="gpumon-head-row gpumon-head-second">
        <span class="gpumon-summary" data-testid="gpumon-summary">
          {summary.map((part, place) => (
            <span key={place}>{part}</span>
          ))}
        </span>
        {span && (
          <button
            type="button"
            class="gpumon-chip"
            title={trans._n(
              'Showing the last minute. Click for %2.',
              'Showing the last %1 minutes. Click for %2.',
              span.minutes,
              otherTimeRangeMinutes(span.minutes),
            )}
            onClick={() => span.onChange(otherTimeRangeMinutes(span.minutes))}
          >
            {formatDuration(span.minutes * 60_000)}
          </button>
        )}
      </div>
      {playback && played_ms !== undefined && (
        <Part load={() => import('./replay-bar')}>
          {({ ReplayBar }) => <ReplayBar request={request} playback={playback} at_ms={played_ms} />}
        </Part>
      )}
    </div>
  );
}

/** The status of the connection, the time under the pointer, or the span of paused charts. */
function StatusLine({ store, status, at_ms, paused = null, onRetry, onResume }: HeaderProps) {
  const now_ms = store.clock.now();
  const isPast = at_ms !== null;
  // If the connection is lost, its status is shown even while charts are paused.
  const isPaused = paused !== null && isFresh(status);
  const text = isPast
    ? trans.__(
        '%1, %2 ago',
        formatTimeWithDateUnlessToday(at_ms, now_ms),
        formatDuration(now_ms - at_ms),
      )
    : isPaused
      ? trans.__('Paused %1 – %2', ...paused)
      : status.text;
  return (
    <span
      class="gpumon-status"
      data-testid="gpumon-status"
      data-level={isPast ? 'past' : isPaused ? 'paused' : status.level}
      title={isPaused ? trans.__('Samples are still recorded.') : status.title}
    >
      <span class="gpumon-dot" aria-hidden="true" />
      <span class="gpumon-status-text">{text}</span>
      {store.phase.phase === 'waiting' && !isPast && (
        <button
          type="button"
          class="gpumon-retry"
          title={trans.__('Reconnect now')}
          onClick={onRetry}
        >
          {trans.__('now')}
        </button>
      )}
      {paused !== null && (
        <button
          type="button"
          class="gpumon-retry"
          data-testid="gpumon-resume"
          title={trans.__('Resume live updates')}
          onClick={onResume}
        >
          {trans.__('Resume')}
        </button>
      )}
      {onResume !== undefined && <SpokenPause paused={paused} />}
    </span>
  );
}

/** Announces that charts were paused or resumed. */
function SpokenPause({ paused }: { paused: readonly [from: string, to: string] | null }) {
  const wasPaused = useRef(false);
  wasPaused.current ||= paused !== null;
  return (
    <span class="gpumon-visually-hidden" role="status" aria-live="polite">
      {paused !== null
        ? trans.__('Charts paused: %1 to %2', ...paused)
        : wasPaused.current
          ? trans.__('Charts resumed')
          : ''}
    </span>
  );
}

function platformParts({ inventory }: Store): string[] {
  return inventory === null
    ? []
    : [plainText(inventory.hostname), ...describeVersions(inventory.platform)];
}

/**
 * Returns the versions of all drivers. If there are several drivers, the vendor precedes each
 * version.
 */
function describeVersions(platform: Platform): string[] {
  const drivers: Pick<Driver, 'vendor' | 'version' | 'cuda_version'>[] = platform.drivers ?? [
    { vendor: 'nvidia', version: platform.driver_version, cuda_version: platform.cuda_version },
  ];
  return drivers.flatMap(({ vendor, version, cuda_version }) => {
    const driver = plainText(valueOf(version) ?? '');
    const newestCuda = plainText(valueOf(cuda_version) ?? '');
    const name = findOwnProperty(VENDORS, vendor) ?? vendor;
    return [
      driver && (drivers.length === 1 ? trans.__('driver %1', driver) : `${name} ${driver}`),
      newestCuda && `CUDA ${newestCuda}`,
    ];
  });
}

/** Returns the selectable time range other than `minutes`, in minutes. There are only two. */
function otherTimeRangeMinutes(minutes: number): number {
  return minutes === SPANS_MIN[0] ? SPANS_MIN[1] : SPANS_MIN[0];
}
