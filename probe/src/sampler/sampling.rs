//! The state between two samples, and how a beat becomes records.

use std::{
    mem,
    sync::{Arc, mpsc::Sender},
    time::Duration,
};

use super::{
    Options,
    message::{Message, Query},
    threads::{find_links, follow_driver, follow_log},
    track::Track,
    workers::Workers,
};
use crate::{
    derive::{HostRates, XidFilter},
    model::{Event, EventKind, GpuDetails, GpuLink, Health, Inventory, Platform, Record, Sample, XidReport, now_ms},
    vendor::nvml::query::DriverAnswers,
    vendor::{DeviceError, Notice, Source, SourceError},
};

/// A sample does not wait for a late GPU any longer than this, however long the interval is.
const LATEST: Duration = Duration::from_millis(500);

/// Which GPUs are linked is asked once all have been opened, or after so many beats.
const LINKS_AT_BEAT: u64 = 10;

/// Everything the sampler remembers.
pub(super) struct Sampling {
    source: Arc<dyn Source>,
    platform: Platform,
    workers: Workers,
    tracks: Vec<Track>,
    links: Links,
    /// Where a GPU that was opened is added to those whose events are reported; `None` where nobody wants them.
    opened: Option<Sender<u32>>,
    xids: XidFilter,
    host_rates: HostRates,
    seq: u64,
    inventory_changed: bool,
    /// What happened since the last sample.
    events: Vec<Event>,
    /// Records that go out before the sample.
    records: Vec<Record>,
}

/// What is known of how the GPUs are linked.
enum Links {
    /// Nobody wants to know, or it has been asked.
    Settled(Vec<GpuLink>),
    Wanted,
}

impl Sampling {
    /// Starts the workers and takes their first answers, as far as they come within `patience`.
    pub(super) fn start(source: &Arc<dyn Source>, options: &Options, patience: Duration) -> Result<Self, SourceError> {
        let count = source.device_count()?;
        // Read once: later on, this thread must not wait for the driver.
        let platform = source.platform();
        let workers = Workers::start(source, platform.source, count, options)?;
        let log_is_read = follow_log(options.kernel_log.as_ref(), workers.tell());
        let mut sampling = Self {
            source: Arc::clone(source),
            platform,
            opened: options.events.then(|| follow_driver(source, workers.tell())),
            workers,
            tracks: (0..count).map(|index| Track::new(index, &options.conditions)).collect(),
            links: if options.events && count > 1 { Links::Wanted } else { Links::Settled(Vec::new()) },
            xids: XidFilter::new(log_is_read),
            host_rates: HostRates::default(),
            seq: 0,
            inventory_changed: false,
            events: Vec::new(),
            records: Vec::new(),
        };
        sampling.ask_and_collect(patience);
        sampling.inventory_changed = false;
        Ok(sampling)
    }

    /// What is there.
    pub(super) fn inventory(&self) -> Inventory {
        Inventory {
            at_ms: now_ms(),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            platform: self.platform.clone(),
            gpus: self.tracks.iter().map(Track::gpu).collect(),
            topology: match &self.links {
                Links::Settled(links) => links.clone(),
                Links::Wanted => Vec::new(),
            },
        }
    }

    /// The newest details of every GPU that has any.
    pub(super) fn details(&self) -> Vec<GpuDetails> {
        self.tracks.iter().filter_map(Track::details).cloned().collect()
    }

    /// One beat: everything that goes out, the sample last.
    ///
    /// # Errors
    /// Where the driver is no longer the one that the library was loaded for, so that another process has to load it.
    pub(super) fn beat(&mut self, interval: Duration) -> Result<Vec<Record>, SourceError> {
        // The first sample is what the workers answered when they were started.
        if self.seq > 0 {
            self.ask_and_collect((interval / 2).min(LATEST));
        }
        self.check_driver()?;
        let sample = self.compose(interval);
        let mut records = Vec::new();
        if mem::take(&mut self.inventory_changed) {
            records.push(Record::Inventory(self.inventory()));
        }
        records.extend(self.events.drain(..).map(Record::Event));
        records.append(&mut self.records);
        records.push(Record::Sample(sample));
        Ok(records)
    }

    /// The sample of this beat; what it shows to have happened is added to the events.
    pub(super) fn compose(&mut self, interval: Duration) -> Sample {
        let now = now_ms();
        for (gpu, report) in self.xids.due(now) {
            self.xid(gpu as usize, report, now);
        }
        let gpus = self
            .tracks
            .iter_mut()
            .map(|track| {
                let (sample, happened) = track.compose(interval, now);
                let gpu = track.gpu_ref();
                self.events.extend(happened.into_iter().map(|what| Event { at_ms: now, gpu: Some(gpu.clone()), what }));
                sample
            })
            .collect();
        let mut host = self.workers.host();
        self.host_rates.fill(&mut host);
        let seq = self.seq;
        self.seq += 1;
        Sample { seq, at_ms: now, interval_ms: interval.as_millis() as u32, gpus, host }
    }

    /// Asks every worker that is free, and waits for those until `patience` is over.
    fn ask_and_collect(&mut self, patience: Duration) {
        // What came late frees its GPU for this beat.
        for message in self.workers.messages() {
            self.take_in(message);
        }
        let free = self.tracks.iter_mut().enumerate().filter(|(_, track)| !track.is_awaited());
        let queries = free.map(|(index, track)| (index, Query { details_now: track.take_details_wanted() }));
        for index in self.workers.ask(queries) {
            self.tracks[index].asked();
        }
        for message in self.workers.messages_until_answered(patience) {
            self.take_in(message);
        }
        self.ask_for_links();
    }

    /// What the drivers answered, out of the records.
    pub(super) fn take_answers(&mut self) -> Vec<DriverAnswers> {
        let answers = |record| if let Record::Answers(answers) = record { Some(answers) } else { None };
        std::mem::take(&mut self.records).into_iter().filter_map(answers).collect()
    }

    fn take_in(&mut self, message: Message) {
        let now = now_ms();
        match message {
            Message::Answer { index, outcome } => {
                let news = self.tracks[index as usize].take_in(outcome);
                self.inventory_changed |= news.identity_changed;
                if news.mig_changed {
                    self.happened(index as usize, EventKind::MigChanged, now);
                }
                self.records.extend(news.details.map(Record::Details));
                self.records.extend(news.answers.map(Record::Answers));
                self.records.extend(news.traces.into_iter().map(Record::Trace));
            }
            Message::Opened { index } => {
                if let Some(opened) = &self.opened {
                    let _ = opened.send(index);
                }
            }
            Message::Notice { index, notice } => self.notice(index as usize, notice, now),
            Message::Logged(logged) => {
                let is_it = |track: &Track| track.logged_as().as_ref() == Some(&logged.pci_bus_id);
                if let Some(gpu) = self.tracks.iter().position(is_it)
                    && let Some(report) = self.xids.from_log(gpu as u32, logged, now)
                {
                    self.xid(gpu, report, now);
                }
            }
            Message::LogEnded => self.xids.log_ended(),
            Message::Links(links) => {
                self.links = Links::Settled(links);
                self.inventory_changed = true;
            }
        }
    }

    fn notice(&mut self, gpu: usize, notice: Notice, now_ms: u64) {
        match notice {
            Notice::Xid(code) => {
                if let Some(report) = self.xids.from_driver(gpu as u32, code, now_ms) {
                    self.xid(gpu, report, now_ms);
                }
            }
            Notice::PowerSource => self.happened(gpu, EventKind::PowerSourceChanged, now_ms),
            // The counters and the devices are what tells; they are read now rather than in some seconds.
            Notice::EccCorrected | Notice::EccUncorrected | Notice::MigChanged => self.tracks[gpu].want_details(),
        }
    }

    fn xid(&mut self, gpu: usize, report: XidReport, now_ms: u64) {
        let mut happened = self.tracks[gpu].xid(&report, now_ms);
        happened.insert(0, EventKind::Xid(report));
        for what in happened {
            self.happened(gpu, what, now_ms);
        }
        // It may have changed what the driver asks for.
        self.tracks[gpu].want_details();
    }

    fn happened(&mut self, gpu: usize, what: EventKind, at_ms: u64) {
        self.events.push(Event { at_ms, gpu: Some(self.tracks[gpu].gpu_ref()), what });
    }

    fn ask_for_links(&mut self) {
        let opened = || self.tracks.iter().filter(|track| track.is_well());
        let all = opened().count() == self.tracks.len();
        if matches!(self.links, Links::Wanted) && (all || self.seq >= LINKS_AT_BEAT) {
            find_links(&self.source, opened().map(|track| track.gpu_ref().index).collect(), self.workers.tell());
            self.links = Links::Settled(Vec::new());
        }
    }

    /// A driver that was unloaded or replaced fails every GPU, and this process cannot load its library again.
    fn check_driver(&self) -> Result<(), SourceError> {
        if self.tracks.iter().any(Track::is_well) {
            return Ok(());
        }
        match self.tracks.iter().find_map(Track::driver_gone) {
            None => Ok(()),
            Some(9) => Err(SourceError::NoDriver),
            Some(18) => Err(SourceError::VersionMismatch),
            Some(code) => Err(SourceError::Driver { code }),
        }
    }
}

impl Track {
    /// Whether it answers, as the last answer has it.
    fn is_well(&self) -> bool {
        self.health() == &Health::Ok && self.has_answered()
    }

    fn driver_gone(&self) -> Option<u32> {
        match self.error() {
            Some(DeviceError::DriverGone { code }) => Some(*code),
            _ => None,
        }
    }
}
