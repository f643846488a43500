//! The definition of a demonstration, and the environment in which it runs.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::device::{Allocation, DemoDevice, DemoError};
use crate::{
    cuda::{CudaError, FreeMemory},
    error::format_gib,
    measure::MeasureProgress,
    memory_budget::MemoryBudget,
    protocol::{Backend, MemoryLevel, Phase, Report, Topic},
};

/// A demonstration of running out of memory, or of errors that look like it. It includes
/// explanations.
#[derive(Debug, Serialize)]
pub struct Scenario {
    /// The scenario's name, as typed by users.
    pub id: &'static str,
    /// A title of a few words.
    pub title: &'static str,
    /// A sentence that describes the visible effect.
    pub shows: &'static str,
    /// The reason why the demonstration runs out of memory.
    pub cause: &'static str,
    /// The remedies, including the settings of frameworks.
    #[serde(rename = "cures")]
    pub fixes: &'static [&'static str],
    /// The lesson that the scenario teaches.
    pub lesson: &'static str,
    /// The function that runs the scenario step by step. When it returns, all of its memory is
    /// released. It fails if there is not enough memory, if the run is interrupted, or if the
    /// effect does not occur.
    #[serde(skip)]
    pub(super) run: fn(&mut ScenarioContext<'_>) -> Result<(), DemoError>,
}

/// The default time for which memory is kept, in seconds.
const DEFAULT_HOLD_SECONDS: f64 = 3.0;
/// The maximum time for which memory is kept, in seconds. It ensures that a forgotten demonstration
/// does not block a device.
const MAX_HOLD_SECONDS: f64 = 600.0;
/// The driver's unit of allocation in bytes. Each size is rounded up to a multiple of this unit.
const PAGE_BYTES: u64 = 2 << 20;
/// The maximum duration of a step, long enough to be visible in tools that read once a second.
const MAX_STEP_DURATION: Duration = Duration::from_secs(1);
/// The interval between two checks of whether other processes need memory. The checks are made
/// while memory is kept.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which an unchanged memory level is reported again.
const UNCHANGED_INTERVAL: Duration = Duration::from_secs(1);
/// A delay is only reported if it is at least this long.
const MIN_SHOWN_DELAY: Duration = Duration::from_millis(100);
/// The time within which the driver is expected to report released memory as free.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The environment of a scenario: the device, the rules that protect other processes, and the
/// reports.
pub(crate) struct ScenarioContext<'a> {
    pub(crate) device: &'a dyn DemoDevice,
    cap_bytes: Option<u64>,
    reserve_bytes: u64,
    overhead_bytes: u64,
    /// The free memory in bytes when the scenario started.
    begun_bytes: u64,
    hold: Duration,
    /// The total delay of all waits so far. A delay is the time by which a wait took longer than
    /// requested, because the operating system did not let this process run.
    late: Duration,
    /// The memory level that was last reported, and the time of that report.
    shown: Option<(Instant, MemoryLevel)>,
    /// The name of the scenario, and the backend that it runs on.
    step: (&'static str, Backend),
    report: &'a mut dyn FnMut(Report),
    interrupted: &'a AtomicBool,
}

/// A stopwatch that can exclude delays of this process.
pub(crate) struct Stopwatch {
    at: Instant,
    /// The context's total delay when the stopwatch was started.
    late: Duration,
}

pub(crate) struct Elapsed {
    time: Duration,
    late: Duration,
}

impl Elapsed {
    /// Returns the elapsed time in seconds, without the delays of this process.
    pub(crate) fn seconds_without_delays(&self) -> f64 {
        self.time.saturating_sub(self.late).as_secs_f64()
    }
}

impl fmt::Display for Elapsed {
    /// Writes the elapsed time, including the delays of this process.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.time.as_secs_f64())?;
        if self.late > MIN_SHOWN_DELAY {
            write!(f, ", delayed by {:.1} s", self.late.as_secs_f64())
        } else {
            Ok(())
        }
    }
}

impl<'a> ScenarioContext<'a> {
    pub(crate) fn new(
        device: &'a dyn DemoDevice,
        cap_bytes: Option<u64>,
        hold_seconds: f64,
        step: (&'static str, Backend),
        report: &'a mut dyn FnMut(Report),
        interrupted: &'a AtomicBool,
    ) -> Result<Self, DemoError> {
        let memory = device.read_free_memory()?;
        let hold_seconds = if hold_seconds > 0.0 {
            hold_seconds
        } else {
            DEFAULT_HOLD_SECONDS
        };
        Ok(Self {
            device,
            cap_bytes,
            reserve_bytes: MemoryBudget::for_gpu(0, memory, 0).reserve_bytes(),
            overhead_bytes: device.overhead_bytes()?,
            begun_bytes: memory.free_bytes,
            hold: Duration::from_secs_f64(hold_seconds.min(MAX_HOLD_SECONDS)),
            late: Duration::ZERO,
            shown: None,
            step,
            report,
            interrupted,
        })
    }

    pub(crate) fn read_free_memory(&self) -> Result<FreeMemory, CudaError> {
        self.device.read_free_memory()
    }

    pub(crate) fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes
    }

    /// Returns the memory in bytes that may still be allocated.
    pub(crate) fn usable_bytes(&self) -> Result<u64, CudaError> {
        let free_bytes = self.read_free_memory()?.free_bytes;
        let held_bytes = self.begun_bytes.saturating_sub(free_bytes);
        let below_cap = self
            .cap_bytes
            .map_or(u64::MAX, |cap_bytes| cap_bytes.saturating_sub(held_bytes));
        Ok(free_bytes
            .saturating_sub(self.reserve_bytes + self.overhead_bytes)
            .min(below_cap))
    }

    /// Returns the size of one of `parts` equal parts of the usable memory, rounded down to the
    /// driver's unit of allocation.
    pub(crate) fn usable_part(&self, parts: u64) -> Result<u64, DemoError> {
        let part_bytes = self.usable_bytes()? / parts / PAGE_BYTES * PAGE_BYTES;
        if part_bytes == 0 {
            self.check_free_memory(parts * PAGE_BYTES)?;
        }
        Ok(part_bytes)
    }

    /// Checks that this much memory may currently be allocated.
    pub(crate) fn check_free_memory(&self, needed_bytes: u64) -> Result<(), DemoError> {
        self.check_interrupted()?;
        let usable_bytes = self.usable_bytes()?;
        if needed_bytes <= usable_bytes {
            return Ok(());
        }
        let FreeMemory {
            free_bytes,
            total_bytes,
        } = self.read_free_memory()?;
        let reserve_bytes = self.reserve_bytes;
        Err(DemoError::NoRoom {
            needed_bytes,
            usable_bytes,
            free_bytes,
            total_bytes,
            reserve_bytes,
        })
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Allocation, DemoError> {
        self.check_free_memory(bytes)?;
        let held = match self.device.allocate(bytes) {
            // Another process has allocated memory since the check.
            Err(error) if error.is_out_of_memory() => {
                self.check_free_memory(u64::MAX)?;
                return Err(error.into());
            }
            held => held?,
        };
        self.check_reserve_is_free()?;
        Ok(held)
    }

    /// Requests more than the total memory, and returns the driver's error. The request cannot
    /// succeed, even if other processes release memory.
    pub(crate) fn request_impossible_size(&self, bytes: u64) -> Result<CudaError, DemoError> {
        match self.device.allocate(bytes) {
            Err(error) if error.is_out_of_memory() => Ok(error),
            Err(error) => Err(error.into()),
            Ok(held) => {
                drop(held);
                Err(DemoError::NotShown(format!(
                    "{} were allocated on a device that has less memory",
                    format_gib(bytes)
                )))
            }
        }
    }

    /// Waits for the duration of a step. While waiting, checks that other processes have enough
    /// memory.
    pub(crate) fn pause_between_steps(&mut self) -> Result<(), DemoError> {
        let step = (self.hold / 3).min(MAX_STEP_DURATION);
        self.wait(step)
    }

    /// Keeps memory allocated for the requested time. While waiting, checks that other processes
    /// have enough memory.
    pub(crate) fn hold_memory(&mut self) -> Result<(), DemoError> {
        self.report_phase(Phase::Holding);
        self.wait(self.hold)
    }

    /// Waits for this time, and reports the memory level. Fails if the run is interrupted, or if
    /// other processes need memory.
    pub(crate) fn wait(&mut self, time: Duration) -> Result<(), DemoError> {
        let end = Instant::now() + time;
        loop {
            self.check_interrupted()?;
            self.check_reserve_is_free()?;
            self.report_memory_level()?;
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            if left.is_zero() {
                self.late += now - end;
                return Ok(());
            }
            thread::sleep(left.min(CHECK_INTERVAL));
        }
    }

    pub(crate) fn elapsed_since(&self, since: &Stopwatch) -> Elapsed {
        Elapsed {
            time: since.at.elapsed(),
            late: self.late.saturating_sub(since.late),
        }
    }

    pub(crate) fn start_stopwatch(&self) -> Stopwatch {
        Stopwatch {
            at: Instant::now(),
            late: self.late,
        }
    }

    pub(crate) fn hold_time(&self) -> Duration {
        self.hold
    }

    fn check_interrupted(&self) -> Result<(), DemoError> {
        if self.interrupted.load(Relaxed) {
            Err(DemoError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Checks that the reserve for other processes is free. If it is not, the caller must release
    /// all memory.
    pub(crate) fn check_reserve_is_free(&self) -> Result<(), DemoError> {
        let free_bytes = self.read_free_memory()?.free_bytes;
        // If at least as much memory is free as at the start of the scenario, then other processes,
        // and not this scenario, use the memory that is missing in the reserve.
        let is_ours = free_bytes < self.begun_bytes;
        if is_ours && free_bytes < self.reserve_bytes {
            return Err(DemoError::BackedOff {
                free_bytes,
                reserve_bytes: self.reserve_bytes,
            });
        }
        Ok(())
    }

    /// Waits until the driver has released memory, and returns a sentence that compares the free
    /// memory with `before_bytes`.
    pub(crate) fn wait_and_describe_release(&self, before_bytes: u64) -> Result<String, DemoError> {
        self.device.release_driver_memory();
        let end = Instant::now() + SETTLE_TIMEOUT;
        let mut after_bytes = self.read_free_memory()?.free_bytes;
        while after_bytes < before_bytes && Instant::now() < end {
            thread::sleep(CHECK_INTERVAL);
            after_bytes = self.read_free_memory()?.free_bytes;
        }
        let [before, after] = [before_bytes, after_bytes].map(format_gib);
        let figures = format!("{before} free before, {after} after");
        Ok(match after_bytes {
            same if same == before_bytes => format!("Verified: {figures}, identical to the byte."),
            more if more > before_bytes => {
                format!("{figures}: other programs freed memory in the meantime.")
            }
            less => format!(
                "{figures}: other programs allocated {} in the meantime.",
                format_gib(before_bytes - less)
            ),
        })
    }

    pub(crate) fn report_phase(&mut self, phase: Phase) {
        let (id, backend) = self.step;
        (self.report)(MeasureProgress::Phase(phase).into_report(0, id, backend));
    }

    pub(crate) fn report_memory_level(&mut self) -> Result<(), DemoError> {
        let FreeMemory {
            free_bytes,
            total_bytes,
        } = self.read_free_memory()?;
        let level = MemoryLevel::new(free_bytes, total_bytes, self.reserve_bytes);
        let is_news = self
            .shown
            .is_none_or(|(at, shown)| shown != level || at.elapsed() >= UNCHANGED_INTERVAL);
        if is_news {
            self.shown = Some((Instant::now(), level));
            (self.report)(Report::Progress {
                share: level.used_share(),
                text: level.to_string(),
                memory: Some(level),
            });
        }
        Ok(())
    }

    pub(crate) fn report_step(&mut self, text: impl Into<String>) {
        self.report_sentence(Topic::Step, text);
    }

    pub(crate) fn report_sentence(&mut self, topic: Topic, text: impl Into<String>) {
        let text = text.into();
        (self.report)(Report::Said { topic, text });
    }
}
