/** A machine on which there is something to say about everything, for tests of what is said. */

import type { CellCost } from '../model/cell-cost';
import type { Condition, Event, GpuSample, Process, ServerFrame } from '../wire';
import { details, nvLink } from './details';
import { GIB, gpu, hello, inventory, migDevice, NOW, process, sample, throttled } from './frames';

/** The cost of a cell there. */
export const COST: CellCost = {
  started_ms: NOW,
  ended_ms: NOW + 5000,
  gpus: [0, 1],
  gpu_ms: 5,
  peak_bytes: GIB,
  change_bytes: 0,
  joules: 1,
  shared: true,
};

const owner = { parents: [], notebook: { kernel_id: 'k1', kernel_pid: 10, path: 'train.ipynb' } };
const PROCESSES: Process[] = [
  process(10, { owner }),
  process(11, { owner, memory_bytes: GIB }),
  process(12, { user: { absent: 'hidden' }, command: { absent: 'no_permission' }, name: { absent: 'unknown' } }),
  process(13, { owner: { parents: [], slurm: { job_id: '7' } }, mps: true }),
];
/** A server's own sentences. */
const SAID = '.';
const CONDITIONS: Condition[] = [
  { ...throttled('critical'), text: SAID },
  { ...throttled('notice'), text: SAID },
  { condition: 'held_idle', since_ms: NOW, severity: 'warning', text: SAID, bytes: GIB, idle_ms: 1e6, pids: [13] },
  { condition: 'xid', since_ms: NOW, severity: 'warning', text: SAID, code: 79, count: 3, last_ms: NOW },
];
const WHO = { pid: 4711, name: 'python3', started_ms: NOW };
const EVENTS = [
  ...(['gpu_lost', 'gpu_hung', 'gpu_failed', 'gpu_asleep', 'gpu_back', 'mig_changed'] as const).map((what) => ({
    what,
  })),
  { what: 'power_source_changed' },
  { what: 'xid', code: 79, meaning: SAID, advice: SAID },
  { what: 'xid', code: 80, pid: 4711, meaning: SAID, advice: SAID },
  { what: 'ecc_errors', corrected: 3, uncorrected: 0 },
  { what: 'ecc_errors', corrected: 3, uncorrected: 1 },
  { what: 'condition_ended', ...throttled('critical'), text: SAID },
  { what: 'condition_ended', ...CONDITIONS[3] },
  { what: 'process_started', ...WHO, user: 'ana' },
  { what: 'process_ended', ...WHO, user: { absent: 'hidden' } },
  { what: 'process_ended', ...WHO, name: { absent: 'unknown' }, user: 'ana' },
].map((event, i) => ({ ...event, at_ms: NOW - i, gpu: i === 0 ? null : { index: 1, uuid: null } }) as Event);

/** One GPU for each thing that can be said of one. */
export function gpus(): GpuSample[] {
  const { memory, power } = gpu(0);
  return [
    gpu(0, { processes: PROCESSES, conditions: CONDITIONS, throttle_reasons: ['applications_clocks_setting'] }),
    gpu(1, { health: { state: 'lost', since_ms: NOW } }),
    gpu(2, { health: { state: 'hung', since_ms: NOW } }),
    gpu(3, { health: { state: 'failed', since_ms: NOW, reason: { absent: 'driver_error', code: 9 } } }),
    gpu(4, { health: { state: 'asleep', since_ms: NOW } }),
    gpu(5, { mig_devices: [migDevice(0)], processes: { absent: 'no_permission' }, throttle_reasons: ['gpu_idle'] }),
    gpu(6, {
      memory: { ...memory, used_bytes: { absent: 'no_answer' } },
      power: { ...power, draw_watts: { value: 5, at_ms: NOW - 90_000 }, instant_watts: { absent: 'warming_up' } },
      activity: { absent: 'not_supported' },
      throttle_reasons: ['display_clock_setting'],
    }),
  ];
}

/** The first frame of it. */
export function world(): ServerFrame {
  const known = inventory(7);
  known.platform.source = 'simulated';
  known.topology.push({ a: 0, b: 1, path: 'system', nvlinks: 0 }, { a: 0, b: 2, path: 'node', nvlinks: 18 });
  const sick = details(0, {
    modes: { ...details(0).modes, mig: { current: false, pending: true }, compute: 'exclusive_process' },
    recovery_action: 'gpu_reset',
    nvlinks: [nvLink(0), nvLink(1, { active: false })],
    retired_pages: { single_bit: 1, double_bit: 2, pending: true },
    fabric: { state: 'in_progress', status: 1, cluster_uuid: '', clique_id: 2 },
    remapped_rows: {
      correctable: 1,
      uncorrectable: 0,
      pending: true,
      failed: true,
      spare: { max: 1, high: 1, partial: 0, low: 1, none: 1 },
    },
    fans: [{ speed_percent: 40, rpm: 1200 }],
    c2c_enabled: true,
  });
  return hello({
    inventory: known,
    sample: sample(NOW, gpus()),
    details: [sick, details(5)],
    events: EVENTS,
  });
}
