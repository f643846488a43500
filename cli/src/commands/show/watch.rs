//! Look after look, until somebody has seen enough.

use std::{
    collections::BTreeMap,
    io,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};

use gpumon_probe::{
    model::{Event, GpuDetails, Inventory, Record, Sample, SourceKind},
    owner::CommandLines,
    sampler::{self, Options, SharedInterval},
    vendor::Source,
};
use gpumon_server::frame::{CollectorState, CollectorStatus, ServerFrame};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH},
    flag,
    iterator::Signals,
};

use super::{
    hidden::Hidden,
    look::{Look, Need, Where},
};
use crate::{exit::Failure, local::Frames, options::watching, table::Past};

/// What there is to show, or why to stop.
pub(super) enum News {
    Look(Box<Look>),
    /// The terminal has another size.
    Resized,
    /// Somebody has seen enough.
    Enough,
    /// The server has ended.
    ServerGone,
    Failed(Failure),
}

/// So much may wait to be shown; whoever makes more of it waits, too.
const WAITING: usize = 2;

/// News from a server, where there is one, else from the GPUs themselves.
pub(super) struct Feed<'a> {
    at: Where<'a>,
    need: Need,
    interval: Duration,
    tell: SyncSender<News>,
    news: Receiver<News>,
}

impl<'a> Feed<'a> {
    /// Starts to look every `interval`.
    pub(super) fn start(at: Where<'a>, need: Need, interval: Duration) -> Result<Self, Failure> {
        let (tell, news) = mpsc::sync_channel(WAITING);
        let feed = Self { at, need, interval, tell, news };
        // A server without fresh samples has nothing to stream, either.
        let first = Look::ask(at, Need::Past)?;
        let frames = first.and_then(|first| Some((first, at.server.connect().ok()?.stream(interval).ok()?)));
        match frames {
            Some((first, frames)) => feed.follow(first, frames)?,
            None => feed.sample()?,
        }
        Ok(feed)
    }

    /// Tells when the terminal changes, and when it is asked to stop. Whoever asks twice is obeyed at once.
    pub(super) fn heed_signals(&self) -> io::Result<()> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGWINCH])?;
        let tell = self.tell.clone();
        spawn(move || {
            for signal in signals.forever() {
                let news = if signal == SIGWINCH { News::Resized } else { News::Enough };
                if tell.send(news).is_err() {
                    return;
                }
            }
        })
    }

    /// What comes next.
    pub(super) fn next(&self) -> News {
        self.news.recv().unwrap_or(News::Enough)
    }

    /// Goes on without the server.
    pub(super) fn go_on_alone(&self) -> Result<(), Failure> {
        self.sample()
    }

    fn follow(&self, first: Look, frames: Frames) -> Result<(), Failure> {
        let tell = self.tell.clone();
        let follower = Follower { past: first.past, known: None, hidden: Hidden::new(), tell: tell.clone() };
        spawn(move || {
            follower.run(frames);
            // Where nobody listens any more, there is nobody to be told.
            let _ = tell.send(News::ServerGone);
        })?;
        Ok(())
    }

    fn sample(&self) -> Result<(), Failure> {
        let source = self.at.source.open()?;
        let (tell, need, interval) = (self.tell.clone(), self.need, self.interval);
        spawn(move || {
            if let Err(error) = sample(&source, need, interval, &tell) {
                let _ = tell.send(News::Failed(error));
            }
        })?;
        Ok(())
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

/// Reads the GPUs with one sampler, so that the driver is opened once.
fn sample(source: &Arc<dyn Source>, need: Need, interval: Duration, tell: &SyncSender<News>) -> Result<(), Failure> {
    let mut inventory = None;
    let mut details: BTreeMap<u32, GpuDetails> = BTreeMap::new();
    let mut events = Vec::new();
    let mut past = Past::default();
    // Rows of numbers have no place for what lasts and what happens.
    let options = match need {
        Need::Nothing => Options::new(interval, CommandLines::All),
        Need::Past | Need::Everything => watching(Arc::new(SharedInterval::new(interval))),
    };
    sampler::run(source, &options, |record| {
        match record {
            Record::Inventory(is_there) => inventory = Some(is_there.clone()),
            Record::Details(read) => drop(details.insert(read.index, read.clone())),
            Record::Event(event) => events.push(event.clone()),
            Record::Trace(_) | Record::Answers(_) => {}
            Record::Sample(sample) => {
                past.push(sample);
                let inventory: Inventory = inventory.clone().expect("an inventory comes before every sample");
                let details = details.values().cloned().collect();
                let mut look = Look::of_reading(inventory, sample.clone(), details);
                (look.past, look.events) = (past.clone(), std::mem::take(&mut events));
                look.is_single = false;
                if tell.send(News::Look(Box::new(look))).is_err() {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

/// What a server has told so far.
struct Follower {
    past: Past,
    known: Option<Known>,
    hidden: Hidden,
    tell: SyncSender<News>,
}

struct Known {
    version: String,
    collector: CollectorStatus,
    inventory: Option<Inventory>,
    sample: Option<Sample>,
    details: BTreeMap<u32, GpuDetails>,
    /// Since the last look.
    events: Vec<Event>,
}

impl Follower {
    /// Until the server or whoever is told ends.
    fn run(mut self, mut frames: Frames) {
        while let Ok(frame) = frames.next() {
            if self.take_in(frame) && !self.is_told() {
                return;
            }
        }
    }

    /// True where there is something new to show.
    fn take_in(&mut self, frame: ServerFrame) -> bool {
        if let ServerFrame::Hello(hello) = frame {
            let details = hello.details.into_iter().map(|details| (details.index, details)).collect();
            self.known = Some(Known {
                version: hello.version,
                collector: hello.collector,
                inventory: hello.inventory,
                sample: None,
                details,
                events: hello.events,
            });
            return hello.sample.is_some_and(|sample| self.take_in(ServerFrame::Sample(sample)));
        }
        let Some(known) = &mut self.known else { return false };
        match frame {
            ServerFrame::Inventory(inventory) => known.inventory = Some(inventory),
            ServerFrame::Details(details) => drop(known.details.insert(details.index, details)),
            ServerFrame::Event(event) => known.events.push(event),
            ServerFrame::Collector(collector) => {
                let was_running = known.collector.state == CollectorState::Running;
                known.collector = collector;
                // That it runs again is told by its first sample.
                return was_running;
            }
            ServerFrame::Sample(mut sample) => {
                if known.inventory.as_ref().is_some_and(|there| there.platform.source == SourceKind::Nvml) {
                    self.hidden.fill_in(&mut sample);
                }
                self.past.push(&sample);
                known.sample = Some(sample);
                return true;
            }
            _ => {}
        }
        false
    }

    fn is_told(&mut self) -> bool {
        let Some(known) = &mut self.known else { return true };
        let (Some(inventory), Some(sample)) = (&known.inventory, &known.sample) else { return true };
        let look = Look {
            version: known.version.clone(),
            collector: known.collector.clone(),
            inventory: inventory.clone(),
            sample: sample.clone(),
            details: known.details.values().cloned().collect(),
            events: std::mem::take(&mut known.events),
            past: self.past.clone(),
            is_single: false,
        };
        self.tell.send(News::Look(Box::new(look))).is_ok()
    }
}
