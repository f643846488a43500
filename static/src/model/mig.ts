/** MIG devices and other vendors' partitions, with their latest readings. */

import { joinParts, plainText } from '../lib/text';
import type { Reading } from '../wire';
import { within } from '../wire/fields';
import type { GpuState } from './gpu';
import { valueOf } from './reading';
import { vendorWordsOf } from './vendor-words';

export interface MigRow {
  uuid: string;
  /** The profile such as `1g.18gb`, or the instance if the profile is unknown. */
  name: string;
  /** The instance and its size, such as `MIG 7/0 · 16 SMs`. */
  instance: string;
  used_bytes: Reading<number>;
  total_bytes: number | null;
  /** The share of the memory in use from 0 to 1; 0 if it is unknown. */
  share: number;
  sm_percent: Reading<number>;
  tensor_percent: Reading<number>;
}

/** Returns a GPU's MIG devices in the driver's order, or an empty list if MIG is disabled. */
export function migRows(gpu: GpuState): MigRow[] {
  const words = vendorWordsOf(gpu);
  const devices = new Map(gpu.migDevices.map((device) => [device.uuid, device]));
  return (valueOf(gpu.now?.mig_devices) ?? []).map((now) => {
    const device = devices.get(now.uuid);
    const instance = words.partition(now);
    const profile = valueOf(device?.profile);
    const sms = valueOf(device?.multiprocessors);
    const used = valueOf(now.memory.used_bytes);
    const total = valueOf(now.memory.total_bytes);
    return {
      uuid: now.uuid,
      name: profile === null ? instance : plainText(profile, 40),
      instance: joinParts([profile && instance, sms === null ? null : words.countUnits(sms)]),
      used_bytes: now.memory.used_bytes,
      total_bytes: total,
      share: used === null || total === null || total === 0 ? 0 : Math.min(1, used / total),
      sm_percent: within(now.activity, (parts) => parts.sm_percent),
      tensor_percent: within(now.activity, (parts) => parts.tensor_percent),
    };
  });
}
