//! Copies between host memory and device memory, in one direction or both at once, and between the
//! memory of two GPUs.

use super::prelude::*;
use crate::cuda::{PinnedMemory, Plain, Staging};

/// The number of copies in a run that measures the latency of a copy.
const CHAIN: u64 = 100;

pub(super) enum HostMemory<T> {
    Pinned(PinnedMemory),
    Pageable(Vec<T>, Staging),
}

impl<T: Plain + Default> HostMemory<T> {
    pub(super) fn new(gpu: &Gpu, elements: u64, is_pinned: bool) -> Result<Self, RunError> {
        Ok(if is_pinned {
            Self::Pinned(gpu.context.pin(elements * size_of::<T>() as u64)?)
        } else {
            Self::Pageable(
                vec![T::default(); elements as usize],
                gpu.context.staging()?,
            )
        })
    }

    pub(super) fn slice(&self) -> &[T] {
        match self {
            Self::Pinned(memory) => memory.slice(),
            Self::Pageable(memory, _) => memory,
        }
    }

    pub(super) fn slice_mut(&mut self) -> &mut [T] {
        match self {
            Self::Pinned(memory) => memory.slice_mut(),
            Self::Pageable(memory, _) => memory,
        }
    }

    /// Copies all elements to the device.
    pub(super) fn copy_in<'scope>(
        &'scope mut self,
        queue: &Queue<'_, 'scope>,
        to: &'scope DeviceMemory,
    ) -> Result<(), CudaError> {
        match self {
            Self::Pinned(memory) => queue.copy_in(to, memory.slice::<T>()),
            Self::Pageable(memory, staging) => queue.copy_in_staged(to, memory, staging),
        }
    }

    /// Copies all elements from the device.
    pub(super) fn copy_out<'scope>(
        &'scope mut self,
        queue: &Queue<'_, 'scope>,
        from: &'scope DeviceMemory,
    ) -> Result<(), CudaError> {
        match self {
            Self::Pinned(memory) => queue.copy_out(memory.slice_mut::<T>(), from, 0),
            Self::Pageable(memory, staging) => queue.copy_out_staged(memory, from, staging),
        }
    }
}

/// Returns words in host memory: those of a seed, or their complements, which differ from every
/// word that the device sends.
fn host_words(
    gpu: &Gpu,
    words: u64,
    is_pinned: bool,
    word: impl Fn(u64) -> u64 + Sync,
) -> Result<HostMemory<u64>, RunError> {
    let mut memory = HostMemory::new(gpu, words, is_pinned)?;
    fill(memory.slice_mut(), word);
    Ok(memory)
}

/// Returns the cost of copies between host and device.
fn copy_cost(bytes: u64) -> Cost {
    Cost {
        memory_bytes: bytes,
        host_bytes: bytes,
        moved_bytes: bytes,
        operations: 0,
    }
}

pub(super) struct Transfer {
    pub(super) to_device: bool,
    pub(super) is_pinned: bool,
}

impl Program for Transfer {
    fn cost_of(&self, size: Size) -> Cost {
        copy_cost(size.words().saturating_mul(WORD_BYTES))
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        let (words, to_device) = (size.words(), self.to_device);
        let host = host_words(gpu, words, self.is_pinned, |index| {
            let word = random::bits(SEED_A, index);
            if to_device { word } else { !word }
        })?;
        let device = if to_device {
            gpu.poisoned(words * WORD_BYTES)?
        } else {
            gpu.random_words(words, SEED_A)?
        };
        prepare_work(
            (host, device),
            move |(host, device)| {
                gpu.time(|queue| {
                    if to_device {
                        host.copy_in(queue, device)
                    } else {
                        host.copy_out(queue, device)
                    }
                })
            },
            move |(host, device)| {
                let check = compare_random(SEED_A);
                Ok(if to_device {
                    gpu.check(device, words, check)?
                } else {
                    check(host.slice(), 0)
                })
            },
        )
    }
}

/// The workload `both-pinned`. Its size is that of each direction.
pub(super) struct BidirectionalCopy;

impl Program for BidirectionalCopy {
    fn cost_of(&self, size: Size) -> Cost {
        copy_cost(size.words().saturating_mul(2 * WORD_BYTES))
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        let words = size.words();
        let from = host_words(gpu, words, true, |index| random::bits(SEED_A, index))?;
        let to = host_words(gpu, words, true, |index| !random::bits(SEED_B, index))?;
        let back = gpu.context.stream()?;
        let arrived = gpu.poisoned(words * WORD_BYTES)?;
        let sent = gpu.random_words(words, SEED_B)?;
        prepare_work(
            (arrived, to),
            move |(arrived, to)| {
                let elapsed = gpu.stream.time_both(&back, |there, back| {
                    there.copy_in(arrived, from.slice())?;
                    back.copy_out(to.slice_mut(), &sent, 0)
                })?;
                Ok(elapsed.into())
            },
            move |(arrived, to)| {
                let there = gpu.check(arrived, words, compare_random(SEED_A))?;
                Ok(there.and(compare_random(SEED_B)(to.slice(), 0)))
            },
        )
    }
}

/// Copies between the memory of two GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    OneWay,
    BothWays,
    /// The time of the smallest copy.
    Latency,
}

impl Peer {
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::OneWay => "peer",
            Self::BothWays => "peer-both",
            Self::Latency => "peer-latency",
        }
    }
}

impl Program for Peer {
    /// Returns the cost, with the memory of each of the two GPUs.
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.words().saturating_mul(WORD_BYTES);
        let (memory_bytes, moved_bytes) = match self {
            Self::OneWay => (bytes, bytes),
            Self::BothWays => (bytes.saturating_mul(2), bytes.saturating_mul(2)),
            Self::Latency => (bytes, 0),
        };
        Cost {
            memory_bytes,
            moved_bytes,
            ..Cost::default()
        }
    }

    fn gpus(&self) -> usize {
        2
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        let few = RunError::TooFewGpus {
            id: self.id(),
            needed: 2,
            found: 1,
        };
        let other = gpu.neighbor()?.ok_or(few)?.open()?;
        let budget = other.memory_budget()?;
        budget.check(self.id(), self.cost_of(size).memory_bytes)?;
        gpu.context.enable_access(&other.context)?;
        other.context.enable_access(&gpu.context)?;
        let words = size.words();
        let bytes = words * WORD_BYTES;
        let sent = gpu.random_words(words, SEED_A)?;
        let arrived = other.poisoned(bytes)?;
        // The memory that is copied from the other GPU, and its destination.
        let back = if *self == Self::BothWays {
            Some((other.random_words(words, SEED_B)?, gpu.poisoned(bytes)?))
        } else {
            None
        };
        let copies = if *self == Self::Latency { CHAIN } else { 1 };
        prepare_work(
            (arrived, back, other),
            move |(arrived, back, other)| {
                let elapsed = match back {
                    None => gpu.stream.time(|queue| {
                        (0..copies).try_for_each(|_| queue.copy_across(arrived, &sent))
                    })?,
                    Some((from, to)) => gpu.stream.time_both(&other.stream, |there, back| {
                        there.copy_across(arrived, &sent)?;
                        back.copy_across(to, from)
                    })?,
                };
                Ok(Sample::from(elapsed).of_one(copies))
            },
            move |(arrived, back, other)| {
                let there = other.check(arrived, words, compare_random(SEED_A))?;
                Ok(match back {
                    Some((_, to)) => there.and(gpu.check(to, words, compare_random(SEED_B))?),
                    None => there,
                })
            },
        )
    }
}
