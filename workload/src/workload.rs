//! The definition of a workload.

use std::time::Instant;

use serde::Serialize;

use crate::{
    beside::Shared,
    cuda::Elapsed,
    error::RunError,
    gpu::Gpu,
    memory_budget::MemoryBudget,
    protocol::{Backend, Bound, Cost, Dtype, Extent, KernelUse, Shape, Verification},
};

/// The size of a word. Data is copied in whole words.
pub(crate) const WORD_BYTES: u64 = 8;

/// The size of an array on a GPU with enough memory, so that the time to start and end is
/// negligible.
const ARRAY_BYTES: u64 = 1 << 30;
/// The size of an array on a CPU with small caches.
const HOST_ARRAY_BYTES: u64 = 64 << 20;
/// The minimum size of an array in relation to the cache. With this factor, the cache no longer
/// contains data when it is read again.
const CACHES: u64 = 4;
/// The divisor of the usable memory that limits the size of an array, so that all arrays of a
/// workload fit.
const PART: u64 = 8;

/// A workload of the catalogue.
pub(crate) struct Workload {
    pub(crate) about: About,
    pub(crate) usual: UsualSize,
    pub(crate) program: &'static dyn Program,
}

/// The size of a workload if none is requested.
pub(crate) enum UsualSize {
    /// A number of elements, rows or repetitions.
    Count(u64),
    /// The number of elements that makes arrays larger than all caches.
    LargerThanCaches,
    /// A number of bytes, and the divisor of the usable memory that limits it.
    Bytes(u64, u64),
    Computed(fn(Backend, Dtype, &MemoryBudget) -> u64),
}

/// Work that is ready to run, or the error of preparing it.
pub(crate) type Ready<'gpu> = Result<Box<dyn Prepared + 'gpu>, RunError>;

/// The code of a workload for a GPU, the CPU, or both, depending on its entry in the catalogue.
pub(crate) trait Program: Sync {
    fn cost_of(&self, size: Size) -> Cost;

    /// Returns the memory in use on the CPU, including the check.
    fn cpu_bytes(&self, size: Size) -> u64 {
        self.cost_of(size).memory_bytes
    }

    /// Returns the types that all run if none is requested, the usual one first; `None` if only the
    /// usual one runs.
    fn each_type(&self, _: Backend) -> Option<&'static [Dtype]> {
        None
    }

    /// Checks that a GPU supports a type.
    fn check_device(&self, _: &Gpu, _: Dtype) -> Result<(), RunError> {
        Ok(())
    }

    /// Returns the number of GPUs in use: the given one, and those after it.
    fn gpus(&self) -> usize {
        1
    }

    /// Prepares a run on a GPU with random inputs and poisoned outputs.
    fn on_cuda<'gpu>(&self, _: &'gpu Gpu, _: Size) -> Ready<'gpu> {
        unreachable!("the catalogue has it on the CPU alone");
    }

    /// Prepares a run with NVIDIA's library for comparison, with the same inputs and the same
    /// check.
    fn on_cublas<'gpu>(&self, _: &'gpu Gpu, _: Size) -> Option<Ready<'gpu>> {
        None
    }

    /// Prepares a run on the CPU with random inputs and poisoned outputs.
    fn on_cpu(&self, _: Size) -> Ready<'static> {
        unreachable!("the catalogue has it on GPUs alone");
    }

    /// Returns rows, columns and depth if they are not all equal.
    fn shape(&self) -> Option<Shape> {
        None
    }

    /// Returns the data for frameworks that have the same operation; `None` if no framework has it.
    fn shared_operation(&self, _: Size) -> Option<Shared> {
        None
    }
}

pub(crate) trait Prepared {
    fn run(&mut self) -> Result<Sample, RunError>;

    /// Returns the kernel in use if there are several to choose from.
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
    Run: FnMut(&mut State) -> Result<Sample, RunError>,
    Verify: FnMut(&mut State) -> Result<Verification, RunError>,
{
    fn run(&mut self) -> Result<Sample, RunError> {
        (self.run)(&mut self.state)
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        (self.verify)(&mut self.state)
    }
}

/// Returns work with runs that write into `state`, which is then verified.
#[expect(
    clippy::unnecessary_wraps,
    reason = "workloads end their preparation with it"
)]
pub(crate) fn prepare_work<'gpu, State: 'gpu>(
    state: State,
    run: impl FnMut(&mut State) -> Result<Sample, RunError> + 'gpu,
    verify: impl FnMut(&mut State) -> Result<Verification, RunError> + 'gpu,
) -> Ready<'gpu> {
    Ok(Box::new(Work { state, run, verify }))
}

/// Returns work on the CPU, timed by the host's clock.
pub(crate) fn prepare_on_cpu<State: 'static>(
    state: State,
    run: impl Fn(&mut State) + 'static,
    verify: impl Fn(&State) -> Verification + 'static,
) -> Ready<'static> {
    prepare_work(
        state,
        move |state| Ok(Sample::on_cpu(|| run(state))),
        move |state| Ok(verify(state)),
    )
}

/// The description of a workload.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct About {
    /// The name as typed by users.
    pub id: &'static str,
    /// A description in one sentence.
    pub does: &'static str,
    /// The lesson of the workload, in one sentence.
    pub teaches: &'static str,
    /// The supported types of numbers, the usual one first; empty if the workload only moves bytes,
    /// or has no data.
    pub dtypes: &'static [Dtype],
    /// The backends that it runs on.
    pub backends: &'static [Backend],
    /// The resource that limits its speed.
    pub bound: Bound,
    /// The quantity that its size counts.
    pub extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// The number of elements of each array, or of rows of each square matrix, depending on
    /// [`About::extent`].
    pub n: u64,
    /// The type of each element.
    pub dtype: Dtype,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// The time by the device's clock; `None` on the CPU, which has only the host's clock.
    pub device_us: Option<f64>,
    /// The time by the host's clock, from the first call until all work was done.
    pub host_us: f64,
}

impl Sample {
    pub(crate) fn on_cpu(work: impl FnOnce()) -> Self {
        let begun = Instant::now();
        work();
        Self {
            device_us: None,
            host_us: begun.elapsed().as_secs_f64() * 1e6,
        }
    }

    /// Returns the time of a single one of `of` equal operations.
    pub(crate) fn of_one(self, of: u64) -> Self {
        let of = of as f64;
        Self {
            device_us: self.device_us.map(|us| us / of),
            host_us: self.host_us / of,
        }
    }
}

impl From<Elapsed> for Sample {
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

    /// Returns the size of an array in 64-bit words. Words of this size are long enough to differ
    /// from their neighbors.
    pub(crate) fn words(self) -> u64 {
        self.bytes().div_ceil(WORD_BYTES)
    }
}

impl Workload {
    /// Returns the size if none is requested.
    pub(crate) fn usual_n(&self, backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
        match self.usual {
            UsualSize::Count(count) => count,
            UsualSize::LargerThanCaches => larger_than_caches(backend, dtype, budget),
            UsualSize::Bytes(bytes, part) => {
                bytes.min(budget.usable_bytes() / part).max(WORD_BYTES)
            }
            UsualSize::Computed(compute) => compute(backend, dtype, budget),
        }
    }

    /// Returns the types that run on a backend, the usual one first.
    pub(crate) fn types_on(&self, backend: Backend) -> &'static [Dtype] {
        self.program.each_type(backend).unwrap_or(self.about.dtypes)
    }
}

/// Returns the number of elements that makes arrays larger than all caches.
pub(crate) fn larger_than_caches(backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
    let wanted = match backend {
        Backend::Cuda => ARRAY_BYTES,
        Backend::Cpu => HOST_ARRAY_BYTES,
    };
    let bytes = wanted
        .max(CACHES * budget.cache_bytes)
        .min(budget.usable_bytes() / PART);
    // The number is a multiple of what any machine moves at a time.
    (bytes / dtype.bytes() / 1024 * 1024).max(1024)
}

impl About {
    pub fn runs_on(&self, backend: Backend) -> bool {
        self.backends.contains(&backend)
    }

    /// Returns the type that is used if none is requested.
    pub fn usual_dtype(&self) -> Dtype {
        self.dtypes.first().copied().unwrap_or(Dtype::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_hide_from_caches_and_leave_room() {
        let mib = 1 << 20;
        let budget = |free, cache| MemoryBudget {
            place: "here".to_owned(),
            free_bytes: free * mib,
            total_bytes: 32_768 * mib,
            cache_bytes: cache * mib,
            is_shared: false,
        };
        let bytes = |backend, budget: &MemoryBudget| {
            larger_than_caches(backend, Dtype::Fp64, budget) * 8 / mib
        };
        assert_eq!(bytes(Backend::Cuda, &budget(32_768, 50)), 1024);
        assert_eq!(bytes(Backend::Cpu, &budget(32_768, 100)), 400);
        assert_eq!(bytes(Backend::Cpu, &budget(32_768, 2)), 64);
        assert!(bytes(Backend::Cuda, &budget(4_983, 50)) * PART <= 4_000);
    }
}
