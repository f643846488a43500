/** The board itself, and how it is set. */

import { plainText } from '../../lib/text';
import type { Board, ComputeMode, Mode, RecoveryAction } from '../../wire';
import { valueOf } from '../reading';
import { list, onOff, slow, together, told, type Detail, type DetailGroup } from './detail';

const COMPUTE: Record<ComputeMode, string> = {
  default: 'shared by all',
  exclusive_process: 'one process',
  prohibited: 'prohibited',
};

const RECOVERY: Record<RecoveryAction, string> = {
  none: 'none needed',
  gpu_reset: 'reset the GPU',
  node_reboot: 'reboot the machine',
  drain_p2p: 'end what uses its links',
  drain_and_reset: 'end its work, then reset',
};

export const SETTINGS: DetailGroup = {
  title: 'Settings',
  details: [
    { id: 'modes.persistence', label: 'Persistence', read: slow(({ modes }) => modes.persistence, onOff) },
    {
      id: 'modes.compute',
      label: 'Compute mode',
      read: slow(
        ({ modes }) => modes.compute,
        (mode) => COMPUTE[mode],
      ),
    },
    { id: 'modes.ecc', label: 'ECC', read: slow(({ modes }) => modes.ecc, modeWords) },
    { id: 'modes.mig', label: 'MIG', read: slow(({ modes }) => modes.mig, modeWords) },
    { id: 'modes.accounting', label: 'Accounting', read: slow(({ modes }) => modes.accounting, onOff) },
    { id: 'modes.display_active', label: 'Display', read: slow(({ modes }) => modes.display_active, onOff) },
    {
      id: 'modes.confidential_compute',
      label: 'Confidential',
      read: slow(
        ({ modes }) => modes.confidential_compute,
        ({ enabled, devtools }) => (enabled && devtools ? 'on, for development' : onOff(enabled)),
      ),
    },
    {
      id: 'recovery_action',
      label: 'Recovery',
      read: slow(
        ({ recovery_action }) => recovery_action,
        (action) => RECOVERY[action],
      ),
      level: ({ details }) => {
        const action = details === null ? null : valueOf(details.recovery_action);
        return action === null || action === 'none' ? 'quiet' : 'act';
      },
    },
  ],
};

export const BOARD: DetailGroup = {
  title: 'Board',
  details: [
    {
      id: 'board.architecture',
      label: 'Architecture',
      read: ({ board }) =>
        together([board.architecture, board.compute_capability], ([name, capability]) =>
          list(
            [name ?? null, capability == null ? null : `sm ${capability}`].map((part) => part && plainText(part, 60)),
          ),
        ),
    },
    count('cores', 'CUDA cores', ''),
    count('memory_bus_bits', 'Memory bus', ' bit'),
    count('numa_node', 'NUMA node', ''),
    {
      id: 'board.minor_number',
      label: 'Device',
      read: ({ board }) => told(board.minor_number, (n) => `nvidia${String(n)}`),
    },
    { id: 'pci_bus_id', label: 'PCI bus', read: ({ busId }) => (busId === null ? null : plainText(busId, 40)) },
    name('vbios_version', 'VBIOS'),
    name('part_number', 'Part number'),
    name('serial', 'Serial'),
    { id: 'uuid', label: 'UUID', read: ({ uuid }) => (uuid === null ? null : plainText(uuid, 80)) },
  ],
};

function count(part: 'cores' | 'memory_bus_bits' | 'numa_node', label: string, unit: string): Detail {
  return {
    id: `board.${part}`,
    label,
    read: ({ board }) => told(board[part], (value) => `${value.toLocaleString('en-US')}${unit}`),
  };
}

function name(part: keyof Pick<Board, 'serial' | 'part_number' | 'vbios_version'>, label: string): Detail {
  return { id: `board.${part}`, label, read: ({ board }) => told(board[part], (text) => plainText(text, 60)) };
}

function modeWords({ current, pending }: Mode): string {
  return current === pending ? onOff(current) : `${onOff(current)}, ${onOff(pending)} after a reset`;
}
