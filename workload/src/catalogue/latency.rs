//! Latencies of launches and memory: `launch-latency` launches kernels, and a pointer chase loads
//! addresses that depend on each other.

use super::prelude::*;
use crate::{memory_budget::MemoryBudget, workload::elements_beyond_caches};

/// The number of loads in a run, large enough to make the launch time negligible.
const LOADS_PER_RUN: u64 = 1 << 14;
/// The number of bytes that a GPU loads at a time. Each pointer is in a separate line of this size.
const LINE_BYTES: u64 = 128;
const LINE_WORDS: u64 = LINE_BYTES / 8;
/// The size of the array is the size of the cache divided by this number. Such an array fits
/// completely into the cache, even if each half of the chip has only half of the cache nearby.
const CACHE_DIVISOR: u64 = 8;
/// The minimum size in bytes of an array in the cache, used if the size of the cache is unknown.
const MIN_CACHED_BYTES: u64 = 1 << 20;
/// A value that is never a position in the array.
const INVALID_POSITION: u64 = u64::MAX;

pub(super) struct PointerChase;

/// Returns the size of an array in memory. An array on a GPU has the same size as on the CPU,
/// because generating a gigabyte of pointers takes longer than following them.
pub(super) fn memory_array_bytes(_: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
    elements_beyond_caches(Backend::Cpu, dtype, budget)
}

pub(super) fn cached_array_bytes(_: Backend, _: Dtype, budget: &MemoryBudget) -> u64 {
    (budget.cache_bytes / CACHE_DIVISOR).max(MIN_CACHED_BYTES)
}

impl Program for PointerChase {
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = cache_line_count(size).saturating_mul(LINE_BYTES);
        // The host also stores the path through the array, which needs four bytes per line.
        Cost {
            memory_bytes: bytes,
            host_bytes: bytes.saturating_add(cache_line_count(size) * 4),
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let way = PointerPath::generate(cache_line_count(size));
        let kernel = gpu.load_kernel(ptx!("chase"), "chase")?;
        let pointers = gpu.copy_to_device(&way.to_pointer_array())?;
        prepare_work(
            (gpu.allocate_poisoned(8)?, way),
            move |(place, way)| {
                let start = way.advance_one_run() * LINE_WORDS;
                let arguments = [Out(place), In(&pointers), U64(start), U64(LOADS_PER_RUN)];
                let all =
                    gpu.run_timed(|queue| queue.launch(&kernel, Grid::SINGLE_THREAD, &arguments))?;
                Ok(all.divide_by(LOADS_PER_RUN))
            },
            move |(place, way)| Ok(way.check_position(gpu.copy_to_host::<u64>(place)?[0])),
        )
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        let way = PointerPath::generate(cache_line_count(size));
        let pointers = way.to_pointer_array();
        prepare_work(
            (INVALID_POSITION, way),
            move |(place, way)| {
                let start = way.advance_one_run() * LINE_WORDS;
                let all = TimedRun::time_on_cpu(|| {
                    *place = (0..LOADS_PER_RUN).fold(start, |at, _| pointers[at as usize]);
                });
                Ok(all.divide_by(LOADS_PER_RUN))
            },
            |(place, way)| Ok(way.check_position(*place)),
        )
    }
}

/// A cyclic path through all lines, and the current position on it.
struct PointerPath {
    next: Vec<u32>,
    at: u64,
}

impl PointerPath {
    /// Generates a random path with Sattolo's algorithm, in which each line is swapped with an
    /// earlier one, never with itself. The path is therefore a single cycle.
    fn generate(lines: u64) -> Self {
        let mut next: Vec<u32> = (0..lines as u32).collect();
        for line in (1..next.len()).rev() {
            next.swap(
                line,
                (numbers::generate_bits(SEED_A, line as u64) % line as u64) as usize,
            );
        }
        Self { next, at: 0 }
    }

    /// Returns the array, in which the first word of each line is a pointer.
    fn to_pointer_array(&self) -> Vec<u64> {
        let mut words = vec![INVALID_POSITION; self.next.len() * LINE_WORDS as usize];
        words
            .chunks_mut(LINE_WORDS as usize)
            .zip(&self.next)
            .for_each(|(line, next)| {
                line[0] = u64::from(*next) * LINE_WORDS;
            });
        words
    }

    /// Follows the path for the number of loads in a run. Returns the position at which the run
    /// started.
    fn advance_one_run(&mut self) -> u64 {
        let start = self.at;
        self.at = (0..LOADS_PER_RUN).fold(start, |at, _| u64::from(self.next[at as usize]));
        start
    }

    fn check_position(&self, place: u64) -> Verification {
        let found = compare_words(&[place], 0, |_| self.at * LINE_WORDS);
        Verification::from_joint_check(LOADS_PER_RUN, found.ok)
    }
}

/// Returns the number of lines of an array, which is at least one.
fn cache_line_count(size: Size) -> u64 {
    size.bytes().div_ceil(LINE_BYTES).min(u64::from(u32::MAX))
}

/// The number of kernels in a chain, large enough to make the time before and after the chain
/// negligible.
const CHAIN_KERNELS: u64 = 1000;

pub(super) struct LaunchLatency;

impl Program for LaunchLatency {
    fn cost_of(&self, _: Size) -> Cost {
        Cost {
            memory_bytes: 8,
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, _: Size) -> PreparedResult<'gpu> {
        // The state consists of a counter on the device, which counts runs, and the number of runs
        // that were launched.
        let state = (gpu.allocate_zeroed(8)?, 0);
        let kernels = gpu.load_kernels(ptx!("launch"), &["empty", "count"])?;
        prepare_work(
            state,
            move |(counter, runs)| {
                let [empty, count] = [&kernels[0], &kernels[1]];
                let chain = gpu.run_timed(|queue| {
                    (0..CHAIN_KERNELS)
                        .try_for_each(|_| queue.launch(empty, Grid::SINGLE_THREAD, &[]))
                })?;
                let host_us = gpu
                    .stream
                    .run(|queue| queue.launch(empty, Grid::SINGLE_THREAD, &[]))?;
                gpu.stream
                    .run(|queue| queue.launch(count, Grid::SINGLE_THREAD, &[Out(counter)]))?;
                *runs += 1;
                Ok(TimedRun {
                    host_us,
                    ..chain.divide_by(CHAIN_KERNELS)
                })
            },
            move |(counter, runs)| {
                let found = gpu.check_memory_in_pieces(counter, 1, |words: &[u64], first| {
                    compare_words(words, first, |_| *runs)
                })?;
                Ok(if *runs == 0 {
                    Verification::empty()
                } else {
                    found
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointer_path_visits_every_cache_line_once() {
        for lines in [1, 2, 1000] {
            let way = PointerPath::generate(lines);
            let mut met = vec![false; lines as usize];
            (0..lines).fold(0, |at, _| {
                met[at as usize] = true;
                way.next[at as usize]
            });
            assert!(met.iter().all(|met| *met), "{lines}");
        }
    }

    #[test]
    fn wrong_end_of_pointer_path_is_detected() {
        let mut work = PointerChase
            .prepare_cpu_run(Size {
                n: 1_000_003,
                dtype: Dtype::Bytes,
            })
            .unwrap();
        assert!(!work.verify().unwrap().ok, "it has not run");
        work.run().unwrap();
        work.run().unwrap();
        assert!(work.verify().unwrap().ok);
        let mut way = PointerPath::generate(100);
        way.advance_one_run();
        assert!(!way.check_position((way.at + 1) % 100 * LINE_WORDS).ok);
    }
}
