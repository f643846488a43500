import { describe, expect, it, beforeEach } from 'vitest';

import {
  GIB,
  makeGpu,
  NOW,
  makeThrottledCondition,
  makeUnifiedGpu,
  makeHello,
  makeInventory,
  makeSample,
} from '../testing/frames';
import type { Condition, GpuSample, FiringAlert } from '../wire';
import {
  listConditionAlerts,
  describeThrottling,
  worstLevel,
  severityLevel,
  firingAlerts,
  gpuAlerts,
} from './alerts';
import { eventRows } from './event';
import { gpusOf } from './gpu';
import { Store } from './store';

const xid: Condition = {
  condition: 'xid',
  code: 31,
  count: 3,
  last_ms: NOW - 1000,
  since_ms: NOW - 120_000,
  severity: 'warning',
  text: 'Xid 31: a program used an address that it may not use.',
};

describe('conditions of a GPU', () => {
  it('conditions are sorted by severity and age', () => {
    const notice: Condition = { ...xid, severity: 'notice' };
    const conditions = [
      notice,
      { ...notice, since_ms: NOW - 999_000 },
      xid,
      makeThrottledCondition('critical'),
    ];
    const shown = listConditionAlerts(makeGpu(0, { conditions }), NOW);
    expect(shown.map(({ level }) => level)).toEqual(['critical', 'warning', 'notice', 'notice']);
    expect(shown[2]?.key).toContain(String(NOW - 999_000));
  });

  it('control characters in conditions are replaced', () => {
    const unknown = {
      ...xid,
      condition: 'new kind',
      text: 'evil\u202e.ipynb holds it',
    } as unknown as Condition;
    const [shown] = listConditionAlerts(makeGpu(0, { conditions: [unknown] }), NOW);
    expect(shown?.text).toBe('evil\ufffd.ipynb holds it');
  });

  it('conditions have start time and repeat count', () => {
    const [shown] = listConditionAlerts(makeGpu(0, { conditions: [xid] }), NOW);
    expect(shown?.title.replaceAll('\u00a0', ' ')).toMatch(
      /^since \d\d:\d\d:\d\d, for 2 min; 3 times, last at \d\d:\d\d:\d\d$/,
    );
    const [once] = listConditionAlerts(
      makeGpu(0, { conditions: [makeThrottledCondition('warning')] }),
      NOW,
    );
    expect(once?.title).not.toContain('times');
  });

  it('nearly full unified memory adds advice', () => {
    const full: Condition = {
      condition: 'memory_nearly_full',
      free_bytes: GIB,
      total_bytes: 120 * GIB,
      since_ms: NOW,
      severity: 'critical',
      text: '',
    };
    const text = (now: GpuSample): string | undefined => listConditionAlerts(now, NOW)[0]?.text;
    expect(text(makeUnifiedGpu(0, 99, { conditions: [full] }))).toMatch(
      /^Memory nearly full: .* may fail\. The CPU uses the same memory: close other programs/,
    );
    expect(text(makeGpu(0, { conditions: [full] }))).toMatch(/may fail\.$/);
    expect(text(makeUnifiedGpu(0, 99, { conditions: [xid] }))).not.toContain('CPU');
  });

  it('ordinary throttling is not an alert', () => {
    const both = makeGpu(0, { conditions: [makeThrottledCondition('notice'), xid] });
    expect(listConditionAlerts(both, NOW)).toHaveLength(1);
    expect(describeThrottling(both, NOW)?.text).toBe('power-capped');
    expect(
      describeThrottling(makeGpu(0, { conditions: [makeThrottledCondition('warning')] }), NOW),
    ).toBeNull();
  });

  it('GPU without a sample has no alerts', () =>
    expect(listConditionAlerts(null, NOW)).toEqual([]));
});

it('notices do not count as worst level', () => {
  expect(worstLevel(['notice', 'none'])).toBeNull();
  expect(worstLevel(['notice', 'warning'])).toBe('warning');
  expect(worstLevel(['warning', 'critical'])).toBe('critical');
});

it('severity from a newer server is shown', () => {
  expect(severityLevel('unheard of' as Condition['severity'])).toBe('notice');
});

const GPU_ALERT: FiringAlert = {
  gpu: { index: 0, uuid: 'GPU-0' },
  rule: 'hot',
  severity: 'warning',
  since_ms: NOW - 60_000,
  text: 'Temperature 87 °C, above 85 °C',
};
const MACHINE_ALERT: FiringAlert = {
  ...GPU_ALERT,
  gpu: null,
  rule: 'ram',
  severity: 'critical',
  text: 'RAM 96 %, above 95 %',
};

let store: Store;
beforeEach(() => {
  store = new Store(() => NOW);
});

it('first and later frames update the firing alerts', () => {
  store.apply(makeHello({ alerts: [GPU_ALERT] }));
  expect(store.firing).toEqual([GPU_ALERT]);
  store.apply({ type: 'alerts', firing: [MACHINE_ALERT, GPU_ALERT] });
  expect(store.firing).toEqual([MACHINE_ALERT, GPU_ALERT]);
  store.apply(makeHello());
  expect(store.firing).toEqual([]);
});

it('firing alerts are selected by GPU or machine', () => {
  store.apply(makeHello({ alerts: [MACHINE_ALERT, GPU_ALERT] }));
  const gpus = gpusOf(store.inventory, store.sample, store.details);
  const texts = gpus.map((gpu) => gpuAlerts(gpu, [], store, NOW).map(({ text }) => text));
  expect(texts[0]).toEqual(['hot: Temperature 87 °C, above 85 °C']);
  expect(texts.slice(1).flat()).toEqual([]);
  const [alert] = firingAlerts(store.firing, null, NOW);
  expect(alert).toMatchObject({
    text: 'ram: RAM 96 %, above 95 %',
    short: 'ram',
    level: 'critical',
  });
});

it('silenced alert is marked', () => {
  const [alert] = firingAlerts([{ ...GPU_ALERT, silenced: true }], 0, NOW);
  expect(alert?.title).toMatch(/^since .*, for 1\smin\nsilenced$/);
});

it('event list has alert starts, ends, delivery problems', () => {
  const rows = eventRows(
    [
      { at_ms: NOW, what: 'alert_firing', ...GPU_ALERT },
      { at_ms: NOW + 1, what: 'alert_resolved', ...GPU_ALERT },
      {
        at_ms: NOW + 2,
        what: 'alert_problem',
        gpu: null,
        message: 'Alerts do not reach slack: status 503',
      },
    ],
    false,
  );
  expect(rows.map(({ gpu, text, level, resolved }) => [gpu, text, level, resolved])).toEqual([
    [null, 'Alerts do not reach slack: status 503', 'warning', false],
    [0, 'Resolved: alert hot: Temperature 87 °C, above 85 °C', 'none', true],
    [0, 'Alert hot: Temperature 87 °C, above 85 °C', 'warning', false],
  ]);
});

const FILLING_CONDITION: Condition = {
  condition: 'memory_filling',
  since_ms: NOW,
  severity: 'critical',
  text: '',
  left_ms: 29_000,
  bytes_per_second: GIB,
  growing: [],
};

it('forecast for unified memory advises closing other programs', () => {
  const titleOf = (now: GpuSample): string[] =>
    gpusOf(makeInventory(1), makeSample(NOW, [now])).flatMap((one) =>
      gpuAlerts(one, [], { memoryHorizon_ms: 60_000, firing: [] }, NOW).map(({ title }) => title),
    );
  const advice = /close other programs/;
  expect(titleOf(makeUnifiedGpu(0, 90, { conditions: [FILLING_CONDITION] }))[0]).toMatch(advice);
  expect(titleOf(makeGpu(0, { conditions: [FILLING_CONDITION] }))[0]).not.toMatch(advice);
});
