//! Pointer chases: loads of which each says where the next one is.

use super::{elementwise::larger_than_caches, prelude::*};

const KERNELS: Code = ptx!("chase");
pub(super) static MEMORY: Chase = chase(
    "pointer-chase",
    "Follows pointers through an array that is larger than any cache: the latency of one load.",
    "A load from memory takes hundreds of nanoseconds. Other threads hide this latency.",
    true,
);
pub(super) static CACHE: Chase = chase(
    "pointer-chase-l2",
    "Follows pointers through an array that fits the last-level cache: the latency of one load.",
    "A load from the cache takes less than half the time of a load from memory.",
    false,
);

/// Loads of one run: as many as hide what starting it takes.
const STEPS: u64 = 1 << 14;
/// What a GPU moves at a time; each pointer has one of its own.
const LINE_BYTES: u64 = 128;
const LINE_WORDS: u64 = LINE_BYTES / 8;
/// Such a part of a cache is all in it, even where one half of the chip has only half of it near.
const PART_OF_CACHE: u64 = 8;
/// Where nobody knows how large the cache is.
const LEAST_BYTES: u64 = 1 << 20;
/// Somewhere other than any place.
const NOWHERE: u64 = u64::MAX;

pub(super) struct Chase {
    about: About,
    leaves_cache: bool,
}

const fn chase(
    id: &'static str,
    does: &'static str,
    teaches: &'static str,
    leaves_cache: bool,
) -> Chase {
    let about = About {
        id,
        does,
        teaches,
        dtypes: &[],
        backends: &[Backend::Cuda, Backend::Cpu],
        bound: Bound::Latency,
        extent: Extent::Elements,
    };
    Chase {
        about,
        leaves_cache,
    }
}

impl Workload for Chase {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, _: Backend, _: Dtype, budget: &MemoryBudget) -> u64 {
        if self.leaves_cache {
            // As large as for the CPU: a gigabyte of pointers takes longer to lay out than to follow.
            larger_than_caches(Backend::Cpu, Dtype::Bytes, budget)
        } else {
            (budget.cache_bytes / PART_OF_CACHE).max(LEAST_BYTES)
        }
    }

    fn cost(&self, size: Size) -> Cost {
        let bytes = lines(size).saturating_mul(LINE_BYTES);
        // Beside the array, the host keeps the way through it.
        Cost {
            memory_bytes: bytes,
            host_bytes: bytes.saturating_add(lines(size) * 4),
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let way = Way::random(lines(size));
        Ok(Box::new(OnCuda {
            gpu,
            kernel: gpu.kernel(KERNELS, "chase")?,
            pointers: gpu.upload(&way.pointers())?,
            place: gpu.poisoned(8)?,
            way,
        }))
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let way = Way::random(lines(size));
        Ok(Box::new(OnCpu {
            pointers: way.pointers(),
            place: NOWHERE,
            way,
        }))
    }
}

struct OnCuda<'gpu> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    pointers: DeviceMemory,
    place: DeviceMemory,
    way: Way,
}

impl Prepared for OnCuda<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            kernel,
            pointers,
            place,
            way,
        } = self;
        let start = way.advance() * LINE_WORDS;
        let arguments = [
            Argument::Out(place),
            Argument::In(pointers),
            Argument::U64(start),
            Argument::U64(STEPS),
        ];
        Ok(gpu
            .time(|queue| queue.launch(kernel, Grid::ONE, &arguments))?
            .of_one(STEPS))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let place: Vec<u64> = self.gpu.download(&self.place)?;
        Ok(self.way.check(place[0]))
    }
}

struct OnCpu {
    pointers: Vec<u64>,
    place: u64,
    way: Way,
}

impl Prepared for OnCpu {
    fn run(&mut self) -> Result<Sample, RunError> {
        let start = self.way.advance() * LINE_WORDS;
        Ok(Sample::on_cpu(|| {
            self.place = (0..STEPS).fold(start, |at, _| self.pointers[at as usize]);
        })
        .of_one(STEPS))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(self.way.check(self.place))
    }
}

/// A way through all lines that ends where it began, and where one is on it.
struct Way {
    next: Vec<u32>,
    at: u64,
}

impl Way {
    /// By Sattolo's exchanges: each line changes places with an earlier one, never with itself.
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

    /// The array with a pointer in the first word of each line.
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

    /// Goes as far as a run does, and says where that begins.
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

/// At least one.
fn lines(size: Size) -> u64 {
    size.bytes().div_ceil(LINE_BYTES).min(u64::from(u32::MAX))
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
    fn who_ends_elsewhere_is_found() {
        for chase in [&MEMORY, &CACHE] {
            let mut work = chase
                .on_cpu(Size {
                    n: 1_000_003,
                    dtype: Dtype::Bytes,
                })
                .unwrap();
            assert!(!work.verify().unwrap().ok, "it has not run");
            work.run().unwrap();
            work.run().unwrap();
            assert!(work.verify().unwrap().ok);
        }
        let mut way = Way::random(100);
        way.advance();
        assert!(!way.check((way.at + 1) % 100 * LINE_WORDS).ok);
    }
}
