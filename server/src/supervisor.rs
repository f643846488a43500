//! Keeps the collector running, unless it is to pause.
//!
//! The collector is the child process that loads NVML and reads it. Whatever the driver does to it
//! (a crash, a call that never returns, an upgrade underneath it), it is replaced, and clients are
//! told.

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

/// How to start a collector.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The program: gpumon itself.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The interval that they tell it.
    pub interval: Duration,
}

/// A line that the collector gets on its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The time between samples from now on.
    IntervalMs(u32),
    /// Whether somebody watches, which it takes for granted until it is told.
    Watched(bool),
    /// To write the driver's latest answers, once.
    Answers,
    /// To whom Kubernetes has given devices, all of them.
    Allocations(Vec<AllocatedDevice>),
    /// The GPUs that an earlier collector read, in the first line of a collector that is started
    /// with `--known-gpus`.
    KnownGpus(Vec<KnownGpu>),
}

/// What every collector is told from now on, as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Instructions {
    /// The time between samples.
    pub(crate) interval: watch::Receiver<Duration>,
    /// How many watch.
    pub(crate) watchers: watch::Receiver<usize>,
    pub(crate) allocations: watch::Receiver<Vec<AllocatedDevice>>,
}

/// The pause before a new start doubles from the shortest to the longest, which is that where the
/// start itself fails.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// One that had begun to sample has been killed or has crashed, and the next is likely to do well
/// for a while.
const LONGEST_AFTER_SAMPLES: Duration = Duration::from_millis(1500);
/// A collector that ran for so long starts the pauses anew.
const STEADY: Duration = Duration::from_secs(30);
/// Where there is nothing to read, a driver may be installed or a GPU appear, so it is tried again
/// now and then.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);
/// So often it is looked whether one that was left behind has ended after all.
const STUCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs collectors, one after another, until it is dropped.
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
    /// The server that is shown instead, while it is there.
    join: Option<Join>,
    stuck_collectors: StuckCollectors,
    /// The GPUs that collectors of this server have read. They keep their indices.
    known_gpus: Vec<KnownGpu>,
    gpu_search: GpuSearch,
}

impl Supervisor {
    /// Replaces collectors until there is to be none.
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
            // What stays as it is need not be said again every few seconds.
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

    /// How a collector ended; `None` where it had to, for a pause.
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

    /// Stays without a collector until there is to be one.
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
                // The sender lives as long as this does.
                _ = orders.changed() => {}
                () = sleep_until(pause.until.unwrap_or_else(Instant::now)), if pause.until.is_some() => {
                    self.control.resume();
                }
                () = sleep(STUCK_CHECK_INTERVAL), if !holders.is_empty() => {}
            }
        }
    }
}

/// Completes when another server can be joined.
async fn available(join: &mut Option<Join>) {
    match join {
        Some(join) => join.available().await,
        None => std::future::pending().await,
    }
}

/// How long to wait before the next collector starts.
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
    /// The pause after a collector that ran for so long, and had begun to sample or not.
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

/// Waits until there is to be no collector. What asks for one is done already.
async fn pause_ordered(control: &Control, orders: &mut watch::Receiver<Order>) {
    let waited = orders.wait_for(|order| {
        if order.pause.is_none() {
            control.mark_done(*order);
        }
        order.pause.is_some()
    });
    let _ = waited.await;
}

/// What clients are told during a pause, where these collectors do not die.
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
