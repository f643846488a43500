//! Workloads whose result has an element for each of the input's.

use std::marker::PhantomData;

use super::{
    copied::Copied,
    on_cpu::{OnCpu, check},
    on_cuda::on_cuda,
    operations::{self, Operation},
    prelude::*,
};

const DTYPES: &[Dtype] = &[Dtype::Fp32, Dtype::Fp64];
const BOTH: &[Backend] = &[Backend::Cuda, Backend::Cpu];

/// An array is so large on a GPU, where there is room: large enough that starting and ending do not show.
const ARRAY_BYTES: u64 = 1 << 30;
/// And at least so large on a CPU.
const HOST_ARRAY_BYTES: u64 = 64 << 20;
/// Four times the cache: what is read is not in there any more.
const CACHES: u64 = 4;
/// All arrays of a workload take no more than this part of what may be taken.
const PART: u64 = 8;

pub(super) struct Elementwise<Op> {
    about: About,
    /// `None` where arrays are to be larger than any cache.
    usual_elements: Option<u64>,
    way: Way,
    operation: PhantomData<fn() -> Op>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// On a GPU, whose memory has the arrays, or on all threads of the CPU.
    There,
    /// On a GPU, from the host's pinned memory and back to it.
    Pinned,
    /// The same with memory as any program has it.
    Pageable,
    /// On one thread of the CPU.
    OneThread,
}

const fn stream<Op>(
    id: &'static str,
    does: &'static str,
    teaches: &'static str,
) -> Elementwise<Op> {
    new(id, does, teaches, None, Way::There)
}

const fn new<Op>(
    id: &'static str,
    does: &'static str,
    teaches: &'static str,
    usual_elements: Option<u64>,
    way: Way,
) -> Elementwise<Op> {
    let (backends, bound) = match way {
        Way::There => (BOTH, Bound::Memory),
        Way::Pinned | Way::Pageable => (BOTH.split_at(1).0, Bound::Link),
        Way::OneThread => (BOTH.split_at(1).1, Bound::Compute),
    };
    let about = About {
        id,
        does,
        teaches,
        dtypes: DTYPES,
        backends,
        bound,
        extent: Extent::Elements,
    };
    Elementwise {
        about,
        usual_elements,
        way,
        operation: PhantomData,
    }
}

pub(super) static COPY: Elementwise<operations::Copy> = stream(
    "copy",
    "Copies an array to another (STREAM copy).",
    "This is the memory bandwidth that reads and writes share.",
);
pub(super) static SCALE: Elementwise<operations::Scale> = stream(
    "scale",
    "Multiplies each element of an array by a scalar (STREAM scale).",
    "One multiplication per element is hidden behind the memory traffic.",
);
pub(super) static ADD: Elementwise<operations::Add> = stream(
    "add",
    "Adds two large arrays (STREAM add).",
    "A third array adds half as much traffic, and half as much time.",
);
pub(super) static TRIAD: Elementwise<operations::Triad> = stream(
    "triad",
    "Adds an array and a multiple of another (STREAM triad).",
    "Two operations in one pass take the time of one; in separate passes they take twice that.",
);
pub(super) static WRITE: Elementwise<operations::Write> = stream(
    "write",
    "Writes the same value to every element of an array.",
    "Writing has another rate than reading; compare with `read`.",
);
pub(super) static VECTOR_ADD: Elementwise<operations::VectorAdd> = new(
    "vector-add",
    "Adds two vectors of 1000 elements, in blocks of 256 threads.",
    "So little work takes as long as a kernel launch: small arrays are no faster on a GPU.",
    Some(1000),
    Way::There,
);
pub(super) static TRIG: Elementwise<operations::Trig> = new(
    "trig",
    "Computes cos(x)^2 + sin(x)^2 of ten million elements.",
    "Functions that are expensive on a CPU cost a GPU little more than the memory traffic.",
    TRIG_ELEMENTS,
    Way::There,
);
pub(super) static TRIG_PINNED: Elementwise<operations::Trig> = new(
    "trig-pinned",
    "Copies ten million elements to the GPU, computes cos(x)^2 + sin(x)^2 there and copies the result back.",
    "The transfer over the bus takes many times longer than the computation, even from pinned memory.",
    TRIG_ELEMENTS,
    Way::Pinned,
);
pub(super) static TRIG_PAGEABLE: Elementwise<operations::Trig> = new(
    "trig-pageable",
    "The same as trig-pinned, from and to pageable host memory.",
    "NumPy arrays are pageable: each copy passes through host memory twice.",
    TRIG_ELEMENTS,
    Way::Pageable,
);
pub(super) static TRIG_SERIAL: Elementwise<operations::Trig> = new(
    "trig-serial",
    "Computes cos(x)^2 + sin(x)^2 on one thread of the CPU.",
    "Compared with `trig` on the CPU, it shows the speedup by several threads.",
    TRIG_ELEMENTS,
    Way::OneThread,
);
pub(super) static SQUARE: Elementwise<operations::Square> = new(
    "square",
    "Squares each of a million elements.",
    "The computation takes microseconds: the location of the data decides.",
    SQUARE_ELEMENTS,
    Way::There,
);
pub(super) static SQUARE_PINNED: Elementwise<operations::Square> = new(
    "square-pinned",
    "Copies a million elements to the GPU, squares them there and copies the result back.",
    "With so little work per element, the copies make a GPU no faster than a CPU.",
    SQUARE_ELEMENTS,
    Way::Pinned,
);
pub(super) static SQUARE_PAGEABLE: Elementwise<operations::Square> = new(
    "square-pageable",
    "The same as square-pinned, from and to pageable host memory.",
    "Squaring a NumPy array on a GPU and reading it back is slower than squaring it on the CPU.",
    SQUARE_ELEMENTS,
    Way::Pageable,
);
pub(super) static SQUARE_SERIAL: Elementwise<operations::Square> = new(
    "square-serial",
    "Squares a million elements on one thread of the CPU.",
    "One thread is as fast as several for an array that fits its caches.",
    SQUARE_ELEMENTS,
    Way::OneThread,
);

const TRIG_ELEMENTS: Option<u64> = Some(10_000_000);
const SQUARE_ELEMENTS: Option<u64> = Some(1_000_000);

/// The elements of arrays that no cache holds.
pub(super) fn larger_than_caches(backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
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

impl<Op: Operation> Workload for Elementwise<Op> {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
        self.usual_elements
            .unwrap_or_else(|| larger_than_caches(backend, dtype, budget))
    }

    fn cost(&self, size: Size) -> Cost {
        let bytes = size.bytes().saturating_mul(Op::SHAPE.inputs + 1);
        Cost {
            memory_bytes: bytes,
            host_bytes: if matches!(self.way, Way::Pinned | Way::Pageable) {
                bytes
            } else {
                0
            },
            moved_bytes: bytes,
            operations: size.n.saturating_mul(Op::SHAPE.operations),
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        match size.dtype {
            Dtype::Fp32 => self.ready::<f32>(gpu, size.n),
            Dtype::Fp64 => self.ready::<f64>(gpu, size.n),
            dtype => Err(self.about.no_such(dtype)),
        }
    }

    fn shared(&self, size: Size) -> Option<Shared> {
        match size.dtype {
            Dtype::Fp32 => self.shared_as::<f32>(size.n),
            Dtype::Fp64 => self.shared_as::<f64>(size.n),
            _ => None,
        }
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let is_alone = self.way == Way::OneThread;
        of_float!(self.about, size.dtype, |Float| OnCpu::<Op, Float>::new(
            size.n, is_alone
        ))
    }
}

impl<Op: Operation> Elementwise<Op> {
    fn shared_as<T: Real>(&self, elements: u64) -> Option<Shared> {
        let operation = beside::Operation {
            name: Op::SHAPE.framework?,
            dtype: T::DTYPE,
            shape: vec![elements],
            copies: matches!(self.way, Way::Pinned | Way::Pageable),
            one_thread: self.way == Way::OneThread,
            fused: true,
        };
        let check = move |bytes: &[u8]| check::<Op, T>(&from_bytes::<T>(bytes, elements), 0);
        let data = move || {
            let seeds = [SEED_A, SEED_B].into_iter().take(Op::SHAPE.inputs as usize);
            let input = |seed| to_bytes(&random::array(elements, |index| T::random(seed, index)));
            Data {
                inputs: seeds.map(input).collect(),
                check: Box::new(check),
            }
        };
        Some(Shared {
            operation,
            data: Box::new(data),
        })
    }

    fn ready<'gpu, T: Real>(
        &self,
        gpu: &'gpu Gpu,
        elements: u64,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        Ok(match self.way {
            Way::There => Box::new(on_cuda::<Op, T>(gpu, elements)?),
            Way::Pinned => Box::new(Copied::<Op, T>::new(gpu, elements, true)?),
            Way::Pageable => Box::new(Copied::<Op, T>::new(gpu, elements, false)?),
            Way::OneThread => {
                return Err(RunError::NotThere {
                    id: self.about.id,
                    backend: Backend::Cuda,
                });
            }
        })
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

    #[test]
    fn what_is_moved_is_counted_once_each_way() {
        let size = Size {
            n: 1000,
            dtype: Dtype::Fp32,
        };
        assert_eq!(
            [COPY.cost(size).moved_bytes, WRITE.cost(size).moved_bytes],
            [8000, 4000]
        );
        assert_eq!(
            (TRIAD.cost(size).moved_bytes, TRIAD.cost(size).operations),
            (12_000, 2000)
        );
    }
}
