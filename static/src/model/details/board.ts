/** The details of a GPU's board and its settings. */

import { formatCount } from '../../lib/format';
import { joinParts, plainText } from '../../lib/text';
import { lazyTexts, trans } from '../../lib/translation';
import type { ComputeMode, Mode, RecoveryAction } from '../../wire';
import { valueOf } from '../reading';
import {
  boardDetail,
  formatOnOff,
  timestampedDetail,
  combineReadings,
  type DetailGroup,
} from './detail';

const COMPUTE = lazyTexts((): Record<ComputeMode, string> => ({
  default: trans.__('default'),
  exclusive_process: trans.__('exclusive process'),
  prohibited: trans.__('prohibited'),
}));

const RECOVERY = lazyTexts((): Record<RecoveryAction, string> => ({
  none: trans.__('none'),
  gpu_reset: trans.__('reset the GPU'),
  node_reboot: trans.__('reboot the machine'),
  drain_p2p: trans.__('drain peer-to-peer'),
  drain_and_reset: trans.__('drain and reset'),
}));

export const SETTINGS = lazyTexts((): DetailGroup => ({
  title: trans.__('Settings'),
  details: [
    timestampedDetail(
      'modes.persistence',
      trans.__('Persistence'),
      ({ modes }) => modes.persistence,
      formatOnOff,
    ),
    timestampedDetail(
      'modes.compute',
      trans.__('Compute mode'),
      ({ modes }) => modes.compute,
      (mode) => COMPUTE()[mode],
    ),
    timestampedDetail('modes.ecc', 'ECC', ({ modes }) => modes.ecc, describeMode),
    timestampedDetail('modes.mig', 'MIG', ({ modes }) => modes.mig, describeMode, {
      only: 'nvidia',
    }),
    timestampedDetail(
      'modes.accounting',
      trans.__('Accounting'),
      ({ modes }) => modes.accounting,
      formatOnOff,
    ),
    timestampedDetail(
      'modes.display_active',
      trans.__('Display'),
      ({ modes }) => modes.display_active,
      formatOnOff,
    ),
    timestampedDetail(
      'modes.confidential_compute',
      trans.__('Confidential computing'),
      ({ modes }) => modes.confidential_compute,
      ({ enabled, devtools }) =>
        enabled && devtools ? trans.__('on (developer tools)') : formatOnOff(enabled),
    ),
    timestampedDetail(
      'recovery_action',
      trans.__('Recovery action'),
      ({ recovery_action }) => recovery_action,
      (action) => RECOVERY()[action],
      {
        level: ({ details }) =>
          (valueOf(details?.recovery_action) ?? 'none') === 'none' ? 'none' : 'critical',
      },
    ),
  ],
}));

export const BOARD = lazyTexts((): DetailGroup => ({
  title: trans.__('Board'),
  details: [
    {
      id: 'board.architecture',
      label: trans.__('Architecture'),
      read: ({ board }) =>
        combineReadings([board.architecture, board.compute_capability], ([name, capability]) =>
          joinParts(
            [name, capability && `sm ${capability}`].map((part) => part && shortText(part)),
          ),
        ),
    },
    {
      ...boardDetail('cores', trans.__('CUDA cores'), ({ cores }) => cores, formatCount),
      only: 'nvidia',
    },
    boardDetail(
      'memory_bus_bits',
      trans.__('Memory bus'),
      ({ memory_bus_bits }) => memory_bus_bits,
      (bits) => trans.__('%1 bit', formatCount(bits)),
    ),
    boardDetail('numa_node', trans.__('NUMA node'), ({ numa_node }) => numa_node, formatCount),
    {
      ...boardDetail(
        'minor_number',
        trans.__('Device'),
        ({ minor_number }) => minor_number,
        (n) => `nvidia${n}`,
      ),
      only: 'nvidia',
    },
    {
      id: 'pci_bus_id',
      label: trans.__('PCI bus'),
      read: ({ busId }) => (busId === null ? null : plainText(busId, 40)),
    },
    boardDetail('vbios_version', 'VBIOS', ({ vbios_version }) => vbios_version, shortText),
    boardDetail(
      'part_number',
      trans.__('Part number'),
      ({ part_number }) => part_number,
      shortText,
    ),
    boardDetail('serial', trans.__('Serial'), ({ serial }) => serial, shortText),
    { id: 'uuid', label: 'UUID', read: ({ uuid }) => (uuid === null ? null : plainText(uuid, 80)) },
  ],
}));

function shortText(text: string): string {
  return plainText(text, 60);
}

function describeMode({ current, pending }: Mode): string {
  return current === pending
    ? formatOnOff(current)
    : trans.__('%1 (%2 after a reset)', formatOnOff(current), formatOnOff(pending));
}
