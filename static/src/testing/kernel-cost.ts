/** The server's answers about the cost of a kernel, for tests. */

import type { Cost, GpuCost, KernelCost } from '../wire';
import { GIB, LIMIT_SUMMARY, NOW } from './frames';

function makeGpuCost(index: number): GpuCost {
  return {
    index,
    uuid: `GPU-${index}`,
    name: 'NVIDIA H200',
    held_s: 5,
    gpu_s: 0.5,
    sm_percent: null,
    tensor_percent: null,
    dram_percent: null,
    peak_memory_bytes: GIB,
    memory_change_bytes: 0,
    energy_joules: null,
    shared: false,
    pcie_rx_bytes: null,
    pcie_tx_bytes: null,
    nvlink_rx_bytes: null,
    nvlink_tx_bytes: null,
    limits: LIMIT_SUMMARY,
    conditions: [],
  };
}

export function makeKernelCost(changes: Partial<Cost> = {}): KernelCost {
  const numbers = { duration_s: 5, gpu_s: 1, peak_memory_bytes: GIB, memory_change_bytes: 0 };
  const cost: Cost = {
    version: 1,
    name: null,
    started_ms: NOW,
    ended_ms: NOW + 5000,
    ...numbers,
    energy_joules: { least: 100, most: 100, estimate: 100 },
    shared: false,
    limits: LIMIT_SUMMARY,
    gpus: [makeGpuCost(0), makeGpuCost(1)],
    xids: [],
    marks: [],
    lost: [],
    ...changes,
  };
  const gpus = cost.gpus.map(({ name }) => name ?? 'GPU');
  const stored = { version: 1, ...numbers, energy_joules: 100, shared: false, gpus, run: null };
  return { cost, stored: gpus.length === 0 ? null : stored };
}
