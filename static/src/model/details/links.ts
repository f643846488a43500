/** The details of a GPU's links to the machine and to other GPUs. */

import { groupBy } from '../../lib/collections';
import { formatBytesPerSecond, formatCount } from '../../lib/format';
import { joinParts, plainText } from '../../lib/text';
import { lazyTexts, trans } from '../../lib/translation';
import type { Fabric, FabricState, NvLink, PciPath, Reading } from '../../wire';
import type { GpuState } from '../gpu';
import { absenceOf, valueOf } from '../reading';
import { vendorWordsOf } from '../vendor-words';
import {
  formatReading,
  formatOnOff,
  timestampedDetail,
  combineReadings,
  UNKNOWN,
  type Detail,
  type DetailGroup,
} from './detail';

export const LINKS = lazyTexts((): DetailGroup => ({
  title: trans.__('Links'),
  details: [
    {
      id: 'pcie.generation',
      label: 'PCIe',
      read: ({ now }) => (now === null ? null : describePcie(now.pcie.generation, now.pcie.width)),
      rest: ({ board }) => {
        const max = describePcie(board.pcie_max_generation, board.pcie_max_width);
        return typeof max === 'string' ? trans.__('of %1', max) : '';
      },
    },
    makeTrafficDetail('pcie', () => 'PCIe'),
    timestampedDetail(
      'pcie_replays_total',
      trans.__('PCIe replays'),
      ({ pcie_replays_total }) => pcie_replays_total,
      formatCount,
    ),
    timestampedDetail(
      'nvlinks',
      vendorLinkName,
      ({ nvlinks }) => replaceEmptyLinks(nvlinks),
      describeActiveLinks,
      {
        rest: (gpu) => linkSpeed(linksOf(gpu)),
        level: (gpu) => {
          const links = linksOf(gpu);
          const up = countActiveLinks(links);
          return up > 0 && up < links.length ? 'warning' : 'none';
        },
      },
    ),
    makeTrafficDetail('nvlink', vendorLinkName),
    timestampedDetail(
      'nvlinks.errors_total',
      (gpu) => trans.__('%1 errors', vendorLinkName(gpu)),
      ({ nvlinks }) => sumLinkErrors(replaceEmptyLinks(nvlinks)),
      formatCount,
    ),
    timestampedDetail('fabric', trans.__('Fabric'), ({ fabric }) => fabric, describeFabric, {
      only: 'nvidia',
    }),
    timestampedDetail(
      'c2c_enabled',
      trans.__('NVLink-C2C'),
      ({ c2c_enabled }) => c2c_enabled,
      formatOnOff,
      {
        only: 'nvidia',
      },
    ),
    {
      id: 'topology',
      label: trans.__('Topology'),
      read: (gpu) => (gpu.links.length === 0 ? null : describeGpuPaths(gpu)),
    },
  ],
}));

const FABRIC = lazyTexts((): Record<FabricState, string> => ({
  not_supported: trans.__('not supported'),
  not_started: trans.__('not started'),
  in_progress: trans.__('in progress'),
  completed: trans.__('completed'),
}));

const PATHS = lazyTexts((): Record<PciPath, string> => ({
  internal: trans.__('same board'),
  single: trans.__('one PCIe switch'),
  multiple: trans.__('PCIe switches'),
  host_bridge: trans.__('one host bridge'),
  node: trans.__('one CPU'),
  system: trans.__('across CPUs'),
}));

function describePcie(generation: Reading<number>, width: Reading<number>): Reading<string> {
  return combineReadings([generation, width], ([gen, lanes]) =>
    joinParts(
      [gen == null ? null : trans.__('gen %1', gen), lanes == null ? null : `×${lanes}`],
      ' ',
    ),
  );
}

function vendorLinkName(gpu: GpuState): string {
  return vendorWordsOf(gpu).link;
}

function makeTrafficDetail(link: 'pcie' | 'nvlink', nameOf: (gpu: GpuState) => string): Detail {
  return {
    id: `${link}.tx_bytes_per_second`,
    label: (gpu) => trans.__('%1 traffic', nameOf(gpu)),
    read: ({ now }) => {
      if (now === null) {
        return null;
      }
      const { rx_bytes_per_second: rx, tx_bytes_per_second: tx } = now[link];
      const received = formatReading(rx, (rate) => trans.__('%1 RX', formatBytesPerSecond(rate)));
      const sent = formatReading(tx, (rate) => trans.__('%1 TX', formatBytesPerSecond(rate)));
      return combineReadings([received, sent], (parts) => joinParts(parts));
    },
  };
}

/** Returns the links, or `not_supported` for a board without NVLinks. */
function replaceEmptyLinks(nvlinks: Reading<NvLink[]>): Reading<NvLink[]> {
  return valueOf(nvlinks)?.length === 0 ? { absent: 'not_supported' } : nvlinks;
}

function linksOf({ details }: GpuState): NvLink[] {
  return valueOf(details?.nvlinks) ?? [];
}

function describeFabric({ state, status, clique_id }: Fabric): string {
  const error = status === 0 ? null : trans.__('error %1', status);
  return joinParts([FABRIC()[state], error, trans.__('clique %1', clique_id)]);
}

function countActiveLinks(links: readonly NvLink[]): number {
  return links.filter(({ active }) => valueOf(active) === true).length;
}

function describeActiveLinks(links: readonly NvLink[]): string {
  return trans._n('%1 of %2 up', '%1 of %2 up', countActiveLinks(links), links.length);
}

/** Returns the version and speed of the first link that is up. */
function linkSpeed(links: readonly NvLink[]): string {
  const first = links.find(({ active }) => valueOf(active) === true);
  if (first === undefined) {
    return '';
  }
  const version = valueOf(first.version);
  const speed = valueOf(first.bytes_per_second);
  const known = joinParts(
    [version && plainText(version, 20), speed === null ? null : formatBytesPerSecond(speed)],
    ', ',
  );
  return known && `(${known})`;
}

/**
 * Returns the total number of errors of all links. If no link counts errors, returns the reason
 * that the first link gives.
 */
function sumLinkErrors(nvlinks: Reading<NvLink[]>): Reading<number> {
  const links = valueOf(nvlinks);
  if (links === null) {
    return absenceOf(nvlinks) ?? UNKNOWN;
  }
  const counts = links
    .map(({ errors_total }) => valueOf(errors_total))
    .filter((count) => count !== null);
  const first = links[0];
  return counts.length > 0 || first === undefined
    ? counts.reduce((sum, count) => sum + count, 0)
    : (absenceOf(first.errors_total) ?? UNKNOWN);
}

/** Groups the other GPUs by the path to them: `1, 2, 3: 18 NVLinks`. */
function describeGpuPaths(gpu: GpuState): string {
  const { countLinks } = vendorWordsOf(gpu);
  const byPath = groupBy(gpu.links, (link) => {
    const nvlinks = valueOf(link.nvlinks) ?? 0;
    const path = valueOf(link.path);
    return nvlinks > 0
      ? countLinks(nvlinks)
      : path === null
        ? trans.__('path unknown')
        : PATHS()[path];
  });
  return joinParts(
    [...byPath].map(([path, links]) => {
      const others = links.map(({ a, b }) => (a === gpu.index ? b : a));
      return `${others.join(', ')}: ${path}`;
    }),
  );
}
