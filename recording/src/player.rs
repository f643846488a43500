//! Playback of a recording at any speed, from any point in time.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    path::Path,
    time::{Duration, Instant},
};

use crate::{Lines, RecordKind, Recording, RecordingError};

/// The maximum time between two samples during playback at normal speed, in milliseconds. Longer
/// gaps are shortened to this time, because a recording may have been interrupted for hours.
const MAX_WAIT_MS: u64 = 5_000;
/// The maximum number of samples per call. The limit ensures that user input takes effect promptly
/// even at high speeds.
const MAX_SAMPLES_PER_CALL: usize = 64;
/// How far back records are read when playback jumps to a sample, in milliseconds.
const PAST_MS: u64 = 15 * 60 * 1000;
/// The maximum number of earlier samples that are returned when playback jumps to a sample.
const MAX_PAST_SAMPLES: usize = 600;
const MAX_PAST_EVENTS: usize = 256;
/// The maximum number of blocks that are read when playback jumps to a sample. The limit is needed
/// because a damaged recording can contain wrong times.
const MAX_PAST_BLOCKS: usize = 2_000;
const MAX_PAST_BYTES: u64 = 256 << 20;
/// The maximum number of GPUs whose details are returned when playback jumps to a sample.
const MAX_PAST_DETAILS: usize = 1_024;

/// The speeds that users can choose, as multiples of real time.
pub const SPEEDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

/// An item that a [`Player`] returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayedItem {
    /// Playback continues at another point in time, so everything shown before is obsolete.
    Rewound,
    /// A record as JSON.
    Record(String),
}

/// A player of a [`Recording`].
#[derive(Debug)]
pub struct Player {
    recording: Recording,
    /// The index of the sample that is currently shown; `None` before the first sample.
    shown: Option<usize>,
    shown_ms: u64,
    paused: bool,
    speed: f64,
    due: Instant,
    /// The time at which to start, in milliseconds since 1970.
    start_ms: Option<u64>,
    /// The last block that was read: its index and its records.
    block: Option<(usize, Lines)>,
    /// A read error that occurred after some records had already been read. The last call returned
    /// these records, and the next call returns the error.
    damage: Option<io::Error>,
}

impl Player {
    /// Opens a recording with [`Recording::open`], positioned before its first sample.
    ///
    /// # Errors
    /// Returns an error if the file is not a recording.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        Recording::open(path).map(Self::new)
    }

    /// Creates a player at the start of a recording, at real speed.
    pub fn new(recording: Recording) -> Self {
        let shown_ms = recording.first_and_last_sample_ms().0;
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

    /// Returns the time at which [`advance`](Self::advance) will return the next records; `None`
    /// while playback is paused or over.
    pub fn next_due_time(&self) -> Option<Instant> {
        (!self.paused && !self.is_over()).then_some(self.due)
    }

    /// Returns `true` if a user paused the playback.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Returns `true` if the last sample is currently shown.
    pub fn is_over(&self) -> bool {
        self.next_sample_index() >= self.recording.sample_count()
    }

    /// Returns the speed as a multiple of real time.
    pub fn playback_speed(&self) -> f64 {
        self.speed
    }

    /// Returns the times of the currently shown, the first and the last sample, in milliseconds
    /// since 1970.
    pub fn current_first_and_last_ms(&self) -> (u64, u64, u64) {
        let (first, last) = self.recording.first_and_last_sample_ms();
        (self.shown_ms, first, last)
    }

    /// Returns all items that are due by `now`.
    ///
    /// # Errors
    /// Returns an error if a block cannot be read. The next call continues after that block.
    pub fn advance(&mut self, now: Instant) -> io::Result<Vec<PlayedItem>> {
        if let Some(error) = self.damage.take() {
            return Err(error);
        }
        let mut played = match self.start_ms.take() {
            Some(at_ms) => self.seek_to_time(at_ms)?,
            None => Vec::new(),
        };
        for _ in 0..MAX_SAMPLES_PER_CALL {
            if self.next_due_time().is_none_or(|due| due > now) {
                break;
            }
            match self.take_records_to_next_sample() {
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
                + self.delay_to_next_sample();
        }
        Ok(played)
    }

    /// Pauses or resumes playback, or restarts it if it is over.
    ///
    /// # Errors
    /// Same as for [`advance`](Self::advance).
    pub fn toggle_pause(&mut self) -> io::Result<Vec<PlayedItem>> {
        if self.is_over() {
            self.paused = false;
            return self.seek_to_sample(0);
        }
        self.set_paused(!self.paused);
        Ok(Vec::new())
    }

    pub fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
        self.due = Instant::now() + self.delay_to_next_sample();
    }

    /// Sets the speed as a multiple of real time, from 0.1 to 1000.
    pub fn set_speed(&mut self, speed: f64) {
        self.speed = speed.clamp(SPEEDS[0], 1000.0);
        self.due = Instant::now() + self.delay_to_next_sample();
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
    pub fn step(&mut self, forward: bool) -> io::Result<Vec<PlayedItem>> {
        self.paused = true;
        match (forward, self.shown) {
            (true, _) if self.is_over() => Ok(Vec::new()),
            (true, _) => self.take_records_to_next_sample(),
            (false, Some(shown)) => self.seek_to_sample(shown.saturating_sub(1)),
            (false, None) => Ok(Vec::new()),
        }
    }

    /// Moves forward by `by_ms` milliseconds, or back if `by_ms` is negative.
    ///
    /// # Errors
    /// Same as for [`advance`](Self::advance).
    pub fn seek_by(&mut self, by_ms: i64) -> io::Result<Vec<PlayedItem>> {
        self.seek_to_time(self.shown_ms.saturating_add_signed(by_ms))
    }

    /// Makes the next [`advance`](Self::advance) start at `at_ms`, in milliseconds since 1970.
    pub fn start_at(&mut self, at_ms: u64) {
        self.start_ms = Some(at_ms);
    }

    /// Moves to the last sample that is not later than `at_ms`, in milliseconds since 1970.
    ///
    /// # Errors
    /// Same as for [`advance`](Self::advance).
    pub fn seek_to_time(&mut self, at_ms: u64) -> io::Result<Vec<PlayedItem>> {
        let begun = |block: &usize| {
            let head = self.recording.head(*block);
            head.samples > 0 && head.first_ms <= at_ms
        };
        let Some(block) = (0..self.recording.block_count()).rev().find(begun) else {
            return self.seek_to_sample(0);
        };
        self.load(block)?;
        let lines = self.lines();
        let until = lines
            .sample_indices()
            .iter()
            .filter(|line| lines.lines()[**line].at_ms <= at_ms)
            .count();
        self.seek_to_sample(self.recording.first_sample_index(block) + until.saturating_sub(1))
    }

    /// Moves to a sample. Returns the earlier records that are needed to show the sample, and then
    /// the sample itself.
    fn seek_to_sample(&mut self, sample: usize) -> io::Result<Vec<PlayedItem>> {
        let mut played = vec![PlayedItem::Rewound];
        played.extend(self.read_past_records(sample)?);
        let (block, nth) = self.recording.locate_sample(sample);
        self.load(block)?;
        let lines = &self.block.as_ref().expect("the block is loaded").1;
        let line = &lines.lines()[*lines
            .sample_indices()
            .get(nth)
            .expect("a block has the samples that its header lists")];
        played.push(PlayedItem::Record(lines.text(line).to_owned()));
        (self.shown, self.shown_ms) = (Some(sample), line.at_ms);
        self.due = Instant::now() + self.delay_to_next_sample();
        Ok(played)
    }

    /// Returns the records up to the next sample.
    fn take_records_to_next_sample(&mut self) -> io::Result<Vec<PlayedItem>> {
        let (block, nth) = self.recording.locate_sample(self.next_sample_index());
        let from = self.shown.map(|shown| self.recording.locate_sample(shown));
        let mut played = Vec::new();
        if let Err(error) = self.add_records_between_samples(from, (block, nth), &mut played) {
            // Playback continues after the damaged block.
            self.shown = Some(
                self.recording.first_sample_index(block)
                    + self.recording.head(block).samples as usize
                    - 1,
            );
            return Err(error);
        }
        Ok(played)
    }

    fn add_records_between_samples(
        &mut self,
        from: Option<(usize, usize)>,
        (block, nth): (usize, usize),
        played: &mut Vec<PlayedItem>,
    ) -> io::Result<()> {
        let first = from.map_or(0, |(block, _)| block);
        let mut left_bytes = MAX_PAST_BYTES;
        for number in first..=block {
            // An earlier block than `block` is skipped if its text is larger than the remaining
            // part of `MAX_PAST_BYTES`. The blocks between `from` and `block` contain no samples.
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
            let lines = &self.block.as_ref().expect("the block is loaded").1;
            let behind = |nth: usize| lines.sample_indices().get(nth).map_or(0, |line| line + 1);
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
                    .map(|line| PlayedItem::Record(lines.text(line).to_owned())),
            );
            if let Some(line) = wanted.last().filter(|_| number == block) {
                self.shown_ms = line.at_ms;
            }
        }
        self.shown = Some(self.next_sample_index());
        Ok(())
    }

    fn next_sample_index(&self) -> usize {
        self.shown.map_or(0, |shown| shown + 1)
    }

    /// Returns the lines of the last block that was loaded.
    fn lines(&self) -> &Lines {
        &self.block.as_ref().expect("a block is loaded").1
    }

    fn load(&mut self, block: usize) -> io::Result<()> {
        if self.block.as_ref().is_none_or(|(known, _)| *known != block) {
            self.block = Some((block, self.recording.read_block(block)?));
        }
        Ok(())
    }

    /// Returns the time of a sample, in milliseconds since 1970. For the first sample of a block,
    /// only the head is read.
    fn sample_time_ms(&mut self, sample: usize) -> u64 {
        let (block, nth) = self.recording.locate_sample(sample);
        let head = *self.recording.head(block);
        if nth == 0 || self.load(block).is_err() {
            return head.first_ms;
        }
        let lines = &self.block.as_ref().expect("the block is loaded").1;
        lines
            .sample_indices()
            .get(nth)
            .map_or(head.last_ms, |line| lines.lines()[*line].at_ms)
    }

    fn delay_to_next_sample(&mut self) -> Duration {
        if self.is_over() || self.shown.is_none() {
            return Duration::ZERO;
        }
        let next_ms = self.sample_time_ms(self.next_sample_index());
        let apart_ms = next_ms.saturating_sub(self.shown_ms).min(MAX_WAIT_MS);
        Duration::from_millis(apart_ms).div_f64(self.speed)
    }

    /// Returns the earlier records that are needed before a sample can be shown, in order: the
    /// inventory, the latest details of each GPU, recent events, and some samples of the last
    /// minutes. Unreadable blocks are skipped.
    fn read_past_records(&mut self, sample: usize) -> io::Result<Vec<PlayedItem>> {
        let (last, nth) = self.recording.locate_sample(sample);
        self.load(last)?;
        let at_ms = self.sample_time_ms(sample);
        // The search goes back until a block is too old. A block without samples, such as the one
        // at the start of every file, has no time, so it must not end the search.
        let reaches = |block: &usize| {
            let head = self.recording.head(*block);
            head.samples == 0 || head.last_ms.saturating_add(PAST_MS) >= at_ms
        };
        let mut bytes = 0;
        let mut fits = |block: &usize| {
            bytes += u64::from(self.recording.head(*block).text_bytes);
            bytes <= MAX_PAST_BYTES
        };
        let past = (0..=last).rev().take(MAX_PAST_BLOCKS).take_while(reaches);
        let first = past.take_while(|block| fits(block)).last().unwrap_or(last);
        // A GPU's details are recorded every ten seconds, so they may be in the previous block.
        let first = first.saturating_sub(1);
        let mut inventory = self
            .recording
            .read_inventory_before(first)
            .unwrap_or_default();
        let samples = sample.saturating_sub(self.recording.first_sample_index(first));
        let every = samples.div_ceil(MAX_PAST_SAMPLES).max(1);
        let mut number = self.recording.first_sample_index(first);
        let mut past = PastRecords::default();
        for block in first..=last {
            let Ok(lines) = self.recording.read_block(block) else {
                continue;
            };
            let end = if block == last {
                lines.sample_indices().get(nth).copied().unwrap_or(0)
            } else {
                lines.lines().len()
            };
            for line in &lines.lines()[..end] {
                let text = || lines.text(line).to_owned();
                match line.kind {
                    RecordKind::Inventory => inventory = Some(text()),
                    RecordKind::Details(gpu) => past.add_details(gpu, text()),
                    RecordKind::Event => past.add_event(text()),
                    RecordKind::Sample => {
                        number += 1;
                        if (sample - number.min(sample)).is_multiple_of(every) {
                            past.add(text());
                        }
                    }
                    RecordKind::Other => {}
                }
            }
        }
        Ok(inventory
            .into_iter()
            .chain(past.records.into_values())
            .map(PlayedItem::Record)
            .collect())
    }
}

/// Earlier records in order. Of each GPU's details, only the newest are kept.
#[derive(Default)]
struct PastRecords {
    records: BTreeMap<usize, String>,
    added: usize,
    details: HashMap<u32, usize>,
    events: VecDeque<usize>,
}

impl PastRecords {
    fn add(&mut self, record: String) -> usize {
        self.added += 1;
        self.records.insert(self.added, record);
        self.added
    }

    fn add_details(&mut self, gpu: u32, record: String) {
        if self.details.len() == MAX_PAST_DETAILS && !self.details.contains_key(&gpu) {
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
        if self.events.len() > MAX_PAST_EVENTS
            && let Some(oldest) = self.events.pop_front()
        {
            self.records.remove(&oldest);
        }
    }
}
