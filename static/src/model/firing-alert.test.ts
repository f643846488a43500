import { beforeEach, expect, it } from 'vitest';

import { makeHello, NOW } from '../testing/frames';
import type { FiringAlert } from '../wire';
import { eventRows } from './event';
import { firingAlerts } from './firing-alert';
import { gpuAlerts } from './gpu-alerts';
import { gpusOf } from './gpu';
import { Store } from './store';

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

it('firing alerts come from first and later frames', () => {
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

it('alert start, end and delivery problems become events', () => {
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
