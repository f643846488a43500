//! The definition of a workload.

use std::time::Instant;

use serde::Serialize;

use crate::{
    cuda::Elapsed,
    error::RunError,
    frameworks::SharedOperation,
    gpu::Gpu,
    memory_budget::MemoryBudget,
    protocol::{Backend, Cost, Dtype, Extent, KernelUse, LimitingResource, Shape, Verification},
};

/// The size of a word in bytes. Data is copied in whole words.
pub(crate) const WORD_BYTES: u64 = 8;

/// The size in bytes of an array on a GPU with enough memory. It makes the time for starting and
/// ending a run negligible.
const GPU_ARRAY_BYTES: u64 = 1 << 30;
/// The size in bytes of an array on a CPU with small caches.
const CPU_ARRAY_BYTES: u64 = 64 << 20;
/// The minimum ratio of an array's size to the cache's size. With this ratio, an element is no
/// longer in the cache when it is read again.
const CACHE_FACTOR: u64 = 4;
/// The divisor of the usable memory. An array may use the resulting amount, so that all arrays of a
/// workload fit.
const ARRAY_DIVISOR: u64 = 8;

/// A workload of the catalog.
pub(crate) struct Workload {
    pub(crate) about: WorkloadDescription,
    pub(crate) usual: UsualSize,
    pub(crate) program: &'static dyn Program,
}

/// The size of a workload if none is requested.
pub(crate) enum UsualSize {
    /// A number of elements, rows or repetitions.
    Count(u64),
    /// The number of elements for which arrays are larger than all caches.
    LargerThanCaches,
    /// A number of bytes, and a divisor of the usable memory. The size is limited to the result of
    /// this division.
    Bytes(u64, u64),
    Computed(fn(Backend, Dtype, &MemoryBudget) -> u64),
}

/// Prepared work, or the error that occurred while preparing it.
pub(crate) type PreparedResult<'gpu> = Result<Box<dyn Prepared + 'gpu>, RunError>;

/// The code of a workload for a GPU, for the CPU, or for both. The workload's entry in the catalog
/// lists its backends.
pub(crate) trait Program: Sync {
    fn cost_of(&self, size: Size) -> Cost;

    /// Returns the memory used on the CPU in bytes, including memory for the check.
    fn cpu_bytes(&self, size: Size) -> u64 {
        self.cost_of(size).memory_bytes
    }

    /// Returns the types that are run if no type is requested. The usual type comes first. Returns
    /// `None` if only the usual type is run.
    fn default_types(&self, _: Backend) -> Option<&'static [Dtype]> {
        None
    }

    /// Checks that a GPU supports a number type.
    fn check_device(&self, _: &Gpu, _: Dtype) -> Result<(), RunError> {
        Ok(())
    }

    /// Returns the number of GPUs that the workload uses: the given GPU, and those that follow it.
    fn gpu_count(&self) -> usize {
        1
    }

    /// Prepares a run on a GPU with random inputs and poisoned outputs.
    fn prepare_cuda_run<'gpu>(&self, _: &'gpu Gpu, _: Size) -> PreparedResult<'gpu> {
        unreachable!("this workload runs only on the CPU");
    }

    /// Prepares a run with NVIDIA's cuBLAS for comparison, with the same inputs and the same check.
    /// Returns `None` if the workload has no such run.
    fn prepare_cublas_run<'gpu>(&self, _: &'gpu Gpu, _: Size) -> Option<PreparedResult<'gpu>> {
        None
    }

    /// Prepares a run on the CPU with random inputs and poisoned outputs.
    fn prepare_cpu_run(&self, _: Size) -> PreparedResult<'static> {
        unreachable!("this workload runs only on GPUs");
    }

    /// Returns the shape of a matrix product, if its rows, columns and depth are not all equal.
    fn shape(&self) -> Option<Shape> {
        None
    }

    /// Returns the operation with its data for other frameworks, or `None` if no other framework
    /// has the same operation.
    fn operation_for_frameworks(&self, _: Size) -> Option<SharedOperation> {
        None
    }
}

pub(crate) trait Prepared {
    fn run(&mut self) -> Result<TimedRun, RunError>;

    /// Returns the kernel in use, if there are several to choose from.
    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(None)
    }

    /// Checks every element of the last result against a reference of higher precision.
    fn verify(&mut self) -> Result<Verification, RunError>;
}

struct Work<State, Run, Verify> {
    state: State,
    run: Run,
    verify: Verify,
}

impl<State, Run, Verify> Prepared for Work<State, Run, Verify>
where
    Run: FnMut(&mut State) -> Result<TimedRun, RunError>,
    Verify: FnMut(&mut State) -> Result<Verification, RunError>,
{
    fn run(&mut self) -> Result<TimedRun, RunError> {
        (self.run)(&mut self.state)
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        (self.verify)(&mut self.state)
    }
}

/// Returns prepared work. `run` writes its results into `state`, and `verify` checks them.
#[expect(
    clippy::unnecessary_wraps,
    reason = "workloads call it as the last step of their preparation"
)]
pub(crate) fn prepare_work<'gpu, State: 'gpu>(
    state: State,
    run: impl FnMut(&mut State) -> Result<TimedRun, RunError> + 'gpu,
    verify: impl FnMut(&mut State) -> Result<Verification, RunError> + 'gpu,
) -> PreparedResult<'gpu> {
    Ok(Box::new(Work { state, run, verify }))
}

/// Returns prepared work on the CPU, which is timed by the host's clock.
pub(crate) fn prepare_cpu_work<State: 'static>(
    state: State,
    run: impl Fn(&mut State) + 'static,
    verify: impl Fn(&State) -> Verification + 'static,
) -> PreparedResult<'static> {
    prepare_work(
        state,
        move |state| Ok(TimedRun::time_on_cpu(|| run(state))),
        move |state| Ok(verify(state)),
    )
}

/// The description of a workload.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct WorkloadDescription {
    /// The workload's name, as typed by users.
    pub id: &'static str,
    /// A sentence that describes what the workload does.
    pub does: &'static str,
    /// The lesson that the workload teaches, in one sentence.
    pub teaches: &'static str,
    /// The supported number types, the usual type first. Empty if the workload only moves bytes, or
    /// has no data.
    pub dtypes: &'static [Dtype],
    /// The backends that the workload supports.
    pub backends: &'static [Backend],
    /// The resource that limits the workload's speed.
    pub bound: LimitingResource,
    /// The quantity that the workload's size counts.
    pub extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// The size of the workload, such as the number of elements of each array or of rows of each
    /// matrix. [`WorkloadDescription::extent`] states what is counted.
    pub n: u64,
    /// The number type of each element.
    pub dtype: Dtype,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimedRun {
    /// The time in microseconds, measured by the device's clock; `None` on the CPU, which has only
    /// the host's clock.
    pub device_us: Option<f64>,
    /// The time in microseconds, measured by the host's clock from the first call until all work
    /// was done.
    pub host_us: f64,
}

impl TimedRun {
    pub(crate) fn time_on_cpu(work: impl FnOnce()) -> Self {
        let begun = Instant::now();
        work();
        Self {
            device_us: None,
            host_us: begun.elapsed().as_secs_f64() * 1e6,
        }
    }

    /// Divides a time that covers `of` equal operations by `of`, which gives the time of one
    /// operation.
    pub(crate) fn divide_by(self, of: u64) -> Self {
        let of = of as f64;
        Self {
            device_us: self.device_us.map(|us| us / of),
            host_us: self.host_us / of,
        }
    }
}

impl From<Elapsed> for TimedRun {
    fn from(Elapsed { device_us, host_us }: Elapsed) -> Self {
        Self {
            device_us: Some(device_us),
            host_us,
        }
    }
}

impl Size {
    pub(crate) fn bytes(self) -> u64 {
        self.n.saturating_mul(self.dtype.bytes())
    }

    /// Returns the size of an array in 64-bit words. Two neighboring random words of this length
    /// are hardly ever equal.
    pub(crate) fn word_count(self) -> u64 {
        self.bytes().div_ceil(WORD_BYTES)
    }
}

impl Workload {
    /// Returns the size of the workload if none is requested.
    pub(crate) fn usual_size(&self, backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
        match self.usual {
            UsualSize::Count(count) => count,
            UsualSize::LargerThanCaches => elements_beyond_caches(backend, dtype, budget),
            UsualSize::Bytes(bytes, part) => {
                bytes.min(budget.usable_bytes() / part).max(WORD_BYTES)
            }
            UsualSize::Computed(compute) => compute(backend, dtype, budget),
        }
    }

    /// Returns the types that are run on a backend if none is requested, the usual type first.
    pub(crate) fn types_on(&self, backend: Backend) -> &'static [Dtype] {
        self.program
            .default_types(backend)
            .unwrap_or(self.about.dtypes)
    }
}

/// Returns the number of elements for which arrays are larger than all caches.
pub(crate) fn elements_beyond_caches(backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
    let wanted = match backend {
        Backend::Cuda => GPU_ARRAY_BYTES,
        Backend::Cpu => CPU_ARRAY_BYTES,
    };
    let bytes = wanted
        .max(CACHE_FACTOR * budget.cache_bytes)
        .min(budget.usable_bytes() / ARRAY_DIVISOR);
    // The number of elements is rounded down to a multiple of 1024. On every kind of machine, this
    // is a multiple of the number of elements that are moved at a time.
    (bytes / dtype.bytes() / 1024 * 1024).max(1024)
}

impl WorkloadDescription {
    pub fn runs_on(&self, backend: Backend) -> bool {
        self.backends.contains(&backend)
    }

    /// Returns the type that the workload uses if none is requested.
    pub fn usual_dtype(&self) -> Dtype {
        self.dtypes.first().copied().unwrap_or(Dtype::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmark_arrays_exceed_caches_and_fit_free_memory() {
        let mib = 1 << 20;
        let budget = |free, cache| MemoryBudget {
            place: "here".to_owned(),
            free_bytes: free * mib,
            total_bytes: 32_768 * mib,
            cache_bytes: cache * mib,
            is_shared: false,
        };
        let bytes = |backend, budget: &MemoryBudget| {
            elements_beyond_caches(backend, Dtype::Fp64, budget) * 8 / mib
        };
        assert_eq!(bytes(Backend::Cuda, &budget(32_768, 50)), 1024);
        assert_eq!(bytes(Backend::Cpu, &budget(32_768, 100)), 400);
        assert_eq!(bytes(Backend::Cpu, &budget(32_768, 2)), 64);
        assert!(bytes(Backend::Cuda, &budget(4_983, 50)) * ARRAY_DIVISOR <= 4_000);
    }
}
