// @vitest-environment jsdom
import { h, render } from 'preact';
import { expect, it, vi } from 'vitest';

import '../../testing/dialog';
import { setTranslator, trans } from '../../lib/translation';
import { gpusOf } from '../../model/gpu';
import { Store } from '../../model/store';
import { pseudoTranslator, findUntranslated, textsOf } from '../../testing/pseudo-locale';
import { makeHello, NOW } from '../../testing/frames';
import { CATALOGUE, ITEMS, makeRunState, makeRequestMock } from '../../testing/runs';
import { RunEntry } from '../dialog-entries';

/** Texts that the server sends, and names. They are the same in every language. */
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

it('benchmark dialog is completely translated', async () => {
  setTranslator(pseudoTranslator(trans));
  const store = new Store();
  store.apply(makeHello());
  const states = [
    makeRunState({ items: ITEMS.length }),
    makeRunState({ run: 'r2', own: false, steps: 1, step: null, title: '' }),
    ...(['done', 'failed', 'canceled', 'lost'] as const).map((status) =>
      makeRunState({ run: status, status, title: '' }),
    ),
  ];
  for (const state of states) {
    store.apply({ type: 'run', ...state });
  }
  const request = makeRequestMock({
    'api/v1/catalogue': CATALOGUE,
    'api/v1/runs/r1': { ...makeRunState(), all: ITEMS },
  });
  const element = document.createElement('div');
  document.body.append(element);
  const show = (): void => {
    const props = {
      store,
      runner: { request, setRuns: vi.fn() },
      gpus: gpusOf(store.inventory, store.sample, store.details),
      freshness: { now_ms: NOW, stale: false },
      isOpen: true,
      onClose: vi.fn(),
    };
    render(h(RunEntry, props), element);
  };
  await vi.waitFor(() => {
    show();
    const rows = '.gpumon-run-table tbody tr, .gpumon-run-items > li';
    expect(element.querySelectorAll(rows)).toHaveLength(ITEMS.length);
  });
  expect(element.querySelectorAll('.gpumon-run')).toHaveLength(states.length);
  const choices = element.querySelectorAll<HTMLInputElement>('.gpumon-run > input');
  [...choices].slice(0, 2).forEach((choice) => {
    choice.click();
    show();
  });
  expect(element.querySelector('.gpumon-run-compared th')).not.toBeNull();
  expect(findUntranslated(textsOf(element), DATA)).toEqual([]);
});
