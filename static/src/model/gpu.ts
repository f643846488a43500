/** A GPU as the view needs it: what it is joined with what was read of it. */

import type { Gpu, GpuSample, Inventory, Sample } from '../wire';
import { valueOf } from './reading';

export interface GpuView {
  index: number;
  uuid: string | null;
  /** Without the vendor, which is the same for all. */
  name: string;
  fullName: string;
  busId: string | null;
  /** `null` until the first sample. */
  now: GpuSample | null;
}

/** Every GPU of the inventory in the driver's order; a lost one keeps its place. */
export function gpusOf(inventory: Inventory | null, sample: Sample | null): GpuView[] {
  const samples = new Map(sample?.gpus.map((gpu) => [gpu.index, gpu]));
  return (inventory?.gpus ?? []).map((gpu) => gpuView(gpu, samples.get(gpu.index) ?? null));
}

function gpuView(gpu: Gpu, now: GpuSample | null): GpuView {
  const fullName = valueOf(gpu.name) ?? 'unknown GPU';
  return {
    index: gpu.index,
    uuid: gpu.uuid,
    name: fullName.replace(/^NVIDIA\s+(?:GeForce\s+)?/, ''),
    fullName,
    busId: valueOf(gpu.pci_bus_id),
    now,
  };
}

/** The name of a GPU's series: the UUID outlives a change of index, and stands in until it is known. */
export function seriesKey(gpu: { index: number; uuid: string | null }, metric: string): string {
  return `${gpu.uuid ?? `index ${String(gpu.index)}`} ${metric}`;
}
