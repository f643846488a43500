/** Frames for tests of a machine with H200s, whose readings are all available by default. */

import type {
  Activity,
  Condition,
  Gpu,
  GpuSample,
  Hello,
  History,
  Inventory,
  LimitEvidence,
  Limits,
  LimitSummary,
  MigSample,
  Process,
  Sample,
  ServerFrame,
  Vendor,
} from '../wire';

export const GIB = 1024 ** 3;
/** The server's time in tests. */
export const NOW = Date.UTC(2026, 10, 20, 10, 42, 7);

/**
 * Returns an inventory of `count` GPUs. `vendors` contains the vendors of the first GPUs; the
 * others are from NVIDIA.
 */
export function makeInventory(count: number, ...vendors: Vendor[]): Inventory {
  return {
    at_ms: NOW,
    hostname: 'node-07',
    platform: {
      source: 'nvml',
      driver_version: '580.159.04',
      nvml_version: '13.580.159.04',
      cuda_version: '13.0',
    },
    gpus: Array.from({ length: count }, (_, index) => ({
      ...gpuIdentity(index),
      vendor: vendors[index] ?? 'nvidia',
    })),
    topology: [],
  };
}

function gpuIdentity(index: number): Gpu {
  return {
    index,
    uuid: `GPU-${index}`,
    name: 'NVIDIA H200',
    pci_bus_id: `00000000:0${index}:00.0`,
    board: {
      serial: '1650824000123',
      part_number: '699-2G520-0240-400',
      vbios_version: '96.00.BA.00.01',
      architecture: 'Hopper',
      compute_capability: '9.0',
      cores: 16_896,
      memory_bus_bits: 6144,
      minor_number: index,
      numa_node: 0,
      pcie_max_generation: 5,
      pcie_max_width: 16,
      max_clocks: { graphics_mhz: 1980, sm_mhz: 1980, memory_mhz: 3201, video_mhz: 1545 },
      power_limits: { default_watts: 700, min_watts: 200, max_watts: 700 },
      thresholds: {
        shutdown_celsius: 92,
        slowdown_celsius: 89,
        memory_max_celsius: 95,
        gpu_max_celsius: 87,
      },
    },
    mig_devices: [],
  };
}

export function makeGpu(index: number, changes: Partial<GpuSample> = {}): GpuSample {
  return {
    index,
    uuid: `GPU-${index}`,
    at_ms: NOW,
    health: { state: 'ok' },
    utilization: {
      gpu_percent: 96,
      memory_percent: 40,
      encoder_percent: 0,
      decoder_percent: 0,
      jpeg_percent: 0,
      ofa_percent: 0,
    },
    memory: {
      total_bytes: 140 * GIB,
      used_bytes: 78 * GIB,
      reserved_bytes: GIB,
      free_bytes: 61 * GIB,
    },
    power: {
      draw_watts: 692,
      instant_watts: 701,
      average_watts: 690,
      energy_joules_total: 1e6,
      limit_watts: 700,
    },
    activity: makeActivity(),
    limits: makeLimits(),
    temperature: { gpu_celsius: 64, memory_celsius: 70, margin_celsius: 23 },
    clocks: { graphics_mhz: 1980, sm_mhz: 1980, memory_mhz: 3201, video_mhz: 1545 },
    performance_state: 0,
    throttle_reasons: [],
    pcie: { generation: 5, width: 16, tx_bytes_per_second: 1.5e8, rx_bytes_per_second: 2.4e9 },
    nvlink: {
      tx_bytes_per_second: { absent: 'not_supported' },
      rx_bytes_per_second: { absent: 'not_supported' },
    },
    fan_percent: { absent: 'not_supported' },
    mig_devices: [],
    processes: [],
    conditions: [],
    ...changes,
  };
}

/** Returns a GPU with 120 GiB of unified memory. The rest of the system uses 20 GiB. */
export function makeUnifiedGpu(
  index: number,
  used_gib: number,
  changes: Partial<GpuSample> = {},
): GpuSample {
  return makeGpu(index, {
    memory_kind: 'unified',
    memory: {
      total_bytes: 120 * GIB,
      used_bytes: used_gib * GIB,
      reserved_bytes: { absent: 'not_supported' },
      free_bytes: (100 - used_gib) * GIB,
    },
    ...changes,
  });
}

function makeActivity(): Activity {
  return {
    graphics_percent: 96,
    sm_percent: 95,
    occupancy_percent: 21,
    tensor_percent: 58,
    tensor_half_percent: 58,
    tensor_integer_percent: 0,
    tensor_double_percent: 0,
    fp64_percent: 0,
    fp32_percent: 11,
    fp16_percent: 0,
    integer_percent: 7,
    dram_bandwidth_percent: 40,
  };
}

/** Returns the limits of a GPU whose tensor cores are busy for most of the time. */
export function makeLimits(changes: Partial<Limits> = {}): Limits {
  return {
    window_ms: 1000,
    idle_percent: 4,
    host_percent: 0.4,
    input_percent: 0,
    transfer_percent: 0,
    communication_percent: 0,
    memory_percent: 8,
    tensor_percent: 62,
    compute_percent: 0,
    latency_percent: 25.6,
    power_percent: 0,
    shared_percent: 0,
    unknown_percent: 0,
    main: 'tensor',
    confidence: 'high',
    evidence: { gpu_percent: 96, sm_percent: 95, tensor_percent: 58, dram_percent: 8 },
    text: 'A sentence of the server.',
    advice: 'A sentence of the server.',
    ...changes,
  };
}

/** The evidence for a process that computes on the CPU while the GPU waits. */
export const HOST_EVIDENCE: LimitEvidence = { gpu_percent: 38, cpu_percent: 100 };

/** The limits of a measurement in which the GPU waited most of the time. */
export const LIMIT_SUMMARY: LimitSummary = {
  windows_ms: 5000,
  shares: [
    { cause: 'host', percent: 62 },
    { cause: 'tensor', percent: 30.4 },
  ],
  evidence: HOST_EVIDENCE,
  text: 'A sentence of the server.',
  advice: 'A sentence of the server.',
};

/** Returns one of the seven MIG devices of a GPU. */
export function makeMigDevice(instance: number): MigSample {
  return {
    uuid: `MIG-${instance}`,
    gpu_instance: 7 + instance,
    compute_instance: 0,
    memory: { total_bytes: 16 * GIB, used_bytes: 4 * GIB, reserved_bytes: 0, free_bytes: 12 * GIB },
    activity: makeActivity(),
  };
}

/**
 * Returns the condition of reduced clocks. With severity `notice` the cause is the power limit,
 * which is ordinary; otherwise it is heat.
 */
export function makeThrottledCondition(
  severity: Condition['severity'],
  since_ms = NOW - 60_000,
): Condition {
  const hot = severity !== 'notice';
  return {
    condition: 'throttled',
    gpu_celsius: 64,
    since_ms,
    severity,
    reasons: [hot ? 'hw_thermal_slowdown' : 'sw_power_cap'],
    text: `Clocks reduced: ${hot ? 'hardware thermal slowdown' : 'power-capped at 700 W'}.`,
  };
}

export function makeProcess(pid: number, changes: Partial<Process> = {}): Process {
  return {
    pid,
    kind: 'compute',
    memory_bytes: 61 * GIB,
    sm_percent: 93,
    memory_percent: 30,
    encoder_percent: 0,
    decoder_percent: 0,
    name: 'python3',
    command: 'python3 train.py',
    user: 'ana',
    host_memory_bytes: { value: 3 * GIB, at_ms: NOW - 2_000 },
    traced: false,
    started_ms: NOW - 3_600_000,
    mps: false,
    owner: { parents: [] },
    ...changes,
  };
}

export function makeSample(at_ms: number, gpus: GpuSample[], interval_ms = 1000): Sample {
  return {
    seq: 0,
    at_ms,
    interval_ms,
    gpus: gpus.map((one) => ({ ...one, at_ms })),
    host: {
      at_ms,
      cpu: { count: 16, busy_percent: 34, load_1m: 5.4 },
      memory: { total_bytes: 128 * GIB, used_bytes: 41 * GIB },
      swap: { total_bytes: 0, used_bytes: 0 },
      disk: {
        read_bytes_total: 0,
        written_bytes_total: 0,
        read_bytes_per_second: 1.2e9,
        written_bytes_per_second: 0,
      },
      network: {
        received_bytes_total: 0,
        sent_bytes_total: 0,
        received_bytes_per_second: { absent: 'warming_up' },
        sent_bytes_per_second: { absent: 'warming_up' },
      },
    },
  };
}

export const NO_HISTORY: History = { times_ms: [], gpus: [] };

export function makeHello(changes: Partial<Hello> = {}): ServerFrame {
  return {
    type: 'hello',
    version: '0.1.0',
    at_ms: NOW,
    collector: { state: 'running', since_ms: NOW, message: null },
    inventory: makeInventory(2),
    sample: makeSample(NOW, [makeGpu(0), makeGpu(1)]),
    details: [],
    events: [],
    history: NO_HISTORY,
    ...changes,
  };
}
