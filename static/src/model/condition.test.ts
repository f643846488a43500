import { describe, expect, it } from 'vitest';

import { GIB, makeGpu, NOW, makeThrottled, makeUnifiedGpu } from '../testing/frames';
import type { Condition, GpuSample } from '../wire';
import { listConditionAlerts, describeThrottling, worstLevel, severityLevel } from './condition';

const xid: Condition = {
  condition: 'xid',
  code: 31,
  count: 3,
  last_ms: NOW - 1000,
  since_ms: NOW - 120_000,
  severity: 'warning',
  text: 'Xid 31: a program used an address that it may not use.',
};

describe('conditions of a GPU', () => {
  it('conditions are sorted by severity and age', () => {
    const notice: Condition = { ...xid, severity: 'notice' };
    const conditions = [
      notice,
      { ...notice, since_ms: NOW - 999_000 },
      xid,
      makeThrottled('critical'),
    ];
    const shown = listConditionAlerts(makeGpu(0, { conditions }), NOW);
    expect(shown.map(({ level }) => level)).toEqual(['critical', 'warning', 'notice', 'notice']);
    expect(shown[2]?.key).toContain(String(NOW - 999_000));
  });

  it('control characters in conditions are replaced', () => {
    const unknown = {
      ...xid,
      condition: 'new kind',
      text: 'evil\u202e.ipynb holds it',
    } as unknown as Condition;
    const [shown] = listConditionAlerts(makeGpu(0, { conditions: [unknown] }), NOW);
    expect(shown?.text).toBe('evil\ufffd.ipynb holds it');
  });

  it('conditions have start time and repeat count', () => {
    const [shown] = listConditionAlerts(makeGpu(0, { conditions: [xid] }), NOW);
    expect(shown?.title.replaceAll('\u00a0', ' ')).toMatch(
      /^since \d\d:\d\d:\d\d, for 2 min; 3 times, last at \d\d:\d\d:\d\d$/,
    );
    const [once] = listConditionAlerts(makeGpu(0, { conditions: [makeThrottled('warning')] }), NOW);
    expect(once?.title).not.toContain('times');
  });

  it('nearly full unified memory adds advice', () => {
    const full: Condition = {
      condition: 'memory_nearly_full',
      free_bytes: GIB,
      total_bytes: 120 * GIB,
      since_ms: NOW,
      severity: 'critical',
      text: '',
    };
    const text = (now: GpuSample): string | undefined => listConditionAlerts(now, NOW)[0]?.text;
    expect(text(makeUnifiedGpu(0, 99, { conditions: [full] }))).toMatch(
      /^Memory nearly full: .* may fail\. The CPU uses the same memory: close other programs/,
    );
    expect(text(makeGpu(0, { conditions: [full] }))).toMatch(/may fail\.$/);
    expect(text(makeUnifiedGpu(0, 99, { conditions: [xid] }))).not.toContain('CPU');
  });

  it('ordinary throttling is not an alert', () => {
    const both = makeGpu(0, { conditions: [makeThrottled('notice'), xid] });
    expect(listConditionAlerts(both, NOW)).toHaveLength(1);
    expect(describeThrottling(both, NOW)?.text).toBe('power-capped');
    expect(
      describeThrottling(makeGpu(0, { conditions: [makeThrottled('warning')] }), NOW),
    ).toBeNull();
  });

  it('GPU without a sample has no alerts', () =>
    expect(listConditionAlerts(null, NOW)).toEqual([]));
});

it('notices do not count as worst level', () => {
  expect(worstLevel(['notice', 'none'])).toBeNull();
  expect(worstLevel(['notice', 'warning'])).toBe('warning');
  expect(worstLevel(['warning', 'critical'])).toBe('critical');
});

it('severity from a newer server is shown', () => {
  expect(severityLevel('unheard of' as Condition['severity'])).toBe('notice');
});
