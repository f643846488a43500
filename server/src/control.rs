//! Control of the collector: the requested state, and which requests were carried out.

use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use gpumon_probe::model::now_ms;
use tokio::{sync::watch, time::Instant};

use crate::lock;

/// The connection between the supervisor and the endpoints that pause and resume the collector.
#[derive(Debug)]
pub(crate) struct PauseControl {
    order: watch::Sender<PauseOrder>,
    /// The orders that were neither carried out nor withdrawn, the oldest first.
    open: Mutex<Vec<PauseOrder>>,
    /// The newest order that was carried out.
    done: watch::Sender<PauseOrder>,
}

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
    /// The end of the pause in milliseconds since 1970.
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

    /// Requests a pause, and returns the order's number. Without `time`, the pause lasts until the
    /// collector is resumed. The last order wins.
    pub(crate) fn pause(&self, time: Option<Duration>) -> u64 {
        let pause = Pause {
            until: time.map(|time| Instant::now() + time),
            resumes_ms: time.map(|time| now_ms() + time.as_millis() as u64),
        };
        self.submit_order(Some(pause))
    }

    pub(crate) fn resume(&self) -> u64 {
        self.submit_order(None)
    }

    /// Withdraws a refused order, so that it is not carried out later. The last remaining order
    /// becomes valid again, or the last one that was carried out if none remains. Returns `false`
    /// if the order was already carried out.
    pub(crate) fn withdraw_order(&self, number: u64) -> bool {
        let mut is_open = false;
        self.order.send_if_modified(|order| {
            let mut open = self.lock_open_orders();
            let Some(place) = open.iter().position(|one| one.number == number) else {
                return false;
            };
            is_open = true;
            open.remove(place);
            // A later order exists, and remains valid.
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

    fn submit_order(&self, pause: Option<Pause>) -> u64 {
        let mut number = 0;
        self.order.send_modify(|order| {
            number = order.number + 1;
            *order = PauseOrder { number, pause };
            self.lock_open_orders().push(*order);
        });
        number
    }

    fn lock_open_orders(&self) -> MutexGuard<'_, Vec<PauseOrder>> {
        lock::lock(&self.open)
    }

    /// Returns the channel of orders.
    pub(crate) fn orders(&self) -> watch::Receiver<PauseOrder> {
        self.order.subscribe()
    }

    /// Marks an order and all earlier ones as carried out.
    pub(crate) fn mark_done(&self, order: PauseOrder) {
        let mut open = self.lock_open_orders();
        open.retain(|one| one.number > order.number);
        self.done.send_replace(order);
    }

    pub(crate) async fn wait_until_done(&self, number: u64) {
        // Waiting fails only if the sender is dropped, but `self` owns the sender.
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
    fn failed_pause_is_not_carried_out_later() {
        let control = PauseControl::new();
        let is_paused = || control.order.borrow().pause.is_some();
        let failed = control.pause(None);
        assert!(control.withdraw_order(failed) && !is_paused());
        let (failed, too) = (control.pause(None), control.pause(None));
        assert!(
            control.withdraw_order(failed) && control.withdraw_order(too) && !is_paused(),
            "both failed"
        );
        let done = control.pause(None);
        control.mark_done(*control.order.borrow());
        assert!(!control.withdraw_order(done) && is_paused(), "it is done");
        let failed = control.resume();
        assert!(
            control.withdraw_order(failed) && is_paused(),
            "it is still paused"
        );
    }

    #[test]
    fn failed_pause_keeps_other_pending_orders() {
        let control = PauseControl::new();
        let is_paused = || control.order.borrow().pause.is_some();
        let (first, failed) = (control.pause(None), control.pause(None));
        assert!(
            control.withdraw_order(failed) && is_paused(),
            "the first still waits"
        );
        assert!(control.withdraw_order(first) && !is_paused());
    }
}
