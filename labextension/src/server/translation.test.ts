// @vitest-environment jsdom
import { expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: { makeSettings: vi.fn() } }));

import type { ServerConnection } from '@jupyterlab/services';
import { TranslationManager } from '@jupyterlab/translation';

import { formatMemorySize } from '../../../static/src/lib/format';
import { trans } from '../../../static/src/lib/translation';
import { createFeedAndSetLanguage } from './stream';

/** A Polish catalog in the format of `msgfmt`. Polish has three plural forms. */
const POLISH = {
  '': {
    domain: 'gpumon',
    language: 'pl',
    version: '1',
    plural_forms:
      'nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);',
  },
  'of %1 core': ['z %1 rdzenia', 'z %1 rdzeni', 'z %1 rdzeni w sumie'],
  'GPU %1: %2': ['%2 (GPU %1)'],
};

const say = (count: number): string => trans._n('of %1 core', 'of %1 cores', count);

it('view texts use language and plurals of JupyterLab', async () => {
  expect([1, 2, 5].map(say)).toEqual(['of 1 core', 'of 2 cores', 'of 5 cores']);
  const connector = { fetch: () => Promise.resolve({ data: { gpumon: POLISH }, message: '' }) };
  const manager = new TranslationManager('', '', undefined, connector as never);
  await manager.fetch('pl');
  createFeedAndSetLanguage(
    {} as ServerConnection.ISettings,
    manager.load('gpumon'),
    manager.languageCode,
  );
  expect(formatMemorySize(4.81 * 2 ** 30)).toBe('4,81\u00a0GiB');
  expect([1, 2, 5].map(say)).toEqual(['z 1 rdzenia', 'z 2 rdzeni', 'z 5 rdzeni w sumie']);
  expect(trans.__('GPU %1: %2', 0, 'zgubione')).toBe('zgubione (GPU 0)');
  // A text without a translation is shown in English.
  expect(trans.__('asleep since %1', '10:42')).toBe('asleep since 10:42');
});
