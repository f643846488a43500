//! The activity of the devices, which the fake NVML reports: kernels and copies with their times.

use std::{cell::Cell, time::Duration};

use fake_gpu_state::{Activity, ActivityWriter, Begun, Load, Peaks, now_ns};

use crate::{
    scenario::Scenario,
    state::{State, current},
};

/// The limits of each multiprocessor of an H200.
pub(crate) const WARPS: u32 = 64;
const BLOCKS: u32 = 32;
const THREADS_OF_A_WARP: u32 = 32;
pub(crate) const MEMORY_MHZ: u32 = 3201;

thread_local! {
    /// The activity that the kernel being started has recorded.
    static TOLD: Cell<Activity> = const { Cell::new(Activity::NONE) };
}

/// Records the bytes of device memory that the kernel being started reads and writes. Without a
/// record, only the written result counts.
pub(crate) fn moves(bytes: usize) {
    tell(Activity {
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

/// Records the operations of the kernel being started. A multiprocessor's units do `in_a_clock` of
/// them per clock.
pub(crate) fn has_units_do(unit: Unit, operations: u64, in_a_clock: u64) {
    let clocks = operations.div_ceil(in_a_clock);
    tell(match unit {
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

fn tell(activity: Activity) {
    TOLD.set(TOLD.get().and(activity));
}

/// Takes the recorded activity of the kernel that was started. If it has recorded no memory
/// traffic, the written bytes count.
pub(crate) fn told(written_bytes: usize) -> Activity {
    let told = TOLD.replace(Activity::NONE);
    let dram_bytes = if told.dram_bytes == 0 {
        written_bytes as u64
    } else {
        told.dram_bytes
    };
    Activity { dram_bytes, ..told }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
}

impl Grid {
    /// Returns the share of multiprocessors and warps that the grid uses. Blocks are spread evenly
    /// until the multiprocessors are full.
    pub(crate) fn load(self, multiprocessors: u32) -> Load {
        let warps = self.threads.div_ceil(THREADS_OF_A_WARP).max(1);
        let room = multiprocessors * (WARPS / warps).min(BLOCKS);
        let sms = f64::from(self.blocks.min(multiprocessors)) / f64::from(multiprocessors);
        let resident = f64::from(self.blocks.min(room)) * f64::from(warps);
        Load {
            sms,
            warps: resident / f64::from(multiprocessors * WARPS),
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
            writer: ActivityWriter::open(fake_gpu_state::folder(), peaks),
            uuids,
        }
    }
}

impl State {
    /// Returns the part of a device that a kernel uses.
    pub(crate) fn load(&self, grid: Grid) -> Load {
        grid.load(self.scenario.multiprocessors)
    }

    pub(crate) fn begin(&mut self, load: Load) -> Option<(u32, Begun)> {
        let device = current().ok()?;
        let Activities { writer, uuids } = &mut self.activities;
        Some((device, writer.begin(uuids.get(device as usize)?, load)))
    }

    /// Records the end of a kernel or copy, with its activity.
    pub(crate) fn end(&mut self, begun: Option<(u32, Begun)>, did: Activity) {
        if let Some((device, begun)) = begun {
            let Activities { writer, uuids } = &mut self.activities;
            writer.end(&uuids[device as usize], begun, did);
        }
    }

    /// Records that the device stays busy for a time in the future, while its stream waits.
    pub(crate) fn goes_on(&mut self, load: Load, after: Duration, time: Duration) {
        if let Ok(device) = current()
            && let Some(uuid) = self.activities.uuids.get(device as usize)
        {
            let from_ns = now_ns() + after.as_nanos() as u64;
            self.activities
                .writer
                .run(uuid, load, from_ns, time.as_nanos() as u64);
        }
    }

    /// Records a copy by the copy engines, which use no multiprocessor.
    pub(crate) fn copied(&mut self, did: Activity, copy: impl FnOnce()) {
        let begun = self.begin(Load::default());
        copy();
        self.end(begun, did);
    }

    /// Records a copy between two devices. Within one device, only its memory is used.
    pub(crate) fn copied_to_peer(
        &mut self,
        [from, to]: [u32; 2],
        bytes: usize,
        copy: impl FnOnce(),
    ) {
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
        let Activities { writer, uuids } = &mut self.activities;
        let both =
            [(from, sent), (to, received)].map(|(device, did)| (&uuids[device as usize], did));
        let begun = both.map(|(uuid, _)| writer.begin(uuid, Load::default()));
        copy();
        for ((uuid, did), begun) in both.into_iter().zip(begun) {
            writer.end(uuid, begun, did);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn loads(blocks: u32, threads: u32, sms: f64, warps: f64) {
        let load = Grid { blocks, threads }.load(132);
        assert!(
            (load.sms - sms).abs() < 1e-9 && (load.warps - warps).abs() < 1e-9,
            "{load:?}"
        );
    }

    #[test]
    fn blocks_are_spread_over_multiprocessors_until_these_are_full() {
        loads(66, 1024, 0.5, 0.25);
        loads(132, 1024, 1.0, 0.5);
        loads(100_000, 1024, 1.0, 1.0);
        // A multiprocessor runs at most 32 blocks, even if they are small.
        loads(100_000, 32, 1.0, 0.5);
        loads(1, 1, 1.0 / 132.0, 1.0 / 132.0 / 64.0);
    }

    #[test]
    fn what_a_kernel_tells_counts_once_and_else_what_it_wrote() {
        moves(100);
        has_units_do(Unit::Half, 4097, 4096);
        assert_eq!(
            told(8),
            Activity {
                dram_bytes: 100,
                half_clocks: 2,
                ..Activity::NONE
            }
        );
        assert_eq!(
            told(8),
            Activity {
                dram_bytes: 8,
                ..Activity::NONE
            }
        );
    }
}
