//! A limit on the number of requests that are being passed on, because each request needs a
//! connection to a node.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{lock, peer::PeerKey};

/// A limited number of slots. A single client gets at most a quarter of them.
#[derive(Debug)]
pub(super) struct SlotPool {
    most: usize,
    taken: Mutex<HashMap<PeerKey, usize>>,
}

/// An occupied slot, which is released when dropped.
#[derive(Debug)]
pub(super) struct PoolSlot {
    places: Arc<SlotPool>,
    who: PeerKey,
}

impl SlotPool {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// Returns a slot, or `None` if no slot is free for this client.
    pub(super) fn take(self: &Arc<Self>, who: PeerKey) -> Option<PoolSlot> {
        let mut taken = lock::lock(&self.taken);
        let own = taken.get(&who).copied().unwrap_or_default();
        if own >= self.most.div_ceil(4) || taken.values().sum::<usize>() >= self.most {
            return None;
        }
        taken.insert(who, own + 1);
        Some(PoolSlot {
            places: Arc::clone(self),
            who,
        })
    }
}

impl Drop for PoolSlot {
    fn drop(&mut self) {
        let mut taken = lock::lock(&self.places.taken);
        if let Some(own) = taken.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_slots_to_other_clients() {
        let places = SlotPool::new(8);
        let of = |uid| places.take(PeerKey::User(uid));
        let mut held = vec![of(1).unwrap(), of(1).unwrap()];
        assert!(of(1).is_none());
        for uid in 2..5 {
            held.extend([of(uid).unwrap(), of(uid).unwrap()]);
        }
        assert!(of(5).is_none(), "all are taken");
        held.remove(0);
        assert!(of(1).is_some());
        drop(held);
        assert!(places.taken.lock().unwrap().is_empty());
    }
}
