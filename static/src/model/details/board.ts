/** The details of a GPU's board and its settings. */

import { formatCount } from '../../lib/format';
import { joinParts, plainText } from '../../lib/text';
import { lazyTexts, trans } from '../../lib/translation';
import type { Board, ComputeMode, Mode, RecoveryAction } from '../../wire';
import { valueOf } from '../reading';
import {
  formatReading,
  formatOnOff,
  timestampedDetail,
  combineReadings,
  type Detail,
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
            [name, capability && `sm ${capability}`].map((part) => part && plainText(part, 60)),
          ),
        ),
    },
    { ...boardNumberDetail('cores', trans.__('CUDA cores')), only: 'nvidia' },
    boardNumberDetail('memory_bus_bits', trans.__('Memory bus'), (bits) =>
      trans.__('%1 bit', bits),
    ),
    boardNumberDetail('numa_node', trans.__('NUMA node')),
    {
      id: 'board.minor_number',
      label: trans.__('Device'),
      only: 'nvidia',
      read: ({ board }) => formatReading(board.minor_number, (n) => `nvidia${n}`),
    },
    {
      id: 'pci_bus_id',
      label: trans.__('PCI bus'),
      read: ({ busId }) => (busId === null ? null : plainText(busId, 40)),
    },
    boardTextDetail('vbios_version', 'VBIOS'),
    boardTextDetail('part_number', trans.__('Part number')),
    boardTextDetail('serial', trans.__('Serial')),
    { id: 'uuid', label: 'UUID', read: ({ uuid }) => (uuid === null ? null : plainText(uuid, 80)) },
  ],
}));

function boardNumberDetail(
  part: 'cores' | 'memory_bus_bits' | 'numa_node',
  label: string,
  format: (digits: string) => string = (digits) => digits,
): Detail {
  return {
    id: `board.${part}`,
    label,
    read: ({ board }) => formatReading(board[part], (value) => format(formatCount(value))),
  };
}

function boardTextDetail(
  part: keyof Pick<Board, 'serial' | 'part_number' | 'vbios_version'>,
  label: string,
): Detail {
  return {
    id: `board.${part}`,
    label,
    read: ({ board }) => formatReading(board[part], (text) => plainText(text, 60)),
  };
}

function describeMode({ current, pending }: Mode): string {
  return current === pending
    ? formatOnOff(current)
    : trans.__('%1 (%2 after a reset)', formatOnOff(current), formatOnOff(pending));
}
