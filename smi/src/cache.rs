//! A cache of query answers. Several cells or lines that need the same answer cost only one driver
//! call.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gpumon_probe::vendor::nvml::query::Answer;

/// The cached answers, by query.
pub(crate) struct Cache<Q> {
    /// A cell for each query. If two threads run the same query, the second waits for the first
    /// one's answer.
    cells: Mutex<HashMap<Q, Arc<OnceLock<Answer>>>>,
}

impl<Q> Default for Cache<Q> {
    fn default() -> Self {
        Self {
            cells: Mutex::default(),
        }
    }
}

impl<Q: Hash + Eq> Cache<Q> {
    /// Returns the cached answer to `query`, or calls `ask` and caches the result.
    pub(crate) fn get_or_query(&self, query: Q, ask: impl FnOnce() -> Answer) -> Answer {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = Arc::clone(cells.entry(query).or_default());
        drop(cells);
        cell.get_or_init(ask).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        thread,
    };

    use gpumon_probe::vendor::nvml::query::{Query, Value};

    use super::*;

    #[test]
    fn simultaneous_queries_share_one_call() {
        let (cache, calls) = (Cache::default(), AtomicU32::new(0));
        let ask = |query| {
            cache.get_or_query(query, || {
                Ok(Value::from_number(calls.fetch_add(1, Ordering::Relaxed)))
            })
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(Query::Name))).collect();
            for one in all {
                assert_eq!(one.join().unwrap(), Ok(Value::from_number(0)));
            }
        });
        assert_eq!(ask(Query::Serial), Ok(Value::from_number(1)));
    }
}
