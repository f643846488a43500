/**
 * The readings of a GPU that its card does not show, in groups. Readings that the board does not
 * support are left out.
 */

import type { Reading } from '../../wire';
import type { GpuState } from '../gpu';
import { absenceOf } from '../reading';
import { BOARD, SETTINGS } from './board';
import type { Detail } from './detail';
import { ACTIVITY, CLOCKS } from './engines';
import { limitGroup } from './limits';
import { LINKS } from './links';
import { MEMORY } from './memory';
import { POWER } from './power';

const GROUPS = [ACTIVITY, CLOCKS, POWER, MEMORY, LINKS, SETTINGS, BOARD] as const;

/** The IDs of the most useful readings, for views that have no room for all readings. */
const KEYS: readonly string[] = [
  'activity.sm_percent',
  'activity.tensor_percent',
  'activity.dram_bandwidth_percent',
  'utilization.memory_percent',
  'clocks.sm_mhz',
  'clocks.memory_mhz',
  'temperature.memory_celsius',
  'fans',
  'ecc.volatile',
  'pcie.generation',
  'pcie.tx_bytes_per_second',
  'nvlinks',
];

export interface DetailRow {
  detail: Detail;
  label: string;
  reading: Reading<string>;
}

export interface RowGroup {
  title: string;
  rows: DetailRow[];
  /** Paragraphs about the rows. */
  notes: readonly string[];
}

export interface DetailGroups {
  groups: RowGroup[];
  /** The rows of the most useful readings. */
  keys: DetailRow[];
  /** The labels of readings that the board or driver does not support. */
  missing: string[];
}

/** Returns the further readings of a GPU, beyond the four on its card. */
export function detailGroups(gpu: GpuState): DetailGroups {
  const missing: string[] = [];
  const all = [limitGroup(gpu), ...GROUPS.map((group) => group())];
  const groups = all.map(({ title, details, notes = [] }) => ({
    title,
    notes,
    rows: details.flatMap((detail): DetailRow[] => {
      const reading = (detail.only ?? gpu.vendor) === gpu.vendor ? detail.read(gpu) : null;
      if (reading === null) {
        return [];
      }
      const label = typeof detail.label === 'string' ? detail.label : detail.label(gpu);
      if (absenceOf(reading)?.absent === 'not_supported') {
        missing.push(label);
        return [];
      }
      return [{ detail, label, reading }];
    }),
  }));
  const keys = groups.flatMap(({ rows }) => rows).filter(({ detail }) => KEYS.includes(detail.id));
  return { groups: groups.filter(({ rows }) => rows.length > 0), keys, missing };
}
