// Generated from the wording of conditions and absent readings by `make types`. Do not edit this
// file.
import {
  formatDateAndTime,
  formatDecimal,
  formatDuration,
  formatMegahertz,
  formatMemoryAmount,
  formatMicroseconds,
  formatPercent,
  formatTemperature,
  formatWatts,
} from '../lib/format';
import { findOwnProperty } from '../lib/collections';
import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Condition, GpuProcess, ThrottleReason } from '.';

/** The kinds with texts in this file. The browser composes the texts of the others. */
type Kind = Exclude<Condition['condition'], 'xid' | 'memory_filling'>;
type Of<K> = Extract<Condition, { condition: K }>;
/** Returns the names of the processes with these PIDs. */
export type Named = (pids: readonly number[]) => string;

/** The maximum length of the displayed name of a workload or data type. */
const NAME_LENGTH = 64;

interface Readings {
  limit_watts?: number;
  gpu_celsius?: number;
}

/** Returns the reasons for reduced clocks, such as `power-capped at 700 W`. */
export function describeReasons(
  reasons: readonly ThrottleReason[],
  readings: Readings = {},
): string {
  return reasons.map((reason) => findOwnProperty(REASONS, reason)?.(readings) ?? '').join(', ');
}

function describeGpuProcesses(all: readonly GpuProcess[]): string {
  return all.map((c) => trans.__("GPU %1 (PID %2)", c.gpu, c.pid)).join(', ');
}

const REASONS: Record<ThrottleReason, (c: Readings) => string> = {
  hw_thermal_slowdown: (c) => c.gpu_celsius !== undefined ? trans.__("hardware thermal slowdown (%1), check the cooling", formatTemperature(c.gpu_celsius)) : trans.__("hardware thermal slowdown, check the cooling"),
  prochot: () => trans.__("lowest clocks, because the board requested them (PROCHOT); check cooling and power supply"),
  hw_power_brake_slowdown: () => trans.__("power brake by the system's power supply"),
  hw_slowdown: () => trans.__("hardware slowdown (temperature, power or voltage)"),
  sw_thermal_slowdown: (c) => c.gpu_celsius !== undefined ? trans.__("thermal slowdown (%1)", formatTemperature(c.gpu_celsius)) : trans.__("thermal slowdown"),
  thermal_limit: (c) => c.gpu_celsius !== undefined ? trans.__("temperature limit (%1)", formatTemperature(c.gpu_celsius)) : trans.__("temperature limit"),
  memory_thermal_limit: () => trans.__("memory temperature limit"),
  regulator_thermal_limit: () => trans.__("temperature limit of a voltage regulator"),
  power_limit: (c) => c.limit_watts !== undefined ? trans.__("power-limited at %1", formatWatts(c.limit_watts)) : trans.__("power-limited"),
  current_limit: () => trans.__("current-limited"),
  other_limit: () => trans.__("limited by the firmware"),
  sw_power_cap: (c) => c.limit_watts !== undefined ? trans.__("power-capped at %1", formatWatts(c.limit_watts)) : trans.__("power-capped"),
  sync_boost: () => trans.__("limited by a slower GPU of its sync boost group"),
  applications_clocks_setting: () => trans.__("application clocks"),
  display_clock_setting: () => trans.__("display clocks"),
  gpu_idle: () => trans.__("idle"),
};

/** The reasons that need no attention, with a sentence about each. */
export const ORDINARY_REASONS: readonly (readonly [ThrottleReason, () => string])[] = [
  ['applications_clocks_setting', () => trans.__("Clocks are limited by the application clock setting.")],
  ['display_clock_setting', () => trans.__("Clocks are limited by the display clock setting.")],
  ['gpu_idle', () => trans.__("Nothing is running, so clocks are reduced.")],
];

/** The reasons for absent readings. */
export const ABSENCES: Partial<Record<string, () => string>> = {
  not_supported: () => trans.__("not supported by this board or driver"),
  gpu_lost: () => trans.__("GPU lost"),
  asleep: () => trans.__("asleep to save power"),
  no_answer: () => trans.__("the driver has not answered"),
  not_read_yet: () => trans.__("not read yet"),
  warming_up: () => trans.__("needs a second sample"),
  unknown: () => trans.__("unknown to the driver"),
  not_in_proc: () => trans.__("not in /proc: the process has ended, or is in another PID namespace (a container or the host)"),
  ended: () => trans.__("the process has ended"),
  hidden: () => trans.__("hidden: belongs to another user"),
  distrusted: () => trans.__("not trusted after a fatal hardware error"),
  needs_gpumon: () => trans.__("not reported by nvidia-smi: install gpumon on the host"),
};

/** The sentences about each condition and its remedy. Some can be empty. */
export const SENTENCES: { [K in Kind]: (c: Of<K>, named: Named) => string[] } = {
  throttled: (c) => [
    trans.__("Clocks reduced: %1.", describeReasons(c.reasons, c)),
  ],
  held_idle: (c, named) => [
    trans.__("%1 idle for %2, holding %3.", named(c.pids), formatDuration(c.idle_ms), formatMemoryAmount(c.bytes)),
  ],
  hardly_used: (c) => [
    c.tensor_percent !== null ? trans.__("Low SM activity: kernels run %1 of the time on %2 of the SMs and %3 of the tensor cores. The kernels are small, or wait for data.", formatPercent(c.gpu_percent), formatPercent(c.sm_percent), formatPercent(c.tensor_percent)) : trans.__("Low SM activity: kernels run %1 of the time on %2 of the SMs. The kernels are small, or wait for data.", formatPercent(c.gpu_percent), formatPercent(c.sm_percent)),
  ],
  suspected_hang: (c, named) => [
    c.pids.length > 0 ? trans.__("Suspected hang: the kernels of %1 run all the time at %2, but make no progress.", named(c.pids), formatWatts(c.power_watts)) : trans.__("Suspected hang: the kernels run all the time at %1, but make no progress.", formatWatts(c.power_watts)),
    c.waiting.length === 0 ? '' : trans._n("GPU %2 of the same job is also waiting.", "GPUs %2 of the same job are also waiting.", c.waiting.length, c.waiting.join(', ')),
    c.differing.length === 0 ? '' : trans._n("%2 of the same job is not waiting: check it first.", "%2 of the same job are not waiting: check them first.", c.differing.length, describeGpuProcesses(c.differing)),
  ],
  held_by_nobody: (c) => [
    trans.__("%1 used by no listed process: the memory belongs to a container that gpumon cannot see, or to a process that has ended but was not reaped by its parent, or it is managed memory. `sudo fuser -v /dev/nvidia*` on the host lists the processes that have the GPU open.", formatMemoryAmount(c.bytes)),
  ],
  slower_than_itself: (c) => [
    trans.__("Slower than usual: %1 and %2 at a load that usually gives %3 and %4.", formatMegahertz(c.sm_mhz), formatWatts(c.power_watts), formatMegahertz(c.usual_sm_mhz), formatWatts(c.usual_power_watts)),
    (c.sm_mhz < c.usual_sm_mhz * 0.93 ? c.siblings : []).length === 0 ? '' : trans._n("GPU %2 is faster at the same load.", "GPUs %2 are faster at the same load.", (c.sm_mhz < c.usual_sm_mhz * 0.93 ? c.siblings : []).length, (c.sm_mhz < c.usual_sm_mhz * 0.93 ? c.siblings : []).join(', ')),
    (c.sm_mhz < c.usual_sm_mhz * 0.93 ? [] : c.siblings).length === 0 ? '' : trans._n("GPU %2 draws more power at the same load.", "GPUs %2 draw more power at the same load.", (c.sm_mhz < c.usual_sm_mhz * 0.93 ? [] : c.siblings).length, (c.sm_mhz < c.usual_sm_mhz * 0.93 ? [] : c.siblings).join(', ')),
    trans.__("The driver reports no reason: check power cables and cooling, and reset the GPU when it is idle."),
  ],
  below_baseline: (c) => [
    trans.__("Slower than baseline: %1 (%2) took %3 on %4, and %5 on %6. Check power limit, clocks and cooling. If the change is intended, store a new baseline: `gpumon bench --save-baseline`.", plainText(c.workload, NAME_LENGTH), plainText(c.dtype, NAME_LENGTH), formatMicroseconds(c.median_us), formatDateAndTime(c.measured_ms), formatMicroseconds(c.baseline_us), formatDateAndTime(c.baseline_ms)),
  ],
  memory_nearly_full: (c) => [
    trans.__("Memory nearly full: %1 of %2 free. The next allocation may fail.", formatMemoryAmount(c.free_bytes), formatMemoryAmount(c.total_bytes)),
  ],
  ecc_uncorrected: (c) => [
    c.count === 0 ? '' : trans._n("%1 uncorrectable memory error since the driver was loaded: results may be wrong. Reset the GPU when it is idle.", "%1 uncorrectable memory errors since the driver was loaded: results may be wrong. Reset the GPU when it is idle.", c.count),
  ],
  row_remap: (c) => [
    c.failed ? trans.__("Row remapping failed: no spare rows are left. Replace the board.") : trans.__("Row remapping pending: reset the GPU when it is idle."),
  ],
  page_retirement_pending: () => [
    trans.__("Page retirement pending: reset the GPU when it is idle."),
  ],
  recovery_needed: (c) => [
    c.action === 'none' ? trans.__("The driver requests no recovery action.") : c.action === 'gpu_reset' ? trans.__("GPU reset required: stop the processes on the GPU, then run `nvidia-smi --gpu-reset`.") : c.action === 'node_reboot' ? trans.__("Reboot required before the GPU is used again.") : c.action === 'drain_p2p' ? trans.__("Peer-to-peer drain required: stop programs that use several GPUs together, and start no new ones until they have ended.") : c.action === 'drain_and_reset' ? trans.__("Drain and reset required: let running programs end, start no new ones, then reset the GPU.") : '',
  ],
  nv_link_down: (c) => [
    c.links.length === 0 ? '' : trans._n("NVLink %2 down: transfers between GPUs are slow or fail. See `nvidia-smi nvlink -s`, and reset the GPUs when they are idle.", "NVLinks %2 down: transfers between GPUs are slow or fail. See `nvidia-smi nvlink -s`, and reset the GPUs when they are idle.", c.links.length, c.links.join(', ')),
  ],
  pcie_degraded: (c) => [
    trans.__("PCIe link degraded: x%1 of x%2. Copies to and from the GPU are slow. Check the board's seating, riser and slot.", c.width, c.max_width),
  ],
};

/** Each condition in a few words. */
export const SHORTS: {
  [K in Exclude<Kind, 'throttled'>]: (c: Of<K>) => string;
} = {
  held_idle: (c) => trans.__("idle %1", formatDuration(c.idle_ms)),
  hardly_used: (c) => trans.__("low SM use: %1", formatPercent(c.sm_percent)),
  suspected_hang: () => trans.__("suspected hang"),
  held_by_nobody: (c) => trans.__("%1, no process", formatMemoryAmount(c.bytes)),
  slower_than_itself: (c) => trans.__("slow: %1", formatMegahertz(c.sm_mhz)),
  below_baseline: (c) => trans.__("bench %1x", formatDecimal(c.baseline_us / c.median_us, 2)),
  memory_nearly_full: (c) => trans.__("%1 left", formatMemoryAmount(c.free_bytes)),
  ecc_uncorrected: (c) => c.count === 0 ? '' : trans._n("%1 memory error", "%1 memory errors", c.count),
  row_remap: (c) => c.failed ? trans.__("no spare memory rows") : trans.__("row remapping pending"),
  page_retirement_pending: () => trans.__("page retirement pending"),
  recovery_needed: (c) => c.action === 'none' ? trans.__("nothing to recover") : c.action === 'gpu_reset' ? trans.__("reset required") : c.action === 'node_reboot' ? trans.__("reboot required") : c.action === 'drain_p2p' ? trans.__("peer-to-peer drain") : c.action === 'drain_and_reset' ? trans.__("drain, then reset") : '',
  nv_link_down: (c) => c.links.length === 0 ? '' : trans._n("NVLink %2 down", "%1 NVLinks down", c.links.length, c.links.join(', ')),
  pcie_degraded: (c) => trans.__("PCIe x%1 of x%2", c.width, c.max_width),
};
