/** Replacements for GPUs that a restarted server cannot read, from the data before the restart. */

import type { Gpu, GpuSample, Health, Inventory, Sample } from '../wire';

/**
 * Replaces each GPU that has no UUID by the GPU that had the same index before the restart, unless
 * that GPU has another index by now.
 */
export function restoreUnreadGpus(inventory: Inventory, before: Inventory | null): Inventory {
  if (before?.hostname !== inventory.hostname) {
    return inventory;
  }
  const listed = new Set(inventory.gpus.map(({ uuid }) => uuid));
  const known = (gpu: Gpu): Gpu => {
    const last =
      gpu.uuid === null ? before.gpus.find(({ index }) => index === gpu.index) : undefined;
    return last === undefined || listed.has(last.uuid) ? gpu : last;
  };
  return { ...inventory, gpus: inventory.gpus.map(known) };
}

/**
 * Replaces the sample of each GPU that `restoreUnreadGpus` has replaced by the GPU's last readings
 * and their times. The health states since when the GPU has not responded.
 */
export function restoreUnreadSamples(
  sample: Sample,
  before: Sample | null,
  inventory: Inventory | null,
): Sample {
  const known = (gpu: GpuSample): GpuSample => {
    const uuid = inventory?.gpus.find(({ index }) => index === gpu.index)?.uuid ?? null;
    const last = before?.gpus.find((old) => old.uuid === uuid);
    return gpu.uuid !== null || uuid === null || last === undefined
      ? gpu
      : { ...last, health: keepFailureStart(gpu.health, last.health) };
  };
  return sample.gpus.every(({ uuid }) => uuid !== null)
    ? sample
    : { ...sample, gpus: sample.gpus.map(known) };
}

function keepFailureStart(health: Health, before: Health): Health {
  return health.state !== 'ok' && before.state === health.state
    ? { ...health, since_ms: before.since_ms }
    : health;
}
