/** GPUs that a server which has just started cannot reach, as the one before it knew them. */

import type { Gpu, GpuSample, Health, Inventory, Sample } from '../wire';

/** A GPU without a UUID is the one that had its index, unless that stands elsewhere now. */
export function withKnownGpus(inventory: Inventory, before: Inventory | null): Inventory {
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

/** What was last read of such a GPU, with the time of then, and since when it has not answered. */
export function withKnownReadings(
  sample: Sample,
  before: Sample | null,
  inventory: Inventory | null,
): Sample {
  const known = (gpu: GpuSample): GpuSample => {
    const uuid = inventory?.gpus.find(({ index }) => index === gpu.index)?.uuid ?? null;
    const last = before?.gpus.find((old) => old.uuid === uuid);
    return gpu.uuid !== null || uuid === null || last === undefined
      ? gpu
      : { ...last, health: since(gpu.health, last.health) };
  };
  return sample.gpus.every(({ uuid }) => uuid !== null)
    ? sample
    : { ...sample, gpus: sample.gpus.map(known) };
}

function since(health: Health, before: Health): Health {
  return health.state !== 'ok' && before.state === health.state
    ? { ...health, since_ms: before.since_ms }
    : health;
}
