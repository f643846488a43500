//! Cache of answers, so that several cells or lines that need the same answer cost one call to the
//! driver.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gpumon_probe::vendor::nvml::query::Answer;

/// The answers so far, by query.
pub(crate) struct Cache<Q> {
    /// A cell for each query. If two threads ask the same query, the second waits for the answer to
    /// the first.
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
    /// Returns the cached answer, or calls `ask` and caches its answer.
    pub(crate) fn get_or_ask(&self, query: Q, ask: impl FnOnce() -> Answer) -> Answer {
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
    fn threads_that_ask_the_same_at_once_cost_one_call() {
        let (cache, calls) = (Cache::default(), AtomicU32::new(0));
        let ask = |query| {
            cache.get_or_ask(query, || {
                Ok(Value::number(calls.fetch_add(1, Ordering::Relaxed)))
            })
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(Query::Name))).collect();
            for one in all {
                assert_eq!(one.join().unwrap(), Ok(Value::number(0)));
            }
        });
        assert_eq!(ask(Query::Serial), Ok(Value::number(1)));
    }
}
