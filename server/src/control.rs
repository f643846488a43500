//! Whether there is to be a collector: what was asked for, and how far it has come.

use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use gpumon_probe::model::now_ms;
use tokio::{sync::watch, time::Instant};

use crate::lock;

/// Between the endpoints that pause and resume, and the supervisor that does it.
#[derive(Debug)]
pub(crate) struct Control {
    order: watch::Sender<Order>,
    /// Those that were neither carried out nor withdrawn, the oldest first.
    open: Mutex<Vec<Order>>,
    /// The newest order that was carried out.
    done: watch::Sender<Order>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Order {
    pub(crate) number: u64,
    /// `None` where there is to be a collector.
    pub(crate) pause: Option<Pause>,
}

/// A pause, which may end by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pause {
    pub(crate) until: Option<Instant>,
    /// The same for people.
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

    /// Asks for a pause, for so long or until it is resumed, and returns the order's number. The
    /// last word counts.
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

    /// Takes back the order with this number: what was refused must not happen later. What another
    /// still asks for, or else what was carried out last, is in force again. False where it is done
    /// by now.
    pub(crate) fn withdraw(&self, number: u64) -> bool {
        let mut is_open = false;
        self.order.send_if_modified(|order| {
            let mut open = self.open();
            let Some(place) = open.iter().position(|one| one.number == number) else {
                return false;
            };
            is_open = true;
            open.remove(place);
            // The last word counts, and this was not it.
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

    /// What was asked for last, and what will be.
    pub(crate) fn orders(&self) -> watch::Receiver<Order> {
        self.order.subscribe()
    }

    /// This order, and so every one before it, is done.
    pub(crate) fn mark_done(&self, order: Order) {
        let mut open = self.open();
        open.retain(|one| one.number > order.number);
        self.done.send_replace(order);
    }

    pub(crate) async fn wait_done(&self, number: u64) {
        // It fails only where the sender is gone, and that is here.
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
