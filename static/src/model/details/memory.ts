/** The details of a GPU's memory health: errors, and replaced rows and pages. */

import {
  formatCount,
  formatMemoryNumber,
  formatMemorySize,
  formatMemoryTotal,
} from '../../lib/format';
import { joinParts } from '../../lib/text';
import { lazyTexts, trans } from '../../lib/translation';
import type {
  EccCounts,
  EccLocation,
  GpuDetails,
  RemappedRows,
  RetiredPages,
  SpareRows,
} from '../../wire';
import { isUnified } from '../gpu';
import { describeAvailableUnifiedMemory, restOfSystemBytes } from '../memory';
import { valueOf } from '../reading';
import type { Level } from '../describe';
import {
  formatReading,
  timestampedDetail,
  combineReadings,
  type Detail,
  type DetailGroup,
} from './detail';

export const MEMORY = lazyTexts((): DetailGroup => ({
  title: trans.__('Memory'),
  details: [
    {
      id: 'memory.free_bytes',
      label: trans.__('Unified memory'),
      read: ({ now }) =>
        isUnified(now)
          ? formatReading(now.memory.free_bytes, () => describeAvailableUnifiedMemory(now))
          : null,
    },
    {
      id: 'memory.system_bytes',
      label: trans.__('Rest of the system'),
      read: ({ now }) => {
        const system = now && restOfSystemBytes(now);
        return system === null ? null : formatMemorySize(system);
      },
    },
    errorDetail('volatile', trans.__('ECC errors (volatile)')),
    errorDetail('aggregate', trans.__('ECC errors (lifetime)')),
    timestampedDetail(
      'ecc.aggregate_by_location',
      trans.__('ECC errors by location'),
      ({ ecc }) => ecc.aggregate_by_location,
      describeErrorLocations,
    ),
    timestampedDetail(
      'remapped_rows',
      trans.__('Remapped rows'),
      ({ remapped_rows: rows }) => rows,
      describeRemap,
      {
        level: ({ details }) => remapLevel(details),
      },
    ),
    timestampedDetail(
      'remapped_rows.spare',
      trans.__('Spare rows'),
      ({ remapped_rows: rows }) => valueOf(rows)?.spare ?? null,
      describeSpareRows,
    ),
    timestampedDetail(
      'retired_pages',
      trans.__('Retired pages'),
      ({ retired_pages }) => retired_pages,
      describePages,
      {
        level: ({ details }) =>
          valueOf(details?.retired_pages)?.pending === true ? 'warning' : 'none',
      },
    ),
    timestampedDetail(
      'bar1',
      'BAR1',
      ({ bar1 }) => bar1,
      ({ used_bytes, total_bytes }) =>
        `${formatMemoryNumber(used_bytes)} ${formatMemoryTotal(total_bytes)}`,
    ),
  ],
}));

function errorDetail(kind: 'volatile' | 'aggregate', label: string): Detail {
  return timestampedDetail(
    `ecc.${kind}`,
    label,
    ({ ecc }) => describeErrorCounts(ecc[kind]),
    String,
    {
      level: ({ details }) => {
        const wrong = valueOf(details?.ecc[kind].uncorrected_total) ?? 0;
        return wrong === 0 ? 'none' : kind === 'volatile' ? 'critical' : 'warning';
      },
    },
  );
}

function describeErrorCounts(counts: EccCounts): ReturnType<typeof combineReadings> {
  return combineReadings(
    [counts.corrected_total, counts.uncorrected_total],
    ([corrected, uncorrected]) =>
      corrected === 0 && uncorrected === 0
        ? trans.__('no errors')
        : joinParts([
            corrected == null
              ? null
              : trans._n('%1\u00a0corrected', '%1\u00a0corrected', corrected),
            uncorrected == null
              ? null
              : trans._n('%1\u00a0uncorrected', '%1\u00a0uncorrected', uncorrected),
          ]),
  );
}

function describeErrorLocations(places: readonly EccLocation[]): string {
  const hit = places.filter((place) => place.corrected_total + place.uncorrected_total > 0);
  return (
    joinParts(
      hit.map(({ location, corrected_total, uncorrected_total }) => {
        const name = location.replaceAll('_', ' ');
        return `${name} ${formatCount(corrected_total)} + ${formatCount(uncorrected_total)}`;
      }),
    ) || trans.__('none')
  );
}

function describeRemap({ correctable, uncorrectable, pending, failed }: RemappedRows): string {
  return joinParts([
    formatCount(correctable + uncorrectable),
    pending ? trans.__('reset needed') : null,
    failed ? trans.__('no spare row left') : null,
  ]);
}

function remapLevel(details: GpuDetails | null): Level {
  const rows = valueOf(details?.remapped_rows);
  return rows?.failed === true ? 'critical' : rows?.pending === true ? 'warning' : 'none';
}

function describePages({ single_bit, double_bit, pending }: RetiredPages): string {
  return joinParts([
    trans._n('%1 single-bit', '%1 single-bit', single_bit),
    trans._n('%1 double-bit', '%1 double-bit', double_bit),
    pending ? trans.__('reset needed') : null,
  ]);
}

/**
 * Describes the spare rows. Banks with few or no spare rows are counted separately, and all other
 * banks are counted together.
 */
function describeSpareRows({ max, high, partial, low, none }: SpareRows): string {
  const enough = max + high + partial;
  return low + none === 0
    ? trans.__('enough in all banks')
    : joinParts([
        trans._n('enough in %1 bank', 'enough in %1 banks', enough),
        trans.__('few in %1', low),
        trans.__('none in %1', none),
      ]);
}
