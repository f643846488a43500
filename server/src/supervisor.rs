//! The supervisor, which keeps the collector running unless it is paused.
//!
//! The collector is the child process that loads NVML. After any problem with the driver (a crash,
//! a call that never returns, an upgrade), the collector is restarted and clients are notified.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use gpumon_probe::{
    allocation::AllocatedDevice,
    model::{KnownGpu, now_ms},
};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    collector::{CollectorEnd, RunningCollector, StuckCollectors},
    frame::CollectorState,
    gpu_search::GpuSearch,
    hub::Hub,
    join::{JoinSettings, ServerJoin},
    lock,
};

/// The command that starts a collector.
#[derive(Debug, Clone)]
pub struct CollectorCommand {
    /// The program, which is gpumon itself.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The sampling interval that the arguments specify.
    pub interval: Duration,
}

/// A request line that is sent to the collector's standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectorRequest {
    /// Sets the sampling interval in milliseconds.
    IntervalMs(u32),
    /// Sets whether somebody is watching the readings. A new collector assumes that somebody is.
    Watched(bool),
    /// Requests the driver's latest answers once.
    Answers,
    /// Replaces the list of devices that Kubernetes has allocated.
    Allocations(Vec<AllocatedDevice>),
    /// Sends the GPUs that an earlier collector read. A collector started with `--known-gpus`
    /// receives this line first.
    KnownGpus(Vec<KnownGpu>),
}

/// The current instructions for the collector, which can change while it runs.
#[derive(Debug, Clone)]
pub(crate) struct CollectorInstructions {
    /// The sampling interval.
    pub(crate) interval: watch::Receiver<Duration>,
    /// The number of clients that are watching the readings.
    pub(crate) watchers: watch::Receiver<usize>,
    pub(crate) allocations: watch::Receiver<Vec<AllocatedDevice>>,
}

/// The shortest pause before a restart. The pause doubles with each restart, up to
/// `MAX_RESTART_PAUSE`, which also applies if the start itself fails.
const MIN_RESTART_PAUSE: Duration = Duration::from_millis(250);
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause after a collector that had sent samples. Such a collector probably crashed by
/// chance, so the next one will probably work for a while.
const MAX_RESTART_PAUSE_AFTER_SAMPLES: Duration = Duration::from_millis(1500);
/// The run time after which a collector counts as steady. When a steady collector ends, the next
/// pause is the shortest again.
const STEADY_DURATION: Duration = Duration::from_secs(30);
/// The interval between restarts if there are no readings. A driver may be installed or a GPU added
/// in the meantime.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);
/// The interval at which the supervisor checks whether a stuck collector has exited.
const STUCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs one collector after another until the returned future is dropped.
pub(crate) async fn supervise(
    collector: CollectorCommand,
    hub: Arc<Hub>,
    control: Arc<PauseControl>,
    instructions: CollectorInstructions,
    join: Option<JoinSettings>,
) {
    let gpu_search = GpuSearch::new(collector.clone());
    let mut orders = control.subscribe_commands();
    let join = join.map(|settings| {
        ServerJoin::new(
            settings,
            instructions.interval.clone(),
            instructions.watchers.clone(),
        )
    });
    let mut supervisor = Supervisor {
        collector,
        hub,
        control,
        instructions,
        join,
        stuck_collectors: StuckCollectors::default(),
        known_gpus: Vec::new(),
        gpu_search,
    };
    loop {
        supervisor.keep_collectors_running(&mut orders).await;
        supervisor.wait_while_paused(&mut orders).await;
    }
}

struct Supervisor {
    collector: CollectorCommand,
    hub: Arc<Hub>,
    control: Arc<PauseControl>,
    instructions: CollectorInstructions,
    /// The connection to another server, whose readings replace the collector's while it is
    /// available.
    join: Option<ServerJoin>,
    stuck_collectors: StuckCollectors,
    /// The GPUs that earlier collectors of this server have read. They keep their indexes.
    known_gpus: Vec<KnownGpu>,
    gpu_search: GpuSearch,
}

impl Supervisor {
    /// Keeps a collector running until a pause is requested.
    async fn keep_collectors_running(&mut self, orders: &mut watch::Receiver<PauseOrder>) {
        let mut backoff = Backoff::default();
        let mut last_message = None;
        loop {
            if let Some(join) = &mut self.join {
                tokio::select! {
                    biased;
                    () = wait_for_pause(&self.control, orders) => return,
                    () = join.follow_server(&self.hub) => {}
                }
            }
            let started = Instant::now();
            let Some(end) = self.run_collector_once(orders).await else {
                return;
            };
            let (state, message, wait) = match end {
                CollectorEnd::NotNeeded => continue,
                CollectorEnd::Outdated(message) => {
                    tracing::info!("{message}; starting a new collector to read all GPUs");
                    continue;
                }
                CollectorEnd::NothingToRead(message) => {
                    (CollectorState::Unavailable, message, RETRY_INTERVAL)
                }
                CollectorEnd::Broken { message, had_begun } => {
                    let wait = backoff.next_restart_pause(started.elapsed(), had_begun);
                    let message = format!(
                        "{message}; a new collector starts in {:.1} s",
                        wait.as_secs_f64()
                    );
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
                () = wait_for_pause(&self.control, orders) => return,
                () = sleep(wait) => {}
            }
        }
    }

    /// Runs one collector, and returns how it ended, or `None` if it was stopped by a pause.
    async fn run_collector_once(
        &mut self,
        orders: &mut watch::Receiver<PauseOrder>,
    ) -> Option<CollectorEnd> {
        let known_gpus = self.known_gpus.clone();
        let mut running =
            match RunningCollector::start(&self.collector, self.instructions.clone(), known_gpus) {
                Ok(running) => running,
                Err(error) => {
                    return Some(CollectorEnd::Broken {
                        message: format!("cannot start the collector: {error}"),
                        had_begun: false,
                    });
                }
            };
        let end = tokio::select! {
            biased;
            () = wait_for_pause(&self.control, orders) => None,
            () = wait_until_joinable(&mut self.join) => Some(CollectorEnd::NotNeeded),
            unread = self.gpu_search.find_unread_gpu(&self.hub, &mut self.stuck_collectors) => Some(CollectorEnd::Outdated(unread)),
            end = running.monitor_output(&self.hub) => Some(end),
        };
        if running.has_written_record() {
            self.known_gpus = self.hub.known_gpus();
        }
        self.gpu_search.stop(&mut self.stuck_collectors).await;
        self.stuck_collectors.kill(running.child).await;
        end
    }

    /// Waits without a collector until the pause ends.
    async fn wait_while_paused(&mut self, orders: &mut watch::Receiver<PauseOrder>) {
        tracing::info!("paused");
        loop {
            let order = *orders.borrow_and_update();
            let Some(pause) = order.pause else {
                tracing::info!("resumed");
                self.hub.set_collector_state(CollectorState::Starting, None);
                self.control.mark_done(order);
                return;
            };
            let holders = self.stuck_collectors.list_running_pids();
            let message = Some(pause_message(&holders));
            self.hub
                .set_collector_status(CollectorState::Paused, message, pause.resumes_ms);
            self.control.mark_done(order);
            tokio::select! {
                // The sender of commands cannot be dropped, because `self` owns it.
                _ = orders.changed() => {}
                () = sleep_until(pause.until.unwrap_or_else(Instant::now)), if pause.until.is_some() => {
                    self.control.request_resume();
                }
                () = sleep(STUCK_CHECK_INTERVAL), if !holders.is_empty() => {}
            }
        }
    }
}

/// Waits until another server can be joined.
async fn wait_until_joinable(join: &mut Option<ServerJoin>) {
    match join {
        Some(join) => join.wait_until_available().await,
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
            next: MIN_RESTART_PAUSE,
        }
    }
}

impl Backoff {
    /// Returns the pause after the end of a collector that ran for the time `ran`. `had_begun` is
    /// whether the collector had sent samples.
    fn next_restart_pause(&mut self, ran: Duration, had_begun: bool) -> Duration {
        let longest = if had_begun {
            MAX_RESTART_PAUSE_AFTER_SAMPLES
        } else {
            MAX_RESTART_PAUSE
        };
        let pause = if ran > STEADY_DURATION {
            MIN_RESTART_PAUSE
        } else {
            self.next.min(longest)
        };
        self.next = (pause * 2).min(longest);
        pause
    }
}

/// Waits for a command to pause the collector. Commands to resume are marked as carried out
/// immediately.
async fn wait_for_pause(control: &PauseControl, orders: &mut watch::Receiver<PauseOrder>) {
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
        "paused, but a collector (PID {pids}) is stuck in the driver, cannot be killed and \
         still holds the GPUs; reboot the machine if this persists"
    )
}

// The commands to pause and resume the collector, and which of them were carried out.

/// The connection between the supervisor and the endpoints that pause and resume the collector.
#[derive(Debug)]
pub(crate) struct PauseControl {
    order: watch::Sender<PauseOrder>,
    /// The commands that were neither carried out nor withdrawn, the oldest first.
    open: Mutex<Vec<PauseOrder>>,
    /// The newest command that was carried out.
    done: watch::Sender<PauseOrder>,
}

/// A command to pause or resume the collector.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PauseOrder {
    pub(crate) number: u64,
    /// The requested pause, or `None` if the collector should run.
    pub(crate) pause: Option<Pause>,
}

/// A pause of the collector, with an optional end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pause {
    pub(crate) until: Option<Instant>,
    /// The end of the pause in milliseconds since 1970; `None` if it lasts until the collector is
    /// resumed.
    pub(crate) resumes_ms: Option<u64>,
}

impl PauseControl {
    pub(crate) fn new() -> Self {
        Self {
            order: watch::Sender::new(PauseOrder::default()),
            open: Mutex::default(),
            done: watch::Sender::new(PauseOrder::default()),
        }
    }

    /// Requests a pause, and returns the command's number. Without `time`, the pause lasts until
    /// the collector is resumed. If there are several commands, the last one is valid.
    pub(crate) fn request_pause(&self, time: Option<Duration>) -> u64 {
        let pause = Pause {
            until: time.map(|time| Instant::now() + time),
            resumes_ms: time.map(|time| now_ms() + time.as_millis() as u64),
        };
        self.submit_command(Some(pause))
    }

    pub(crate) fn request_resume(&self) -> u64 {
        self.submit_command(None)
    }

    /// Withdraws a command that nobody is waiting for, so that it is not carried out later.
    /// Afterwards, the last remaining command applies. If none remains, the last command that was
    /// carried out applies. Returns `false` if it is too late because the command was already
    /// carried out.
    pub(crate) fn withdraw_command(&self, number: u64) -> bool {
        let mut is_open = false;
        self.order.send_if_modified(|order| {
            let mut open = self.lock_open_commands();
            let Some(place) = open.iter().position(|one| one.number == number) else {
                return false;
            };
            is_open = true;
            open.remove(place);
            // There is a later command, which remains valid.
            if place < open.len() {
                return false;
            }
            let pause = open.last().unwrap_or(&self.done.borrow()).pause;
            *order = PauseOrder {
                number: order.number + 1,
                pause,
            };
            true
        });
        is_open
    }

    fn submit_command(&self, pause: Option<Pause>) -> u64 {
        let mut number = 0;
        self.order.send_modify(|order| {
            number = order.number + 1;
            *order = PauseOrder { number, pause };
            self.lock_open_commands().push(*order);
        });
        number
    }

    fn lock_open_commands(&self) -> MutexGuard<'_, Vec<PauseOrder>> {
        lock::lock(&self.open)
    }

    /// Returns the channel of pause and resume commands.
    pub(crate) fn subscribe_commands(&self) -> watch::Receiver<PauseOrder> {
        self.order.subscribe()
    }

    /// Marks a command and all earlier ones as carried out.
    pub(crate) fn mark_done(&self, order: PauseOrder) {
        let mut open = self.lock_open_commands();
        open.retain(|one| one.number > order.number);
        self.done.send_replace(order);
    }

    pub(crate) async fn wait_for_command(&self, number: u64) {
        // Waiting fails only if the sender is dropped. This is impossible, because `self` owns the
        // sender.
        let _ = self
            .done
            .subscribe()
            .wait_for(|done| done.number >= number)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_delay_is_longer_if_collector_never_started() {
        let pauses = |had_begun| {
            let mut backoff = Backoff::default();
            [(); 8].map(|()| {
                backoff
                    .next_restart_pause(Duration::from_secs(1), had_begun)
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
            backoff.next_restart_pause(Duration::ZERO, false);
        }
        assert_eq!(
            backoff.next_restart_pause(Duration::ZERO, true),
            MAX_RESTART_PAUSE_AFTER_SAMPLES
        );
        assert_eq!(
            backoff.next_restart_pause(STEADY_DURATION * 2, false),
            MIN_RESTART_PAUSE
        );
    }

    #[test]
    fn stuck_collector_is_reported_as_holding_gpus() {
        assert!(!pause_message(&[]).contains("holds"));
        let message = pause_message(&[77, 78]);
        assert!(
            message.contains("(PID 77, 78)") && message.contains("still holds the GPUs"),
            "{message}"
        );
    }
}

#[cfg(test)]
mod pause_control_tests {
    use super::*;

    #[test]
    fn failed_pause_is_withdrawn() {
        let control = PauseControl::new();
        let is_paused = || control.order.borrow().pause.is_some();
        let failed = control.request_pause(None);
        assert!(control.withdraw_command(failed) && !is_paused());
        let (failed, too) = (control.request_pause(None), control.request_pause(None));
        assert!(
            control.withdraw_command(failed) && control.withdraw_command(too) && !is_paused(),
            "both failed"
        );
        let done = control.request_pause(None);
        control.mark_done(*control.order.borrow());
        assert!(!control.withdraw_command(done) && is_paused(), "it is done");
        let failed = control.request_resume();
        assert!(
            control.withdraw_command(failed) && is_paused(),
            "it is still paused"
        );
    }

    #[test]
    fn withdrawing_failed_pause_keeps_other_pause_requests() {
        let control = PauseControl::new();
        let is_paused = || control.order.borrow().pause.is_some();
        let (first, failed) = (control.request_pause(None), control.request_pause(None));
        assert!(
            control.withdraw_command(failed) && is_paused(),
            "the first still waits"
        );
        assert!(control.withdraw_command(first) && !is_paused());
    }
}
