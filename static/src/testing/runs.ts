/** A run of a workload, and a server with this run, for tests. */

import { vi, type Mock } from 'vitest';

import type { Catalogue, RunItem, RunResult, RunState } from '../wire';
import { NOW } from './frames';

/** Returns a run of two steps that is in the middle of its first step. */
export function makeRunState(changes: Partial<RunState> = {}): RunState {
  return {
    run: 'r1',
    kind: 'bench',
    title: 'triad',
    status: 'running',
    own: true,
    started_ms: NOW - 3000,
    ended_ms: null,
    seconds: null,
    devices: [{ index: 0, name: 'NVIDIA H200' }],
    steps: 2,
    step: { number: 0, id: 'triad', phase: 'measuring', since_ms: NOW - 2000 },
    share: 0.5,
    text: '4,020 GB/s',
    items: 0,
    newest: null,
    code: null,
    error: null,
    ...changes,
  };
}

export function makeRunResult(changes: Partial<RunResult> = {}): RunResult {
  return {
    id: 'triad',
    device: 'NVIDIA H200',
    dtype: 'fp32',
    device_us: 534.2,
    host_us: 541,
    bytes_per_second: 4.02e12,
    operations_per_second: 7e11,
    peak_per_second: 4.8e12,
    share: 0.84,
    limit: 'memory',
    verified: true,
    checked: 1000,
    wrong: 0,
    partial: false,
    ...changes,
  };
}

export const CATALOGUE: Catalogue = {
  entries: [
    {
      kind: 'bench',
      id: 'triad',
      title: 'triad',
      does: 'Does it.',
      teaches: 'Teaches it.',
      on_cpu: true,
    },
    {
      kind: 'bench',
      id: 'copy',
      title: 'copy',
      does: 'Copies it.',
      teaches: 'Teaches it, too.',
      on_cpu: true,
    },
    {
      kind: 'bench',
      id: 'h2d-pinned',
      title: 'h2d-pinned',
      does: 'Copies it.',
      teaches: 'Teaches how.',
      on_cpu: false,
    },
    {
      kind: 'seeds',
      id: 'a',
      title: 'a: sum',
      does: 'Sums it.',
      teaches: 'Teaches much.',
      on_cpu: true,
    },
    {
      kind: 'oom',
      id: 'fill',
      title: 'fill',
      does: 'Fills it.',
      teaches: 'Teaches why.',
      on_cpu: true,
    },
  ],
  refusal: null,
};

/** One item of each kind. */
export const ITEMS: readonly RunItem[] = [
  { item: 'result', ...makeRunResult() },
  { item: 'result', ...makeRunResult({ verified: false, wrong: 3, share: { absent: 'unknown' } }) },
  { item: 'said', topic: 'cure', text: 'Do this.' },
  { item: 'failed', id: 'copy', error: 'too large' },
];

/**
 * Returns a request function that responds to known paths. For other paths, the request is
 * rejected.
 */
export function makeRequestMock(
  answers: Record<string, unknown>,
): Mock<(path: string, init?: RequestInit) => Promise<Response>> {
  return vi.fn((path: string) =>
    Promise.resolve(
      path in answers
        ? Response.json(answers[path])
        : new Response('runs are off: use --allow-runs\n', { status: 403 }),
    ),
  );
}
