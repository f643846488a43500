// @vitest-environment jsdom
import { expect, it, vi } from 'vitest';

import '../../testing/dialog';
import { setTranslator, trans } from '../../lib/translation';
import { gpusOf } from '../../model/gpu';
import { Store } from '../../model/store';
import { pseudoTranslator, untranslated, textsOf } from '../../testing/pseudo-locale';
import { hello, NOW } from '../../testing/frames';
import { CATALOGUE, ITEMS, runState, serverWith } from '../../testing/runs';
import { RunEntry } from '../run-entry';

/** What a server says, and names. */
const DATA = [
  'triad',
  'CSV',
  'JSON',
  'Does it.',
  'Copies it.',
  'Sums it.',
  'a: sum',
  'H200',
  'fp32',
  'copy',
  'too large',
  'Do this.',
  'NVIDIA',
  'memory',
];

it('the dialog has no English word in another language, whatever there is to say', async () => {
  setTranslator(pseudoTranslator(trans));
  const store = new Store();
  store.apply(hello());
  const states = [
    runState({ items: ITEMS.length }),
    runState({ run: 'r2', own: false, steps: 1, step: null, title: '' }),
    ...(['done', 'failed', 'canceled', 'lost'] as const).map((status) =>
      runState({ run: status, status, title: '' }),
    ),
  ];
  for (const state of states) {
    store.apply({ type: 'run', ...state });
  }
  const request = serverWith({
    'api/v1/catalogue': CATALOGUE,
    'api/v1/runs/r1': { ...runState(), all: ITEMS },
  });
  const entry = new RunEntry(store, { request, setRuns: vi.fn() }, () => undefined);
  entry.button.click();
  await vi.waitFor(() => {
    entry.render(gpusOf(store.inventory, store.sample, store.details), {
      now_ms: NOW,
      stale: false,
    });
    expect(
      entry.element.querySelectorAll('.gpumon-run-table tbody tr, .gpumon-run-items > li'),
    ).toHaveLength(ITEMS.length);
  });
  expect(entry.element.querySelectorAll('.gpumon-run')).toHaveLength(states.length);
  for (const choice of [
    ...entry.element.querySelectorAll<HTMLInputElement>('.gpumon-run > input'),
  ].slice(0, 2)) {
    choice.checked = true;
  }
  entry.render(gpusOf(store.inventory, store.sample, store.details), { now_ms: NOW, stale: false });
  expect(entry.element.querySelector('.gpumon-run-compared th')).not.toBeNull();
  expect(untranslated([...textsOf(entry.element), ...textsOf(entry.button)], DATA)).toEqual([]);
});
