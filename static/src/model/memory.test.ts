import { describe, expect, it } from 'vitest';

import {
  GIB,
  makeGpu,
  makeInventory,
  NOW,
  makeProcess,
  makeSample,
  makeUnifiedGpu,
} from '../testing/frames';
import type { GpuSample } from '../wire';
import { ColorSlots } from './color-slots';
import { gpusOf } from './gpu';
import { holderRows } from './holders';
import {
  describeAvailableUnifiedMemory,
  describeReservedMemory,
  describeUnifiedMemory,
  memorySegments,
  restOfSystemBytes,
  unavailableBytes,
  unifiedMemoryAdvice,
} from './memory';

const NO_PERMISSION = { absent: 'no_permission' } as const;

/** Returns the parts of the memory bar as text such as `system 20`, with sizes in GiB. */
function segmentsOf(now: GpuSample): string[] {
  const rows = holderRows(gpusOf(makeInventory(1), makeSample(NOW, [now])), new ColorSlots());
  return memorySegments(
    now,
    rows.filter((row) => row.kind === 'holder'),
  ).map(({ paint, bytes }) => `${typeof paint === 'number' ? 'holder' : paint} ${bytes / GIB}`);
}

function withPlainSpaces(text: string): string {
  return text.replaceAll('\u00a0', ' ');
}

describe('unified memory', () => {
  const now = makeUnifiedGpu(0, 41, { processes: [makeProcess(1, { memory_bytes: 33 * GIB })] });
  const withoutUse = { ...now, memory: { ...now.memory, used_bytes: NO_PERMISSION } };

  it('unified memory shows use by rest of system', () => {
    expect(segmentsOf(now)).toEqual(['holder 33', 'other 8', 'system 20']);
    expect(withPlainSpaces(describeUnifiedMemory(now))).toBe(
      'Unified memory, shared with the CPU: ' +
        '41.0 GiB used by the GPU, 20.0 GiB by the rest of the system, 59.0 GiB available',
    );
  });

  it('unavailable memory counts as used', () => {
    expect([unavailableBytes(now), unavailableBytes(makeGpu(0))]).toEqual([61 * GIB, 78 * GIB]);
  });

  it('unknown GPU use does not hide available memory', () => {
    expect(segmentsOf(withoutUse)).toEqual(['holder 33', 'system 28']);
    expect(withPlainSpaces(describeUnifiedMemory(withoutUse))).toBe(
      'Unified memory, shared with the CPU: 59.0 GiB available',
    );
  });

  it('unknown available memory does not hide GPU use', () => {
    const blind = { ...now, memory: { ...now.memory, free_bytes: NO_PERMISSION } };
    expect(segmentsOf(blind)).toEqual(['holder 33', 'other 8']);
    expect([
      unavailableBytes(blind),
      restOfSystemBytes(blind),
      describeAvailableUnifiedMemory(blind),
    ]).toEqual([null, null, '']);
  });

  it('system memory of APU is unknown', () => {
    const apu = { ...now, memory: { ...now.memory, free_bytes: 79 * GIB } };
    expect(restOfSystemBytes(apu)).toBeNull();
    expect(withPlainSpaces(describeUnifiedMemory(apu))).toBe(
      'Unified memory, shared with the CPU: 41.0 GiB used by the GPU, 79.0 GiB available',
    );
  });
});

it('dedicated memory shows no use by the system', () => {
  expect(segmentsOf(makeGpu(0))).toEqual(['other 78']);
  expect([describeUnifiedMemory(makeGpu(0)), describeAvailableUnifiedMemory(makeGpu(0))]).toEqual([
    '',
    '',
  ]);
  expect(withPlainSpaces(describeReservedMemory(makeGpu(0)))).toMatch(
    / GiB reserved by the driver$/,
  );
  expect(unifiedMemoryAdvice(makeGpu(0))).toEqual([]);
});
