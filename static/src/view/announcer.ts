/** Announces changes of state to screen readers. Values change every second, and are not announced. */

import { h, setText } from '../lib/dom';
import { table, trans } from '../lib/translation';
import { alertsOf, type Alert } from '../model/condition';
import { describeHealth } from '../model/describe';
import { firingAlerts } from '../model/firing-alert';
import type { GpuState } from '../model/gpu';
import type { Diagnosis } from '../model/store';
import type { Status, ConnectionState } from '../model/status';
import type { FiringAlert } from '../wire';
import { severityLabel } from './severity-icon';

/** A countdown would be announced every second, so the state alone is. */
const STATES = table((): Record<ConnectionState, string> => ({
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

export class Announcer {
  readonly element = h('div', {
    class: 'gpumon-visually-hidden',
    role: 'status',
    'aria-live': 'polite',
  });
  private state = '';
  private readonly health = new Map<number, string>();
  /** The alerts that have been announced, by GPU, and those of the machine. */
  private readonly announced = new Map<number | null, Set<string>>();

  update(
    status: Status,
    notice: Diagnosis | null,
    gpus: readonly GpuState[],
    firing: readonly FiringAlert[],
    now_ms: number,
  ): void {
    const messages: string[] = [];
    if (status.state !== this.state) {
      messages.push(STATES()[status.state], ...(notice === null ? [] : [notice.message]));
      this.state = status.state;
    }
    for (const gpu of gpus) {
      if (gpu.now === null) {
        continue;
      }
      const { health } = gpu.now;
      const before = this.health.get(gpu.index);
      this.health.set(gpu.index, health.state);
      if (before !== health.state && (before !== undefined || health.state !== 'ok')) {
        const text = describeHealth(health, now_ms)?.text ?? trans.__('responding again');
        messages.push(trans.__('GPU %1: %2', gpu.index, text));
      }
      const alerts = [...firingAlerts(firing, gpu.index, now_ms), ...alertsOf(gpu.now, now_ms)];
      messages.push(
        ...this.newAlerts(gpu.index, alerts, (text) => trans.__('GPU %1: %2', gpu.index, text)),
      );
    }
    messages.push(...this.newAlerts(null, firingAlerts(firing, null, now_ms), (text) => text));
    if (messages.length > 0) {
      setText(this.element, messages.join('. '));
    }
  }

  /** Warnings and critical alerts that have begun; notices are on the card alone. */
  private newAlerts(
    gpu: number | null,
    alerts: readonly Alert[],
    place: (text: string) => string,
  ): string[] {
    const serious = alerts.filter(({ level }) => level === 'warning' || level === 'critical');
    const before = this.announced.get(gpu);
    this.announced.set(gpu, new Set(serious.map(({ key }) => key)));
    return serious
      .filter(({ key }) => before?.has(key) !== true)
      .map(({ text, level }) => `${severityLabel(level)}${place(text)}`);
  }
}
