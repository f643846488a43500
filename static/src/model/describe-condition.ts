/** Conditions as sentences, made of their kind and numbers, so that they can be translated. */

import {
  celsius,
  dateAndTime,
  duration,
  memoryAmount,
  mhz,
  microseconds,
  percent,
  watts,
} from '../lib/format';
import { joined, plainText } from '../lib/text';
import { table, trans } from '../lib/translation';
import type { Condition, ProcessRef, RecoveryAction, ThrottleReason } from '../wire';
import { notebookNamesOf, processName, textOf } from './holders';
import { describeFilling } from './memory-forecast';
import { valueOf } from './reading';
import { xidOf } from './xid';

type Kind = Condition['condition'];

/** A process as text, by its PID. */
type NameOf = (pid: number) => string;

/** So many names say who it is; more are counted. */
const NAMED_MOST = 3;

/** Of a workload, or a type of its elements. */
const NAME_LENGTH = 64;

/** Of its usual clock; a GPU below it is slower. */
const SLOW_CLOCK = 0.93;

/** The compiler asks for a text of each kind that the server has. */
const TEXTS: {
  [K in Kind]: (condition: Extract<Condition, { condition: K }>, nameOf: NameOf) => string;
} = {
  xid: ({ code, pid, text }) => {
    const xid = xidOf(code);
    return xid === null ? text : describeXid(code, pid, `${xid.meaning()} ${xid.advice()}`);
  },
  throttled: (condition) =>
    trans.__('Clocks reduced: %1.', describeReasons(condition.reasons, condition)),
  held_idle: ({ bytes, idle_ms, pids }, nameOf) =>
    trans.__(
      '%1 idle, holding %2 for %3.',
      describeProcesses(pids, nameOf),
      memoryAmount(bytes),
      duration(idle_ms),
    ),
  hardly_used: ({ gpu_percent, sm_percent, tensor_percent }) => {
    const shares = [gpu_percent, sm_percent].map(percent);
    return tensor_percent === null
      ? trans.__(
          'Low SM activity: kernels run %1 of the time on %2 of the SMs. They are small, or wait for data.',
          ...shares,
        )
      : trans.__(
          'Low SM activity: kernels run %1 of the time on %2 of the SMs and %3 of the tensor cores. They are small, or wait for data.',
          ...shares,
          percent(tensor_percent),
        );
  },
  suspected_hang: (condition, nameOf) => joined(describeHang(condition, nameOf), ' '),
  held_by_nobody: ({ bytes }) =>
    trans.__(
      '%1 in use that no listed process holds: of a container that cannot be seen from here, of a process that has ended and was not waited for, or managed memory. `sudo fuser -v /dev/nvidia*` on the host lists who has the GPU open.',
      memoryAmount(bytes),
    ),
  slower_than_itself: ({ sm_mhz, usual_sm_mhz, power_watts, usual_power_watts, siblings }) =>
    joined(
      [
        trans.__(
          'Slower than itself: %1 and %2 at a load at which %3 and %4 are usual for it.',
          mhz(sm_mhz),
          watts(power_watts),
          mhz(usual_sm_mhz),
          watts(usual_power_watts),
        ),
        describeOthers(sm_mhz < usual_sm_mhz * SLOW_CLOCK, siblings),
        trans.__(
          'The driver gives no reason: check power cables and cooling, and reset the GPU when it is idle.',
        ),
      ],
      ' ',
    ),
  below_baseline: ({ workload, dtype, median_us, baseline_us, measured_ms, baseline_ms }) =>
    trans.__(
      'Below its baseline: %1 (%2) took %3 on %4, and %5 on %6. Check power limit, clocks and cooling, then run `gpumon bench --baseline` again; `gpumon bench --save-baseline` if the change is intended.',
      plainText(workload, NAME_LENGTH),
      plainText(dtype, NAME_LENGTH),
      microseconds(median_us),
      dateAndTime(measured_ms),
      microseconds(baseline_us),
      dateAndTime(baseline_ms),
    ),
  memory_nearly_full: ({ free_bytes, total_bytes }) =>
    trans.__(
      'Memory nearly full: %1 of %2 free. The next allocation may fail.',
      memoryAmount(free_bytes),
      memoryAmount(total_bytes),
    ),
  memory_filling: ({ left_ms, bytes_per_second, growing }, nameOf) => {
    const growers = growing.map(({ pid, ...growth }) => ({ name: nameOf(pid), ...growth }));
    return describeFilling(left_ms, bytes_per_second, growers);
  },
  ecc_uncorrected: ({ count }) =>
    trans._n(
      '%1 uncorrectable memory error since the driver was loaded: results may be wrong. Reset the GPU when it is idle.',
      '%1 uncorrectable memory errors since the driver was loaded: results may be wrong. Reset the GPU when it is idle.',
      count,
    ),
  row_remap: ({ failed }) =>
    failed
      ? trans.__('Row remapping failed: no spare rows are left. Replace the board.')
      : trans.__('Row remapping pending: reset the GPU when it is idle.'),
  page_retirement_pending: () =>
    trans.__('Page retirement pending: reset the GPU when it is idle.'),
  recovery_needed: ({ action }) => RECOVERY()[action],
  nv_link_down: ({ links }) =>
    trans._n(
      'NVLink %2 down: transfers between GPUs are slow or fail. See `nvidia-smi nvlink -s`, and reset the GPUs when they are idle.',
      'NVLinks %2 down: transfers between GPUs are slow or fail. See `nvidia-smi nvlink -s`, and reset the GPUs when they are idle.',
      links.length,
      links.join(', '),
    ),
  pcie_degraded: ({ width, max_width }) =>
    trans.__(
      'PCIe link degraded: x%1 of x%2. Copies to and from the GPU are slow. Check its seating, riser and slot.',
      width,
      max_width,
    ),
};

const RECOVERY = table((): Record<RecoveryAction, string> => ({
  none: trans.__('The driver asks for no recovery.'),
  gpu_reset: trans.__('GPU reset required: stop its processes, then run `nvidia-smi --gpu-reset`.'),
  node_reboot: trans.__('Reboot required before the GPU is used again.'),
  drain_p2p: trans.__(
    'Peer-to-peer drain required: stop programs that use several GPUs together, and start none until they have ended.',
  ),
  drain_and_reset: trans.__(
    'Drain and reset required: let running programs end, start none, then reset the GPU.',
  ),
}));

const REASONS = table((): Record<ThrottleReason, string> => ({
  gpu_idle: trans.__('idle'),
  applications_clocks_setting: trans.__('application clocks'),
  display_clock_setting: trans.__('display clocks'),
  sync_boost: trans.__('limited by a slower GPU of its sync boost group'),
  hw_slowdown: trans.__('hardware slowdown (temperature, power or voltage)'),
  hw_power_brake_slowdown: trans.__("power brake by the system's power supply"),
  hw_thermal_slowdown: trans.__('hardware thermal slowdown, check the cooling'),
  sw_thermal_slowdown: trans.__('thermal slowdown'),
  sw_power_cap: trans.__('power-capped'),
}));

/**
 * A condition in a sentence; the server's own where only a newer server knows its kind. Processes are named by
 * `processes`, those that are gone by their PIDs.
 */
export function describeCondition(condition: Condition, processes: readonly ProcessRef[]): string {
  const describe = TEXTS[condition.condition] as
    ((of: Condition, nameOf: NameOf) => string) | undefined;
  const nameOf = (pid: number): string => describeProcess(pid, condition.since_ms, processes);
  return plainText(describe?.(condition, nameOf) ?? condition.text);
}

/** What reduces the clocks: `power-capped at 700 W`, or `power-capped` without readings. */
export function describeReasons(
  reasons: readonly ThrottleReason[],
  readings: Readings = {},
): string {
  return reasons.map((reason) => describeReason(reason, readings)).join(', ');
}

/** An Xid with what is known of it. */
export function describeXid(code: number, pid: number | undefined, text: string): string {
  return pid === undefined
    ? trans.__('Xid %1: %2', code, text)
    : trans.__('Xid %1 (process %2): %3', code, pid, text);
}

interface Readings {
  limit_watts?: number;
  gpu_celsius?: number;
}

function describeReason(reason: ThrottleReason, { limit_watts, gpu_celsius }: Readings): string {
  if (reason === 'hw_thermal_slowdown' && gpu_celsius !== undefined) {
    return trans.__('hardware thermal slowdown (%1), check the cooling', celsius(gpu_celsius));
  }
  if (reason === 'sw_thermal_slowdown' && gpu_celsius !== undefined) {
    return trans.__('thermal slowdown (%1)', celsius(gpu_celsius));
  }
  return reason === 'sw_power_cap' && limit_watts !== undefined
    ? trans.__('power-capped at %1', watts(limit_watts))
    : REASONS()[reason];
}

/** What hangs, who waits with it, and who does not, a sentence each. */
function describeHang(
  { power_watts, pids, waiting, differing }: Extract<Condition, { condition: 'suspected_hang' }>,
  nameOf: NameOf,
): string[] {
  const draw = watts(power_watts);
  const named = differing.map(({ gpu, pid }) => trans.__('GPU %1 (PID %2)', gpu, pid)).join(', ');
  return [
    pids.length === 0
      ? trans.__('Suspected hang: the kernels run all the time at %1, and nothing moves.', draw)
      : trans.__(
          'Suspected hang: the kernels of %1 run all the time at %2, and nothing moves.',
          describeProcesses(pids, nameOf),
          draw,
        ),
    waiting.length === 0
      ? ''
      : trans._n(
          'GPU %2 of the same job waits, too.',
          'GPUs %2 of the same job wait, too.',
          waiting.length,
          waiting.join(', '),
        ),
    differing.length === 0
      ? ''
      : trans._n(
          '%2 of the same job does not wait: look there first.',
          '%2 of the same job do not wait: look there first.',
          differing.length,
          named,
        ),
  ];
}

/** Where the clock is as usual, power alone differs. */
function describeOthers(isSlow: boolean, siblings: readonly number[]): string {
  const [count, list] = [siblings.length, siblings.join(', ')];
  if (count === 0) {
    return '';
  }
  return isSlow
    ? trans._n(
        'GPU %2 is faster at the same load.',
        'GPUs %2 are faster at the same load.',
        count,
        list,
      )
    : trans._n(
        'GPU %2 draws more at the same load.',
        'GPUs %2 draw more at the same load.',
        count,
        list,
      );
}

function describeProcesses(pids: readonly number[], nameOf: NameOf): string {
  const names = pids.slice(0, NAMED_MOST).map(nameOf).join(', ');
  const more = pids.length - NAMED_MOST;
  return more > 0 ? trans._n('%2 and %1 more', '%2 and %1 more', more, names) : names;
}

/** `train.ipynb (ana)`; by the PID alone where the process is another than it was then. */
function describeProcess(pid: number, then_ms: number, processes: readonly ProcessRef[]): string {
  const process = processes.findLast(
    (one) => one.pid === pid && (valueOf(one.started_ms) ?? Infinity) <= then_ms,
  );
  if (process === undefined) {
    return trans.__('PID %1', pid);
  }
  const name = processName(process, notebookNamesOf(processes));
  const user = textOf(process.user);
  return user.reason === null ? `${name} (${plainText(user.text, 32)})` : name;
}
