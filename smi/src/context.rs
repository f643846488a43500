//! The data that output forms are generated from: the driver, the GPUs, and the time.

use std::thread;

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
        if self.gpus.len() == 1 || self.driver.is_quick() {
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
