import type { Kernel } from '@jupyterlab/services';
import { describe, expect, it } from 'vitest';

import { findAccelerators, loadAccelerators } from './accelerators';

type KernelReply = Record<string, unknown>;

/**
 * Returns a kernel that answers its first request with the first of `replies`, and so on. Also
 * returns a list to which the kernel adds the requests that it receives.
 */
function makeKernel(
  language: string,
  ...replies: KernelReply[]
): { kernel: Kernel.IKernelConnection; asked: KernelReply[] } {
  const asked: KernelReply[] = [];
  const kernel = {
    info: Promise.resolve({ language_info: { name: language } }),
    requestExecute: (request: KernelReply) => {
      asked.push(request);
      return {
        done: Promise.resolve({ content: { status: 'ok', user_expressions: replies.shift() } }),
      };
    },
  };
  return { kernel: kernel as unknown as Kernel.IKernelConnection, asked };
}

const state = (text: string): KernelReply => ({ status: 'ok', data: { 'text/plain': text } });

describe('accelerators of a kernel', () => {
  it('accelerator query leaves no trace in the kernel', async () => {
    const { kernel, asked } = makeKernel('python', { state: state('[[1, 0, 1], [1, 1, 1]]') });
    expect(await findAccelerators(kernel)).toEqual([
      { name: 'cudf.pandas', library: 'pandas', isOn: false, isLate: true },
      { name: 'cuml.accel', library: 'scikit-learn', isOn: true, isLate: false },
    ]);
    expect(asked[0]).toMatchObject({
      code: '',
      silent: true,
      store_history: false,
      stop_on_error: false,
    });
  });

  it('unreadable reply yields no accelerators', async () => {
    expect(
      await findAccelerators(
        makeKernel('python', { state: state('[[0, 0, 1], [0, 0, 0]]') }).kernel,
      ),
    ).toEqual([]);
    expect(
      await findAccelerators(makeKernel('python', { state: { status: 'error' } }).kernel),
    ).toEqual([]);
    expect(await findAccelerators(makeKernel('python', {}).kernel)).toEqual([]);
  });

  it('kernel of another language is not queried', async () => {
    const { kernel, asked } = makeKernel('julia');
    expect(await findAccelerators(kernel)).toEqual([]);
    expect(asked).toEqual([]);
  });
});

describe('loading accelerators', () => {
  it('inactive accelerators load in order and report failures', async () => {
    const { kernel, asked } = makeKernel('python', {
      'cudf.pandas': state("'no load function'"),
      'cuml.accel': { status: 'error', ename: 'RuntimeError', evalue: 'no CUDA device' },
      state: state('[[1, 0, 0], [1, 0, 0]]'),
    });
    const off = { library: '', isOn: false, isLate: false };
    const { failures } = await loadAccelerators(kernel, [
      { ...off, name: 'cudf.pandas' },
      { ...off, name: 'cuml.accel' },
      { ...off, name: 'other', isOn: true },
    ]);
    expect(Object.keys(asked[0]?.user_expressions as KernelReply)).toEqual([
      'cudf.pandas',
      'cuml.accel',
      'state',
    ]);
    expect(failures).toEqual([
      "cudf.pandas: 'no load function'",
      'cuml.accel: RuntimeError: no CUDA device',
    ]);
  });
});
