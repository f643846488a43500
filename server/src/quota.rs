//! Quotas of memory or slots, which the clients share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{lock, peer::PeerKey};

/// An amount that clients share. Each client can reserve a part.
#[derive(Debug)]
pub(crate) struct Quota {
    /// The amount for all clients together.
    pub(crate) total: usize,
    /// The amount that each client has reserved.
    reserved: Mutex<HashMap<PeerKey, usize>>,
}

/// A reserved part of a quota, which is released when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    quota: Arc<Quota>,
    who: PeerKey,
    amount: usize,
}

impl Quota {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            reserved: Mutex::default(),
        })
    }

    /// Reserves an amount for a client. Returns `None` if less is free, or if `is_fair` returns
    /// `false`. The arguments of `is_fair` are the amount that the client would then have, and the
    /// amount that is free now.
    pub(crate) fn try_reserve(
        self: &Arc<Self>,
        who: PeerKey,
        amount: usize,
        is_fair: impl FnOnce(usize, usize) -> bool,
    ) -> Option<Reservation> {
        let mut reserved = lock::lock(&self.reserved);
        let free = self.total - reserved.values().sum::<usize>();
        let of_client = reserved.get(&who).copied().unwrap_or_default() + amount;
        if amount > free || !is_fair(of_client, free) {
            return None;
        }
        reserved.insert(who, of_client);
        Some(Reservation {
            quota: Arc::clone(self),
            who,
            amount,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = lock::lock(&self.quota.reserved);
        if let Some(of_client) = reserved.get_mut(&self.who) {
            *of_client -= self.amount;
            if *of_client == 0 {
                reserved.remove(&self.who);
            }
        }
    }
}
