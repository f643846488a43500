/** The state of a GPU's memory: its errors, and what was replaced because of them. */

import { count, memoryNumber, memoryTotal } from '../../lib/format';
import { table, trans } from '../../lib/translation';
import type { EccCounts, EccLocation, GpuDetails, RemappedRows, SpareRows } from '../../wire';
import { valueOf } from '../reading';
import type { Level } from '../describe';
import { list, slow, together, type Detail, type DetailGroup } from './detail';

export const MEMORY = table((): DetailGroup => ({
  title: trans.__('Memory'),
  details: [
    errors('volatile', trans.__('ECC errors (volatile)')),
    errors('aggregate', trans.__('ECC errors (lifetime)')),
    {
      id: 'ecc.aggregate_by_location',
      label: trans.__('ECC errors by location'),
      read: slow(({ ecc }) => ecc.aggregate_by_location, describePlace),
    },
    {
      id: 'remapped_rows',
      label: trans.__('Remapped rows'),
      read: slow(({ remapped_rows }) => remapped_rows, describeRemap),
      level: ({ details }) => remapLevel(details),
    },
    {
      id: 'remapped_rows.spare',
      label: trans.__('Spare rows'),
      read: (gpu) => {
        const rows = gpu.details === null ? null : valueOf(gpu.details.remapped_rows);
        const spare = rows?.spare ?? null;
        return spare === null ? null : slow(() => spare, describeSpare)(gpu);
      },
    },
    {
      id: 'retired_pages',
      label: trans.__('Retired pages'),
      read: slow(
        ({ retired_pages }) => retired_pages,
        ({ single_bit, double_bit, pending }) =>
          list([
            trans._n('%1 single-bit', '%1 single-bit', single_bit),
            trans._n('%1 double-bit', '%1 double-bit', double_bit),
            pending ? trans.__('reset needed') : null,
          ]),
      ),
      level: ({ details }) => {
        const pages = details === null ? null : valueOf(details.retired_pages);
        return pages?.pending === true ? 'warning' : 'none';
      },
    },
    {
      id: 'bar1',
      label: 'BAR1',
      read: slow(
        ({ bar1 }) => bar1,
        ({ used_bytes, total_bytes }) => `${memoryNumber(used_bytes)} ${memoryTotal(total_bytes)}`,
      ),
    },
  ],
}));

function errors(kind: 'volatile' | 'aggregate', label: string): Detail {
  return {
    id: `ecc.${kind}`,
    label,
    read: slow(
      ({ ecc }) => describeError(ecc[kind]),
      (text) => text,
    ),
    level: ({ details }) => {
      const wrong = details === null ? null : valueOf(details.ecc[kind].uncorrected_total);
      return wrong === null || wrong === 0 ? 'none' : kind === 'volatile' ? 'critical' : 'warning';
    },
  };
}

function describeError(counts: EccCounts): ReturnType<typeof together> {
  return together([counts.corrected_total, counts.uncorrected_total], ([corrected, uncorrected]) =>
    corrected === 0 && uncorrected === 0
      ? trans.__('no errors')
      : list([
          corrected == null ? null : trans._n('%1\u00a0corrected', '%1\u00a0corrected', corrected),
          uncorrected == null ? null : trans._n('%1\u00a0uncorrected', '%1\u00a0uncorrected', uncorrected),
        ]),
  );
}

function describePlace(places: readonly EccLocation[]): string {
  const hit = places.filter((place) => place.corrected_total + place.uncorrected_total > 0);
  return (
    list(
      hit.map(({ location, corrected_total, uncorrected_total }) => {
        const name = location.replaceAll('_', ' ');
        return `${name} ${count(corrected_total)} + ${count(uncorrected_total)}`;
      }),
    ) || trans.__('none')
  );
}

function describeRemap({ correctable, uncorrectable, pending, failed }: RemappedRows): string {
  return list([
    count(correctable + uncorrectable),
    pending ? trans.__('reset needed') : null,
    failed ? trans.__('no spare row left') : null,
  ]);
}

function remapLevel(details: GpuDetails | null): Level {
  const rows = details === null ? null : valueOf(details.remapped_rows);
  return rows?.failed === true ? 'critical' : rows?.pending === true ? 'warning' : 'none';
}

/** Banks that will soon have no spare row are what matters; the others are counted as one. */
function describeSpare({ max, high, partial, low, none }: SpareRows): string {
  const enough = max + high + partial;
  return low + none === 0
    ? trans.__('enough in all banks')
    : list([
        trans._n('enough in %1 bank', 'enough in %1 banks', enough),
        trans.__('few in %1', low),
        trans.__('none in %1', none),
      ]);
}
