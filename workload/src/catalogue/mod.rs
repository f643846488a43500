//! Everything that can be run.
//!
//! - [`elementwise`] are workloads whose result has an element for each of the input's, with [`operations`] and the two
//!   sides [`on_cuda`] and [`on_cpu`].
//!   [`copied`] brings the input and takes the result back, and [`golden_add`] has a result that anybody knows.
//! - [`matmul`] multiplies matrices, and [`batched`] many small ones.
//! - [`read`] takes in an array, and [`reduce`] adds up its numbers; [`transfer`] moves one between host and device, and
//!   [`bidirectional_copy`] two, both ways at once; [`peer`] moves one between GPUs.
//! - [`launch`] starts kernels, [`chase`] waits for loads, [`transcendental`] computes.
//! - [`selu`], [`matvec`], [`train`] and [`gram`] are small programs in several forms: operation by operation, as graphs,
//!   and in one kernel, out of [`chain`].
//! - [`prelude`] is what all of them are written with.

mod batched;
mod bidirectional_copy;
mod chain;
mod chase;
mod copied;
mod elementwise;
mod golden_add;
mod gram;
mod launch;
pub(crate) mod matmul;
mod matvec;
mod on_cpu;
mod on_cuda;
mod operations;
mod peer;
mod prelude;
mod read;
mod reduce;
mod selu;
mod train;
mod transcendental;
mod transfer;

pub(crate) use self::read::read_zeros;
use crate::workload::{About, Workload};

/// What all workloads are, in the order in which they are listed and run.
pub fn all() -> impl Iterator<Item = &'static About> {
    ALL.iter().map(|workload| workload.about())
}

pub(crate) fn find(id: &str) -> Option<&'static dyn Workload> {
    ALL.iter()
        .copied()
        .find(|workload| workload.about().id == id)
}

pub(crate) static ALL: &[&dyn Workload] = &[
    &elementwise::COPY,
    &elementwise::SCALE,
    &elementwise::ADD,
    &elementwise::TRIAD,
    &read::Read,
    &elementwise::WRITE,
    &transfer::TO_DEVICE_PINNED,
    &transfer::TO_DEVICE_PAGEABLE,
    &transfer::TO_HOST_PINNED,
    &transfer::TO_HOST_PAGEABLE,
    &matmul::MATMUL,
    &matmul::PINNED,
    &matmul::PAGEABLE,
    &batched::MatmulBatched,
    &launch::LaunchLatency,
    &elementwise::VECTOR_ADD,
    &elementwise::TRIG,
    &elementwise::TRIG_PINNED,
    &elementwise::TRIG_PAGEABLE,
    &elementwise::TRIG_SERIAL,
    &elementwise::SQUARE,
    &elementwise::SQUARE_PINNED,
    &elementwise::SQUARE_PAGEABLE,
    &elementwise::SQUARE_SERIAL,
    &golden_add::VectorAddGrid,
    &selu::PER_OP,
    &selu::GRAPH,
    &selu::FUSED,
    &matvec::LOOP,
    &matvec::GRAPH,
    &matvec::BATCHED,
    &train::PER_OP,
    &train::GRAPH,
    &train::FUSED,
    &gram::ONE_BY_ONE,
    &gram::LOGGED,
    &gram::BATCHED,
    &reduce::Reduce,
    &chase::MEMORY,
    &chase::CACHE,
    &transcendental::Transcendental,
    &bidirectional_copy::BidirectionalCopy,
    &peer::ONE_WAY,
    &peer::BOTH_WAYS,
    &peer::LATENCY,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        protocol::{Backend, Extent},
        workload::Size,
    };

    #[test]
    fn names_are_unique_and_every_workload_explains_itself() {
        let ids: BTreeSet<_> = ALL.iter().map(|workload| workload.about().id).collect();
        assert_eq!(ids.len(), ALL.len());
        for workload in ALL {
            let about = workload.about();
            for sentence in [about.does, about.teaches] {
                assert!(
                    sentence.ends_with('.') && sentence.len() > 20,
                    "{}: {sentence}",
                    about.id
                );
            }
            assert!(!about.backends.is_empty(), "{}", about.id);
            assert_eq!(find(about.id).unwrap().about().does, about.does);
        }
        assert!(find("frobnicate").is_none());
    }

    /// Odd sizes leave something over behind packs, chunks and blocks.
    #[test]
    fn everything_that_runs_on_the_cpu_is_right_there_and_says_so_only_after_it_ran() {
        let on_cpu = ALL
            .iter()
            .filter(|workload| workload.about().runs_on(Backend::Cpu));
        for workload in on_cpu {
            let about = workload.about();
            let sizes = match about.extent {
                Extent::Side => [1, 65],
                Extent::Times => [1, 7],
                Extent::Elements | Extent::Fixed => [1, 100_003],
            };
            let types = workload.types_on(Backend::Cpu).iter();
            for (dtype, n) in types.flat_map(|dtype| sizes.map(|n| (*dtype, n))) {
                let id = about.id;
                let mut work = workload.on_cpu(Size { n, dtype }).unwrap();
                assert!(!work.verify().unwrap().ok, "{id} has not run");
                let sample = work.run().unwrap();
                assert!(
                    sample.device_us.is_none() && sample.host_us > 0.0,
                    "{id}: {sample:?}"
                );
                let found = work.verify().unwrap();
                let is_all = match about.extent {
                    Extent::Elements => found.checked == n,
                    Extent::Side => found.checked >= n * n && found.checked % (n * n) == 0,
                    Extent::Times | Extent::Fixed => found.checked > 0,
                };
                assert!(found.ok && is_all, "{id} {dtype}: {found:?}");
            }
        }
    }
}
