//! What a workload is.

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

/// What is copied is copied in whole words.
pub(crate) const WORD_BYTES: u64 = 8;

/// An array is so large on a GPU, where there is room: large enough that starting and ending do not
/// show.
const ARRAY_BYTES: u64 = 1 << 30;
/// And at least so large on a CPU.
const HOST_ARRAY_BYTES: u64 = 64 << 20;
/// Four times the cache: what is read is not in there any more.
const CACHES: u64 = 4;
/// All arrays of a workload take no more than this part of what may be taken.
const PART: u64 = 8;

/// A row of the catalogue.
pub(crate) struct Workload {
    pub(crate) about: About,
    pub(crate) usual: UsualSize,
    pub(crate) program: &'static dyn Program,
}

/// The size of a workload where none is requested.
pub(crate) enum UsualSize {
    /// A number of elements, rows or times.
    Count(u64),
    /// Elements of arrays that no cache holds.
    LargerThanCaches,
    /// Bytes, and the part of the usable memory that they take at most.
    Bytes(u64, u64),
    Computed(fn(Backend, Dtype, &MemoryBudget) -> u64),
}

/// Work that is ready to run.
pub(crate) type Ready<'gpu> = Result<Box<dyn Prepared + 'gpu>, RunError>;

/// The code of a workload: for a GPU, for the CPU, or for both, by its row in the catalogue.
pub(crate) trait Program: Sync {
    fn cost_of(&self, size: Size) -> Cost;

    /// The memory in use on the CPU, with what the check takes.
    fn cpu_bytes(&self, size: Size) -> u64 {
        self.cost_of(size).memory_bytes
    }

    /// The types that all run where none is requested, the usual one first; `None` if only the
    /// usual one runs.
    fn each_type(&self, _: Backend) -> Option<&'static [Dtype]> {
        None
    }

    /// Checks that this GPU has what a type needs.
    fn check_device(&self, _: &Gpu, _: Dtype) -> Result<(), RunError> {
        Ok(())
    }

    /// The number of GPUs: the one that it is given, and those behind it.
    fn gpus(&self) -> usize {
        1
    }

    /// Prepares a GPU: inputs random, outputs poisoned.
    fn on_cuda<'gpu>(&self, _: &'gpu Gpu, _: Size) -> Ready<'gpu> {
        unreachable!("the catalogue has it on the CPU alone");
    }

    /// Prepares a GPU for NVIDIA's library, as a yardstick: the same inputs, the same check.
    fn on_cublas<'gpu>(&self, _: &'gpu Gpu, _: Size) -> Option<Ready<'gpu>> {
        None
    }

    /// Prepares the CPU: inputs random, outputs poisoned.
    fn on_cpu(&self, _: Size) -> Ready<'static> {
        unreachable!("the catalogue has it on GPUs alone");
    }

    /// Rows, columns and depth, where these are not all the same.
    fn shape(&self) -> Option<Shape> {
        None
    }

    /// The data for a framework that has the same operation; `None` if none has.
    fn shared_operation(&self, _: Size) -> Option<Shared> {
        None
    }
}

pub(crate) trait Prepared {
    fn run(&mut self) -> Result<Sample, RunError>;

    /// The kernel that does it, where there are several to choose from.
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

/// Work whose runs write into a state that is verified.
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

/// The same on the CPU, by the host's clock.
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

/// What a workload is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct About {
    /// Its name, as it is typed.
    pub id: &'static str,
    /// What it does, in a sentence.
    pub does: &'static str,
    /// What one learns from it, in a sentence.
    pub teaches: &'static str,
    /// The types of numbers that it has, the usual one first; none where it moves bytes or nothing.
    pub dtypes: &'static [Dtype],
    /// Where it runs.
    pub backends: &'static [Backend],
    /// What it is as fast as.
    pub bound: Bound,
    /// What its size is the number of.
    pub extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Elements of each array, or rows of each square matrix, as [`About::extent`] says.
    pub n: u64,
    /// Of each element.
    pub dtype: Dtype,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// By the device's clock; `None` on the CPU, which has no other clock than the host's.
    pub device_us: Option<f64>,
    /// By the host's clock, from the first call until all was done.
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

    /// How long one of so many took.
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

    /// The same in words of 64 bits, of which each can be told from its neighbors.
    pub(crate) fn words(self) -> u64 {
        self.bytes().div_ceil(WORD_BYTES)
    }
}

impl Workload {
    /// Returns the size where none is requested.
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

/// Returns the elements of arrays that no cache holds.
pub(crate) fn larger_than_caches(backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
    let wanted = match backend {
        Backend::Cuda => ARRAY_BYTES,
        Backend::Cpu => HOST_ARRAY_BYTES,
    };
    let bytes = wanted
        .max(CACHES * budget.cache_bytes)
        .min(budget.usable_bytes() / PART);
    // A whole number of what any machine moves at a time.
    (bytes / dtype.bytes() / 1024 * 1024).max(1024)
}

impl About {
    /// Whether it runs there.
    pub fn runs_on(&self, backend: Backend) -> bool {
        self.backends.contains(&backend)
    }

    /// The type that it has where nobody says.
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
