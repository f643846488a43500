import { describe, expect, it } from 'vitest';

import {
  GIB,
  makeGpu,
  makeInventory,
  makeMigDevice,
  NOW,
  makeProcess,
  makeSample,
  makeUnifiedGpu,
} from '../testing/frames';
import type { GpuSample, Process, Sample } from '../wire';
import { selectSampleWithMoreMemory, describeOom, type OomDescription } from './describe-oom';
import type { OomError } from './oom-error';

const ERROR: OomError = {
  framework: 'PyTorch',
  asked_bytes: 20 * GIB,
  free_bytes: null,
  total_bytes: null,
  gpu: 0,
  unused_bytes: null,
  limit_bytes: null,
  says_gpu: true,
};

function notebookProcess(kernel_id: string, memorySize: number): Process {
  const owner = {
    parents: [],
    notebook: { kernel_id, kernel_pid: 10, path: `${kernel_id}.ipynb` },
  };
  return makeProcess(kernel_id.charCodeAt(0), { owner, memory_bytes: memorySize * GIB });
}

function gpuWithProcesses(
  index: number,
  free_gib: number,
  processes: Process[],
  changes: Partial<GpuSample> = {},
): GpuSample {
  return makeGpu(index, {
    processes,
    memory: { ...makeGpu(index).memory, free_bytes: free_gib * GIB },
    ...changes,
  });
}

function explain(
  error: Partial<OomError>,
  gpus: GpuSample[] | null,
  kernelId = 'train',
): OomDescription | null {
  const pathOf = (id: string): string | null => (id === 'foreign' ? null : `now ${id}.ipynb`);
  const now: Sample | null = gpus === null ? null : makeSample(NOW, gpus);
  const explanation = describeOom(
    { ...ERROR, ...error },
    { inventory: makeInventory(gpus?.length ?? 0), sample: now, kernelId, pathOf },
  );
  return explanation === null
    ? null
    : { ...explanation, text: explanation.text.replaceAll('\u00a0', ' ') };
}

describe('out-of-memory explanation', () => {
  const bob = makeProcess(5, {
    memory_bytes: 4.8 * GIB,
    name: 'vllm',
    user: 'bob',
    command: 'vllm serve big',
  });
  const one = gpuWithProcesses(0, 12, [
    bob,
    notebookProcess('train', 40),
    notebookProcess('eval', 61),
    notebookProcess('foreign', 0.5),
  ]);

  it('explanation has requested, free and used memory', () => {
    const explanation = explain({}, [one]);
    expect(explanation?.text).toBe(
      'PyTorch requested 20.0 GiB of GPU memory with 12.0 GiB of 140 GiB free on GPU 0.',
    );
    expect(explanation?.title).toMatch(
      /^Free memory: from the driver at \d\d:42:07\.\nProcesses: from the driver/,
    );
    expect(
      explanation?.holders.map(({ text, kernelId }) => [text.replaceAll('\u00a0', ' '), kernelId]),
    ).toEqual([
      ['now eval.ipynb 61.0 GiB', 'eval'],
      ['this notebook 40.0 GiB', 'train'],
      ['vllm (bob) 4.80 GiB', null],
      ['foreign.ipynb (ana) 512 MiB', null],
    ]);
    expect(explanation?.holders[2]?.title).toBe('vllm serve big (PID 5)');
  });

  it('memory in error message overrides driver readings', () => {
    const explanation = explain({ free_bytes: 0, total_bytes: 139 * GIB }, [one]);
    expect(explanation?.text).toBe(
      'PyTorch requested 20.0 GiB of GPU memory with 0 MiB of 139 GiB free on GPU 0.',
    );
    expect(explanation?.title).toContain('Free memory: from the error message.');
  });

  it('explanation works without readings', () => {
    expect(explain({}, null)).toEqual({
      text: 'PyTorch requested 20.0 GiB of GPU memory.',
      title: '',
      holders: [],
      notes: [],
    });
    expect(explain({ asked_bytes: null }, null)?.text).toBe('PyTorch ran out of GPU memory.');
  });

  it('GPU that the notebook uses is explained', () => {
    const explanation = explain({ gpu: 0 }, [
      gpuWithProcesses(0, 90, [notebookProcess('eval', 5)]),
      gpuWithProcesses(1, 3, [notebookProcess('train', 61)]),
    ]);
    expect(explanation?.text).toContain('3.00 GiB of 140 GiB free on GPU 1');
  });

  it('explanation names no GPU if several are full', () => {
    const both = (free_a: number, free_b: number): OomDescription | null =>
      explain({}, [
        gpuWithProcesses(0, free_a, [notebookProcess('train', 5)]),
        gpuWithProcesses(1, free_b, [notebookProcess('train', 61)]),
      ]);
    expect(both(90, 3)?.text).toContain('on GPU 1');
    expect(both(2, 3)).toMatchObject({
      text: 'PyTorch requested 20.0 GiB of GPU memory.',
      holders: [],
    });
    const explanation = explain({ gpu: 1, free_bytes: GIB, total_bytes: 16 * GIB }, [
      gpuWithProcesses(0, 9, []),
      gpuWithProcesses(1, 9, []),
    ]);
    expect(explanation?.text).toContain('with 1.00 GiB of 16.0 GiB free on its GPU 1.');
    expect(both(90, 80)).toMatchObject({
      text: 'PyTorch requested 20.0 GiB of GPU memory.',
      holders: [],
    });
  });

  it('GPU with MIG devices is not explained', () =>
    expect(
      explain({}, [
        gpuWithProcesses(0, 3, [notebookProcess('train', 5)], { mig_devices: [makeMigDevice(0)] }),
      ])?.holders,
    ).toEqual([]));

  it('ambiguous error is explained if kernel uses GPU', () => {
    expect(
      explain({ framework: 'JAX', says_gpu: false }, [
        gpuWithProcesses(0, 90, [notebookProcess('eval', 5)]),
      ]),
    ).toBeNull();
    expect(explain({ framework: 'JAX', says_gpu: false }, [one])?.notes).toEqual([
      'JAX reserves GPU memory at startup and allocates from it, not from the free memory.',
    ]);
  });

  it('small processes are summed, unusable memory is explained', () => {
    const many = 'abcdef'.split('').map((name, i) => notebookProcess(name, 10 - i));
    const explanation = explain({ unused_bytes: 30 * GIB, limit_bytes: 8 * GIB }, [
      gpuWithProcesses(0, 90, many),
    ]);
    expect(explanation?.holders).toHaveLength(5);
    expect(explanation?.holders[4]).toMatchObject({ text: '2 more 11.0\u00a0GiB', kernelId: null });
    expect(explanation?.notes.map((note) => note.replaceAll('\u00a0', ' '))).toEqual([
      'PyTorch is limited to 8.00 GiB in this process.',
      'PyTorch reserves 30.0 GiB that it does not use: too fragmented for this request, and not available to other processes.',
    ]);
    expect(explain({ unused_bytes: GIB }, [one])?.notes).toEqual([]);
  });
});

it('unified memory is explained with the system', () => {
  const description = explain({}, [
    makeUnifiedGpu(0, 85, { processes: [notebookProcess('train', 85)] }),
  ]);
  expect(description?.text).toContain('with 15.0 GiB of 120 GiB free on GPU 0.');
  expect(description?.title).toMatch(/^Free memory: available system memory at /);
  expect(description?.holders.at(-1)).toMatchObject({
    text: 'rest of the system 20.0\u00a0GiB',
    kernelId: null,
  });
  expect(description?.notes.map((note) => note.replaceAll('\u00a0', ' '))).toEqual([
    'Unified memory, shared with the CPU: ' +
      '85.0 GiB used by the GPU, 20.0 GiB by the rest of the system, 15.0 GiB available.',
    'PyTorch may get less than the available memory, because the system does not free all caches for it.',
    expect.stringMatching(/close other programs.*swap/),
    expect.stringMatching(/may end a process/),
  ]);
});

it('sample with higher memory of kernel is chosen', () => {
  const at = (memorySize: number): Sample =>
    makeSample(NOW, [gpuWithProcesses(0, 3, [notebookProcess('train', memorySize)])]);
  const [less, more] = [at(10), at(61)];
  expect(selectSampleWithMoreMemory(less, more, 'train')).toBe(more);
  expect(selectSampleWithMoreMemory(more, less, 'train')).toBe(more);
  expect(selectSampleWithMoreMemory(null, less, 'train')).toBe(less);
});
