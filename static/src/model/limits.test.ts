import { describe, expect, it } from 'vitest';

import { setTranslator, trans } from '../lib/translation';
import { HOST_EVIDENCE, LIMIT_SUMMARY, makeGpu, makeLimits, NOW } from '../testing/frames';
import { findUntranslated, pseudoTranslator } from '../testing/pseudo-locale';
import type { LimitClass, LimitEvidence, Limits } from '../wire';
import { LIMIT_TEXTS } from '../wire/limit-texts';
import {
  describeLimitShares,
  describeMainLimit,
  explainLimit,
  listLimitShares,
  parseLimitSummary,
} from './limits';

const HOST: Partial<Limits> = {
  main: 'host',
  host_percent: 62,
  tensor_percent: 30.4,
  latency_percent: 0,
  memory_percent: 3.2,
  evidence: HOST_EVIDENCE,
};

/** The numbers that a board with counters always has. */
const READINGS: LimitEvidence = {
  ...HOST_EVIDENCE,
  nvlink_bytes_per_second: 1e9,
  sm_percent: 36,
  tensor_percent: 28,
  arithmetic_percent: 11,
  dram_percent: 15,
  sm_mhz: 1410,
  max_sm_mhz: 1980,
};

/** Returns the text about the main cause, its evidence and the advice. */
function describeMain(changes: Partial<Limits>): string[] | null {
  const limit = describeMainLimit(makeGpu(0, { limits: makeLimits(changes) }));
  return (
    limit &&
    [limit.text, limit.evidence, limit.advice].map((text) => text.replaceAll('\u00a0', ' '))
  );
}

function explain(cause: LimitClass, evidence: LimitEvidence): string {
  return explainLimit(cause, evidence).evidence.replaceAll('\u00a0', ' ');
}

describe('main cause that limits a GPU', () => {
  it('main cause has share, evidence and advice', () => {
    expect(describeMain(HOST)).toEqual([
      'Host-bound 62 %',
      'A process uses 100 % of a core while the GPU waits.',
      'Prepare data in worker processes or on the GPU, and start the next step before its result is needed.',
    ]);
    const evidence = { ...HOST_EVIDENCE, workers: 2, workers_percent: 198, cores: 16 };
    expect(describeMain({ ...HOST, evidence })?.slice(1)).toEqual([
      '2 worker processes use 198 % of a core while the GPU waits.',
      'Raise `num_workers`: the loader uses 2 of 16 cores.',
    ]);
  });

  it('earlier reading is described', () => {
    const limits = { value: makeLimits(HOST), at_ms: NOW - 5000 };
    expect(describeMainLimit(makeGpu(0, { limits }))?.text).toBe('Host-bound 62\u00a0%');
  });

  it('unclear causes are named together, without evidence', () => {
    const low = { ...HOST, confidence: 'low' } as const;
    expect(describeMain(low)).toEqual(['Host-bound 62 %, tensor-bound 30 %', '', '']);
    const tied = { main: 'tensor', host_percent: 48, tensor_percent: 48 } as const;
    expect(describeMain({ ...low, ...tied })?.[0]).toBe('Tensor-bound 48 %, host-bound 48 %');
    const small = { idle_percent: 0.9, memory_percent: 0.9, tensor_percent: 0.9 };
    expect(describeMain({ ...low, ...small })?.[0]).toBe('Host-bound 62 %');
  });

  it('idle and unknown causes are not described', () => {
    expect(describeMain({ main: 'idle' })).toBeNull();
    expect(describeMain({ main: 'unknown' })).toBeNull();
    expect(describeMain({ main: 'future' as LimitClass })).toBeNull();
    expect(describeMain({ main: 'idle', confidence: 'low' })).toBeNull();
    expect(describeMainLimit(makeGpu(0, { limits: { absent: 'warming_up' } }))).toBeNull();
    const { limits, ...unsupported } = makeGpu(0);
    expect([limits === undefined, describeMainLimit(unsupported)]).toEqual([false, null]);
    expect(describeMainLimit(null)).toBeNull();
  });
});

describe('evidence for a cause', () => {
  it('sentences without numbers are omitted', () => {
    expect(explain('input', {})).toBe('A process waits for a disk or the network.');
    expect(explain('input', { disk_bytes_per_second: 1.2e9 })).toBe(
      'A process waits for a disk or the network. Disks deliver 1.20 GB/s.',
    );
  });

  it('evidence determines the sentence', () => {
    expect(explain('host', { workers: 1, workers_percent: 99 })).toBe(
      '1 worker process uses 99 % of a core while the GPU waits.',
    );
    expect(explain('communication', { slow_gpu: 3, wait_ms: 180 })).toBe(
      'Kernels wait 180 ms of each second for GPU 3.',
    );
    expect(explain('communication', { slow_gpu: 3, wait_ms: 180, slow_ranks: [1, 2] })).toBe(
      'Kernels wait 180 ms of each second for GPU 3. GPU 3 runs ranks 1, 2.',
    );
    expect(explain('power', { sm_mhz: 1410, max_sm_mhz: 1980, too_hot: true })).toBe(
      'The temperature reduces the clocks. The SM clock is 1,410 MHz instead of 1,980 MHz.',
    );
  });

  it('texts of all causes are translated', () => {
    const english = trans;
    setTranslator(pseudoTranslator(english));
    const causes = Object.keys(LIMIT_TEXTS) as LimitClass[];
    const numbers = { owners: 2, pcie_bytes_per_second: 1e9, disk_bytes_per_second: 1e9 };
    const rest = { workers: 2, workers_percent: 198, cores: 16, small_copies: true, too_hot: true };
    const slow = { wait_ms: 180, slow_gpu: 3, slow_ranks: [1] };
    const units = (['fp64', 'fp32', 'fp16', 'integer'] as const).map((arithmetic_unit) => ({
      ...numbers,
      arithmetic_unit,
      is_tensor_double: true,
    }));
    const texts = causes.flatMap((cause) =>
      [numbers, { ...numbers, ...rest, ...slow }, ...units].flatMap((evidence) => [
        LIMIT_TEXTS[cause].label(),
        ...Object.values(explainLimit(cause, { ...READINGS, ...evidence })),
      ]),
    );
    setTranslator(english);
    expect(causes).toHaveLength(12);
    expect(findUntranslated(texts, [])).toEqual([]);
  });
});

describe('shares of causes', () => {
  it('shares of at least 1 % are sorted', () => {
    expect(listLimitShares(makeLimits(HOST))).toEqual([
      { cause: 'host', percent: 62 },
      { cause: 'tensor', percent: 30.4 },
      { cause: 'idle', percent: 4 },
      { cause: 'memory', percent: 3.2 },
    ]);
    const absent = { absent: 'not_supported' } as const;
    const old = makeLimits({
      latency_percent: absent,
      memory_percent: absent,
      tensor_percent: absent,
      unknown_percent: 95.6,
    });
    expect(listLimitShares(old).map(({ cause }) => cause)).toEqual(['unknown', 'idle']);
  });

  it('shares are listed in lowercase', () => {
    const future = { cause: 'future' as LimitClass, percent: 2 };
    expect(describeLimitShares([...LIMIT_SUMMARY.shares, future])).toBe(
      'host-bound 62\u00a0%, tensor-bound 30\u00a0%',
    );
  });
});

it('stored summary in unknown format is ignored', () => {
  expect(parseLimitSummary(structuredClone(LIMIT_SUMMARY))).toEqual(LIMIT_SUMMARY);
  const { windows_ms, ...earlier } = LIMIT_SUMMARY;
  expect([windows_ms, parseLimitSummary(earlier)]).toEqual([5000, earlier]);
  for (const stored of [
    undefined,
    null,
    'host',
    { shares: [], evidence: null },
    { ...LIMIT_SUMMARY, shares: [{ cause: 'host', percent: 'much' }] },
  ]) {
    expect(parseLimitSummary(stored)).toBeNull();
  }
});
