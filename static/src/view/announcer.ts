/** Tells a screen reader when a state has changed. Values change every second, and are not told. */

import { h, setText } from '../lib/dom';
import { table, trans } from '../lib/translation';
import { concernsOf } from '../model/condition';
import { describeHealth } from '../model/describe';
import type { GpuView } from '../model/gpu';
import type { Diagnosis } from '../model/store';
import type { Status, ViewState } from '../model/status';
import { spokenSeverity } from './severity-icon';

/** A countdown would be told every second: the state alone is. */
const STATES = table((): Record<ViewState, string> => ({
  connecting: trans.__('gpumon: connecting'),
  live: trans.__('gpumon: live'),
  stale: trans.__('gpumon: stale'),
  reconnecting: trans.__('gpumon: reconnecting'),
  'collector-starting': trans.__('gpumon: collector starting'),
  'collector-restarting': trans.__('gpumon: collector restarting'),
  'collector-unavailable': trans.__('gpumon: collector unavailable'),
  'collector-paused': trans.__('gpumon: collector paused'),
}));

export class Announcer {
  readonly element = h('div', { class: 'gpumon-spoken', role: 'status', 'aria-live': 'polite' });
  private state = '';
  private readonly health = new Map<number, string>();
  /** The conditions that have been told, by GPU. */
  private readonly told = new Map<number, Set<string>>();

  update(status: Status, notice: Diagnosis | null, gpus: readonly GpuView[], now_ms: number): void {
    const news: string[] = [];
    if (status.state !== this.state) {
      news.push(STATES()[status.state], ...(notice === null ? [] : [notice.message]));
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
        news.push(trans.__('GPU %1: %2', gpu.index, text));
      }
      news.push(...this.newConcerns(gpu, now_ms));
    }
    if (news.length > 0) {
      setText(this.element, news.join('. '));
    }
  }

  /** Warnings and worse that have begun; notices are found on the card by who looks for them. */
  private newConcerns(gpu: GpuView, now_ms: number): string[] {
    const grave = concernsOf(gpu.now, now_ms).filter(({ level }) => level === 'warn' || level === 'act');
    const before = this.told.get(gpu.index);
    this.told.set(gpu.index, new Set(grave.map(({ key }) => key)));
    return grave
      .filter(({ key }) => before?.has(key) !== true)
      .map(({ text, level }) => `${spokenSeverity(level)}${trans.__('GPU %1: %2', gpu.index, text)}`);
  }
}
