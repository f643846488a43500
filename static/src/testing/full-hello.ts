/** A first frame with every kind of state, condition and event, for tests of texts. */

import type { CellCost } from '../model/cell-cost';
import type {
  Condition,
  Event,
  GpuSample,
  Process,
  ServerFrame,
  StoredCost,
  Vendor,
} from '../wire';
import { details, nvLink } from './details';
import {
  GIB,
  gpu,
  hello,
  inventory,
  migDevice,
  NOW,
  process,
  sample,
  makeUnifiedGpu,
} from './frames';

/** A cost that a notebook has stored. */
export const STORED: StoredCost = {
  version: 1,
  duration_s: 5,
  gpu_s: 0.005,
  peak_memory_bytes: GIB,
  memory_change_bytes: 0,
  energy_joules: 1,
  shared: true,
  gpus: ['NVIDIA H200', 'NVIDIA H200'],
  run: null,
};

/** The cost of a cell. */
export const COST: CellCost = {
  started_ms: NOW,
  ended_ms: NOW + 5000,
  duration_s: 5,
  gpus: [0, 1],
  gpu_s: 0.005,
  peak_memory_bytes: GIB,
  memory_change_bytes: 0,
  energy_joules: 1,
  shared: true,
};

const owner = { parents: [], notebook: { kernel_id: 'k1', kernel_pid: 10, path: 'train.ipynb' } };
const PROCESSES: Process[] = [
  process(10, { owner }),
  process(11, { owner, memory_bytes: GIB }),
  process(12, {
    user: { absent: 'hidden' },
    command: { absent: 'no_permission' },
    name: { absent: 'unknown' },
  }),
  process(13, { owner: { parents: [], slurm: { job_id: '7' } }, mps: true }),
];
/** A sentence of the server, which is always in English. */
const SERVER_TEXT = 'A sentence of the server.';
const SINCE = { since_ms: NOW - 60_000, text: SERVER_TEXT };
type Conditions = { [K in Condition['condition']]: Extract<Condition, { condition: K }> };

/** One condition of each kind. */
export const CONDITIONS: Conditions = {
  throttled: {
    condition: 'throttled',
    severity: 'critical',
    reasons: [
      'hw_thermal_slowdown',
      'sw_thermal_slowdown',
      'sw_power_cap',
      'hw_power_brake_slowdown',
      'sync_boost',
    ],
    limit_watts: 700,
    gpu_celsius: 64,
    ...SINCE,
  },
  held_idle: {
    condition: 'held_idle',
    severity: 'notice',
    bytes: GIB,
    idle_ms: 1e6,
    pids: [13, 12, 11, 10],
    ...SINCE,
  },
  hardly_used: {
    condition: 'hardly_used',
    severity: 'notice',
    gpu_percent: 99,
    sm_percent: 9,
    tensor_percent: 1,
    ...SINCE,
  },
  suspected_hang: {
    condition: 'suspected_hang',
    severity: 'warning',
    power_watts: 123.2,
    pids: [10, 11],
    waiting: [1, 2],
    differing: [{ gpu: 3, pid: 13 }],
    ...SINCE,
  },
  slower_than_itself: {
    condition: 'slower_than_itself',
    severity: 'warning',
    sm_mhz: 1410,
    usual_sm_mhz: 1980,
    power_watts: 330,
    usual_power_watts: 500,
    siblings: [1, 2],
    ...SINCE,
  },
  below_baseline: {
    condition: 'below_baseline',
    severity: 'warning',
    workload: 'copy',
    dtype: 'fp32',
    median_us: 3000,
    baseline_us: 1000,
    measured_ms: 1_763_640_000_000,
    baseline_ms: 1_760_000_000_000,
    ...SINCE,
  },
  held_by_nobody: { condition: 'held_by_nobody', severity: 'notice', bytes: GIB, ...SINCE },
  memory_nearly_full: {
    condition: 'memory_nearly_full',
    severity: 'warning',
    free_bytes: GIB,
    total_bytes: 80 * GIB,
    ...SINCE,
  },
  memory_filling: {
    condition: 'memory_filling',
    severity: 'warning',
    left_ms: 60_000,
    bytes_per_second: GIB,
    growing: [{ pid: 10, bytes_per_second: GIB }],
    ...SINCE,
  },
  ecc_uncorrected: { condition: 'ecc_uncorrected', severity: 'critical', count: 2, ...SINCE },
  row_remap: {
    condition: 'row_remap',
    severity: 'critical',
    pending: true,
    failed: true,
    ...SINCE,
  },
  page_retirement_pending: { condition: 'page_retirement_pending', severity: 'warning', ...SINCE },
  recovery_needed: {
    condition: 'recovery_needed',
    severity: 'warning',
    action: 'drain_p2p',
    ...SINCE,
  },
  nv_link_down: { condition: 'nv_link_down', severity: 'warning', links: [3, 4], ...SINCE },
  pcie_degraded: {
    condition: 'pcie_degraded',
    severity: 'warning',
    width: 8,
    max_width: 16,
    ...SINCE,
  },
  xid: {
    condition: 'xid',
    severity: 'warning',
    code: 79,
    pid: 13,
    count: 3,
    last_ms: NOW,
    ...SINCE,
  },
};
const WHO = { pid: 4711, name: 'python3', started_ms: NOW };
/** One event of each kind that a list shows. */
const EVENTS = [
  ...(['gpu_lost', 'gpu_hung', 'gpu_added', 'gpu_asleep', 'gpu_back', 'mig_changed'] as const).map(
    (what) => ({
      what,
    }),
  ),
  { what: 'gpu_failed', meaning: '', advice: '' },
  { what: 'power_source_changed' },
  { what: 'clock_changed', by_ms: 3_600_000 },
  { what: 'clock_changed', by_ms: -3_600_000 },
  { what: 'xid', code: 79, meaning: SERVER_TEXT, advice: SERVER_TEXT },
  { what: 'xid', code: 80, pid: 4711, meaning: SERVER_TEXT, advice: SERVER_TEXT },
  { what: 'ecc_errors', corrected: 3, uncorrected: 0 },
  { what: 'ecc_errors', corrected: 3, uncorrected: 1 },
  ...Object.values(CONDITIONS).flatMap((condition) => [
    { what: 'condition_began', ...condition },
    { what: 'condition_ended', ...condition },
  ]),
  { what: 'process_started', ...WHO, user: 'ana' },
  { what: 'process_ended', ...WHO, user: { absent: 'hidden' } },
  { what: 'process_ended', ...WHO, name: { absent: 'unknown' }, user: 'ana' },
  { what: 'mark', text: 'epoch 3', user: 'ana' },
].map(
  (event, i) =>
    ({ ...event, at_ms: NOW - i, gpu: i === 0 ? null : { index: 1, uuid: null } }) as Event,
);

/** Returns one GPU for each state. */
export function gpus(): GpuSample[] {
  const { memory, power } = gpu(0);
  return [
    gpu(0, {
      processes: PROCESSES,
      conditions: Object.values(CONDITIONS),
      throttle_reasons: ['applications_clocks_setting'],
    }),
    gpu(1, { health: { state: 'lost', since_ms: NOW } }),
    gpu(2, { health: { state: 'hung', since_ms: NOW } }),
    gpu(3, {
      health: {
        state: 'failed',
        since_ms: NOW,
        reason: { absent: 'driver_error', code: 9 },
        meaning: '',
        advice: '',
      },
    }),
    gpu(4, { health: { state: 'asleep', since_ms: NOW } }),
    gpu(5, {
      mig_devices: [migDevice(0)],
      processes: { absent: 'no_permission' },
      throttle_reasons: ['gpu_idle'],
    }),
    gpu(6, {
      memory: { ...memory, used_bytes: { absent: 'no_answer' } },
      power: {
        ...power,
        draw_watts: { value: 5, at_ms: NOW - 90_000 },
        instant_watts: { absent: 'warming_up' },
      },
      activity: { absent: 'not_supported' },
      throttle_reasons: ['display_clock_setting'],
    }),
    makeUnifiedGpu(7, 41, {
      conditions: [CONDITIONS.memory_nearly_full, CONDITIONS.memory_filling],
      mig_devices: [migDevice(1)],
      processes: [process(20, { mig: { gpu_instance: 1, compute_instance: 0 } })],
    }),
  ];
}

/** Returns the first frame of a connection to this server. */
export function fullHello(): ServerFrame {
  const known = inventory(8, ...Array<Vendor>(7).fill('nvidia'), 'amd');
  known.platform.source = 'simulated';
  known.topology.push(
    { a: 0, b: 1, path: 'system', nvlinks: 0 },
    { a: 0, b: 2, path: 'node', nvlinks: 18 },
  );
  const sick = details(0, {
    modes: {
      ...details(0).modes,
      mig: { current: false, pending: true },
      compute: 'exclusive_process',
    },
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
    details: [sick, details(5), details(7)],
    events: EVENTS,
  });
}
