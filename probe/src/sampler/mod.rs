//! The sampler, which schedules all readings: one thread per GPU and one for the host, a common
//! tick, and one sample per tick.
//!
//! A worker that does not respond in time delays nothing: the sample contains the GPU's latest
//! readings, and reports the GPU as hung after one interval.

mod gpu_indices;
mod gpu_state;
mod gpu_worker;
mod learned_baselines;
pub(crate) mod process_list;
mod sampling;
mod schedule;
mod threads;
mod workers;

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use self::{sampling::Sampling, schedule::Ticker};
use crate::{
    allocation::Allocations,
    benchmarks::BelowBaselines,
    derive::ConditionSettings,
    model::{GpuDetails, Inventory, KnownGpu, Record, Sample},
    owner::CommandLines,
    vendor::{LatestAnswers, ReadDepth, Source, SourceError},
};

pub use gpu_indices::read_gpu_uuids;
pub use learned_baselines::LearnedBaselines;
pub use schedule::{ONE_SHOT_OPENING_TIME, OPENING_TIME, SharedInterval, WatchFlag};

/// The options of the sampler.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time between samples.
    pub interval: Arc<SharedInterval>,
    /// Whether somebody watches. While nobody watches, expensive readings are taken only as often
    /// as the history needs them.
    pub watched: Arc<WatchFlag>,
    /// The users whose command lines may be shown.
    pub commands: CommandLines,
    /// The directory with the processes, `/proc` except in tests.
    pub proc_root: PathBuf,
    /// The directory that shows whether a laptop's GPU sleeps, `/sys` except in tests.
    pub sys_root: PathBuf,
    /// The kernel log's file, `/dev/kmsg` except in tests, or `None` to ignore the log.
    pub kernel_log: Option<PathBuf>,
    /// The amount of data in each sample.
    pub depth: ReadDepth,
    /// Whether to also read the details.
    pub details: bool,
    /// Whether to wait for driver events, to read the driver's traces, and to find the links
    /// between GPUs. One-shot commands need none of these.
    pub events: bool,
    /// The destination of the driver's individual responses, for programs that imitate the vendor's
    /// own tools.
    pub answers: Option<Arc<LatestAnswers>>,
    /// The allocations of GPUs by schedulers.
    pub allocations: Arc<Allocations>,
    /// The directory in which Slurm's prolog writes the jobs of GPUs, or `None` to ignore Slurm.
    pub slurm_gpus: Option<PathBuf>,
    /// The settings of conditions.
    pub conditions: ConditionSettings,
    /// The GPUs whose benchmark results are below their baselines, or `None` if benchmark results
    /// are not used.
    pub below_baselines: Option<Arc<BelowBaselines>>,
    /// The learned baselines of GPUs, or `None` if they are not stored.
    pub learned: Option<Arc<LearnedBaselines>>,
    /// The GPUs that an earlier collector read, by index. They keep their indices. Empty if there
    /// was no earlier collector.
    pub known_gpus: Arc<[KnownGpu]>,
}

impl Options {
    /// Returns the options for this machine, without details and the kernel log.
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

/// An inventory and one sample.
#[derive(Debug)]
pub struct OneShotReadings {
    pub inventory: Inventory,
    pub sample: Sample,
    /// The details of each GPU that responded; empty if details were not requested.
    pub details: Vec<GpuDetails>,
}

/// Passes an inventory to `emit`, and then, at each interval, the other records of the tick
/// followed by a sample. Stops when `emit` returns `Break`.
///
/// Threads that hang in the driver are abandoned. They cannot be stopped, so the process should end
/// soon after this function returns.
///
/// # Errors
/// Returns [`SourceError`] if there is no GPU to sample, or if the driver was replaced after its
/// library was loaded.
pub fn run_sampler(
    source: &Arc<dyn Source>,
    options: &Options,
    mut emit: impl FnMut(&Record) -> ControlFlow<()>,
) -> Result<(), SourceError> {
    let mut sampling = Sampling::start(source, options, OPENING_TIME)?;
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
        let mut wait = ticker.time_until_next_tick(Instant::now());
        while !options.interval.sleep_unless_changed(interval, wait) {
            interval = options.interval.get();
            // The new interval starts at the last sample. Otherwise, clients that change the
            // interval often would get more samples than other clients.
            let now = Instant::now();
            ticker = Ticker::new_after(sampled_at, interval, now);
            wait = ticker.time_until_next_tick(now);
        }
    }
}

/// Returns the inventory and one sample. GPUs that have not responded are marked as hung.
///
/// # Errors
/// Returns [`SourceError`] if there is no GPU to sample.
pub fn sample_once(
    source: &Arc<dyn Source>,
    options: &Options,
) -> Result<OneShotReadings, SourceError> {
    let mut sampling = Sampling::start(source, options, ONE_SHOT_OPENING_TIME)?;
    sampling.mark_pending_queries_hung();
    let sample = sampling.compose_sample(options.interval.get());
    Ok(OneShotReadings {
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
    fn changing_interval_does_not_add_samples() {
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
        run_sampler(&source, &options, |record| {
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
