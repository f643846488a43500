/** Alerts: a list, icons, a notice of a problem, and announcements for screen readers. */

import { lazyTexts, trans } from '../lib/translation';
import type { Alert } from '../model/alerts';
import { describeHealth } from '../model/describe';
import type { GpuState } from '../model/gpu';
import type { ConnectionState, Status } from '../model/status';
import type { Diagnosis } from '../model/store';

const LABELS = lazyTexts((): Partial<Record<string, string>> => ({
  critical: trans.__('Critical:'),
  warning: trans.__('Warning:'),
  notice: trans.__('Notice:'),
}));

/**
 * Returns the text that screen readers read instead of the icon. Without a severity, the text is
 * empty.
 */
export function severityLabel(level: string): string {
  const label = LABELS()[level];
  return label === undefined ? '' : `${label} `;
}

/**
 * The icon of a severity: an octagon, a triangle or a disc, so that levels differ by more than
 * color. The nearest parent with `data-level` determines its shape and color.
 */
export function SeverityIcon() {
  return <span class="gpumon-severity-icon" aria-hidden="true" />;
}

/** Shows one line for each alert, the most severe first. */
export function AlertList({ alerts }: { alerts: readonly Alert[] }) {
  return (
    <ul class="gpumon-alerts">
      {alerts.map(({ key, level, title, text }) => (
        <li class="gpumon-alert" key={key} data-level={level} title={title}>
          <SeverityIcon />
          <span class="gpumon-alert-text">
            <span class="gpumon-visually-hidden">{severityLabel(level)}</span>
            {text}
            <span class="gpumon-visually-hidden">{` (${title})`}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

/**
 * The announced texts of the connection states. They omit the countdown, which would be announced
 * every second.
 */
const STATES = lazyTexts((): Record<ConnectionState, string> => ({
  connecting: trans.__('gpumon: connecting'),
  live: trans.__('gpumon: live'),
  replay: trans.__('gpumon: recording'),
  stale: trans.__('gpumon: stale'),
  reconnecting: trans.__('gpumon: reconnecting'),
  'collector-starting': trans.__('gpumon: collector starting'),
  'collector-restarting': trans.__('gpumon: collector restarting'),
  'collector-unavailable': trans.__('gpumon: collector unavailable'),
  'collector-paused': trans.__('gpumon: collector paused'),
}));

/**
 * Creates the texts that screen readers announce when a state changes. Values change every second,
 * so they are not announced.
 */
export class Announcer {
  private text = '';
  private state = '';
  private readonly health = new Map<number, string>();
  /** The keys of announced alerts by GPU; `null` stands for the machine. */
  private readonly announced = new Map<number | null, Set<string>>();

  /**
   * Returns the newest announcement. `alerts` contains the alerts by GPU; those of the machine have
   * the key `null`.
   */
  update(
    status: Status,
    notice: Diagnosis | null,
    gpus: readonly GpuState[],
    alerts: ReadonlyMap<number | null, readonly Alert[]>,
    now_ms: number,
  ): string {
    const messages: string[] = [];
    if (status.state !== this.state) {
      messages.push(STATES()[status.state], ...(notice === null ? [] : [notice.message]));
      this.state = status.state;
    }
    for (const { index, now } of gpus) {
      if (now === null) {
        continue;
      }
      const inGpu = (text: string): string => trans.__('GPU %1: %2', index, text);
      const before = this.health.get(index);
      const { state } = now.health;
      this.health.set(index, state);
      if (before !== state && (before !== undefined || state !== 'ok')) {
        const health = describeHealth(now.health, now_ms);
        messages.push(inGpu(health?.text ?? trans.__('responding again')));
      }
      messages.push(...this.newAlerts(index, alerts.get(index) ?? [], inGpu));
    }
    messages.push(...this.newAlerts(null, alerts.get(null) ?? [], (text) => text));
    if (messages.length > 0) {
      this.text = messages.join('. ');
    }
    return this.text;
  }

  /**
   * Returns the new alerts of level `warning` or `critical` as text. Health and forecast are
   * excluded, because they are announced separately.
   */
  private newAlerts(
    gpu: number | null,
    alerts: readonly Alert[],
    inPlace: (text: string) => string,
  ): string[] {
    const serious = alerts.filter(
      ({ key, level }) =>
        (level === 'warning' || level === 'critical') && key !== 'health' && key !== 'forecast',
    );
    const before = this.announced.get(gpu);
    this.announced.set(gpu, new Set(serious.map(({ key }) => key)));
    return serious
      .filter(({ key }) => before?.has(key) !== true)
      .map(({ text, level }) => `${severityLabel(level)}${inPlace(text)}`);
  }
}

/** A notice that explains a problem and how to fix it. */
export function Notice({ notice, level }: { notice: Diagnosis | null; level: Status['level'] }) {
  return (
    <section
      class="gpumon-notice"
      data-testid="gpumon-notice"
      hidden={notice === null}
      data-level={level}
    >
      <h2>{notice?.title}</h2>
      <p>{notice?.message}</p>
      {notice?.command !== undefined && (
        <pre class="gpumon-command" tabIndex={0}>
          {notice.command}
        </pre>
      )}
    </section>
  );
}
