import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { setTranslator, trans } from '../lib/translation';
import { NOW, makeProcess } from '../testing/frames';
import { pseudoTranslator, findUntranslated } from '../testing/pseudo-locale';
import { CONDITIONS } from '../testing/full-hello';
import type { Condition } from '../wire';
import { XIDS } from '../wire/xids';
import { describeCondition, summarizeCondition, loadXids } from './alerts';

beforeAll(loadXids);

const ALL_CONDITIONS: readonly Condition[] = Object.values(CONDITIONS);

function withPlainSpaces(text: string): string {
  return text.replaceAll('\u00a0', ' ');
}

describe('condition texts', () => {
  const { throttled, xid, held_idle, memory_filling, nv_link_down } = CONDITIONS;

  it('condition shows known limit, temperature and process', () => {
    const capped: Condition = { ...throttled, reasons: ['sw_power_cap', 'sw_thermal_slowdown'] };
    const { limit_watts, gpu_celsius, ...unknown } = capped;
    expect([limit_watts, gpu_celsius]).toEqual([700, 64]);
    expect(withPlainSpaces(describeCondition(capped, []))).toBe(
      'Clocks reduced: power-capped at 700 W, thermal slowdown (64 °C).',
    );
    expect(describeCondition(unknown, [])).toBe('Clocks reduced: power-capped, thermal slowdown.');
    const { pid, ...unnamed } = xid;
    expect(describeCondition(xid, [])).toContain(`Xid ${xid.code} (process ${pid}): `);
    expect(describeCondition(unnamed, [])).toContain(`Xid ${xid.code}: `);
  });

  it('condition names some processes and counts others', () => {
    const processes = [makeProcess(13, { name: 'train.py' }), makeProcess(12, { started_ms: NOW })];
    const text = describeCondition(held_idle, processes);
    expect(withPlainSpaces(text)).toBe(
      'train.py (ana), PID 12, PID 11 and 1 more idle for 16 min, holding 1.00 GiB.',
    );
    expect(withPlainSpaces(describeCondition(memory_filling, [makeProcess(10)]))).toBe(
      'Memory full in about 1 min: python3 (ana) grows 1.00 GiB/s',
    );
  });

  it('condition names the GPU that others wait for', () => {
    const { suspected_hang } = CONDITIONS;
    const start =
      'Suspected hang: the kernels of python3 (ana), PID 11 run all the time at 123 W, but make no progress.';
    expect(withPlainSpaces(describeCondition(suspected_hang, [makeProcess(10)]))).toBe(
      `${start} GPUs 1, 2 of the same job are also waiting. GPU 3 (PID 13) of the same job is not waiting: check it first.`,
    );
    const alone: Condition = { ...suspected_hang, waiting: [], differing: [] };
    expect(withPlainSpaces(describeCondition(alone, [makeProcess(10)]))).toBe(start);
    expect(withPlainSpaces(describeCondition({ ...alone, pids: [] }, []))).toBe(
      'Suspected hang: the kernels run all the time at 123 W, but make no progress.',
    );
  });

  it('baseline condition names workload and both times', () => {
    const text = withPlainSpaces(describeCondition(CONDITIONS.below_baseline, []));
    expect(text).toMatch(
      /^Slower than baseline: copy \(fp32\) took 3\.00 ms on .*, and 1\.00 ms on .*\. Check power limit/,
    );
  });

  it('slower GPU is compared with its peers', () => {
    const { slower_than_itself } = CONDITIONS;
    expect(describeCondition(slower_than_itself, [])).toContain(
      ' GPUs 1, 2 are faster at the same load. ',
    );
    const drawsLess: Condition = { ...slower_than_itself, sm_mhz: 1980, siblings: [2] };
    expect(describeCondition(drawsLess, [])).toContain(
      ' GPU 2 draws more power at the same load. ',
    );
  });

  it('failed links are listed by number', () => {
    expect(describeCondition(nv_link_down, [])).toMatch(/^NVLinks 3, 4 down: /);
    expect(describeCondition({ ...nv_link_down, links: [3] }, [])).toMatch(/^NVLink 3 down: /);
  });

  it('unknown error names its driver', () => {
    expect(summarizeCondition({ ...xid, code: 9999 })).toBe('Xid 9999');
    expect(summarizeCondition({ ...xid, code: 100_999 })).toBe('driver error 100999');
  });

  it('unknown kind or Xid uses the server text', () => {
    const text = 'Said by the server.';
    const newer = { ...throttled, condition: 'new kind', text } as unknown as Condition;
    expect(describeCondition(newer, [])).toBe(text);
    expect(describeCondition({ ...CONDITIONS.xid, code: 9999, text }, [])).toBe(text);
  });
});

describe('conditions in another language', () => {
  const english = trans;
  beforeEach(() => setTranslator(pseudoTranslator(english)));
  afterEach(() => setTranslator(english));

  it.each(ALL_CONDITIONS)('$condition has no English word', (condition) => {
    const texts = [
      describeCondition(condition, [makeProcess(13)]),
      describeCondition(condition, []),
    ];
    expect(findUntranslated(texts, ['python3', 'ana', 'copy', 'fp32'])).toEqual([]);
  });

  it('Xid descriptions are fully translated', () => {
    const texts = XIDS.flatMap(({ codes }) =>
      codes.map((code) => describeCondition({ ...CONDITIONS.xid, code }, [])),
    );
    expect(texts.length).toBeGreaterThan(100);
    expect(findUntranslated(texts, [])).toEqual([]);
  });
});
