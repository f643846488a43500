//! Conversion of nvidia-smi's CSV output into records, for hosts without gpumon.
//!
//! [`columns`] lists the queried fields and parses their values. [`state`] keeps each GPU's state
//! and the host's processes, and [`Converter`] converts lines into records. Values that
//! nvidia-smi's CSV does not contain are absent, with the reason.

mod columns;
mod state;

use std::{collections::BTreeMap, time::Duration};

use columns::{COLUMNS, CellSetter, Row};
use gpumon_probe::{
    model::{
        Absence, Driver, Event, EventKind, GpuRef, HostSample, Inventory, Platform, Reading,
        Record, Sample, Vendor, normalize_bus_id,
    },
    owner::{clean_line, clean_name},
};
use state::{GpuFailure, GpuState, Processes};

/// The maximum number of GPUs per host. No machine has more.
const MAX_GPUS: usize = 64;

/// The interval between GPU details, in milliseconds, as in gpumon itself.
const DETAILS_MS: u64 = 10_000;

/// A round, which has one row per GPU, is complete when no new row has arrived for this time, in
/// milliseconds.
const ROUND_MS: u64 = 400;

/// nvidia-smi counts as hung in the driver if it has printed no row for this many intervals.
const MAX_MISSED_INTERVALS: u64 = 3;

/// A converter of one host's nvidia-smi output into records.
pub struct Converter {
    interval_ms: u64,
    hostname: String,
    columns: Vec<CellSetter>,
    gpus: BTreeMap<u32, GpuState>,
    processes: Processes,
    driver_version: Reading<String>,
    /// The rows since the last sample.
    round: Vec<Row>,
    /// The arrival time of the last row, in milliseconds since 1970.
    round_ms: u64,
    /// The time of the last sample, in milliseconds since 1970.
    sampled_ms: u64,
    details_ms: u64,
    seq: u64,
    /// Whether the inventory has changed since it was last sent.
    inventory_changed: bool,
    /// The GPU that is being queried separately, if any: its position and PCI bus ID.
    asked: Option<(u32, String)>,
    asked_count: u32,
    /// The last line from nvidia-smi that was a message rather than a row.
    message: Option<String>,
}

impl Converter {
    /// Creates a converter for the host `hostname`, with rows every `interval`.
    pub fn new(hostname: &str, interval: Duration) -> Self {
        Self {
            interval_ms: (interval.as_millis() as u64).max(1000),
            hostname: clean_name(hostname.trim()),
            columns: Vec::new(),
            gpus: BTreeMap::new(),
            processes: Processes::default(),
            driver_version: Reading::Absent(Absence::NotReadYet),
            round: Vec::new(),
            round_ms: 0,
            sampled_ms: 0,
            details_ms: 0,
            seq: 0,
            inventory_changed: false,
            asked: None,
            asked_count: 0,
            message: None,
        }
    }

    /// Processes one line of output and returns the resulting records.
    ///
    /// # Errors
    /// Returns nvidia-smi's message if no GPU can be read.
    pub fn handle_line(&mut self, line: &str, now_ms: u64) -> Result<Vec<Record>, String> {
        if let Some(reported) = line.strip_prefix('#') {
            return self.handle_marker(reported, now_ms);
        }
        let Some(row) = Row::parse(line, &self.columns, now_ms) else {
            self.handle_message(line, now_ms);
            return Ok(Vec::new());
        };
        let index = row.gpu.index;
        let mut records = Vec::new();
        if self.round.iter().any(|known| known.gpu.index == index) {
            records = self.take_records(now_ms);
        }
        if self.round.len() < MAX_GPUS
            && (self.gpus.len() < MAX_GPUS || self.gpus.contains_key(&index))
        {
            let is_last = row
                .count
                .is_some_and(|count| self.round.len() + 1 >= count as usize);
            self.round.push(row);
            self.round_ms = now_ms;
            if is_last && self.asked.is_none() {
                records.extend(self.take_records(now_ms));
            }
        }
        Ok(records)
    }

    /// Returns the records that become due as time passes: the records of a completed round of
    /// rows, or records that report overdue rows.
    pub fn take_due_records(&mut self, now_ms: u64) -> Vec<Record> {
        let round_ended =
            !self.round.is_empty() && now_ms.saturating_sub(self.round_ms) >= ROUND_MS;
        let silent =
            now_ms.saturating_sub(self.sampled_ms.max(self.round_ms)) >= self.patience_ms();
        if (round_ended && self.asked.is_none()) || (silent && !self.gpus.is_empty()) {
            return self.take_records(now_ms);
        }
        Vec::new()
    }

    fn patience_ms(&self) -> u64 {
        self.interval_ms * MAX_MISSED_INTERVALS
    }

    fn handle_marker(&mut self, reported: &str, now_ms: u64) -> Result<Vec<Record>, String> {
        let (word, rest) = reported.split_once(' ').unwrap_or((reported, ""));
        match word {
            "fields" => {
                let set = |name: &str| {
                    COLUMNS
                        .iter()
                        .find(|(known, _)| *known == name)
                        .map(|(_, set)| *set)
                };
                self.columns = rest.split(',').filter_map(set).collect();
            }
            "process" => self.processes.add_process(rest),
            "user" => self.processes.add_user(rest),
            "processes" => self.processes.complete_list(rest.trim() == "0", now_ms),
            "ended" => self.asked_count = 0,
            "gpu" => {
                self.asked = Some((
                    self.asked_count,
                    normalize_bus_id(rest.trim()).unwrap_or_default(),
                ));
                self.asked_count += 1;
            }
            "asked" => {
                self.asked = None;
                if self.gpus.is_empty() && self.round.is_empty() {
                    let silent = || {
                        "nvidia-smi on the host ended without an error message; run it there \
                         to find out why"
                            .to_owned()
                    };
                    return Err(self.message.take().unwrap_or_else(silent));
                }
                return Ok(self.take_records(now_ms));
            }
            // Markers of newer remote commands are ignored.
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Processes a message from nvidia-smi, which may concern one GPU or all of them.
    fn handle_message(&mut self, line: &str, now_ms: u64) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let failure = if line.to_ascii_lowercase().contains("lost") {
            GpuFailure::Lost
        } else {
            GpuFailure::Unreadable
        };
        let words = line
            .split([' ', ','])
            .map(|word| word.trim_start_matches("GPU").trim_end_matches([':', '.']));
        let named = words
            .filter(|word| word.contains(':'))
            .find_map(normalize_bus_id);
        let asked = self
            .asked
            .as_ref()
            .map(|(place, bus_id)| (Some(*place), bus_id.clone()));
        if let Some((place, bus_id)) = asked.or_else(|| named.map(|bus_id| (None, bus_id))) {
            let is_it = |state: &&mut GpuState| {
                state
                    .gpu
                    .pci_bus_id
                    .value()
                    .and_then(|known| normalize_bus_id(known))
                    .as_ref()
                    == Some(&bus_id)
            };
            if let Some(state) = self.gpus.values_mut().find(is_it) {
                state.set_failure(failure);
            } else if let Some(place) = place.filter(|place| !self.gpus.contains_key(place))
                && self.gpus.len() < MAX_GPUS
                && !self.round.iter().any(|row| row.gpu.index == place)
            {
                // The GPU has never been read, so its index is unknown. The driver orders GPUs by
                // bus id, so the index equals the position.
                let mut state = GpuState::new_unread(place, Some(bus_id), now_ms);
                state.set_failure(failure);
                self.gpus.insert(place, state);
                self.inventory_changed = true;
            }
        }
        self.message = Some(clean_line(line));
    }

    /// Returns the records to send: the inventory if it has changed, the details if they are due,
    /// events, and a sample.
    fn take_records(&mut self, now_ms: u64) -> Vec<Record> {
        for row in std::mem::take(&mut self.round) {
            if row.driver_version.value().is_some() && self.driver_version != row.driver_version {
                self.driver_version = row.driver_version.clone();
                self.inventory_changed = true;
            }
            let index = row.gpu.index;
            if self.gpus.len() == MAX_GPUS && !self.gpus.contains_key(&index) {
                continue;
            }
            let state = self
                .gpus
                .entry(index)
                .or_insert_with(|| GpuState::new_unread(index, None, now_ms));
            self.inventory_changed |= state.update_from_row(row, now_ms);
        }
        self.sampled_ms = now_ms;
        let mut records = Vec::new();
        if std::mem::take(&mut self.inventory_changed) {
            records.push(Record::Inventory(self.build_inventory(now_ms)));
        }
        if now_ms.saturating_sub(self.details_ms) >= DETAILS_MS {
            self.details_ms = now_ms;
            records.extend(
                self.gpus
                    .values()
                    .filter_map(GpuState::details)
                    .cloned()
                    .map(Record::Details),
            );
        }
        let patience_ms = self.patience_ms() - 1;
        let (mut gpus, mut events) = (Vec::new(), Vec::new());
        for state in self.gpus.values_mut() {
            let processes = self
                .processes
                .time_and_processes_on_gpu(state.gpu.uuid.as_deref());
            let (sample, began) = state.build_sample(processes, patience_ms, now_ms);
            gpus.push(sample);
            events.push(began);
        }
        for (number, state) in self.gpus.values_mut().enumerate() {
            events[number].extend(state.update_conditions(&mut gpus, number, now_ms));
        }
        let of = |gpu: &GpuRef, what: EventKind| {
            Record::Event(Event {
                at_ms: now_ms,
                gpu: Some(gpu.clone()),
                what,
            })
        };
        for (gpu, events) in gpus.iter().zip(events) {
            let gpu = GpuRef {
                index: gpu.index,
                uuid: gpu.uuid.clone(),
            };
            records.extend(events.into_iter().map(|what| of(&gpu, what)));
        }
        let host = HostSample::new_absent(now_ms, &Absence::NeedsGpumon);
        let interval_ms = self.interval_ms as u32;
        records.push(Record::Sample(Sample {
            seq: self.seq,
            at_ms: now_ms,
            interval_ms,
            gpus,
            host,
        }));
        self.seq += 1;
        records
    }

    fn build_inventory(&self, now_ms: u64) -> Inventory {
        Inventory {
            at_ms: now_ms,
            hostname: self.hostname.clone(),
            platform: Platform {
                is_simulated: false,
                drivers: vec![Driver {
                    vendor: Vendor::Nvidia,
                    version: self.driver_version.clone(),
                    library_version: Reading::Absent(Absence::NeedsGpumon),
                    cuda_version: Reading::Absent(Absence::NeedsGpumon),
                }],
            },
            gpus: self.gpus.values().map(|state| state.gpu.clone()).collect(),
            topology: Vec::new(),
            playback: None,
        }
    }
}

/// Returns the field names for `--query-gpu`. The remote command omits those that the host's driver
/// does not support.
pub(super) fn list_query_fields() -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests;
