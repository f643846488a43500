//! A recording that is played: what `gpumon collect > FILE` wrote, at any speed, from any moment.

mod recording;

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use gpumon_probe::model::Record;

use self::recording::{Kind, Recording};
use super::model::Update;
pub(super) use recording::BadRecording;

/// Nothing is waited for longer than this: a recording can have been interrupted for hours.
const LONGEST_WAIT_MS: u64 = 5_000;
/// At most so many samples at once, so that keys work at any speed.
const AT_ONCE: usize = 64;
/// What is read of the past where a replay is moved to another moment.
const PAST_MS: u64 = 15 * 60 * 1000;
/// At most so many samples of it.
const PAST_SAMPLES: usize = 600;
const PAST_LINES: usize = 2000;

/// The slowest and the fastest, in times of the real speed.
const SPEEDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

pub(super) struct Player {
    recording: Recording,
    /// The sample that is shown, by its number; `None` before the first.
    shown: Option<usize>,
    paused: bool,
    /// Its place in [`SPEEDS`].
    speed: usize,
    due: Instant,
}

impl Player {
    /// Reads a recording through, so that what is wrong with it is said at once.
    pub(super) fn open(path: &Path) -> Result<Self, BadRecording> {
        let recording = Recording::open(path)?;
        Ok(Self { recording, shown: None, paused: false, speed: 3, due: Instant::now() })
    }

    /// When [`advance`](Self::advance) has something to give; `None` while it is paused or over.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.paused && !self.is_over()).then_some(self.due)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn is_over(&self) -> bool {
        self.next() >= self.recording.samples.len()
    }

    pub(super) fn speed(&self) -> f64 {
        SPEEDS[self.speed]
    }

    /// The time that is shown, and that of the first and the last sample.
    pub(super) fn times_ms(&self) -> (u64, u64, u64) {
        let at = |sample: usize| self.recording.time_of(sample);
        (at(self.shown.unwrap_or(0)), at(0), at(self.recording.samples.len() - 1))
    }

    /// All that is due by now.
    pub(super) fn advance(&mut self, now: Instant) -> io::Result<Vec<Update>> {
        let mut updates = Vec::new();
        for _ in 0..AT_ONCE {
            if self.due().is_none_or(|due| due > now) {
                break;
            }
            updates.extend(self.show_next()?);
            self.due = self.due.max(now.checked_sub(Duration::from_secs(1)).unwrap_or(now)) + self.wait();
        }
        Ok(updates)
    }

    pub(super) fn pause_or_go_on(&mut self) -> io::Result<Vec<Update>> {
        if self.is_over() {
            self.paused = false;
            return self.seek(0);
        }
        self.paused = !self.paused;
        self.due = Instant::now() + self.wait();
        Ok(Vec::new())
    }

    pub(super) fn change_speed(&mut self, faster: bool) {
        self.speed = if faster { (self.speed + 1).min(SPEEDS.len() - 1) } else { self.speed.saturating_sub(1) };
        self.due = Instant::now() + self.wait();
    }

    /// One sample forward or back; it is paused then.
    pub(super) fn step(&mut self, forward: bool) -> io::Result<Vec<Update>> {
        self.paused = true;
        match (forward, self.shown) {
            (true, _) if self.is_over() => Ok(Vec::new()),
            (true, _) => self.show_next(),
            (false, Some(shown)) => self.seek(shown.saturating_sub(1)),
            (false, None) => Ok(Vec::new()),
        }
    }

    /// So much later or earlier.
    pub(super) fn skip(&mut self, by_ms: i64) -> io::Result<Vec<Update>> {
        self.seek_to(self.times_ms().0.saturating_add_signed(by_ms))
    }

    /// To the last sample that is not later than this.
    pub(super) fn seek_to(&mut self, at_ms: u64) -> io::Result<Vec<Update>> {
        let later = self.recording.samples.partition_point(|line| self.recording.lines[*line].at_ms <= at_ms);
        self.seek(later.saturating_sub(1))
    }

    /// To this sample, with the past that was there then.
    fn seek(&mut self, sample: usize) -> io::Result<Vec<Update>> {
        let target = self.recording.samples[sample];
        let mut updates = vec![Update::Rewound];
        for line in self.recording.past_of(sample) {
            updates.push(update(self.recording.read(line)?));
        }
        updates.push(update(self.recording.read(target)?));
        self.shown = Some(sample);
        self.due = Instant::now() + self.wait();
        Ok(updates)
    }

    fn show_next(&mut self) -> io::Result<Vec<Update>> {
        let next = self.next();
        let from = self.shown.map_or(0, |shown| self.recording.samples[shown] + 1);
        let lines = from..=self.recording.samples[next];
        self.shown = Some(next);
        lines.map(|line| self.recording.read(line).map(update)).collect()
    }

    fn next(&self) -> usize {
        self.shown.map_or(0, |shown| shown + 1)
    }

    fn wait(&self) -> Duration {
        if self.is_over() {
            return Duration::ZERO;
        }
        let shown = self.shown.map_or(0, |shown| self.recording.time_of(shown));
        let apart_ms = self.recording.time_of(self.next()).saturating_sub(shown).min(LONGEST_WAIT_MS);
        Duration::from_millis(apart_ms).div_f64(self.speed())
    }
}

impl Recording {
    fn time_of(&self, sample: usize) -> u64 {
        self.lines[self.samples[sample]].at_ms
    }

    /// The lines that a screen needs before it can show this sample, in the order of the file: the inventory, the
    /// newest details of each GPU, what happened lately, and the samples of the last minutes, thinned.
    fn past_of(&self, sample: usize) -> Vec<usize> {
        let target = self.samples[sample];
        let at_ms = self.lines[target].at_ms;
        let mut wanted = Vec::new();
        let mut told = Vec::new();
        let inventory = (0..target).rev().find(|line| self.lines[*line].kind == Kind::Inventory);
        wanted.extend(inventory);
        for line in (0..target).rev().take(PAST_LINES) {
            match self.lines[line].kind {
                Kind::Details(gpu) if !told.contains(&gpu) => {
                    told.push(gpu);
                    wanted.push(line);
                }
                Kind::Event => wanted.push(line),
                _ => {}
            }
        }
        let first =
            self.samples.partition_point(|line| self.lines[*line].at_ms.saturating_add(PAST_MS) < at_ms).min(sample);
        let every = (sample - first).div_ceil(PAST_SAMPLES).max(1);
        wanted.extend(self.samples[first..sample].iter().rev().step_by(every));
        wanted.sort_unstable();
        wanted
    }
}

fn update(record: Record) -> Update {
    Update::Record(Box::new(record))
}

#[cfg(test)]
mod tests;
