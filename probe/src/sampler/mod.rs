//! When each thing is read: one thread per GPU and one for the host, a common tick, one sample per
//! tick.
//!
//! A worker that does not answer in time holds up nobody: the sample goes out with that GPU's last
//! readings, and from one interval on says that it hangs.

mod attention;
mod clock_watch;
mod deadline;
mod gpu_state;
mod gpu_worker;
mod host_worker;
mod learned;
mod message;
mod placed;
pub(crate) mod process_list;
mod sampling;
mod shared_interval;
mod threads;
mod ticker;
mod workers;

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::attention::Watched;
pub use self::deadline::{OPENING, OPENING_ONCE};
pub use self::learned::Learned;
pub use self::placed::identify_gpus;
pub use self::shared_interval::SharedInterval;
use self::{sampling::Sampling, ticker::Ticker};
use crate::{
    allocation::Allocations,
    benchmarks::BelowBaselines,
    derive::ConditionSettings,
    model::{GpuDetails, Inventory, KnownGpu, Record, Sample},
    owner::CommandLines,
    vendor::{LatestAnswers, ReadDepth, Source, SourceError},
};

/// How to sample.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time between samples.
    pub interval: Arc<SharedInterval>,
    /// Whether somebody watches. While nobody does, what is dear is read no more often than history
    /// needs it.
    pub watched: Arc<Watched>,
    /// Whose command lines may be shown.
    pub commands: CommandLines,
    /// Where processes are looked up; `/proc` but in tests.
    pub proc_root: PathBuf,
    /// Where the system tells whether a laptop's GPU sleeps; `/sys` but in tests.
    pub sys_root: PathBuf,
    /// Where the kernel's log is read, `/dev/kmsg` but in tests; `None` reads none.
    pub kernel_log: Option<PathBuf>,
    /// How much of each sample to read.
    pub depth: ReadDepth,
    /// Whether to read what changes slowly, too.
    pub details: bool,
    /// Whether to wait for what the driver reports by itself, to drain its own buffers, and to find
    /// out how the GPUs are linked: what a single look has no use for.
    pub events: bool,
    /// Where to put the driver's answers, call by call, for programs that do as its vendor's own
    /// tools do.
    pub answers: Option<Arc<LatestAnswers>>,
    /// To whom schedulers have given the GPUs.
    pub allocations: Arc<Allocations>,
    /// Where Slurm's prolog leaves the jobs of GPUs; `None` reads none.
    pub slurm_gpus: Option<PathBuf>,
    /// From when on something is the matter.
    pub conditions: ConditionSettings,
    /// What benchmarks have shown of the GPUs; `None` where nobody knows.
    pub below_baselines: Option<Arc<BelowBaselines>>,
    /// What was learned of the GPUs, and what is learned; `None` where it is not kept.
    pub learned: Option<Arc<Learned>>,
    /// The GPUs that an earlier collector read, by their index, which they keep; empty if there are
    /// none.
    pub known_gpus: Arc<[KnownGpu]>,
}

impl Options {
    /// On this machine, without what changes slowly and without the kernel's log.
    pub fn new(interval: Duration, commands: CommandLines) -> Self {
        Self {
            interval: Arc::new(SharedInterval::new(interval)),
            watched: Arc::default(),
            commands,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            kernel_log: None,
            depth: ReadDepth::Full,
            details: false,
            events: false,
            answers: None,
            allocations: Arc::default(),
            slurm_gpus: None,
            conditions: ConditionSettings::default(),
            below_baselines: None,
            learned: None,
            known_gpus: Arc::default(),
        }
    }
}

/// What is there, and one sample of it.
#[derive(Debug)]
pub struct OneShot {
    /// What is there.
    pub inventory: Inventory,
    /// What was read.
    pub sample: Sample,
    /// What changes slowly, of each GPU that answered; empty where it was not asked for.
    pub details: Vec<GpuDetails>,
}

/// Hands an inventory, and then a sample per interval with what came before it, to `emit` until
/// that breaks off.
///
/// Threads that hang in the driver are left behind: they cannot be ended, and the process is
/// expected to end soon.
///
/// # Errors
/// [`SourceError`] where there is no GPU to sample, or the driver was replaced underneath the
/// library.
pub fn run(
    source: &Arc<dyn Source>,
    options: &Options,
    mut emit: impl FnMut(&Record) -> ControlFlow<()>,
) -> Result<(), SourceError> {
    let mut sampling = Sampling::start(source, options, OPENING)?;
    if emit(&Record::Inventory(sampling.inventory())).is_break() {
        return Ok(());
    }
    let mut interval = options.interval.get();
    let mut ticker = Ticker::new(interval);
    loop {
        let sampled_at = Instant::now();
        for record in sampling.tick(interval)? {
            if emit(&record).is_break() {
                return Ok(());
            }
        }
        let mut wait = ticker.until_next(Instant::now());
        while !options.interval.sleep(interval, wait) {
            interval = options.interval.get();
            // Counted from the last sample: clients that change their mind all the time get no more
            // samples than others.
            let now = Instant::now();
            ticker = Ticker::after(sampled_at, interval, now);
            wait = ticker.until_next(now);
        }
    }
}

/// What is there, and one sample of it, in which a GPU that has not answered hangs.
///
/// # Errors
/// [`SourceError`] where there is no GPU to sample.
pub fn once(source: &Arc<dyn Source>, options: &Options) -> Result<OneShot, SourceError> {
    let mut sampling = Sampling::start(source, options, OPENING_ONCE)?;
    sampling.give_up_waiting();
    let sample = sampling.compose(options.interval.get());
    Ok(OneShot {
        inventory: sampling.inventory(),
        sample,
        details: sampling.details(),
    })
}

#[cfg(test)]
mod tests {
    use std::{thread, thread::sleep};

    use super::*;
    use crate::vendor::SourceChoice;

    #[test]
    fn an_interval_that_changes_all_the_time_makes_no_more_samples() {
        let source = SourceChoice::Sim(1)
            .open(&crate::vendor::Roots::default())
            .unwrap();
        let (fast, slow) = (Duration::from_millis(100), Duration::from_mins(1));
        let options = Options::new(fast, CommandLines::All);
        let shared = Arc::clone(&options.interval);
        let begun = Instant::now();
        thread::spawn(move || {
            for interval in [slow, fast].into_iter().cycle().take(2_000) {
                shared.set(interval);
                sleep(Duration::from_millis(3));
            }
        });
        let mut samples = Vec::new();
        run(&source, &options, |record| {
            samples.extend(matches!(record, Record::Sample(_)).then(Instant::now));
            if samples.len() < 10 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
        .unwrap();
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(850), "10 samples in {took:?}");
        assert!(took < Duration::from_secs(10), "10 samples in {took:?}");
    }
}
