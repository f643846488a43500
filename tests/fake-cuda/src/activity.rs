//! What is done on the devices, for the fake NVML to tell: kernels and copies with the time that
//! they take.

use std::{cell::Cell, time::Duration};

use fake_gpu_state::{Activity, ActivityWriter, Begun, Load, Peaks, now_ns};

use crate::{
    scenario::Scenario,
    state::{State, current},
};

/// What each of an H200's multiprocessors has at most.
pub(crate) const WARPS: u32 = 64;
const BLOCKS: u32 = 32;
const THREADS_OF_A_WARP: u32 = 32;
pub(crate) const MEMORY_MHZ: u32 = 3201;

thread_local! {
    /// What the kernel that is just being started has told of itself.
    static TOLD: Cell<Activity> = const { Cell::new(Activity::NONE) };
}

/// The kernel that is just being started reads and writes so much of the device's memory. One that
/// does not say so writes its result and no more.
pub(crate) fn moves(bytes: usize) {
    tell(Activity {
        dram_bytes: bytes as u64,
        ..Activity::NONE
    });
}

/// What computes in a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Tensor cores, on half-precision and narrower floating-point numbers.
    Half,
    /// Tensor cores, on integers.
    Integer,
    /// Tensor cores, on double-precision numbers.
    Double,
    /// Single-precision units.
    Single,
}

/// It has units do so many operations, of which those of a multiprocessor do so many in a clock.
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

/// What the kernel that was started has done, by what it told and where nothing else by what it
/// wrote.
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
    /// Blocks go to the multiprocessor that has the fewest of them, as long as one has room.
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

/// What this process does on each device.
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
            // On both edges of the clock.
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
    /// How much of a device a kernel takes.
    pub(crate) fn load(&self, grid: Grid) -> Load {
        grid.load(self.scenario.multiprocessors)
    }

    pub(crate) fn begin(&mut self, load: Load) -> Option<(u32, Begun)> {
        let device = current().ok()?;
        let Activities { writer, uuids } = &mut self.activities;
        Some((device, writer.begin(uuids.get(device as usize)?, load)))
    }

    /// It ends, and this is what it did.
    pub(crate) fn end(&mut self, begun: Option<(u32, Begun)>, did: Activity) {
        if let Some((device, begun)) = begun {
            let Activities { writer, uuids } = &mut self.activities;
            writer.end(&uuids[device as usize], begun, did);
        }
    }

    /// It keeps the device busy from then on, while its stream waits.
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

    /// A copy by the engines for it, which takes no multiprocessor.
    pub(crate) fn copied(&mut self, did: Activity, copy: impl FnOnce()) {
        let begun = self.begin(Load::default());
        copy();
        self.end(begun, did);
    }

    /// A copy from one device to another, which both take part in; within one, its memory alone.
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
        // No more than 32 blocks each, however small they are.
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
