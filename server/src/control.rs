//! Control of the collector: the requested state, and which requests were carried out.

use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use gpumon_probe::model::now_ms;
use tokio::{sync::watch, time::Instant};

use crate::lock;

/// The connection between the endpoints that pause and resume, and the supervisor.
#[derive(Debug)]
pub(crate) struct Control {
    order: watch::Sender<Order>,
    /// The orders that were neither carried out nor withdrawn, the oldest first.
    open: Mutex<Vec<Order>>,
    /// The newest order that was carried out.
    done: watch::Sender<Order>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Order {
    pub(crate) number: u64,
    /// The requested pause, or `None` if the collector should run.
    pub(crate) pause: Option<Pause>,
}

/// A pause with an optional end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pause {
    pub(crate) until: Option<Instant>,
    /// The end of the pause in milliseconds since 1970.
    pub(crate) resumes_ms: Option<u64>,
}

impl Control {
    pub(crate) fn new() -> Self {
        Self {
            order: watch::Sender::new(Order::default()),
            open: Mutex::default(),
            done: watch::Sender::new(Order::default()),
        }
    }

    /// Requests a pause for a time, or until it is resumed, and returns the number of the order.
    /// The last order wins.
    pub(crate) fn pause(&self, time: Option<Duration>) -> u64 {
        let pause = Pause {
            until: time.map(|time| Instant::now() + time),
            resumes_ms: time.map(|time| now_ms() + time.as_millis() as u64),
        };
        self.submit(Some(pause))
    }

    pub(crate) fn resume(&self) -> u64 {
        self.submit(None)
    }

    /// Withdraws an order that was refused, so that it is not carried out later. The last open
    /// order, or else the one that was carried out, is then valid again. Returns `false` if the
    /// order has already been carried out.
    pub(crate) fn withdraw(&self, number: u64) -> bool {
        let mut is_open = false;
        self.order.send_if_modified(|order| {
            let mut open = self.open();
            let Some(place) = open.iter().position(|one| one.number == number) else {
                return false;
            };
            is_open = true;
            open.remove(place);
            // A later order exists, which remains valid.
            if place < open.len() {
                return false;
            }
            let pause = open.last().unwrap_or(&self.done.borrow()).pause;
            *order = Order {
                number: order.number + 1,
                pause,
            };
            true
        });
        is_open
    }

    fn submit(&self, pause: Option<Pause>) -> u64 {
        let mut number = 0;
        self.order.send_modify(|order| {
            number = order.number + 1;
            *order = Order { number, pause };
            self.open().push(*order);
        });
        number
    }

    fn open(&self) -> MutexGuard<'_, Vec<Order>> {
        lock::lock(&self.open)
    }

    /// Returns the channel of orders.
    pub(crate) fn orders(&self) -> watch::Receiver<Order> {
        self.order.subscribe()
    }

    /// Marks an order and all earlier ones as carried out.
    pub(crate) fn mark_done(&self, order: Order) {
        let mut open = self.open();
        open.retain(|one| one.number > order.number);
        self.done.send_replace(order);
    }

    pub(crate) async fn wait_done(&self, number: u64) {
        // Waiting fails only if the sender is dropped, but `self` owns it.
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
    fn a_pause_that_failed_does_not_happen_later() {
        let control = Control::new();
        let is_paused = || control.order.borrow().pause.is_some();
        let failed = control.pause(None);
        assert!(control.withdraw(failed) && !is_paused());
        let (failed, too) = (control.pause(None), control.pause(None));
        assert!(
            control.withdraw(failed) && control.withdraw(too) && !is_paused(),
            "both failed"
        );
        let done = control.pause(None);
        control.mark_done(*control.order.borrow());
        assert!(!control.withdraw(done) && is_paused(), "it is done");
        let failed = control.resume();
        assert!(
            control.withdraw(failed) && is_paused(),
            "it is still paused"
        );
    }

    #[test]
    fn a_pause_that_failed_takes_no_other_with_it() {
        let control = Control::new();
        let is_paused = || control.order.borrow().pause.is_some();
        let (first, failed) = (control.pause(None), control.pause(None));
        assert!(
            control.withdraw(failed) && is_paused(),
            "the first still waits"
        );
        assert!(control.withdraw(first) && !is_paused());
    }
}
