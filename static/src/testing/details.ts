/** Slow readings for tests: a healthy H200 with eighteen NVLinks to switches. */

import type { GpuDetails, NvLink } from '../wire';
import { GIB, NOW } from './frames';

export function makeDetails(index: number, changes: Partial<GpuDetails> = {}): GpuDetails {
  const notSupported = { absent: 'not_supported' } as const;
  return {
    index,
    uuid: `GPU-${index}`,
    at_ms: NOW,
    modes: {
      persistence: true,
      compute: 'default',
      ecc: { current: true, pending: true },
      mig: { current: false, pending: false },
      accounting: false,
      display_active: false,
      confidential_compute: { enabled: false, devtools: false },
    },
    application_clocks: { graphics_mhz: notSupported, memory_mhz: notSupported },
    requested_power_limit_watts: 700,
    throttled: {
      power_seconds_total: 754,
      thermal_seconds_total: 0,
      sync_boost_seconds_total: 0,
      board_limit_seconds_total: 0,
      low_utilization_seconds_total: 9000,
      reliability_seconds_total: 0,
    },
    ecc: {
      volatile: { corrected_total: 0, uncorrected_total: 0 },
      aggregate: { corrected_total: 3, uncorrected_total: 0 },
      volatile_by_location: [],
      aggregate_by_location: [
        { location: 'device_memory', corrected_total: 3, uncorrected_total: 0 },
      ],
    },
    retired_pages: notSupported,
    remapped_rows: {
      correctable: 1,
      uncorrectable: 0,
      pending: false,
      failed: false,
      spare: { max: 2559, high: 1, partial: 0, low: 0, none: 0 },
    },
    bar1: { total_bytes: 256 * GIB, used_bytes: 2 * GIB },
    pcie_replays_total: 0,
    nvlinks: Array.from({ length: 18 }, (_, link) => makeNvLink(link)),
    fabric: notSupported,
    c2c_enabled: notSupported,
    recovery_action: 'none',
    fans: notSupported,
    accounting: [],
    ...changes,
  };
}

export function makeNvLink(link: number, changes: Partial<NvLink> = {}): NvLink {
  return {
    link,
    active: true,
    version: '4.0',
    bytes_per_second: 25e9,
    remote: 'switch',
    remote_pci_bus_id: '00000000:0a:00.0',
    tx_bytes_total: 0,
    rx_bytes_total: 0,
    errors_total: 0,
    replays_total: 0,
    recoveries_total: 0,
    crc_errors_total: 0,
    ...changes,
  };
}
