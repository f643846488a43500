import { expect, it } from 'vitest';

import { makeInventory } from '../testing/frames';
import { CATALOGUE } from '../testing/runs';
import {
  benchmarkGroups,
  matchesQuery,
  createJob,
  runsOn,
  listTargets,
  type Benchmark,
} from './benchmarks';
import { gpusOf } from './gpu';

const groups = benchmarkGroups(CATALOGUE.entries);

function find(title: string): Benchmark {
  const found = groups
    .flatMap(({ benchmarks }) => benchmarks)
    .find((benchmark) => benchmark.title === title);
  if (found === undefined) {
    throw new Error(`no ${title}`);
  }
  return found;
}

it('benchmark preset omits workloads unknown to the server', () => {
  expect(
    groups.map(({ label, benchmarks }) => [label, benchmarks.map(({ title }) => title)]),
  ).toEqual([
    ['Presets', ['Memory bandwidth', 'PCIe transfers', 'Out-of-memory demo']],
    ['Workloads', ['triad', 'copy']],
    ['Tutorial benchmarks', ['a: sum']],
  ]);
  expect(find('Memory bandwidth')).toMatchObject({ ids: ['triad', 'copy'], onCpu: true });
  expect(find('PCIe transfers')).toMatchObject({ ids: ['h2d-pinned'], onCpu: false });
});

it('benchmark search matches title and description words', () => {
  expect(matchesQuery(find('Memory bandwidth'), 'does TRIAD')).toBe(true);
  expect(matchesQuery(find('a: sum'), 'much sums')).toBe(true);
  expect(matchesQuery(find('a: sum'), 'sums triad')).toBe(false);
  expect(matchesQuery(find('a: sum'), '')).toBe(true);
});

it('job names the GPU by UUID', () => {
  const gpus = gpusOf(makeInventory(2), null, new Map());
  const targets = listTargets(gpus);
  expect(targets.map(({ name }) => name)).toEqual(['GPU 0, H200', 'GPU 1, H200', 'CPU']);
  const [, second, cpu] = targets;
  if (second === undefined || cpu === undefined) {
    throw new Error('no targets');
  }
  const where = { backend: 'cuda', device: gpus[1]?.uuid };
  expect(createJob(find('triad'), second)).toEqual({ kind: 'bench', ids: ['triad'], where });
  expect(createJob(find('a: sum'), cpu)).toEqual({
    kind: 'seeds',
    rows: ['a'],
    where: { backend: 'cpu' },
  });
  // The demo must hold the memory for this long, so that users can see the effect.
  expect(createJob(find('Out-of-memory demo'), cpu)).toMatchObject({
    scenario: 'fill',
    hold_seconds: 10,
  });
  expect(targets.map((target) => runsOn(find('PCIe transfers'), target))).toEqual([
    true,
    true,
    false,
  ]);
});
