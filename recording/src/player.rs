//! Playback of a recording at any speed, from any moment.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    path::Path,
    time::{Duration, Instant},
};

use crate::{BadRecording, Kind, Lines, Recording};

/// The maximum wait between two samples, because a recording can have been interrupted for hours.
const LONGEST_WAIT_MS: u64 = 5_000;
/// The maximum number of samples per call, so that user input takes effect at any speed.
const AT_ONCE: usize = 64;
/// The time before a sample from which records are read when playback jumps to it.
const PAST_MS: u64 = 15 * 60 * 1000;
/// The maximum numbers of samples and events that are returned from before a sample.
const PAST_SAMPLES: usize = 600;
const PAST_EVENTS: usize = 256;
/// The maximum numbers of blocks and of text bytes that are read from before a sample, because the
/// times in a damaged recording can be wrong.
const PAST_BLOCKS: usize = 2_000;
const PAST_BYTES: u64 = 256 << 20;
/// The maximum number of GPUs with details.
const PAST_DETAILS: usize = 1_024;

/// The speeds that users can choose, as multiples of real time.
pub const SPEEDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

/// An output of a [`Player`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Played {
    /// Playback continues at another moment, so everything shown before is obsolete.
    Rewound,
    /// A record as JSON.
    Record(String),
}

/// A player of a [`Recording`].
#[derive(Debug)]
pub struct Player {
    recording: Recording,
    /// The number of the sample that is shown; `None` before the first.
    shown: Option<usize>,
    shown_ms: u64,
    paused: bool,
    speed: f64,
    due: Instant,
    /// The moment to start from, in milliseconds since 1970.
    start_ms: Option<u64>,
    /// The block that was read last, with its number.
    block: Option<(usize, Lines)>,
    /// The read error after the records of the last call, to be returned by the next call.
    damage: Option<io::Error>,
}

impl Player {
    /// Opens a recording with [`Recording::open`], positioned before its first sample.
    ///
    /// # Errors
    /// Returns an error if the file is not a recording.
    pub fn open(path: &Path) -> Result<Self, BadRecording> {
        Recording::open(path).map(Self::new)
    }

    /// Creates a player at the start of a recording, at real speed.
    pub fn new(recording: Recording) -> Self {
        let shown_ms = recording.times_ms().0;
        Self {
            recording,
            shown: None,
            shown_ms,
            paused: false,
            speed: 1.0,
            due: Instant::now(),
            start_ms: None,
            block: None,
            damage: None,
        }
    }

    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns when [`advance`](Self::advance) has the next records; `None` while playback is
    /// paused or over.
    pub fn due(&self) -> Option<Instant> {
        (!self.paused && !self.is_over()).then_some(self.due)
    }

    /// Returns `true` if a user paused the playback.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Returns `true` if the last sample is shown.
    pub fn is_over(&self) -> bool {
        self.next() >= self.recording.samples()
    }

    /// Returns the speed as a multiple of real time.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Returns the times of the shown, the first and the last sample, in milliseconds since 1970.
    pub fn times_ms(&self) -> (u64, u64, u64) {
        let (first, last) = self.recording.times_ms();
        (self.shown_ms, first, last)
    }

    /// Returns everything that is due by `now`.
    ///
    /// # Errors
    /// Returns an error if a block cannot be read. The next call continues after that block.
    pub fn advance(&mut self, now: Instant) -> io::Result<Vec<Played>> {
        if let Some(error) = self.damage.take() {
            return Err(error);
        }
        let mut played = match self.start_ms.take() {
            Some(at_ms) => self.seek_to(at_ms)?,
            None => Vec::new(),
        };
        for _ in 0..AT_ONCE {
            if self.due().is_none_or(|due| due > now) {
                break;
            }
            match self.show_next() {
                Ok(shown) => played.extend(shown),
                Err(error) if played.is_empty() => return Err(error),
                Err(error) => {
                    self.damage = Some(error);
                    break;
                }
            }
            self.due = self
                .due
                .max(now.checked_sub(Duration::from_secs(1)).unwrap_or(now))
                + self.wait();
        }
        Ok(played)
    }

    /// Pauses or resumes playback, or restarts it if it is over.
    ///
    /// # Errors
    /// Same as for [`advance`](Self::advance).
    pub fn pause_or_go_on(&mut self) -> io::Result<Vec<Played>> {
        if self.is_over() {
            self.paused = false;
            return self.seek(0);
        }
        self.set_paused(!self.paused);
        Ok(Vec::new())
    }

    pub fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
        self.due = Instant::now() + self.wait();
    }

    /// Sets the speed as a multiple of real time, from 0.1 to 1000.
    pub fn set_speed(&mut self, speed: f64) {
        self.speed = speed.clamp(SPEEDS[0], 1000.0);
        self.due = Instant::now() + self.wait();
    }

    /// Changes to the next higher or lower of [`SPEEDS`].
    pub fn change_speed(&mut self, faster: bool) {
        let next = if faster {
            SPEEDS.iter().find(|speed| **speed > self.speed)
        } else {
            SPEEDS.iter().rfind(|speed| **speed < self.speed)
        };
        self.set_speed(next.copied().unwrap_or(self.speed));
    }

    /// Moves one sample forward or back, and pauses playback.
    ///
    /// # Errors
    /// Same as for [`advance`](Self::advance).
    pub fn step(&mut self, forward: bool) -> io::Result<Vec<Played>> {
        self.paused = true;
        match (forward, self.shown) {
            (true, _) if self.is_over() => Ok(Vec::new()),
            (true, _) => self.show_next(),
            (false, Some(shown)) => self.seek(shown.saturating_sub(1)),
            (false, None) => Ok(Vec::new()),
        }
    }

    /// Moves by some milliseconds, forward or back.
    ///
    /// # Errors
    /// Same as for [`advance`](Self::advance).
    pub fn skip(&mut self, by_ms: i64) -> io::Result<Vec<Played>> {
        self.seek_to(self.shown_ms.saturating_add_signed(by_ms))
    }

    /// Makes the next [`advance`](Self::advance) start from this moment, in milliseconds since
    /// 1970.
    pub fn start_at(&mut self, at_ms: u64) {
        self.start_ms = Some(at_ms);
    }

    /// Moves to the last sample that is not later than this moment, in milliseconds since 1970.
    ///
    /// # Errors
    /// Same as for [`advance`](Self::advance).
    pub fn seek_to(&mut self, at_ms: u64) -> io::Result<Vec<Played>> {
        let begun = |block: &usize| {
            let head = self.recording.head(*block);
            head.samples > 0 && head.first_ms <= at_ms
        };
        let Some(block) = (0..self.recording.blocks()).rev().find(begun) else {
            return self.seek(0);
        };
        self.load(block)?;
        let lines = self.lines();
        let until = lines
            .samples()
            .iter()
            .filter(|line| lines.lines()[**line].at_ms <= at_ms)
            .count();
        self.seek(self.recording.first_sample(block) + until.saturating_sub(1))
    }

    /// Moves to a sample, and returns it after the records of its past.
    fn seek(&mut self, sample: usize) -> io::Result<Vec<Played>> {
        let mut played = vec![Played::Rewound];
        played.extend(self.past_of(sample)?);
        let (block, nth) = self.recording.place(sample);
        self.load(block)?;
        let lines = &self.block.as_ref().expect("it was loaded").1;
        let line = &lines.lines()[*lines
            .samples()
            .get(nth)
            .expect("a block has the samples of its head")];
        played.push(Played::Record(lines.text(line).to_owned()));
        (self.shown, self.shown_ms) = (Some(sample), line.at_ms);
        self.due = Instant::now() + self.wait();
        Ok(played)
    }

    /// Returns the records up to the next sample.
    fn show_next(&mut self) -> io::Result<Vec<Played>> {
        let (block, nth) = self.recording.place(self.next());
        let from = self.shown.map(|shown| self.recording.place(shown));
        let mut played = Vec::new();
        if let Err(error) = self.show_between(from, (block, nth), &mut played) {
            // Playback continues after the damaged block.
            self.shown = Some(
                self.recording.first_sample(block) + self.recording.head(block).samples as usize
                    - 1,
            );
            return Err(error);
        }
        Ok(played)
    }

    fn show_between(
        &mut self,
        from: Option<(usize, usize)>,
        (block, nth): (usize, usize),
        played: &mut Vec<Played>,
    ) -> io::Result<()> {
        let first = from.map_or(0, |(block, _)| block);
        let mut left_bytes = PAST_BYTES;
        for number in first..=block {
            // Only blocks without a sample are skipped here, and they contain little.
            let bytes = u64::from(self.recording.head(number).text_bytes);
            match left_bytes.checked_sub(bytes) {
                Some(left) => left_bytes = left,
                None if number < block => continue,
                None => {}
            }
            let loaded = self.load(number);
            if number < block && loaded.is_err() {
                continue;
            }
            loaded?;
            let lines = &self.block.as_ref().expect("it was loaded").1;
            let behind = |nth: usize| lines.samples().get(nth).map_or(0, |line| line + 1);
            let begin = from
                .filter(|(shown, _)| *shown == number)
                .map_or(0, |(_, nth)| behind(nth));
            let end = if number == block {
                behind(nth)
            } else {
                lines.lines().len()
            };
            let wanted = &lines.lines()[begin.min(end)..end];
            played.extend(
                wanted
                    .iter()
                    .map(|line| Played::Record(lines.text(line).to_owned())),
            );
            if let Some(line) = wanted.last().filter(|_| number == block) {
                self.shown_ms = line.at_ms;
            }
        }
        self.shown = Some(self.next());
        Ok(())
    }

    fn next(&self) -> usize {
        self.shown.map_or(0, |shown| shown + 1)
    }

    /// Returns the lines of the block that was loaded last.
    fn lines(&self) -> &Lines {
        &self.block.as_ref().expect("one was loaded").1
    }

    fn load(&mut self, block: usize) -> io::Result<()> {
        if self.block.as_ref().is_none_or(|(known, _)| *known != block) {
            self.block = Some((block, self.recording.read(block)?));
        }
        Ok(())
    }

    /// Returns the time of a sample, in milliseconds since 1970. For the first sample of a block,
    /// the head has it.
    fn time_of(&mut self, sample: usize) -> u64 {
        let (block, nth) = self.recording.place(sample);
        let head = *self.recording.head(block);
        if nth == 0 || self.load(block).is_err() {
            return head.first_ms;
        }
        let lines = &self.block.as_ref().expect("it was loaded").1;
        lines
            .samples()
            .get(nth)
            .map_or(head.last_ms, |line| lines.lines()[*line].at_ms)
    }

    fn wait(&mut self) -> Duration {
        if self.is_over() || self.shown.is_none() {
            return Duration::ZERO;
        }
        let next_ms = self.time_of(self.next());
        let apart_ms = next_ms.saturating_sub(self.shown_ms).min(LONGEST_WAIT_MS);
        Duration::from_millis(apart_ms).div_f64(self.speed)
    }

    /// Returns the records that a screen needs before it can show a sample, in order: the
    /// inventory, the newest details of each GPU, recent events, and some samples of the last
    /// minutes. Blocks that cannot be read are left out.
    fn past_of(&mut self, sample: usize) -> io::Result<Vec<Played>> {
        let (last, nth) = self.recording.place(sample);
        self.load(last)?;
        let at_ms = self.time_of(sample);
        // The block that every file begins with has no samples and no time.
        let reaches = |block: &usize| {
            let head = self.recording.head(*block);
            head.samples == 0 || head.last_ms.saturating_add(PAST_MS) >= at_ms
        };
        let mut bytes = 0;
        let mut fits = |block: &usize| {
            bytes += u64::from(self.recording.head(*block).text_bytes);
            bytes <= PAST_BYTES
        };
        let past = (0..=last).rev().take(PAST_BLOCKS).take_while(reaches);
        let first = past.take_while(|block| fits(block)).last().unwrap_or(last);
        // Details are recorded every ten seconds, so those of a GPU may be in the previous block.
        let first = first.saturating_sub(1);
        let mut inventory = self.recording.inventory_before(first).unwrap_or_default();
        let samples = sample.saturating_sub(self.recording.first_sample(first));
        let every = samples.div_ceil(PAST_SAMPLES).max(1);
        let mut number = self.recording.first_sample(first);
        let mut past = Past::default();
        for block in first..=last {
            let Ok(lines) = self.recording.read(block) else {
                continue;
            };
            let end = if block == last {
                lines.samples().get(nth).copied().unwrap_or(0)
            } else {
                lines.lines().len()
            };
            for line in &lines.lines()[..end] {
                let text = || lines.text(line).to_owned();
                match line.kind {
                    Kind::Inventory => inventory = Some(text()),
                    Kind::Details(gpu) => past.add_details(gpu, text()),
                    Kind::Event => past.add_event(text()),
                    Kind::Sample => {
                        number += 1;
                        if (sample - number.min(sample)).is_multiple_of(every) {
                            past.add(text());
                        }
                    }
                    Kind::Other => {}
                }
            }
        }
        Ok(inventory
            .into_iter()
            .chain(past.records.into_values())
            .map(Played::Record)
            .collect())
    }
}

/// Records of the past in order, where new details of a GPU replace older ones.
#[derive(Default)]
struct Past {
    records: BTreeMap<usize, String>,
    added: usize,
    details: HashMap<u32, usize>,
    events: VecDeque<usize>,
}

impl Past {
    fn add(&mut self, record: String) -> usize {
        self.added += 1;
        self.records.insert(self.added, record);
        self.added
    }

    fn add_details(&mut self, gpu: u32, record: String) {
        if self.details.len() == PAST_DETAILS && !self.details.contains_key(&gpu) {
            return;
        }
        let number = self.add(record);
        if let Some(older) = self.details.insert(gpu, number) {
            self.records.remove(&older);
        }
    }

    fn add_event(&mut self, record: String) {
        let number = self.add(record);
        self.events.push_back(number);
        if self.events.len() > PAST_EVENTS
            && let Some(oldest) = self.events.pop_front()
        {
            self.records.remove(&oldest);
        }
    }
}
