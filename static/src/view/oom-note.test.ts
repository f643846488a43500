// @vitest-environment jsdom
import { expect, it, vi } from 'vitest';

import { setTranslator, trans } from '../lib/translation';
import { describeOom } from '../model/describe-oom';
import { parseOomError } from '../model/oom-error';
import { Store } from '../model/store';
import { GIB, makeGpu, makeHello, NOW, makeProcess, makeSample } from '../testing/frames';
import { pseudoTranslator, textsOf, findUntranslated } from '../testing/pseudo-locale';
import { OomNote } from './oom-note';

const notebook = { kernel_id: 'k', kernel_pid: 10, path: 'train.ipynb' };
const holders = [
  makeProcess(10, { owner: { parents: [], notebook }, memory_bytes: 70 * GIB }),
  makeProcess(11, { memory_bytes: 5 * GIB }),
];

function makeNote(pathOf: (kernelId: string) => string | null, openMenu = vi.fn()): OomNote {
  const store = new Store();
  store.apply(makeHello());
  const error = parseOomError({
    ename: 'OutOfMemoryError',
    evalue:
      'CUDA out of memory. Tried to allocate 20.00 GiB. ' +
      'GPU 0 has a total capacity of 139.80 GiB of which 1.00 GiB is free.',
    traceback: [],
  });
  const note = new OomNote({ pathOf, open: vi.fn(), openMenu });
  const description =
    error &&
    describeOom(error, {
      inventory: store.inventory,
      sample: makeSample(NOW, [makeGpu(0, { processes: holders })]),
      kernelId: 'k',
      pathOf,
    });
  if (description === null) {
    throw new Error('this error is about the memory of a GPU');
  }
  note.update(description);
  return note;
}

it('only notebooks of this JupyterLab have menus', () => {
  const openMenu = vi.fn();
  const { element } = makeNote(() => 'train.ipynb', openMenu);
  expect(element.querySelectorAll('li')).toHaveLength(2);
  const menu = element.querySelector('button');
  menu?.click();
  expect(openMenu).toHaveBeenCalledWith('k', menu);
  expect(element.querySelectorAll('li span')).toHaveLength(1);
});

it('out-of-memory note is completely translated', () => {
  const before = trans;
  setTranslator(pseudoTranslator(trans));
  const texts = textsOf(makeNote(() => 'train.ipynb').element);
  expect(texts.length).toBeGreaterThan(6);
  expect(findUntranslated(texts, ['PyTorch', 'python3', 'train.py', 'train.ipynb', 'ana'])).toEqual(
    [],
  );
  setTranslator(before);
});
