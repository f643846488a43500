import { describe, expect, it } from 'vitest';

import { GIB, makeGpu, makeInventory, NOW, makeProcess, makeSample } from '../testing/frames';
import type { Condition } from '../wire';
import { listConditionAlerts } from './alerts';
import { gpusOf } from './gpu';
import { ColorSlots } from './color-slots';
import { holderRows } from './holders';
import { describeForecast, forecastOf, type Forecast } from './memory';

/**
 * Returns a condition which states that the memory will be full in `left_s` seconds. `growth`
 * contains the growth of each process by PID, in GiB per second.
 */
function fillingCondition(
  left_s: number,
  gib_per_s: number,
  growth: Record<number, number> = {},
): Condition {
  const growing = Object.entries(growth).map(([pid, gib]) => ({
    pid: Number(pid),
    bytes_per_second: gib * GIB,
  }));
  return {
    condition: 'memory_filling',
    since_ms: NOW,
    severity: left_s < 60 ? 'critical' : 'warning',
    text: 'Memory full soon.',
    left_ms: left_s * 1000,
    bytes_per_second: gib_per_s * GIB,
    growing,
  };
}

function makeForecast(condition: Condition): Forecast | null {
  const processes = ['train', 'eval', 'other'].map((name, i) =>
    makeProcess(i + 1, { name, memory_bytes: (9 - i) * GIB }),
  );
  const gpus = gpusOf(
    makeInventory(1),
    makeSample(NOW, [makeGpu(0, { processes, conditions: [condition] })]),
  );
  const rows = holderRows(gpus, new ColorSlots()).filter((row) => row.kind === 'holder');
  const [only] = gpus;
  return only === undefined ? null : forecastOf(only, rows, 5 * 60_000);
}

function forecastText(condition: Condition): string | undefined {
  const found = makeForecast(condition);
  return found === null
    ? undefined
    : describeForecast(found, (row) => row.processes[0].name as string).text.replaceAll(
        '\u00a0',
        ' ',
      );
}

describe('memory forecast', () => {
  it('forecast has time and severity', () => {
    expect(forecastText(fillingCondition(38, 1.6))).toBe(
      'Memory full in about 40 s: grows 1.60 GiB/s',
    );
    const level = (left_s: number): string | undefined => {
      const found = makeForecast(fillingCondition(left_s, 1));
      return found === null ? undefined : describeForecast(found).level;
    };
    expect([level(38), level(120), level(400)]).toEqual(['critical', 'warning', undefined]);
  });

  it('forecast names fastest growing holders', () => {
    expect(forecastText(fillingCondition(38, 1.6, { 1: 1.6, 3: 0.1 }))).toBe(
      'Memory full in about 40 s: train grows 1.60 GiB/s',
    );
    expect(forecastText(fillingCondition(38, 1.6, { 2: 0.4, 1: 0.9, 3: 0.3 }))).toBe(
      'Memory full in about 40 s: train grows 0.90 GiB/s, eval 0.40 GiB/s',
    );
    expect(forecastText(fillingCondition(38, 1.6, { 99: 1.6 }))).toBe(
      'Memory full in about 40 s: grows 1.60 GiB/s',
    );
    expect(forecastText(fillingCondition(4, 15, { 1: 15 }))).toBe(
      'Memory full: train grew 15.0 GiB/s',
    );
    expect(forecastText(fillingCondition(4, 15))).toBe('Memory full: grew 15.0 GiB/s');
  });

  it('memory forecast is not listed as an alert', () =>
    expect(listConditionAlerts(makeGpu(0, { conditions: [fillingCondition(38, 1)] }), NOW)).toEqual(
      [],
    ));
});
