//! The delivery thread of one receiver, with a bounded queue.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{Failure, Notification, OnProblem, ReceiverStatus, deliver};
use crate::{describe, rules::Receiver};

/// The maximum number of notifications that wait for one receiver. The oldest is dropped to make
/// room for another.
const MOST_WAITING: usize = 256;
/// The shortest and longest delay before the next attempt. The delay doubles after each failure.
const SHORTEST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(5);
/// The maximum age of a notification: an older one does not describe the present.
const LONGEST_AGE: Duration = Duration::from_hours(24);

/// The delivery thread of one receiver. When this value is dropped, the thread ends after the
/// current delivery.
pub(super) struct Worker {
    receiver: Receiver,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    is_closed: bool,
    /// The status, except for the number of waiting notifications, which is counted on request.
    status: ReceiverStatus,
    is_under_way: bool,
    /// Whether a notification was lost since the last successful delivery.
    is_behind: bool,
}

/// A queued notification with its attempts so far.
struct Waiting {
    notification: Notification,
    host: String,
    attempts: u32,
    since: Instant,
}

impl Worker {
    pub(super) fn start(receiver: Receiver, on_problem: &OnProblem) -> Self {
        let queue = Arc::new(Queue::default());
        let (own, of_thread) = (receiver.clone(), Arc::clone(&queue));
        let problem = Arc::clone(on_problem);
        let started = thread::Builder::new()
            .name("alert-receiver".to_owned())
            .spawn(move || of_thread.work(&own, &*problem));
        if let Err(error) = started {
            on_problem(format!(
                "alerts cannot be sent to {}: no thread: {error}",
                receiver.name
            ));
        }
        Self { receiver, queue }
    }

    pub(super) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    pub(super) fn push(&self, notification: Notification, host: String) {
        let mut state = self.queue.lock();
        if state.waiting.len() == MOST_WAITING {
            let oldest = state.waiting.pop_front();
            oldest.inspect(|oldest| state.give_up(&self.receiver, oldest, "too many wait"));
        }
        state.waiting.push_back(Waiting {
            notification,
            host,
            attempts: 0,
            since: Instant::now(),
        });
        drop(state);
        self.queue.changed.notify_one();
    }

    /// Returns `true` if a notification was lost since the last successful delivery.
    pub(super) fn is_behind(&self) -> bool {
        self.queue.lock().is_behind
    }

    /// Returns `true` if no notification waits, is being delivered, or was lost since the last
    /// successful delivery.
    pub(super) fn is_up_to_date(&self) -> bool {
        let state = self.queue.lock();
        state.waiting.is_empty() && !state.is_under_way && !state.is_behind
    }

    pub(super) fn status(&self) -> ReceiverStatus {
        let state = self.queue.lock();
        ReceiverStatus {
            name: self.receiver.name.clone(),
            kind: self.receiver.kind(),
            waiting: state.waiting.len(),
            ..state.status.clone()
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_one();
    }
}

impl State {
    fn give_up(&mut self, receiver: &Receiver, lost: &Waiting, why: &str) {
        self.status.failed += 1;
        self.is_behind = true;
        let Waiting {
            notification,
            attempts,
            ..
        } = lost;
        let headline = describe::headline(notification.status, &notification.alert);
        let times = if *attempts == 1 {
            "1 attempt".to_owned()
        } else {
            format!("{attempts} attempts")
        };
        let what = format!("{headline}: given up after {times}: {why}");
        tracing::warn!("alerts: {}: {what}", receiver.name);
        self.status.given_up = Some(what);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, receiver: &Receiver, on_problem: &(dyn Fn(String) + Send + Sync)) {
        let mut retry = SHORTEST_RETRY;
        while let Some(mut next) = self.next() {
            next.attempts += 1;
            let Err(Failure { message, attempts }) =
                deliver(receiver, &next.notification, &next.host)
            else {
                let mut state = self.lock();
                state.status.sent += 1;
                (state.is_behind, state.is_under_way) = (false, false);
                if state.status.error.take().is_some() {
                    tracing::info!("alerts reach {} again", receiver.name);
                }
                retry = SHORTEST_RETRY;
                continue;
            };
            let mut state = self.lock();
            state.is_under_way = false;
            if state.status.error.replace(message.clone()).is_none() {
                // The problem is reported once, until a delivery succeeds again.
                on_problem(format!("Alerts do not reach {}: {message}", receiver.name));
            }
            if next.attempts >= attempts || next.since.elapsed() >= LONGEST_AGE {
                state.give_up(receiver, &next, &message);
                retry = SHORTEST_RETRY;
            } else if state.waiting.len() >= MOST_WAITING {
                state.give_up(receiver, &next, "too many wait");
            } else {
                // The failed notification goes before those that arrived in the meantime.
                state.waiting.push_front(next);
                let is_open = |state: &mut State| !state.is_closed;
                drop(self.changed.wait_timeout_while(state, retry, is_open));
                retry = (retry * 2).min(LONGEST_RETRY);
            }
        }
    }

    /// Waits for the next notification; returns `None` when the queue is closed.
    fn next(&self) -> Option<Waiting> {
        let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let mut state = self
            .changed
            .wait_while(self.lock(), is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        state.is_under_way = true;
        state.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc};

    use super::*;
    use crate::{notify::payload::tests::notification, rules::Way};

    fn command(name: &str, script: &str, timeout_ms: u64) -> Receiver {
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        Receiver {
            name: name.into(),
            way: Way::Command { words },
            timeout: Duration::from_millis(timeout_ms),
        }
    }

    fn eventually(what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "waited in vain until {what}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_receiver_that_hangs_delays_nobody_and_is_told_of_once() {
        let (sender, problems) = mpsc::channel();
        let on_problem: OnProblem = Arc::new(move |message| drop(sender.send(message)));
        let worker = Worker::start(command("slow", "sleep 60", 200), &on_problem);
        let begun = Instant::now();
        for _ in 0..MOST_WAITING + 10 {
            worker.push(notification(), "gpu1".into());
        }
        assert!(
            begun.elapsed() < Duration::from_millis(150),
            "{:?}",
            begun.elapsed()
        );
        assert!(
            worker.status().waiting <= MOST_WAITING && worker.status().failed >= 9,
            "{:?}",
            worker.status()
        );
        let problem = problems.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(
            problem.starts_with("Alerts do not reach slow: /bin/sh did not end"),
            "{problem}"
        );
        thread::sleep(Duration::from_millis(1800));
        assert!(problems.try_recv().is_err(), "said again");
    }

    #[test]
    fn that_one_was_lost_is_known_until_one_is_delivered() {
        let folder = tempfile::tempdir().unwrap();
        let on_problem: OnProblem = Arc::new(|_| {});
        let mut receiver = command("gate", "", 5000);
        receiver.way = Way::Command {
            words: vec![folder.path().join("program").display().to_string()],
        };
        let worker = Worker::start(receiver, &on_problem);
        assert!(!worker.is_behind());
        worker.push(notification(), String::new());
        eventually("it cannot be started", || worker.status().failed == 1);
        assert!(worker.is_behind());
        worker.push(notification(), String::new());
        eventually("it cannot be started", || worker.status().failed == 2);
        std::os::unix::fs::symlink("/bin/true", folder.path().join("program")).unwrap();
        worker.push(notification(), String::new());
        eventually("it is delivered", || worker.status().sent == 1);
        assert!(!worker.is_behind());
    }

    #[test]
    fn a_command_that_fails_is_run_three_times_and_blocks_nobody_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        // The command writes a line, and then fails or does not end.
        let script = format!(
            "echo $GPUMON_ALERT_RULE >> {}; case $GPUMON_ALERT_RULE in bad) exit 3;; slow) sleep 60;; esac",
            runs.display()
        );
        let on_problem: OnProblem = Arc::new(|_| {});
        let worker = Worker::start(command("shell", &script, 1500), &on_problem);
        for rule in ["bad", "slow", "good"] {
            let mut notification = notification();
            notification.alert.alert.rule = rule.into();
            worker.push(notification, String::new());
        }
        eventually("the last has arrived", || worker.status().sent == 1);
        assert_eq!(
            fs::read_to_string(&runs).unwrap(),
            "bad\nbad\nbad\nslow\nslow\nslow\ngood\n"
        );
        let status = worker.status();
        assert_eq!((status.failed, status.waiting, status.error), (2, 0, None));
        let given_up = status.given_up.unwrap();
        assert!(
            given_up.starts_with("Warning: slow: GPU 3: ") && given_up.contains("3 attempts"),
            "{given_up}"
        );
    }

    #[test]
    fn what_fails_for_a_while_is_tried_again_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let (gate, out) = (folder.path().join("gate"), folder.path().join("out"));
        // The command hangs until the file exists, which counts as a temporary failure.
        let script = format!(
            "test -e {} || sleep 60; echo $GPUMON_ALERT_RULE >> {}",
            gate.display(),
            out.display()
        );
        let on_problem: OnProblem = Arc::new(|_| {});
        let worker = Worker::start(command("gate", &script, 1000), &on_problem);
        for rule in ["first", "second"] {
            let mut notification = notification();
            notification.alert.alert.rule = rule.into();
            worker.push(notification, String::new());
        }
        eventually("it has failed", || worker.status().error.is_some());
        fs::write(&gate, "").unwrap();
        eventually("both have arrived", || worker.status().sent == 2);
        assert_eq!(fs::read_to_string(&out).unwrap(), "first\nsecond\n");
        assert_eq!((worker.status().error, worker.status().waiting), (None, 0));
    }
}
