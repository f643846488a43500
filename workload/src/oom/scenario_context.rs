//! What a scenario stands on: the device, the rules that protect others, and somebody to tell.

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

/// How long memory is held where nobody says.
const USUAL_HOLD_SECONDS: f64 = 3.0;
/// However long somebody asks for: nobody should be kept from a device by a demonstration that was
/// forgotten.
const LONGEST_HOLD_SECONDS: f64 = 600.0;
/// What the driver hands out whole: anything between two multiples of it counts as the larger.
const PAGE_BYTES: u64 = 2 << 20;
/// A step lasts as long as it takes to be seen by who looks once a second, and no longer.
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// How often it is looked, while something is held, whether others need memory.
const LOOK: Duration = Duration::from_millis(100);
/// How often it is told how full the device is where that does not change.
const RARELY: Duration = Duration::from_secs(1);
/// A delay that is told.
const SHOWN_DELAY: Duration = Duration::from_millis(100);
/// How long the driver may take to have what was given back free again.
const SETTLING: Duration = Duration::from_secs(2);

pub(crate) struct ScenarioContext<'a> {
    pub(crate) device: &'a dyn Device,
    cap_bytes: Option<u64>,
    reserve_bytes: u64,
    overhead_bytes: u64,
    /// Free when it began.
    begun_bytes: u64,
    hold: Duration,
    /// By how much waiting took longer than it was to: this process was not run meanwhile.
    late: Duration,
    /// How full the device was when that was told last, and when.
    shown: Option<(Instant, MemoryLevel)>,
    /// The scenario, and where it is shown.
    step: (&'static str, Backend),
    report: &'a mut dyn FnMut(Report),
    interrupted: &'a AtomicBool,
}

/// A moment from which [`ScenarioContext::elapsed`] counts.
pub(crate) struct Stopwatch {
    at: Instant,
    /// That of the context then.
    late: Duration,
}

pub(crate) struct Elapsed {
    time: Duration,
    late: Duration,
}

impl Elapsed {
    /// As it is on a machine that lets this process run whenever it wants to.
    pub(crate) fn punctual_seconds(&self) -> f64 {
        self.time.saturating_sub(self.late).as_secs_f64()
    }
}

impl fmt::Display for Elapsed {
    /// As it was.
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

    /// What may still be taken, at this moment.
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

    /// One of so many equal parts of what may still be taken, such as the driver hands out.
    pub(crate) fn part_of_usable(&self, parts: u64) -> Result<u64, Stop> {
        let part_bytes = self.usable_bytes()? / parts / PAGE_BYTES * PAGE_BYTES;
        if part_bytes == 0 {
            self.make_sure_of(parts * PAGE_BYTES)?;
        }
        Ok(part_bytes)
    }

    /// Whether so much may be taken, at this moment.
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
            // Somebody else was faster.
            Err(error) if error.is_out_of_memory() => {
                self.make_sure_of(u64::MAX)?;
                return Err(error.into());
            }
            held => held?,
        };
        self.leave_enough()?;
        Ok(held)
    }

    /// What the driver says to a request for more than can be free, whoever lets go of what
    /// meanwhile.
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

    /// Waits for as long as a step takes, and looks after others meanwhile.
    pub(crate) fn pause(&mut self) -> Result<(), Stop> {
        let step = (self.hold / 3).min(LONGEST_STEP);
        self.wait(step)
    }

    /// Holds what is held for as long as was asked for, and looks after others meanwhile.
    pub(crate) fn hold(&mut self) -> Result<(), Stop> {
        self.phase(Phase::Holding);
        self.wait(self.hold)
    }

    /// Waits, shows how full the device is, and stops where somebody asks for that or others need
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

    /// Whether what is left is enough for others. Who gets an error here lets go of everything.
    pub(crate) fn leave_enough(&self) -> Result<(), Stop> {
        let free_bytes = self.free()?.free_bytes;
        // Where others hold so much that the reserve is not there, nothing has been taken.
        let is_ours = free_bytes < self.begun_bytes;
        if is_ours && free_bytes < self.reserve_bytes {
            return Err(Stop::BackedOff {
                free_bytes,
                reserve_bytes: self.reserve_bytes,
            });
        }
        Ok(())
    }

    /// That free memory is what it was, with as much time as the driver needs for that.
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
