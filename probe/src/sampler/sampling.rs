//! The sampler's state between two samples, and the creation of records at a tick.

use std::{
    mem,
    sync::{Arc, mpsc::Sender},
    time::{Duration, Instant},
};

use super::{
    LearnedBaselines, Options, gpu_indices,
    gpu_state::GpuState,
    schedule::ClockWatch,
    threads::{
        Message, Query, start_driver_event_thread, start_error_log_threads, start_link_search,
    },
    workers::Workers,
};
use crate::{
    benchmarks::BelowBaselines,
    derive::{ErrorFilter, HostRates, name_slow_gpus},
    model::{
        Absence, Event, EventKind, GpuDetails, GpuLink, Inventory, Platform, Record, Sample, now_ms,
    },
    vendor::{DriverError, Notice, Source, SourceError, describe_error},
};

/// The maximum time that a sample waits for a late GPU, regardless of the interval.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// The interval between two updates of the learned baselines.
const STORE_INTERVAL: Duration = Duration::from_secs(10);

/// The tick at which the links between GPUs are read even if some GPUs are still not open.
const LINKS_AT_TICK: u64 = 10;

/// The state of the sampler.
pub(super) struct Sampling {
    source: Arc<dyn Source>,
    platform: Platform,
    workers: Workers,
    states: Vec<GpuState>,
    links: LinkState,
    /// A channel to the thread that reports the driver's events. The index of each newly opened GPU
    /// is sent on it. `None` if events are not requested.
    opened: Option<Sender<u32>>,
    errors: ErrorFilter,
    host_rates: HostRates,
    clock: ClockWatch,
    below_baselines: Option<Arc<BelowBaselines>>,
    learned: Option<Arc<LearnedBaselines>>,
    /// The time of the latest update of the stored baselines.
    kept: Instant,
    seq: u64,
    inventory_changed: bool,
    /// Events that have occurred since the previous sample.
    events: Vec<Event>,
    /// Records to send before the sample.
    records: Vec<Record>,
}

/// Whether the links between GPUs still have to be read.
enum LinkState {
    /// The links have been requested, or are not needed. The list is empty until they are known.
    Settled(Vec<GpuLink>),
    Wanted,
}

impl Sampling {
    /// Starts the workers, and waits for their first responses, but no longer than `patience`.
    pub(super) fn start(
        source: &Arc<dyn Source>,
        options: &Options,
        patience: Duration,
    ) -> Result<Self, SourceError> {
        let source = &gpu_indices::source_with_known_indices(source, options)?;
        let count = source.device_count()?;
        // The platform is read only once, because this thread must not wait for the driver later
        // on.
        let platform = source.platform();
        let state = |index| {
            let gpu = source.identify_closed(index, &Absence::NoAnswer);
            let state = GpuState::new(gpu, &options.conditions);
            match options.known_gpus.get(index as usize) {
                Some(known) => state.with_known_identity(known.clone()),
                None if options.known_gpus.is_empty() => state,
                None => state.with_added_event(),
            }
        };
        let workers = Workers::start(source, platform.is_simulated, count, options)?;
        let log_is_read = start_error_log_threads(
            source.as_ref(),
            options.kernel_log.as_ref(),
            &workers.sender(),
        );
        let mut sampling = Self {
            source: Arc::clone(source),
            platform,
            opened: options
                .events
                .then(|| start_driver_event_thread(source, workers.sender())),
            workers,
            states: (0..count).map(state).collect(),
            links: if options.events && count > 1 {
                LinkState::Wanted
            } else {
                LinkState::Settled(Vec::new())
            },
            errors: ErrorFilter::new(log_is_read),
            host_rates: HostRates::default(),
            clock: ClockWatch::default(),
            below_baselines: options.below_baselines.clone(),
            learned: options.learned.clone(),
            kept: Instant::now(),
            seq: 0,
            inventory_changed: false,
            events: Vec::new(),
            records: Vec::new(),
        };
        sampling.query_and_collect(patience);
        sampling.inventory_changed = false;
        Ok(sampling)
    }

    pub(super) fn inventory(&self) -> Inventory {
        Inventory {
            at_ms: now_ms(),
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            platform: self.platform.clone(),
            gpus: self.states.iter().map(|state| state.gpu.clone()).collect(),
            playback: None,
            topology: match &self.links {
                LinkState::Settled(links) => links.clone(),
                LinkState::Wanted => Vec::new(),
            },
        }
    }

    /// Returns the latest details of all GPUs that have any.
    pub(super) fn details(&self) -> Vec<GpuDetails> {
        self.states
            .iter()
            .filter_map(|state| state.details.clone())
            .collect()
    }

    /// Runs one tick. Returns all records of the tick, with the sample last.
    ///
    /// # Errors
    /// Returns an error if the driver was replaced after its library was loaded. Another process
    /// then has to load the new library.
    pub(super) fn tick(&mut self, interval: Duration) -> Result<Vec<Record>, SourceError> {
        // The first sample uses the responses that the workers sent while the sampler was starting.
        if self.seq > 0 {
            self.query_and_collect((interval / 2).min(MAX_WAIT));
        }
        self.check_driver_not_replaced()?;
        let sample = self.compose_sample(interval);
        self.store_learned_baselines(STORE_INTERVAL);
        let mut records = Vec::new();
        if mem::take(&mut self.inventory_changed) {
            records.push(Record::Inventory(self.inventory()));
        }
        records.extend(self.events.drain(..).map(Record::Event));
        records.append(&mut self.records);
        records.push(Record::Sample(sample));
        Ok(records)
    }

    /// Returns the sample of this tick, and collects the events that result from it.
    pub(super) fn compose_sample(&mut self, interval: Duration) -> Sample {
        let now = now_ms();
        if let Some(by_ms) = self.clock.detect_clock_change(now) {
            self.events.push(Event {
                at_ms: now,
                gpu: None,
                what: EventKind::ClockChanged { by_ms },
            });
        }
        for (gpu, error) in self.errors.take_due_errors(now) {
            self.handle_driver_error(gpu as usize, error, now);
        }
        let workers = &self.workers;
        let composed =
            self.states.iter_mut().enumerate().map(|(index, state)| {
                state.compose_sample(interval, || workers.is_runnable(index))
            });
        let (mut gpus, mut events): (Vec<_>, Vec<_>) = composed.unzip();
        let below = self
            .below_baselines
            .as_ref()
            .map(|below| below.gpus_by_uuid());
        let mut host = self.workers.latest_host();
        self.host_rates.fill_host_rates(&mut host);
        for (number, state) in self.states.iter_mut().enumerate() {
            state.derive_limits(&mut gpus, number, &host);
        }
        name_slow_gpus(&mut gpus);
        for (number, state) in self.states.iter_mut().enumerate() {
            if let Some(below) = &below {
                let uuid = state.gpu.uuid.as_ref();
                let below = uuid.and_then(|uuid| below.get(uuid).cloned());
                state.conditions.set_below_baseline(below);
            }
            events[number].extend(state.derive_conditions(&mut gpus, number, now));
        }
        for (gpu, events) in events.into_iter().enumerate() {
            for what in events {
                self.add_event(gpu, what, now);
            }
        }
        let seq = self.seq;
        self.seq += 1;
        Sample {
            seq,
            at_ms: now,
            interval_ms: interval.as_millis() as u32,
            gpus,
            host,
        }
    }

    /// Marks all pending queries as hung.
    pub(super) fn mark_pending_queries_hung(&mut self) {
        self.states.iter_mut().for_each(GpuState::mark_query_hung);
    }

    /// Queries all workers that have no pending query, and waits for their responses, but no longer
    /// than `patience`.
    fn query_and_collect(&mut self, patience: Duration) {
        // Late responses are handled first, so that the GPUs that sent them can be queried at this
        // tick.
        for message in self.workers.take_messages() {
            self.ingest(message);
        }
        let free = self
            .states
            .iter_mut()
            .enumerate()
            .filter(|(_, state)| !state.is_pending());
        let queries = free.map(|(index, state)| {
            (
                index,
                Query {
                    details_now: state.take_details_request(),
                },
            )
        });
        for index in self.workers.send_queries(queries) {
            self.states[index].mark_pending();
        }
        for message in self.workers.collect_until_answered(patience) {
            self.ingest(message);
        }
        self.start_link_search_once();
    }

    fn ingest(&mut self, message: Message) {
        let now = now_ms();
        match message {
            Message::Answer { index, outcome } => {
                let update = self.states[index as usize].ingest(outcome);
                self.inventory_changed |= update.identity_changed;
                if update.identity_changed {
                    self.restore_baseline(index as usize);
                }
                if update.mig_changed {
                    self.add_event(index as usize, EventKind::MigChanged, now);
                }
                self.records.extend(update.details.map(Record::Details));
                self.records
                    .extend(update.traces.into_iter().map(Record::Trace));
                for error in update.errors {
                    self.handle_driver_error(index as usize, error, now);
                }
            }
            // This message only affects how long the tick waits.
            Message::FirstRead { .. } => {}
            Message::Opened { index } => {
                if let Some(opened) = &self.opened {
                    let _ = opened.send(index);
                }
            }
            Message::Notice { index, notice } => self.on_notice(index as usize, notice, now),
            Message::Logged(logged) => {
                let is_it =
                    |state: &GpuState| state.log_bus_id().as_ref() == Some(&logged.pci_bus_id);
                if let Some(gpu) = self.states.iter().position(is_it)
                    && let Some(error) = self.errors.on_log_line(gpu as u32, logged.error, now)
                {
                    self.handle_driver_error(gpu, error, now);
                }
            }
            Message::LogEnded => self.errors.stop_waiting_for_log(),
            Message::Links(links) => {
                self.links = LinkState::Settled(links);
                self.inventory_changed = true;
            }
        }
    }

    /// Restores a GPU's learned baseline after the GPU has been identified.
    fn restore_baseline(&mut self, gpu: usize) {
        let state = &mut self.states[gpu];
        if let (Some(learned), Some(uuid)) = (&self.learned, &state.gpu.uuid)
            && let Some(baseline) = learned.find_baseline(uuid)
        {
            state.conditions.restore(&baseline);
        }
    }

    /// Stores the learned baselines of all GPUs, if the last time was at least `interval` ago.
    fn store_learned_baselines(&mut self, interval: Duration) {
        let Some(learned) = self
            .learned
            .as_ref()
            .filter(|_| self.kept.elapsed() >= interval)
        else {
            return;
        };
        for state in &self.states {
            if let Some(uuid) = &state.gpu.uuid {
                learned.store(uuid, state.conditions.baseline());
            }
        }
        self.kept = Instant::now();
    }

    fn on_notice(&mut self, gpu: usize, notice: Notice, now_ms: u64) {
        match notice {
            Notice::Error { code } => {
                if let Some(error) = self.errors.on_driver_event(gpu as u32, code, now_ms) {
                    self.handle_driver_error(gpu, error, now_ms);
                }
            }
            Notice::PowerSource => self.add_event(gpu, EventKind::PowerSourceChanged, now_ms),
            // The notice contains no values, so the details must be read at the next tick.
            Notice::EccCorrected | Notice::EccUncorrected | Notice::Partitions => {
                self.states[gpu].request_details();
            }
        }
    }

    fn handle_driver_error(&mut self, gpu: usize, error: DriverError, now_ms: u64) {
        let info = describe_error(error.code);
        let report = info.build_report(error);
        let mut events = self.states[gpu]
            .conditions
            .apply_driver_error(&report, &info, now_ms);
        events.insert(0, EventKind::Xid(report));
        for what in events {
            self.add_event(gpu, what, now_ms);
        }
        // The error may have changed the recovery that the driver requests, which is one of the
        // details.
        self.states[gpu].request_details();
    }

    fn add_event(&mut self, gpu: usize, what: EventKind, at_ms: u64) {
        self.events.push(Event {
            at_ms,
            gpu: Some(self.states[gpu].gpu_ref()),
            what,
        });
    }

    fn start_link_search_once(&mut self) {
        let opened = || self.states.iter().filter(|state| state.is_responding());
        let all = opened().count() == self.states.len();
        if matches!(self.links, LinkState::Wanted) && (all || self.seq >= LINKS_AT_TICK) {
            start_link_search(
                &self.source,
                opened().map(|state| state.gpu.index).collect(),
                self.workers.sender(),
            );
            self.links = LinkState::Settled(Vec::new());
        }
    }

    /// Checks that no driver was unloaded or replaced. If one was, all GPUs of its vendor fail, and
    /// this process cannot load the library again. GPUs of other vendors still respond.
    fn check_driver_not_replaced(&self) -> Result<(), SourceError> {
        let states = self.states.iter();
        let gpus = states.map(|state| {
            (
                state.gpu.vendor,
                state.is_responding(),
                state.replacement_error(),
            )
        });
        find_driver_replacement_error(&gpus).map_or(Ok(()), Err)
    }
}

/// Returns the error of a driver that was replaced, if none of its GPUs responds. Each item
/// describes one GPU: its driver, whether the GPU responds, and the GPU's error, if the error means
/// that the driver was replaced.
fn find_driver_replacement_error<D: PartialEq>(
    gpus: &(impl Iterator<Item = (D, bool, Option<SourceError>)> + Clone),
) -> Option<SourceError> {
    let answers = |driver: &D| {
        gpus.clone()
            .any(|(other, is_ok, _)| is_ok && other == *driver)
    };
    let mut replaced = gpus
        .clone()
        .filter_map(|(driver, _, cause)| Some((driver, cause?)));
    replaced.find_map(|(driver, cause)| (!answers(&driver)).then_some(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{derive::make_learned_baseline, owner::CommandLines, vendor::SourceChoice};

    #[test]
    fn replaced_driver_is_detected_among_several_drivers() {
        let replaced = || Some(SourceError::VersionMismatch("replaced".to_owned()));
        let find = |gpus: &[(&str, bool, Option<SourceError>)]| {
            find_driver_replacement_error(&gpus.iter().cloned())
        };
        assert_eq!(find(&[("a", true, None), ("b", true, None)]), None);
        assert_eq!(
            find(&[("a", true, None), ("b", false, replaced())]),
            replaced()
        );
        let still_answers = [("a", false, replaced()), ("a", true, None)];
        assert_eq!(find(&still_answers), None);
    }

    #[test]
    fn learned_baseline_is_restored_and_stored() {
        let learned = || Arc::new(LearnedBaselines::read("/nonexistent/learned.json".into()).0);
        let source = SourceChoice::Sim(1)
            .open(&crate::vendor::Roots::default())
            .unwrap();
        let (before, after) = (learned(), learned());
        let options = Options::new(Duration::from_millis(100), CommandLines::All);
        let start = |learned| {
            let options = Options {
                learned: Some(learned),
                ..options.clone()
            };
            Sampling::start(&source, &options, super::super::OPENING_TIME).unwrap()
        };
        let uuid = start(learned()).states[0].gpu_ref().uuid.unwrap();
        before.store(&uuid, make_learned_baseline());
        let mut sampling = start(before);
        assert_eq!(
            sampling.states[0].conditions.baseline(),
            make_learned_baseline()
        );
        sampling.learned = Some(Arc::clone(&after));
        sampling.store_learned_baselines(Duration::from_hours(1));
        assert_eq!(after.find_baseline(&uuid), None, "not yet");
        sampling.store_learned_baselines(Duration::ZERO);
        assert_eq!(after.find_baseline(&uuid), Some(make_learned_baseline()));
    }
}
