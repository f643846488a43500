/** The state of a GPU's memory: its errors, and what was replaced because of them. */

import { memorySize, memoryNumber } from '../../lib/format';
import type { EccCounts, EccLocation, GpuDetails, RemappedRows, SpareRows } from '../../wire';
import { valueOf } from '../reading';
import type { Level } from '../words';
import { list, slow, together, type Detail, type DetailGroup } from './detail';

export const MEMORY: DetailGroup = {
  title: 'Memory',
  details: [
    errors('volatile', 'ECC since load'),
    errors('aggregate', 'ECC in its life'),
    {
      id: 'ecc.aggregate_by_location',
      label: 'ECC by place',
      read: slow(({ ecc }) => ecc.aggregate_by_location, placeWords),
    },
    {
      id: 'remapped_rows',
      label: 'Remapped rows',
      read: slow(({ remapped_rows }) => remapped_rows, remapWords),
      level: ({ details }) => remapLevel(details),
    },
    {
      id: 'remapped_rows.spare',
      label: 'Spare rows',
      read: (gpu) => {
        const rows = gpu.details === null ? null : valueOf(gpu.details.remapped_rows);
        const spare = rows?.spare ?? null;
        return spare === null ? null : slow(() => spare, spareWords)(gpu);
      },
    },
    {
      id: 'retired_pages',
      label: 'Retired pages',
      read: slow(
        ({ retired_pages }) => retired_pages,
        ({ single_bit, double_bit, pending }) =>
          list([
            `${String(single_bit)} single-bit`,
            `${String(double_bit)} double-bit`,
            pending ? 'reset needed' : null,
          ]),
      ),
      level: ({ details }) => {
        const pages = details === null ? null : valueOf(details.retired_pages);
        return pages?.pending === true ? 'warn' : 'quiet';
      },
    },
    {
      id: 'bar1',
      label: 'BAR1',
      read: slow(
        ({ bar1 }) => bar1,
        ({ used_bytes, total_bytes }) => `${memoryNumber(used_bytes)} / ${memorySize(total_bytes)}`,
      ),
    },
  ],
};

function errors(kind: 'volatile' | 'aggregate', label: string): Detail {
  return {
    id: `ecc.${kind}`,
    label,
    read: slow(
      ({ ecc }) => errorWords(ecc[kind]),
      (text) => text,
    ),
    level: ({ details }) => {
      const wrong = details === null ? null : valueOf(details.ecc[kind].uncorrected_total);
      return wrong === null || wrong === 0 ? 'quiet' : kind === 'volatile' ? 'act' : 'warn';
    },
  };
}

function errorWords(counts: EccCounts): ReturnType<typeof together> {
  return together([counts.corrected_total, counts.uncorrected_total], ([corrected, uncorrected]) =>
    corrected === 0 && uncorrected === 0
      ? 'no errors'
      : list([
          corrected == null ? null : `${String(corrected)}\u00a0corrected`,
          uncorrected == null ? null : `${String(uncorrected)}\u00a0uncorrected`,
        ]),
  );
}

function placeWords(places: readonly EccLocation[]): string {
  const hit = places.filter((place) => place.corrected_total + place.uncorrected_total > 0);
  return (
    list(
      hit.map(({ location, corrected_total, uncorrected_total }) => {
        const name = location.replaceAll('_', ' ');
        return `${name} ${String(corrected_total)} + ${String(uncorrected_total)}`;
      }),
    ) || 'none'
  );
}

function remapWords({ correctable, uncorrectable, pending, failed }: RemappedRows): string {
  return list([
    String(correctable + uncorrectable),
    pending ? 'reset needed' : null,
    failed ? 'no spare row left' : null,
  ]);
}

function remapLevel(details: GpuDetails | null): Level {
  const rows = details === null ? null : valueOf(details.remapped_rows);
  return rows?.failed === true ? 'act' : rows?.pending === true ? 'warn' : 'quiet';
}

/** Banks that will soon have no spare row are what matters; the others are counted as one. */
function spareWords({ max, high, partial, low, none }: SpareRows): string {
  const enough = max + high + partial;
  return low + none === 0
    ? 'enough in all banks'
    : list([`enough in ${String(enough)} banks`, `few in ${String(low)}`, `none in ${String(none)}`]);
}
