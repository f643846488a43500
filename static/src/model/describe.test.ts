import { expect, it } from 'vitest';

import { NOW } from '../testing/frames';
import { describeAbsence, describeClock, describeHealth } from './describe';

it('only ordinary reasons for reduced clocks are described', () => {
  expect(describeClock(['hw_thermal_slowdown', 'sw_power_cap'])).toBeNull();
  expect(describeClock(['sw_power_cap', 'gpu_idle'])?.text).toBe('idle');
  expect(describeClock(['gpu_idle', 'applications_clocks_setting'])?.text).toBe(
    'application clocks',
  );
});

it('failed GPU shows meaning and fix', () => {
  const failed = {
    state: 'failed',
    since_ms: NOW,
    reason: { absent: 'driver_error', code: 999 },
  } as const;
  const explained = {
    ...failed,
    meaning: 'unknown error (NVML error 999)',
    advice: 'restart the container',
  };
  expect(describeHealth(explained, NOW)?.text).toMatch(
    /^cannot be read since [\d:]+: unknown error \(NVML error 999\); restart the container$/,
  );
  expect(describeHealth({ ...failed, meaning: '', advice: '' }, NOW)?.text).toMatch(
    /: driver error 999$/,
  );
});

it('suspended GPU needs no action', () => {
  expect(describeAbsence({ absent: 'asleep' })).toBe('asleep to save power');
  const words = describeHealth({ state: 'asleep', since_ms: NOW }, NOW);
  expect(words?.level).toBe('none');
  expect(words?.text).toMatch(/^asleep since \d\d:\d\d:\d\d$/);
});
