/** The board itself, and how it is set. */

import { count } from '../../lib/format';
import { plainText } from '../../lib/text';
import { table, trans } from '../../lib/translation';
import type { Board, ComputeMode, Mode, RecoveryAction } from '../../wire';
import { valueOf } from '../reading';
import { list, onOff, slow, together, formatReading, type Detail, type DetailGroup } from './detail';

const COMPUTE = table((): Record<ComputeMode, string> => ({
  default: trans.__('default'),
  exclusive_process: trans.__('exclusive process'),
  prohibited: trans.__('prohibited'),
}));

const RECOVERY = table((): Record<RecoveryAction, string> => ({
  none: trans.__('none'),
  gpu_reset: trans.__('reset the GPU'),
  node_reboot: trans.__('reboot the machine'),
  drain_p2p: trans.__('drain peer-to-peer'),
  drain_and_reset: trans.__('drain and reset'),
}));

export const SETTINGS = table((): DetailGroup => ({
  title: trans.__('Settings'),
  details: [
    { id: 'modes.persistence', label: trans.__('Persistence'), read: slow(({ modes }) => modes.persistence, onOff) },
    {
      id: 'modes.compute',
      label: trans.__('Compute mode'),
      read: slow(
        ({ modes }) => modes.compute,
        (mode) => COMPUTE()[mode],
      ),
    },
    { id: 'modes.ecc', label: 'ECC', read: slow(({ modes }) => modes.ecc, describeMode) },
    { id: 'modes.mig', label: 'MIG', read: slow(({ modes }) => modes.mig, describeMode) },
    { id: 'modes.accounting', label: trans.__('Accounting'), read: slow(({ modes }) => modes.accounting, onOff) },
    { id: 'modes.display_active', label: trans.__('Display'), read: slow(({ modes }) => modes.display_active, onOff) },
    {
      id: 'modes.confidential_compute',
      label: trans.__('Confidential computing'),
      read: slow(
        ({ modes }) => modes.confidential_compute,
        ({ enabled, devtools }) => (enabled && devtools ? trans.__('on (developer tools)') : onOff(enabled)),
      ),
    },
    {
      id: 'recovery_action',
      label: trans.__('Recovery action'),
      read: slow(
        ({ recovery_action }) => recovery_action,
        (action) => RECOVERY()[action],
      ),
      level: ({ details }) => {
        const action = details === null ? null : valueOf(details.recovery_action);
        return action === null || action === 'none' ? 'none' : 'critical';
      },
    },
  ],
}));

export const BOARD = table((): DetailGroup => ({
  title: trans.__('Board'),
  details: [
    {
      id: 'board.architecture',
      label: trans.__('Architecture'),
      read: ({ board }) =>
        together([board.architecture, board.compute_capability], ([name, capability]) =>
          list(
            [name ?? null, capability == null ? null : `sm ${capability}`].map((part) => part && plainText(part, 60)),
          ),
        ),
    },
    number('cores', trans.__('CUDA cores')),
    number('memory_bus_bits', trans.__('Memory bus'), (bits) => trans.__('%1 bit', bits)),
    number('numa_node', trans.__('NUMA node')),
    {
      id: 'board.minor_number',
      label: trans.__('Device'),
      read: ({ board }) => formatReading(board.minor_number, (n) => `nvidia${n}`),
    },
    {
      id: 'pci_bus_id',
      label: trans.__('PCI bus'),
      read: ({ busId }) => (busId === null ? null : plainText(busId, 40)),
    },
    name('vbios_version', 'VBIOS'),
    name('part_number', trans.__('Part number')),
    name('serial', trans.__('Serial')),
    { id: 'uuid', label: 'UUID', read: ({ uuid }) => (uuid === null ? null : plainText(uuid, 80)) },
  ],
}));

function number(
  part: 'cores' | 'memory_bus_bits' | 'numa_node',
  label: string,
  format: (digits: string) => string = (digits) => digits,
): Detail {
  return {
    id: `board.${part}`,
    label,
    read: ({ board }) => formatReading(board[part], (value) => format(count(value))),
  };
}

function name(part: keyof Pick<Board, 'serial' | 'part_number' | 'vbios_version'>, label: string): Detail {
  return { id: `board.${part}`, label, read: ({ board }) => formatReading(board[part], (text) => plainText(text, 60)) };
}

function describeMode({ current, pending }: Mode): string {
  return current === pending ? onOff(current) : trans.__('%1 (%2 after a reset)', onOff(current), onOff(pending));
}
