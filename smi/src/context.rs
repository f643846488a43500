//! The data from which all forms of output are generated: the driver, the GPUs, and the time. A
//! cache keeps the driver's answers.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
};

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery};
use jiff::Zoned;

/// The driver to query, the selected GPUs, and the current time.
pub(crate) struct Context<'a> {
    pub(crate) driver: &'a dyn QueryBackend,
    /// The NVML indices of the selected GPUs, in ascending order.
    pub(crate) gpus: &'a [u32],
    pub(crate) count: u32,
    pub(crate) now: Zoned,
}

impl Context<'_> {
    pub(crate) fn run_system_query(&self, query: SystemQuery) -> Answer {
        self.driver.answer_system(query)
    }

    /// Returns the newest CUDA version that the driver supports, for example `13.0`.
    pub(crate) fn cuda_version(&self) -> Result<String, Code> {
        let version = self
            .run_system_query(SystemQuery::CudaVersion)?
            .number_at(0)
            .ok_or(Code::NOT_SUPPORTED)?;
        Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
    }

    pub(crate) fn run_query(&self, gpu: u32, query: Query) -> Answer {
        self.driver.answer_query(Subject::from_gpu(gpu), query)
    }

    /// Calls `work` for every selected GPU, and returns the results in the order of the GPUs. Each
    /// GPU is processed on its own thread, because driver calls are slow.
    pub(crate) fn map_gpus<T: Send>(&self, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
        if self.gpus.len() == 1 || self.driver.answers_from_memory() {
            return self.gpus.iter().map(|gpu| work(*gpu)).collect();
        }
        let work = &work;
        thread::scope(|scope| {
            let started: Vec<_> = self
                .gpus
                .iter()
                .map(|gpu| scope.spawn(move || work(*gpu)))
                .collect();
            started
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    }
}

/// A cache of query answers. Several cells or lines that need the same answer cost only one driver
/// call.
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
    use std::sync::atomic::{AtomicU32, Ordering};

    use gpumon_probe::vendor::nvml::query::Value;

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
