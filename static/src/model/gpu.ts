/** A GPU with its static properties and its latest readings. */

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
  /** The model name without the vendor. */
  name: string;
  fullName: string;
  busId: string | null;
  board: Board;
  migDevices: readonly MigDevice[];
  /** The links to each other GPU. */
  links: readonly GpuLink[];
  /** The latest sample; `null` before the first one. */
  now: GpuSample | null;
  /** The slow readings; `null` until they have been read. */
  details: GpuDetails | null;
}

/** A sample of a GPU that shares the machine's memory. */
type UnifiedSample = GpuSample & { memory_kind: 'unified' };

export function isUnified(gpu: GpuSample | null | undefined): gpu is UnifiedSample {
  return gpu?.memory_kind === 'unified';
}

/** Returns the model name of a GPU without its vendor. */
export function removeVendorName(name: string): string {
  const vendor = Object.values(VENDORS).find((known) => name.startsWith(`${known} `)) ?? '';
  return name.slice(vendor.length).trimStart();
}

/** Returns all GPUs of the inventory in the driver's order, including lost ones. */
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
    // Old recordings do not contain the vendor. They were all made with NVIDIA GPUs.
    vendor: gpu.vendor ?? 'nvidia',
    name: removeVendorName(fullName).replace(/^GeForce\s+/, ''),
    fullName,
    busId: valueOf(gpu.pci_bus_id),
    board: gpu.board,
    migDevices: gpu.mig_devices,
    links: topology.filter(({ a, b }) => a === gpu.index || b === gpu.index),
    now,
    // The details are ignored if they belong to another board that previously had this index.
    details: details?.uuid === gpu.uuid ? details : null,
  };
}

/** Returns the common name of the GPUs, or `null` if their names differ. */
export function commonName(gpus: readonly GpuState[]): string | null {
  const [first] = gpus;
  return first !== undefined && gpus.every(({ name }) => name === first.name) ? first.name : null;
}

/**
 * Returns the name of a GPU's series. The name contains the UUID, because the index may change. If
 * the UUID is unknown, it contains the index.
 */
export function seriesKey(gpu: { index: number; uuid: string | null }, metric: string): string {
  return `${gpu.uuid ?? `index ${gpu.index}`} ${metric}`;
}

/** Returns all series of a history by name: of GPUs, MIG devices and the machine. */
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
