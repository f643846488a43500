//! The activity of the devices, which the fake NVML reports: kernels and copies with their times.

use std::{
    cell::Cell,
    thread,
    time::{Duration, Instant},
};

use fake_gpu_state::{Activity, ActivityWriter, Load, Peaks, RunningWork, now_ns};

use crate::{
    scenario::Scenario,
    state::{State, current_device, state},
};

/// The time that work must take for [`slow_down`] to extend it. A thread cannot sleep exactly for
/// shorter times.
const MIN_SLOWED: Duration = Duration::from_millis(1);

/// Values of an H200: the maximum number of warps and of blocks on a multiprocessor, the number of
/// threads in a warp, and the memory clock in MHz.
pub(crate) const MAX_WARPS: u32 = 64;
const MAX_BLOCKS: u32 = 32;
const THREADS_PER_WARP: u32 = 32;
pub(crate) const MEMORY_MHZ: u32 = 3201;

thread_local! {
    /// The activity that the kernel being started has recorded.
    static RECORDED_ACTIVITY: Cell<Activity> = const { Cell::new(Activity::NONE) };
}

/// Records the bytes of device memory that the kernel being started reads and writes. If a kernel
/// records none, only the bytes of its result count.
pub(crate) fn record_traffic(bytes: usize) {
    record_activity(Activity {
        dram_bytes: bytes as u64,
        ..Activity::NONE
    });
}

/// The units of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Tensor cores with half-precision and narrower floating-point numbers.
    Half,
    /// Tensor cores with integers.
    Integer,
    /// Tensor cores with double-precision numbers.
    Double,
    Single,
}

/// Records the operations of the kernel being started. The units of one multiprocessor can do
/// `in_a_clock` of these operations per clock.
pub(crate) fn record_operations(unit: Unit, operations: u64, in_a_clock: u64) {
    let clocks = operations.div_ceil(in_a_clock);
    record_activity(match unit {
        Unit::Half => Activity {
            half_clocks: clocks,
            ..Activity::NONE
        },
        Unit::Integer => Activity {
            integer_clocks: clocks,
            ..Activity::NONE
        },
        Unit::Double => Activity {
            double_clocks: clocks,
            ..Activity::NONE
        },
        Unit::Single => Activity {
            single_clocks: clocks,
            ..Activity::NONE
        },
    });
}

fn record_activity(activity: Activity) {
    RECORDED_ACTIVITY.set(RECORDED_ACTIVITY.get().sum_with(activity));
}

/// Returns the activity that the started kernel has recorded, and resets the record. If the kernel
/// has recorded no memory traffic, the bytes of its result count as its traffic.
pub(crate) fn take_recorded(written_bytes: usize) -> Activity {
    let reported = RECORDED_ACTIVITY.replace(Activity::NONE);
    let dram_bytes = if reported.dram_bytes == 0 {
        written_bytes as u64
    } else {
        reported.dram_bytes
    };
    Activity {
        dram_bytes,
        ..reported
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
}

impl Grid {
    /// Returns the share of the multiprocessors and the share of the warps that the grid uses.
    /// Blocks are spread evenly over the multiprocessors until these are full.
    pub(crate) fn compute_load(self, multiprocessors: u32) -> Load {
        let warps = self.threads.div_ceil(THREADS_PER_WARP).max(1);
        let room = multiprocessors * (MAX_WARPS / warps).min(MAX_BLOCKS);
        let sms = f64::from(self.blocks.min(multiprocessors)) / f64::from(multiprocessors);
        let resident = f64::from(self.blocks.min(room)) * f64::from(warps);
        Load {
            sms,
            warps: resident / f64::from(multiprocessors * MAX_WARPS),
            ..Load::default()
        }
    }
}

/// The activity of this process on each device.
pub(crate) struct Activities {
    writer: ActivityWriter,
    uuids: Vec<String>,
}

impl Activities {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let clock_hz = f64::from(MEMORY_MHZ) * 1e6;
        let peaks = Peaks {
            multiprocessors: f64::from(scenario.multiprocessors),
            sm_mhz: f64::from(scenario.sm_mhz),
            // Data is transferred at both edges of the clock.
            dram_bytes: f64::from(scenario.memory_bus_bits) / 8.0 * clock_hz * 2.0,
        };
        let uuids = (0..scenario.devices)
            .map(|device| scenario.uuid_text(device))
            .collect();
        Self {
            writer: ActivityWriter::open(fake_gpu_state::find_folder(), peaks),
            uuids,
        }
    }
}

impl State {
    /// Returns the part of a device that a kernel uses.
    pub(crate) fn compute_load(&self, kernel: &str, grid: Grid) -> Load {
        let load = grid.compute_load(self.scenario.multiprocessors);
        if !self.scenario.saturates {
            return load;
        }
        let share_if_named = |prefix| f64::from(u8::from(kernel.starts_with(prefix)));
        Load {
            tensor: share_if_named("matmul_bf16_"),
            single: share_if_named("matmul_fp32_"),
            dram: share_if_named("stream_"),
            ..load
        }
    }

    pub(crate) fn start_work(&mut self, load: Load) -> Option<(u32, RunningWork)> {
        let device = current_device().ok()?;
        let Activities { writer, uuids } = &mut self.activities;
        Some((device, writer.start_work(uuids.get(device as usize)?, load)))
    }

    /// Records the end of a kernel or copy, with its activity.
    pub(crate) fn end_work(&mut self, begun: Option<(u32, RunningWork)>, did: Activity) {
        if let Some((device, begun)) = begun {
            let Activities { writer, uuids } = &mut self.activities;
            writer.end_work(&uuids[device as usize], begun, did);
        }
    }

    /// Records load in the future: it starts after the time `after` and lasts for `time`, while a
    /// kernel keeps the stream waiting.
    pub(crate) fn record_future_load(&mut self, load: Load, after: Duration, time: Duration) {
        if let Ok(device) = current_device()
            && let Some(uuid) = self.activities.uuids.get(device as usize)
        {
            let from_ns = now_ns() + after.as_nanos() as u64;
            self.activities
                .writer
                .record_work(uuid, load, from_ns, time.as_nanos() as u64);
        }
    }
}

/// Does work of a device, and waits until it has taken as long as the scenario's slowdown requires.
pub(crate) fn slow_down<T>(work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    let taken = begun.elapsed();
    if taken >= MIN_SLOWED {
        let slowdown = state().scenario.slowdown;
        thread::sleep(taken * slowdown.saturating_sub(1));
    }
    result
}

/// Does work of the current device, and records it with its activity.
pub(crate) fn record_work(load: Load, did: Activity, work: impl FnOnce()) {
    let begun = state().start_work(load);
    slow_down(work);
    state().end_work(begun, did);
}

/// Records a copy by the copy engines, which use no multiprocessor.
pub(crate) fn record_copy(did: Activity, copy: impl FnOnce()) {
    record_work(Load::default(), did, copy);
}

/// Records a copy between two devices. Within one device, only its memory is used.
pub(crate) fn record_peer_copy([from, to]: [u32; 2], bytes: usize, copy: impl FnOnce()) {
    let bytes = bytes as u64;
    let (sent, received) = if from == to {
        (
            Activity {
                dram_bytes: 2 * bytes,
                ..Activity::NONE
            },
            Activity::NONE,
        )
    } else {
        (
            Activity {
                nvlink_tx_bytes: bytes,
                ..Activity::NONE
            },
            Activity {
                nvlink_rx_bytes: bytes,
                ..Activity::NONE
            },
        )
    };
    let both = [(from, sent), (to, received)];
    let begun = both.map(|(device, _)| {
        let Activities { writer, uuids } = &mut state().activities;
        writer.start_work(&uuids[device as usize], Load::default())
    });
    slow_down(copy);
    for ((device, did), begun) in both.into_iter().zip(begun) {
        let Activities { writer, uuids } = &mut state().activities;
        writer.end_work(&uuids[device as usize], begun, did);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_load(blocks: u32, threads: u32, sms: f64, warps: f64) {
        let load = Grid { blocks, threads }.compute_load(132);
        assert!(
            (load.sms - sms).abs() < 1e-9 && (load.warps - warps).abs() < 1e-9,
            "{load:?}"
        );
    }

    #[test]
    fn thread_blocks_are_spread_evenly_over_multiprocessors() {
        assert_load(66, 1024, 0.5, 0.25);
        assert_load(132, 1024, 1.0, 0.5);
        assert_load(100_000, 1024, 1.0, 1.0);
        // A multiprocessor runs at most 32 blocks, even if they are small.
        assert_load(100_000, 32, 1.0, 0.5);
        assert_load(1, 1, 1.0 / 132.0, 1.0 / 132.0 / 64.0);
    }

    #[test]
    fn recorded_traffic_replaces_written_bytes_of_one_kernel() {
        record_traffic(100);
        record_operations(Unit::Half, 4097, 4096);
        assert_eq!(
            take_recorded(8),
            Activity {
                dram_bytes: 100,
                half_clocks: 2,
                ..Activity::NONE
            }
        );
        assert_eq!(
            take_recorded(8),
            Activity {
                dram_bytes: 8,
                ..Activity::NONE
            }
        );
    }
}
