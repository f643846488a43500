//! The input of an output form: the driver, the GPUs and the time.

use std::thread;

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery};
use jiff::Zoned;

/// The driver to ask, the selected GPUs, and the current time.
pub(crate) struct Context<'a> {
    pub(crate) driver: &'a dyn QueryBackend,
    /// The NVML indices of the selected GPUs, in ascending order.
    pub(crate) gpus: &'a [u32],
    pub(crate) count: u32,
    pub(crate) now: Zoned,
}

impl Context<'_> {
    pub(crate) fn system(&self, query: SystemQuery) -> Answer {
        self.driver.system(query)
    }

    /// Returns the newest CUDA version that the driver supports, such as `13.0`.
    pub(crate) fn cuda_version(&self) -> Result<String, Code> {
        let version = self
            .system(SystemQuery::CudaVersion)?
            .at(0)
            .ok_or(Code::NOT_SUPPORTED)?;
        Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
    }

    pub(crate) fn ask(&self, gpu: u32, query: Query) -> Answer {
        self.driver.about(Subject::gpu(gpu), query)
    }

    /// Calls `work` for every selected GPU, and returns the results in the order of the GPUs. Each
    /// GPU has its own thread, because driver calls are slow.
    pub(crate) fn each<T: Send>(&self, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
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
