//! The environment of a scenario: the device, the rules that protect others, and the reports.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use super::{
    device::{Device, Held},
    stop::Stop,
};
use crate::{
    cuda::{CudaError, FreeMemory},
    error::gib,
    measure::Now,
    memory_budget::MemoryBudget,
    protocol::{Backend, MemoryLevel, Phase, Report, Topic},
};

/// The default time for which memory is kept.
const USUAL_HOLD_SECONDS: f64 = 3.0;
/// The maximum time for which memory is kept, so that a forgotten demonstration does not block a
/// device.
const LONGEST_HOLD_SECONDS: f64 = 600.0;
/// The driver's unit of allocation. Each size is rounded up to a multiple of it.
const PAGE_BYTES: u64 = 2 << 20;
/// The maximum duration of a step, long enough to be noticed by a tool that reads once a second.
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// How often to check whether others need memory while some is kept.
const LOOK: Duration = Duration::from_millis(100);
/// The time between two reports of the memory level if it does not change.
const RARELY: Duration = Duration::from_secs(1);
/// The shortest delay that is reported.
const SHOWN_DELAY: Duration = Duration::from_millis(100);
/// The time that the driver may need to report released memory as free.
const SETTLING: Duration = Duration::from_secs(2);

pub(crate) struct ScenarioContext<'a> {
    pub(crate) device: &'a dyn Device,
    cap_bytes: Option<u64>,
    reserve_bytes: u64,
    overhead_bytes: u64,
    /// The free memory at the start.
    begun_bytes: u64,
    hold: Duration,
    /// The total time by which waits took too long, because this process was not scheduled.
    late: Duration,
    /// The memory level that was reported last, and when.
    shown: Option<(Instant, MemoryLevel)>,
    /// The scenario and its backend.
    step: (&'static str, Backend),
    report: &'a mut dyn FnMut(Report),
    interrupted: &'a AtomicBool,
}

/// The starting point of a measured time.
pub(crate) struct Stopwatch {
    at: Instant,
    /// The delay of the context at this point.
    late: Duration,
}

pub(crate) struct Elapsed {
    time: Duration,
    late: Duration,
}

impl Elapsed {
    /// Returns the seconds without the delays of this process.
    pub(crate) fn punctual_seconds(&self) -> f64 {
        self.time.saturating_sub(self.late).as_secs_f64()
    }
}

impl fmt::Display for Elapsed {
    /// Writes the elapsed time, including delays.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.time.as_secs_f64())?;
        if self.late > SHOWN_DELAY {
            write!(f, ", delayed by {:.1} s", self.late.as_secs_f64())
        } else {
            Ok(())
        }
    }
}

impl<'a> ScenarioContext<'a> {
    pub(crate) fn new(
        device: &'a dyn Device,
        cap_bytes: Option<u64>,
        hold_seconds: f64,
        step: (&'static str, Backend),
        report: &'a mut dyn FnMut(Report),
        interrupted: &'a AtomicBool,
    ) -> Result<Self, Stop> {
        let memory = device.free()?;
        let hold_seconds = if hold_seconds > 0.0 {
            hold_seconds
        } else {
            USUAL_HOLD_SECONDS
        };
        Ok(Self {
            device,
            cap_bytes,
            reserve_bytes: MemoryBudget::for_gpu(0, memory, 0).reserve_bytes(),
            overhead_bytes: device.overhead_bytes()?,
            begun_bytes: memory.free_bytes,
            hold: Duration::from_secs_f64(hold_seconds.min(LONGEST_HOLD_SECONDS)),
            late: Duration::ZERO,
            shown: None,
            step,
            report,
            interrupted,
        })
    }

    pub(crate) fn free(&self) -> Result<FreeMemory, CudaError> {
        self.device.free()
    }

    pub(crate) fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes
    }

    /// Returns the memory that may still be allocated at this moment.
    pub(crate) fn usable_bytes(&self) -> Result<u64, CudaError> {
        let free_bytes = self.free()?.free_bytes;
        let held_bytes = self.begun_bytes.saturating_sub(free_bytes);
        let below_cap = self
            .cap_bytes
            .map_or(u64::MAX, |cap_bytes| cap_bytes.saturating_sub(held_bytes));
        Ok(free_bytes
            .saturating_sub(self.reserve_bytes + self.overhead_bytes)
            .min(below_cap))
    }

    /// Returns one of `parts` equal parts of the usable memory, rounded down to the driver's unit.
    pub(crate) fn part_of_usable(&self, parts: u64) -> Result<u64, Stop> {
        let part_bytes = self.usable_bytes()? / parts / PAGE_BYTES * PAGE_BYTES;
        if part_bytes == 0 {
            self.make_sure_of(parts * PAGE_BYTES)?;
        }
        Ok(part_bytes)
    }

    /// Checks that this much memory may be allocated at this moment.
    pub(crate) fn make_sure_of(&self, needed_bytes: u64) -> Result<(), Stop> {
        self.check_interrupted()?;
        let usable_bytes = self.usable_bytes()?;
        if needed_bytes <= usable_bytes {
            return Ok(());
        }
        let FreeMemory {
            free_bytes,
            total_bytes,
        } = self.free()?;
        let reserve_bytes = self.reserve_bytes;
        Err(Stop::NoRoom {
            needed_bytes,
            usable_bytes,
            free_bytes,
            total_bytes,
            reserve_bytes,
        })
    }

    pub(crate) fn take(&self, bytes: u64) -> Result<Held, Stop> {
        self.make_sure_of(bytes)?;
        let held = match self.device.allocate(bytes) {
            // Another process has allocated memory in the meantime.
            Err(error) if error.is_out_of_memory() => {
                self.make_sure_of(u64::MAX)?;
                return Err(error.into());
            }
            held => held?,
        };
        self.leave_enough()?;
        Ok(held)
    }

    /// Returns the driver's error for a request that exceeds the total memory, whatever others
    /// release meanwhile.
    pub(crate) fn refused(&self, bytes: u64) -> Result<CudaError, Stop> {
        match self.device.allocate(bytes) {
            Err(error) if error.is_out_of_memory() => Ok(error),
            Err(error) => Err(error.into()),
            Ok(held) => {
                drop(held);
                Err(Stop::NotShown(format!(
                    "{} were granted on a device that has less",
                    gib(bytes)
                )))
            }
        }
    }

    /// Waits for the duration of a step, and checks meanwhile that others have enough memory.
    pub(crate) fn pause(&mut self) -> Result<(), Stop> {
        let step = (self.hold / 3).min(LONGEST_STEP);
        self.wait(step)
    }

    /// Keeps memory for the requested time, and checks meanwhile that others have enough memory.
    pub(crate) fn hold(&mut self) -> Result<(), Stop> {
        self.phase(Phase::Holding);
        self.wait(self.hold)
    }

    /// Waits, and reports the memory level. Fails if the run is interrupted, or if others need
    /// memory.
    pub(crate) fn wait(&mut self, time: Duration) -> Result<(), Stop> {
        let end = Instant::now() + time;
        loop {
            self.check_interrupted()?;
            self.leave_enough()?;
            self.show()?;
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            if left.is_zero() {
                self.late += now - end;
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }

    pub(crate) fn elapsed(&self, since: &Stopwatch) -> Elapsed {
        Elapsed {
            time: since.at.elapsed(),
            late: self.late.saturating_sub(since.late),
        }
    }

    pub(crate) fn stopwatch(&self) -> Stopwatch {
        Stopwatch {
            at: Instant::now(),
            late: self.late,
        }
    }

    pub(crate) fn hold_time(&self) -> Duration {
        self.hold
    }

    fn check_interrupted(&self) -> Result<(), Stop> {
        if self.interrupted.load(Relaxed) {
            Err(Stop::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Checks that enough memory is free for others. After an error, the caller must release
    /// everything.
    pub(crate) fn leave_enough(&self) -> Result<(), Stop> {
        let free_bytes = self.free()?.free_bytes;
        // If others use so much memory that the reserve is not free, the scenario is not the cause.
        let is_ours = free_bytes < self.begun_bytes;
        if is_ours && free_bytes < self.reserve_bytes {
            return Err(Stop::BackedOff {
                free_bytes,
                reserve_bytes: self.reserve_bytes,
            });
        }
        Ok(())
    }

    /// Returns a sentence that compares the free memory with that of before, after the time that
    /// the driver needs to release memory.
    pub(crate) fn proof(&self, before_bytes: u64) -> Result<String, Stop> {
        self.device.settle();
        let end = Instant::now() + SETTLING;
        let mut after_bytes = self.free()?.free_bytes;
        while after_bytes < before_bytes && Instant::now() < end {
            thread::sleep(LOOK);
            after_bytes = self.free()?.free_bytes;
        }
        let [before, after] = [before_bytes, after_bytes].map(gib);
        let figures = format!("{before} free before, {after} after");
        Ok(match after_bytes {
            same if same == before_bytes => format!("Verified: {figures}, equal to the byte."),
            more if more > before_bytes => format!("{figures}: others have freed some meanwhile."),
            less => format!(
                "{figures}: others have allocated {} meanwhile.",
                gib(before_bytes - less)
            ),
        })
    }

    pub(crate) fn phase(&mut self, phase: Phase) {
        let (id, backend) = self.step;
        (self.report)(Now::Phase(phase).into_report(0, id, backend));
    }

    pub(crate) fn show(&mut self) -> Result<(), Stop> {
        let FreeMemory {
            free_bytes,
            total_bytes,
        } = self.free()?;
        let level = MemoryLevel::new(free_bytes, total_bytes, self.reserve_bytes);
        let is_news = self
            .shown
            .is_none_or(|(at, shown)| shown != level || at.elapsed() >= RARELY);
        if is_news {
            self.shown = Some((Instant::now(), level));
            (self.report)(Report::Progress {
                share: level.share(),
                text: level.to_string(),
                memory: Some(level),
            });
        }
        Ok(())
    }

    pub(crate) fn step(&mut self, text: impl Into<String>) {
        self.say(Topic::Step, text);
    }

    pub(crate) fn say(&mut self, topic: Topic, text: impl Into<String>) {
        let text = text.into();
        (self.report)(Report::Said { topic, text });
    }
}
