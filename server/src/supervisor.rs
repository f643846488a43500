//! The supervisor, which keeps the collector running unless it is paused.
//!
//! The collector is the child process that loads NVML. It is replaced after any problem with the
//! driver (a crash, a call that never returns, an upgrade), and clients are notified.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use gpumon_probe::{allocation::AllocatedDevice, model::KnownGpu};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    collector::{End, Running},
    control::{Control, Order},
    found_gpus::GpuSearch,
    frame::CollectorState,
    hub::Hub,
    join::{Join, JoinSettings},
    stuck_collectors::StuckCollectors,
};

/// The command that starts a collector.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The program, which is gpumon itself.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The sampling interval in the arguments.
    pub interval: Duration,
}

/// A line for the standard input of the collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Sets the sampling interval in milliseconds.
    IntervalMs(u32),
    /// Sets whether somebody watches, which is the default.
    Watched(bool),
    /// Requests the driver's latest answers, once.
    Answers,
    /// Replaces the list of devices that Kubernetes has allocated.
    Allocations(Vec<AllocatedDevice>),
    /// The GPUs that an earlier collector has read. This is the first line for a collector that is
    /// started with `--known-gpus`.
    KnownGpus(Vec<KnownGpu>),
}

/// The current instructions for the collector.
#[derive(Debug, Clone)]
pub(crate) struct Instructions {
    /// The sampling interval.
    pub(crate) interval: watch::Receiver<Duration>,
    /// The number of clients that watch.
    pub(crate) watchers: watch::Receiver<usize>,
    pub(crate) allocations: watch::Receiver<Vec<AllocatedDevice>>,
}

/// The limits of the pause before a new start, which doubles each time. The longest one applies if
/// the start itself fails.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause after a collector that had sent samples. It has probably crashed by chance,
/// and the next one will work for a while.
const LONGEST_AFTER_SAMPLES: Duration = Duration::from_millis(1500);
/// The duration of a collector after which the pauses start again from the shortest.
const STEADY: Duration = Duration::from_secs(30);
/// The interval between attempts if there is nothing to read, because a driver may be installed or
/// a GPU added.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);
/// The interval at which the supervisor checks whether a stuck collector has ended.
const STUCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs one collector after the other until this is dropped.
pub(crate) async fn supervise(
    collector: Collector,
    hub: Arc<Hub>,
    control: Arc<Control>,
    instructions: Instructions,
    join: Option<JoinSettings>,
) {
    let gpu_search = GpuSearch::new(collector.clone());
    let mut orders = control.orders();
    let join = join.map(|settings| {
        Join::new(
            settings,
            instructions.interval.clone(),
            instructions.watchers.clone(),
        )
    });
    let stuck_collectors = StuckCollectors::default();
    let known_gpus = Vec::new();
    let mut supervisor = Supervisor {
        collector,
        hub,
        control,
        instructions,
        join,
        stuck_collectors,
        known_gpus,
        gpu_search,
    };
    loop {
        supervisor.keep_running(&mut orders).await;
        supervisor.keep_paused(&mut orders).await;
    }
}

struct Supervisor {
    collector: Collector,
    hub: Arc<Hub>,
    control: Arc<Control>,
    instructions: Instructions,
    /// The server that replaces the collector while it is available.
    join: Option<Join>,
    stuck_collectors: StuckCollectors,
    /// The GPUs that earlier collectors of this server have read, which keep their indexes.
    known_gpus: Vec<KnownGpu>,
    gpu_search: GpuSearch,
}

impl Supervisor {
    /// Runs collectors until a pause is requested.
    async fn keep_running(&mut self, orders: &mut watch::Receiver<Order>) {
        let mut backoff = Backoff::default();
        let mut last_message = None;
        loop {
            if let Some(join) = &mut self.join {
                tokio::select! {
                    biased;
                    () = pause_ordered(&self.control, orders) => return,
                    () = join.follow(&self.hub) => {}
                }
            }
            let started = Instant::now();
            let Some(end) = self.run_once(orders).await else {
                return;
            };
            let (state, message, wait) = match end {
                End::NotNeeded => continue,
                End::Outdated(message) => {
                    tracing::info!("{message}; starting a new collector to read all GPUs");
                    continue;
                }
                End::NothingToRead(message) => {
                    (CollectorState::Unavailable, message, RETRY_INTERVAL)
                }
                End::Broken { message, had_begun } => {
                    let wait = backoff.pause_after(started.elapsed(), had_begun);
                    let message =
                        format!("{message}; a new one starts in {:.1} s", wait.as_secs_f64());
                    (CollectorState::Restarting, message, wait)
                }
            };
            // An unchanged message is not logged again at every attempt.
            if last_message.as_ref() != Some(&message) {
                tracing::warn!("{message}");
                last_message = Some(message.clone());
            }
            self.hub.set_collector_state(state, Some(message));
            tokio::select! {
                () = pause_ordered(&self.control, orders) => return,
                () = sleep(wait) => {}
            }
        }
    }

    /// Runs one collector, and returns how it ended. Returns `None` if a pause ended it.
    async fn run_once(&mut self, orders: &mut watch::Receiver<Order>) -> Option<End> {
        let known_gpus = self.known_gpus.clone();
        let mut running =
            match Running::start(&self.collector, self.instructions.clone(), known_gpus) {
                Ok(running) => running,
                Err(error) => {
                    return Some(End::Broken {
                        message: format!("cannot start the collector: {error}"),
                        had_begun: false,
                    });
                }
            };
        let end = tokio::select! {
            biased;
            () = pause_ordered(&self.control, orders) => None,
            () = available(&mut self.join) => Some(End::NotNeeded),
            unread = self.gpu_search.find_unread(&self.hub, &mut self.stuck_collectors) => Some(End::Outdated(unread)),
            end = running.monitor(&self.hub) => Some(end),
        };
        if running.has_begun() {
            self.known_gpus = self.hub.known_gpus();
        }
        self.gpu_search.stop(&mut self.stuck_collectors).await;
        self.stuck_collectors.kill(running.child).await;
        end
    }

    /// Waits without a collector until the end of the pause.
    async fn keep_paused(&mut self, orders: &mut watch::Receiver<Order>) {
        tracing::info!("paused");
        loop {
            let order = *orders.borrow_and_update();
            let Some(pause) = order.pause else {
                tracing::info!("resumed");
                self.hub.set_collector_state(CollectorState::Starting, None);
                self.control.mark_done(order);
                return;
            };
            let holders = self.stuck_collectors.pids();
            self.hub
                .set_collector_paused(pause_message(&holders), pause.resumes_ms);
            self.control.mark_done(order);
            tokio::select! {
                // The sender cannot be dropped, because `self` owns it.
                _ = orders.changed() => {}
                () = sleep_until(pause.until.unwrap_or_else(Instant::now)), if pause.until.is_some() => {
                    self.control.resume();
                }
                () = sleep(STUCK_CHECK_INTERVAL), if !holders.is_empty() => {}
            }
        }
    }
}

/// Waits until another server can be joined.
async fn available(join: &mut Option<Join>) {
    match join {
        Some(join) => join.available().await,
        None => std::future::pending().await,
    }
}

/// The pause before the next start of a collector.
struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            next: SHORTEST_PAUSE,
        }
    }
}

impl Backoff {
    /// Returns the pause after a collector that ran for this time, and whether it had sent samples.
    fn pause_after(&mut self, ran: Duration, had_begun: bool) -> Duration {
        let longest = if had_begun {
            LONGEST_AFTER_SAMPLES
        } else {
            LONGEST_PAUSE
        };
        let pause = if ran > STEADY {
            SHORTEST_PAUSE
        } else {
            self.next.min(longest)
        };
        self.next = (pause * 2).min(longest);
        pause
    }
}

/// Waits for an order that pauses the collector. Orders to resume are marked as carried out at
/// once.
async fn pause_ordered(control: &Control, orders: &mut watch::Receiver<Order>) {
    let waited = orders.wait_for(|order| {
        if order.pause.is_none() {
            control.mark_done(*order);
        }
        order.pause.is_some()
    });
    let _ = waited.await;
}

/// Returns the message for clients during a pause. `holders` are the PIDs of collectors that cannot
/// be killed.
fn pause_message(holders: &[u32]) -> String {
    if holders.is_empty() {
        return "paused: the GPUs are released until `gpumon resume`".to_owned();
    }
    let pids = holders
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "paused, but a collector is stuck in the driver, cannot be killed and still holds the GPUs (PID {pids}); only a \
         reboot ends it if it stays"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failing_starts_are_waited_for_long() {
        let pauses = |had_begun| {
            let mut backoff = Backoff::default();
            [(); 8].map(|()| {
                backoff
                    .pause_after(Duration::from_secs(1), had_begun)
                    .as_millis()
            })
        };
        assert_eq!(pauses(true), [250, 500, 1000, 1500, 1500, 1500, 1500, 1500]);
        assert_eq!(
            pauses(false),
            [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]
        );
        let mut backoff = Backoff::default();
        for _ in 0..8 {
            backoff.pause_after(Duration::ZERO, false);
        }
        assert_eq!(
            backoff.pause_after(Duration::ZERO, true),
            LONGEST_AFTER_SAMPLES
        );
        assert_eq!(backoff.pause_after(STEADY * 2, false), SHORTEST_PAUSE);
    }

    #[test]
    fn a_collector_that_cannot_be_killed_is_said_to_hold_the_gpus() {
        assert!(!pause_message(&[]).contains("holds"));
        let message = pause_message(&[77, 78]);
        assert!(
            message.contains("still holds the GPUs (PID 77, 78)"),
            "{message}"
        );
    }
}
