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
import { makeDetails, makeNvLink } from './details';
import {
  GIB,
  LIMIT_SUMMARY,
  makeGpu,
  makeHello,
  makeInventory,
  makeLimits,
  makeMigDevice,
  NOW,
  makeProcess,
  makeSample,
  makeUnifiedGpu,
} from './frames';

/** A cost as it is stored in a notebook. */
export const STORED_COST: StoredCost = {
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
  limits: LIMIT_SUMMARY,
};

const owner = { parents: [], notebook: { kernel_id: 'k1', kernel_pid: 10, path: 'train.ipynb' } };
const PROCESSES: Process[] = [
  makeProcess(10, { owner }),
  makeProcess(11, { owner, memory_bytes: GIB }),
  makeProcess(12, {
    user: { absent: 'hidden' },
    command: { absent: 'no_permission' },
    name: { absent: 'unknown' },
  }),
  makeProcess(13, { owner: { parents: [], slurm: { job_id: '7' } }, mps: true }),
];
/** A sentence of the server, which is always in English. */
const SERVER_TEXT = 'A sentence of the server.';
const CONDITION_BASE = { since_ms: NOW - 60_000, text: SERVER_TEXT };
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
    ...CONDITION_BASE,
  },
  held_idle: {
    condition: 'held_idle',
    severity: 'notice',
    bytes: GIB,
    idle_ms: 1e6,
    pids: [13, 12, 11, 10],
    ...CONDITION_BASE,
  },
  hardly_used: {
    condition: 'hardly_used',
    severity: 'notice',
    gpu_percent: 99,
    sm_percent: 9,
    tensor_percent: 1,
    ...CONDITION_BASE,
  },
  suspected_hang: {
    condition: 'suspected_hang',
    severity: 'warning',
    power_watts: 123.2,
    pids: [10, 11],
    waiting: [1, 2],
    differing: [{ gpu: 3, pid: 13 }],
    ...CONDITION_BASE,
  },
  slower_than_itself: {
    condition: 'slower_than_itself',
    severity: 'warning',
    sm_mhz: 1410,
    usual_sm_mhz: 1980,
    power_watts: 330,
    usual_power_watts: 500,
    siblings: [1, 2],
    ...CONDITION_BASE,
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
    ...CONDITION_BASE,
  },
  held_by_nobody: {
    condition: 'held_by_nobody',
    severity: 'notice',
    bytes: GIB,
    ...CONDITION_BASE,
  },
  memory_nearly_full: {
    condition: 'memory_nearly_full',
    severity: 'warning',
    free_bytes: GIB,
    total_bytes: 80 * GIB,
    ...CONDITION_BASE,
  },
  memory_filling: {
    condition: 'memory_filling',
    severity: 'warning',
    left_ms: 60_000,
    bytes_per_second: GIB,
    growing: [{ pid: 10, bytes_per_second: GIB }],
    ...CONDITION_BASE,
  },
  ecc_uncorrected: {
    condition: 'ecc_uncorrected',
    severity: 'critical',
    count: 2,
    ...CONDITION_BASE,
  },
  row_remap: {
    condition: 'row_remap',
    severity: 'critical',
    pending: true,
    failed: true,
    ...CONDITION_BASE,
  },
  page_retirement_pending: {
    condition: 'page_retirement_pending',
    severity: 'warning',
    ...CONDITION_BASE,
  },
  recovery_needed: {
    condition: 'recovery_needed',
    severity: 'warning',
    action: 'drain_p2p',
    ...CONDITION_BASE,
  },
  nv_link_down: {
    condition: 'nv_link_down',
    severity: 'warning',
    links: [3, 4],
    ...CONDITION_BASE,
  },
  pcie_degraded: {
    condition: 'pcie_degraded',
    severity: 'warning',
    width: 8,
    max_width: 16,
    ...CONDITION_BASE,
  },
  xid: {
    condition: 'xid',
    severity: 'warning',
    code: 79,
    pid: 13,
    count: 3,
    last_ms: NOW,
    ...CONDITION_BASE,
  },
};
const PROCESS_REF = { pid: 4711, name: 'python3', started_ms: NOW };
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
  { what: 'process_started', ...PROCESS_REF, user: 'ana' },
  { what: 'process_ended', ...PROCESS_REF, user: { absent: 'hidden' } },
  { what: 'process_ended', ...PROCESS_REF, name: { absent: 'unknown' }, user: 'ana' },
  { what: 'mark', text: 'epoch 3', user: 'ana' },
].map(
  (event, i) =>
    ({ ...event, at_ms: NOW - i, gpu: i === 0 ? null : { index: 1, uuid: null } }) as Event,
);

/** Returns one GPU for each state. */
export function makeGpusInAllStates(): GpuSample[] {
  const { memory, power } = makeGpu(0);
  return [
    makeGpu(0, {
      processes: PROCESSES,
      conditions: Object.values(CONDITIONS),
      throttle_reasons: ['applications_clocks_setting'],
      limits: makeLimits({ owners: [{ pids: [13, 12, 11, 10], limits: LIMIT_SUMMARY }] }),
    }),
    makeGpu(1, { health: { state: 'lost', since_ms: NOW } }),
    makeGpu(2, { health: { state: 'hung', since_ms: NOW } }),
    makeGpu(3, {
      health: {
        state: 'failed',
        since_ms: NOW,
        reason: { absent: 'driver_error', code: 9 },
        meaning: '',
        advice: '',
      },
    }),
    makeGpu(4, { health: { state: 'asleep', since_ms: NOW } }),
    makeGpu(5, {
      mig_devices: [makeMigDevice(0)],
      processes: { absent: 'no_permission' },
      throttle_reasons: ['gpu_idle'],
    }),
    makeGpu(6, {
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
      mig_devices: [makeMigDevice(1)],
      processes: [makeProcess(20, { mig: { gpu_instance: 1, compute_instance: 0 } })],
    }),
  ];
}

/**
 * Returns the first frame of a connection. Every kind of state, condition and event occurs in the
 * frame.
 */
export function makeFullHello(): ServerFrame {
  const known = makeInventory(8, ...Array<Vendor>(7).fill('nvidia'), 'amd');
  known.platform.source = 'simulated';
  known.topology.push(
    { a: 0, b: 1, path: 'system', nvlinks: 0 },
    { a: 0, b: 2, path: 'node', nvlinks: 18 },
  );
  const sick = makeDetails(0, {
    modes: {
      ...makeDetails(0).modes,
      mig: { current: false, pending: true },
      compute: 'exclusive_process',
    },
    recovery_action: 'gpu_reset',
    nvlinks: [makeNvLink(0), makeNvLink(1, { active: false })],
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
  return makeHello({
    inventory: known,
    sample: makeSample(NOW, makeGpusInAllStates()),
    details: [sick, makeDetails(5), makeDetails(7)],
    events: EVENTS,
  });
}
