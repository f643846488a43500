import { expect, it } from 'vitest';

import { GIB, makeGpu, makeInventory, makeMigDevice, NOW, makeSample } from '../testing/frames';
import type { GpuSample, MigDevice, Vendor } from '../wire';
import { gpusOf } from './gpu';
import { migRows } from './mig';

const DEVICE: MigDevice = {
  index: 0,
  uuid: 'MIG-0',
  gpu_instance: 7,
  compute_instance: 0,
  profile: '1g.18gb',
  multiprocessors: 16,
  copy_engines: 1,
  decoders: 1,
  encoders: 0,
};

function rowsOf(
  now: GpuSample,
  devices: MigDevice[],
  vendor: Vendor = 'nvidia',
): ReturnType<typeof migRows> {
  const machine = makeInventory(1, vendor);
  const identities = machine.gpus.map((one) => ({ ...one, mig_devices: devices }));
  return gpusOf({ ...machine, gpus: identities }, makeSample(NOW, [now])).flatMap(migRows);
}

it('MIG device combines inventory and readings', () => {
  const rows = rowsOf(makeGpu(0, { mig_devices: [makeMigDevice(1), makeMigDevice(0)] }), [DEVICE]);
  expect(rows[1]).toMatchObject({
    name: '1g.18gb',
    instance: 'MIG 7/0 · 16 SMs',
    share: 0.25,
    total_bytes: 16 * GIB,
  });
  expect(rows[1]?.sm_percent).toBe(95);
  expect(rows[0]).toMatchObject({ name: 'MIG 8/0', instance: '' });
});

it('partition is described in terms of its vendor', () => {
  const rows = rowsOf(makeGpu(0, { mig_devices: [makeMigDevice(0)] }), [DEVICE], 'amd');
  expect(rows[0]?.instance).toBe('partition 7 · 16 CUs');
});

it('missing MIG reading is not 0', () => {
  const blind = { ...makeMigDevice(0), activity: { absent: 'warming_up' } as const };
  const [row] = rowsOf(makeGpu(0, { mig_devices: [blind] }), [DEVICE]);
  expect(row?.sm_percent).toEqual({ absent: 'warming_up' });
});

it('disabled MIG has no devices', () => {
  expect(rowsOf(makeGpu(0), [])).toEqual([]);
  expect(rowsOf(makeGpu(0, { mig_devices: { absent: 'not_supported' } }), [])).toEqual([]);
});
