import { describe, expect, it } from 'vitest';

import {
  GIB,
  gpu,
  inventory,
  migDevice,
  NOW,
  process,
  sample,
  makeUnifiedGpu,
} from '../testing/frames';
import type { GpuSample, Process, Sample } from '../wire';
import { fullerSample, describeOom, type OomDescription } from './describe-oom';
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

function notebook(kernel_id: string, memorySize: number): Process {
  const owner = {
    parents: [],
    notebook: { kernel_id, kernel_pid: 10, path: `${kernel_id}.ipynb` },
  };
  return process(kernel_id.charCodeAt(0), { owner, memory_bytes: memorySize * GIB });
}

function held(
  index: number,
  free_gib: number,
  processes: Process[],
  changes: Partial<GpuSample> = {},
): GpuSample {
  return gpu(index, {
    processes,
    memory: { ...gpu(index).memory, free_bytes: free_gib * GIB },
    ...changes,
  });
}

function words(
  error: Partial<OomError>,
  gpus: GpuSample[] | null,
  kernelId = 'train',
): OomDescription | null {
  const pathOf = (id: string): string | null => (id === 'foreign' ? null : `now ${id}.ipynb`);
  const now: Sample | null = gpus === null ? null : sample(NOW, gpus);
  const told = describeOom(
    { ...ERROR, ...error },
    { inventory: inventory(gpus?.length ?? 0), sample: now, kernelId, pathOf },
  );
  return told === null ? null : { ...told, text: told.text.replaceAll('\u00a0', ' ') };
}

describe('out-of-memory explanation', () => {
  const bob = process(5, {
    memory_bytes: 4.8 * GIB,
    name: 'vllm',
    user: 'bob',
    command: 'vllm serve big',
  });
  const one = held(0, 12, [
    bob,
    notebook('train', 40),
    notebook('eval', 61),
    notebook('foreign', 0.5),
  ]);

  it('explanation has requested, free and used memory', () => {
    const told = words({}, [one]);
    expect(told?.text).toBe(
      'PyTorch requested 20.0 GiB of GPU memory with 12.0 GiB of 140 GiB free on GPU 0.',
    );
    expect(told?.title).toMatch(
      /^Free memory: from the driver at \d\d:42:07\.\nProcesses: from the driver/,
    );
    expect(
      told?.holders.map(({ text, kernelId }) => [text.replaceAll('\u00a0', ' '), kernelId]),
    ).toEqual([
      ['now eval.ipynb 61.0 GiB', 'eval'],
      ['this notebook 40.0 GiB', 'train'],
      ['vllm (bob) 4.80 GiB', null],
      ['foreign.ipynb (ana) 512 MiB', null],
    ]);
    expect(told?.holders[2]?.title).toBe('vllm serve big (PID 5)');
  });

  it('error message has priority over the driver', () => {
    const told = words({ free_bytes: 0, total_bytes: 139 * GIB }, [one]);
    expect(told?.text).toBe(
      'PyTorch requested 20.0 GiB of GPU memory with 0 MiB of 139 GiB free on GPU 0.',
    );
    expect(told?.title).toContain('Free memory: from the error message.');
  });

  it('explanation works without readings', () => {
    expect(words({}, null)).toEqual({
      text: 'PyTorch requested 20.0 GiB of GPU memory.',
      title: '',
      holders: [],
      notes: [],
    });
    expect(words({ asked_bytes: null }, null)?.text).toBe('PyTorch ran out of GPU memory.');
  });

  it('GPU is the one that the notebook uses', () => {
    const told = words({ gpu: 0 }, [
      held(0, 90, [notebook('eval', 5)]),
      held(1, 3, [notebook('train', 61)]),
    ]);
    expect(told?.text).toContain('3.00 GiB of 140 GiB free on GPU 1');
  });

  it('GPU is known only if one was full', () => {
    const both = (free_a: number, free_b: number): OomDescription | null =>
      words({}, [
        held(0, free_a, [notebook('train', 5)]),
        held(1, free_b, [notebook('train', 61)]),
      ]);
    expect(both(90, 3)?.text).toContain('on GPU 1');
    expect(both(2, 3)).toMatchObject({
      text: 'PyTorch requested 20.0 GiB of GPU memory.',
      holders: [],
    });
    const told = words({ gpu: 1, free_bytes: GIB, total_bytes: 16 * GIB }, [
      held(0, 9, []),
      held(1, 9, []),
    ]);
    expect(told?.text).toContain('with 1.00 GiB of 16.0 GiB free on its GPU 1.');
    expect(both(90, 80)).toMatchObject({
      text: 'PyTorch requested 20.0 GiB of GPU memory.',
      holders: [],
    });
  });

  it('divided GPU is not explained', () =>
    expect(
      words({}, [held(0, 3, [notebook('train', 5)], { mig_devices: [migDevice(0)] })])?.holders,
    ).toEqual([]));

  it('ambiguous error counts if kernel uses GPU', () => {
    expect(
      words({ framework: 'JAX', says_gpu: false }, [held(0, 90, [notebook('eval', 5)])]),
    ).toBeNull();
    expect(words({ framework: 'JAX', says_gpu: false }, [one])?.notes).toEqual([
      'JAX reserves GPU memory at startup and allocates from it, not from the free memory.',
    ]);
  });

  it('small holders are summed, unusable memory explained', () => {
    const many = 'abcdef'.split('').map((name, i) => notebook(name, 10 - i));
    const told = words({ unused_bytes: 30 * GIB, limit_bytes: 8 * GIB }, [held(0, 90, many)]);
    expect(told?.holders).toHaveLength(5);
    expect(told?.holders[4]).toMatchObject({ text: '2 more 11.0\u00a0GiB', kernelId: null });
    expect(told?.notes.map((note) => note.replaceAll('\u00a0', ' '))).toEqual([
      'PyTorch is limited to 8.00 GiB in this process.',
      'PyTorch reserves 30.0 GiB that it does not use: too fragmented for this request, and not available to other processes.',
    ]);
    expect(words({ unused_bytes: GIB }, [one])?.notes).toEqual([]);
  });
});

it('unified memory is explained with the system', () => {
  const description = words({}, [makeUnifiedGpu(0, 85, { processes: [notebook('train', 85)] })]);
  expect(description?.text).toContain('with 15.0 GiB of 120 GiB free on GPU 0.');
  expect(description?.title).toMatch(/^Free memory: what the system had available at /);
  expect(description?.holders.at(-1)).toMatchObject({
    text: 'rest of the system 20.0\u00a0GiB',
    kernelId: null,
  });
  expect(description?.notes.map((note) => note.replaceAll('\u00a0', ' '))).toEqual([
    'Unified memory, shared with the CPU: ' +
      '85.0 GiB used by the GPU, 20.0 GiB by the rest of the system, 15.0 GiB available.',
    'PyTorch may get less than this, because the system does not free all caches for it.',
    expect.stringMatching(/close other programs.*swap/),
    expect.stringMatching(/may end a process/),
  ]);
});

it('sample with more kernel memory is used', () => {
  const at = (memorySize: number): Sample =>
    sample(NOW, [held(0, 3, [notebook('train', memorySize)])]);
  const [less, more] = [at(10), at(61)];
  expect(fullerSample(less, more, 'train')).toBe(more);
  expect(fullerSample(more, less, 'train')).toBe(more);
  expect(fullerSample(null, less, 'train')).toBe(less);
});
