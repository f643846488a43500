//! Everything that can be run.
//!
//! - [`elementwise`] are workloads whose result has an element for each of the input's, with [`operations`] and the two
//!   sides [`on_cuda`] and [`on_cpu`].
//! - [`matmul`] multiplies matrices, [`read`] takes in an array, [`transfer`] moves one between host and device, [`launch`] starts kernels.

mod batched;
mod elementwise;
mod launch;
mod matmul;
mod on_cpu;
mod on_cuda;
mod operations;
mod read;
mod transfer;

use crate::workload::Workload;

/// All workloads, in the order in which they are listed and run.
pub fn all() -> &'static [&'static dyn Workload] {
    &ALL
}

/// The workload of this name.
pub fn find(id: &str) -> Option<&'static dyn Workload> {
    ALL.iter().copied().find(|workload| workload.about().id == id)
}

static ALL: [&dyn Workload; 15] = [
    &elementwise::COPY,
    &elementwise::SCALE,
    &elementwise::ADD,
    &elementwise::TRIAD,
    &read::READ,
    &elementwise::WRITE,
    &transfer::TO_DEVICE_PINNED,
    &transfer::TO_DEVICE_PAGEABLE,
    &transfer::TO_HOST_PINNED,
    &transfer::TO_HOST_PAGEABLE,
    &matmul::MATMUL,
    &batched::MATMUL_BATCHED,
    &launch::LAUNCH_LATENCY,
    &elementwise::VECTOR_ADD,
    &elementwise::TRIG,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workload::{Backend, Extent, Size};

    #[test]
    fn names_are_unique_and_every_workload_explains_itself() {
        let ids: BTreeSet<_> = ALL.iter().map(|workload| workload.about().id).collect();
        assert_eq!(ids.len(), ALL.len());
        for workload in ALL {
            let about = workload.about();
            for sentence in [about.does, about.teaches] {
                assert!(sentence.ends_with('.') && sentence.len() > 20, "{}: {sentence}", about.id);
            }
            assert!(about.runs_on(Backend::Cuda), "{}", about.id);
            assert_eq!(find(about.id).unwrap().about().does, about.does);
        }
        assert!(find("frobnicate").is_none());
    }

    /// Odd sizes leave something over behind packs, chunks and blocks.
    #[test]
    fn everything_that_runs_on_the_cpu_is_right_there_and_says_so_only_after_it_ran() {
        let on_cpu = ALL.iter().filter(|workload| workload.about().runs_on(Backend::Cpu));
        for workload in on_cpu {
            let sizes = if workload.about().extent == Extent::Side { [1, 65] } else { [1, 100_003] };
            let types = workload.types_on(Backend::Cpu).iter();
            for (dtype, n) in types.flat_map(|dtype| sizes.map(|n| (*dtype, n))) {
                let id = workload.about().id;
                let mut work = workload.on_cpu(Size { n, dtype }).unwrap();
                assert!(!work.verify().unwrap().ok, "{id} has not run");
                let sample = work.run().unwrap();
                assert!(sample.device_us.is_none() && sample.host_us > 0.0, "{id}: {sample:?}");
                let found = work.verify().unwrap();
                let elements = if workload.about().extent == Extent::Side { n * n } else { n };
                assert!(found.ok && found.checked >= elements && found.checked % elements == 0, "{id}: {found:?}");
            }
        }
    }
}
