//! A limit on the number of requests that are passed on at a time, because each needs a connection
//! to a node.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{lock, peer::Who};

/// A limited number of places. A client gets at most a quarter.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: Mutex<HashMap<Who, usize>>,
}

/// A place that is taken, and released when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    who: Who,
}

impl Places {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// Returns a place, or `None` if there is none left for this client.
    pub(super) fn take(self: &Arc<Self>, who: Who) -> Option<Place> {
        let mut taken = lock::lock(&self.taken);
        let own = taken.get(&who).copied().unwrap_or_default();
        if own >= self.most.div_ceil(4) || taken.values().sum::<usize>() >= self.most {
            return None;
        }
        taken.insert(who, own + 1);
        Some(Place {
            places: Arc::clone(self),
            who,
        })
    }
}

impl Drop for Place {
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
    fn nobody_takes_the_places_of_others() {
        let places = Places::new(8);
        let of = |uid| places.take(Who::User(uid));
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
