/** A GPU as the view needs it: what it is joined with what was read of it. */

import { trans } from '../lib/translation';
import type {
  Board,
  Gpu,
  GpuDetails,
  GpuLink,
  GpuSample,
  Inventory,
  MigDevice,
  Sample,
  Vendor,
} from '../wire';
import { VENDORS } from '../wire/vendors';
import { valueOf } from './reading';

export interface GpuState {
  index: number;
  uuid: string | null;
  vendor: Vendor;
  /** The name without its vendor. */
  name: string;
  fullName: string;
  busId: string | null;
  board: Board;
  migDevices: readonly MigDevice[];
  /** What lies between it and each other GPU. */
  links: readonly GpuLink[];
  /** `null` until the first sample. */
  now: GpuSample | null;
  /** `null` until they have been read. */
  details: GpuDetails | null;
}

/** The name of a GPU without its vendor. */
export function withoutVendor(name: string): string {
  const vendor = Object.values(VENDORS).find((known) => name.startsWith(`${known} `)) ?? '';
  return name.slice(vendor.length).trimStart();
}

/** Every GPU of the inventory in the driver's order; a lost one keeps its place. */
export function gpusOf(
  inventory: Inventory | null,
  sample: Sample | null,
  details: ReadonlyMap<number, GpuDetails> = new Map(),
): GpuState[] {
  const samples = new Map(sample?.gpus.map((gpu) => [gpu.index, gpu]));
  return (inventory?.gpus ?? []).map((gpu) =>
    gpuState(
      gpu,
      inventory?.topology ?? [],
      samples.get(gpu.index) ?? null,
      details.get(gpu.index) ?? null,
    ),
  );
}

function gpuState(
  gpu: Gpu,
  topology: readonly GpuLink[],
  now: GpuSample | null,
  details: GpuDetails | null,
): GpuState {
  const fullName = valueOf(gpu.name) ?? trans.__('unknown GPU');
  return {
    index: gpu.index,
    uuid: gpu.uuid,
    // Old recordings have none: they are of NVIDIA's GPUs.
    vendor: gpu.vendor ?? 'nvidia',
    name: withoutVendor(fullName).replace(/^GeForce\s+/, ''),
    fullName,
    busId: valueOf(gpu.pci_bus_id),
    board: gpu.board,
    migDevices: gpu.mig_devices,
    links: topology.filter(({ a, b }) => a === gpu.index || b === gpu.index),
    now,
    // Those of another board that had this index before are not its own.
    details: details?.uuid === gpu.uuid ? details : null,
  };
}

/** What all of them are called; `null` where they are not all alike. */
export function commonName(gpus: readonly GpuState[]): string | null {
  const [first] = gpus;
  return first !== undefined && gpus.every(({ name }) => name === first.name) ? first.name : null;
}

/**
 * The name of a GPU's series: the UUID outlives a change of index, and stands in until it is known.
 */
export function seriesKey(gpu: { index: number; uuid: string | null }, metric: string): string {
  return `${gpu.uuid ?? `index ${gpu.index}`} ${metric}`;
}

/** Whatever a history has of GPUs, MIG devices and the machine, by the names of their series. */
export function seriesByKey<T>(history: {
  gpus: readonly { uuid: string; metrics: Record<string, T> }[];
  mig_devices?: readonly { uuid: string; metrics: Record<string, T> }[];
  host?: Record<string, T>;
}): Map<string, T> {
  const series = new Map<string, T>(Object.entries(history.host ?? {}));
  for (const { uuid, metrics } of [...history.gpus, ...(history.mig_devices ?? [])]) {
    for (const [id, values] of Object.entries(metrics)) {
      series.set(seriesKey({ index: -1, uuid }, id), values);
    }
  }
  return series;
}
