//! Latencies: `launch-latency` launches kernels, and a pointer chase loads the address of the next
//! load.

use super::prelude::*;
use crate::{memory_budget::MemoryBudget, workload::larger_than_caches};

/// The number of loads in a run, large enough to hide the time of the launch.
const STEPS: u64 = 1 << 14;
/// The number of bytes that a GPU moves at a time. Each pointer is in a separate line of this size.
const LINE_BYTES: u64 = 128;
const LINE_WORDS: u64 = LINE_BYTES / 8;
/// The divisor of the cache size for an array that is completely in the cache, even if each half of
/// the chip has only half of the cache nearby.
const PART_OF_CACHE: u64 = 8;
/// The minimum size of an array in the cache, in case the size of the cache is unknown.
const LEAST_BYTES: u64 = 1 << 20;
/// A value that is no position in the array.
const NOWHERE: u64 = u64::MAX;

pub(super) struct Chase;

/// Returns the size of an array in memory. GPUs also use the size for the CPU, because a gigabyte
/// of pointers takes longer to generate than to follow.
pub(super) fn bytes_in_memory(_: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
    larger_than_caches(Backend::Cpu, dtype, budget)
}

pub(super) fn bytes_in_cache(_: Backend, _: Dtype, budget: &MemoryBudget) -> u64 {
    (budget.cache_bytes / PART_OF_CACHE).max(LEAST_BYTES)
}

impl Program for Chase {
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = lines(size).saturating_mul(LINE_BYTES);
        // The host also stores the path through the array.
        Cost {
            memory_bytes: bytes,
            host_bytes: bytes.saturating_add(lines(size) * 4),
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        let way = Way::random(lines(size));
        let kernel = gpu.kernel(ptx!("chase"), "chase")?;
        let pointers = gpu.upload(&way.pointers())?;
        prepare_work(
            (gpu.poisoned(8)?, way),
            move |(place, way)| {
                let start = way.advance() * LINE_WORDS;
                let arguments = [Out(place), In(&pointers), U64(start), U64(STEPS)];
                let all = gpu.time(|queue| queue.launch(&kernel, Grid::ONE, &arguments))?;
                Ok(all.of_one(STEPS))
            },
            move |(place, way)| Ok(way.check(gpu.download::<u64>(place)?[0])),
        )
    }

    fn on_cpu(&self, size: Size) -> Ready<'static> {
        let way = Way::random(lines(size));
        let pointers = way.pointers();
        prepare_work(
            (NOWHERE, way),
            move |(place, way)| {
                let start = way.advance() * LINE_WORDS;
                let all = Sample::on_cpu(|| {
                    *place = (0..STEPS).fold(start, |at, _| pointers[at as usize]);
                });
                Ok(all.of_one(STEPS))
            },
            |(place, way)| Ok(way.check(*place)),
        )
    }
}

/// A cyclic path through all lines, with the current position.
struct Way {
    next: Vec<u32>,
    at: u64,
}

impl Way {
    /// Creates a random path with Sattolo's algorithm: each line is swapped with an earlier one,
    /// never with itself.
    fn random(lines: u64) -> Self {
        let mut next: Vec<u32> = (0..lines as u32).collect();
        for line in (1..next.len()).rev() {
            next.swap(
                line,
                (random::bits(SEED_A, line as u64) % line as u64) as usize,
            );
        }
        Self { next, at: 0 }
    }

    /// Returns the array, with a pointer in the first word of each line.
    fn pointers(&self) -> Vec<u64> {
        let mut words = vec![NOWHERE; self.next.len() * LINE_WORDS as usize];
        words
            .chunks_mut(LINE_WORDS as usize)
            .zip(&self.next)
            .for_each(|(line, next)| {
                line[0] = u64::from(*next) * LINE_WORDS;
            });
        words
    }

    /// Follows the path for the length of a run, and returns its start.
    fn advance(&mut self) -> u64 {
        let start = self.at;
        self.at = (0..STEPS).fold(start, |at, _| u64::from(self.next[at as usize]));
        start
    }

    fn check(&self, place: u64) -> Verification {
        let found = compare_words(&[place], 0, |_| self.at * LINE_WORDS);
        Verification::for_all(STEPS, found.ok)
    }
}

/// Returns the number of lines, which is at least one.
fn lines(size: Size) -> u64 {
    size.bytes().div_ceil(LINE_BYTES).min(u64::from(u32::MAX))
}

/// The number of kernels in a chain, large enough to make the time before and after the chain
/// negligible.
const CHAIN: u64 = 1000;

pub(super) struct LaunchLatency;

impl Program for LaunchLatency {
    fn cost_of(&self, _: Size) -> Cost {
        Cost {
            memory_bytes: 8,
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, _: Size) -> Ready<'gpu> {
        // The state is the number of runs counted by the device, and the actual number.
        let state = (gpu.zeroed(8)?, 0);
        let kernels = gpu.load_kernels(ptx!("launch"), &["empty", "count"])?;
        prepare_work(
            state,
            move |(counter, runs)| {
                let [empty, count] = [&kernels[0], &kernels[1]];
                let chain = gpu.time(|queue| {
                    (0..CHAIN).try_for_each(|_| queue.launch(empty, Grid::ONE, &[]))
                })?;
                let host_us = gpu
                    .stream
                    .run(|queue| queue.launch(empty, Grid::ONE, &[]))?;
                gpu.stream
                    .run(|queue| queue.launch(count, Grid::ONE, &[Out(counter)]))?;
                *runs += 1;
                Ok(Sample {
                    host_us,
                    ..chain.of_one(CHAIN)
                })
            },
            move |(counter, runs)| {
                let found = gpu.check(counter, 1, |words: &[u64], first| {
                    compare_words(words, first, |_| *runs)
                })?;
                Ok(if *runs == 0 {
                    Verification::nothing()
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
    fn a_way_meets_every_line_once() {
        for lines in [1, 2, 1000] {
            let way = Way::random(lines);
            let mut met = vec![false; lines as usize];
            (0..lines).fold(0, |at, _| {
                met[at as usize] = true;
                way.next[at as usize]
            });
            assert!(met.iter().all(|met| *met), "{lines}");
        }
    }

    #[test]
    fn wrong_end_of_path_is_found() {
        let mut work = Chase
            .on_cpu(Size {
                n: 1_000_003,
                dtype: Dtype::Bytes,
            })
            .unwrap();
        assert!(!work.verify().unwrap().ok, "it has not run");
        work.run().unwrap();
        work.run().unwrap();
        assert!(work.verify().unwrap().ok);
        let mut way = Way::random(100);
        way.advance();
        assert!(!way.check((way.at + 1) % 100 * LINE_WORDS).ok);
    }
}
