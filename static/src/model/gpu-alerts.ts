/** The state of a GPU as text: its alerts as sentences, and the most severe one in a few words. */

import { joinParts } from '../lib/text';
import type { FiringAlert } from '../wire';
import { firingAlerts } from './firing-alert';
import type { GpuState } from './gpu';
import { listConditionAlerts, describeThrottling, sortBySeverity, type Alert } from './condition';
import { describeClock, describeHealth, type Description } from './describe';
import type { HolderRow } from './holders';
import { describeForecast, forecastOf, summarizeFilling } from './memory-forecast';
import { unifiedAdvice } from './memory';
import { valueOf } from './reading';

/** The values, apart from the GPU's own, that its alerts depend on. */
interface AlertContext {
  memoryHorizon_ms: number;
  firing: readonly FiringAlert[];
}

/** Returns the alerts of a GPU, the most severe first. `rows` are its holders. */
export function gpuAlerts(
  gpu: GpuState,
  rows: readonly HolderRow[],
  known: AlertContext,
  now_ms: number,
): Alert[] {
  const { now } = gpu;
  const health = now === null ? null : describeHealth(now.health, now_ms);
  const forecast = forecastOf(gpu, rows, known.memoryHorizon_ms);
  const foreseen = forecast && describeForecast(forecast);
  return sortBySeverity([
    ...(health === null ? [] : [{ ...health, key: 'health' }]),
    ...(forecast === null || foreseen === null
      ? []
      : [
          {
            ...foreseen,
            title: joinParts([foreseen.title, ...unifiedAdvice(now)], '\n'),
            short: summarizeFilling(forecast.left_ms),
            key: 'forecast',
          },
        ]),
    ...firingAlerts(known.firing, gpu.index, now_ms),
    ...listConditionAlerts(now, now_ms),
  ]);
}

/**
 * Returns the most severe alert in a few words, or the reason for reduced clocks. The title has the
 * details.
 */
export function summarizeState(
  gpu: GpuState,
  alerts: readonly Alert[],
  now_ms: number,
): Description {
  const [worst] = alerts;
  if (worst !== undefined) {
    const title = alerts.map(({ text, title }) => joinParts([text, title], '\n')).join('\n\n');
    return { text: worst.short, title, level: worst.level };
  }
  const { now } = gpu;
  const reasons = now?.health.state === 'ok' ? valueOf(now.throttle_reasons) : null;
  const clocks = describeThrottling(now, now_ms) ?? describeClock(reasons ?? []);
  return { text: clocks?.text ?? '', title: clocks?.title ?? '', level: 'none' };
}
