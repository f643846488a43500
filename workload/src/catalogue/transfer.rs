//! Copies between host memory and device memory, in one direction or both at the same time, and
//! between the memory of two GPUs.

use super::prelude::*;
use crate::cuda::{PinnedMemory, Plain, Staging, Stream};

/// The number of copies in a run that measures the latency of a copy.
const COPIES_IN_CHAIN: u64 = 100;

pub(super) enum HostMemory<T> {
    Pinned(PinnedMemory),
    Pageable(Vec<T>, Staging),
}

impl<T: Plain + Default> HostMemory<T> {
    pub(super) fn new(gpu: &Gpu, elements: u64, is_pinned: bool) -> Result<Self, RunError> {
        Ok(if is_pinned {
            Self::Pinned(PinnedMemory::new(
                &gpu.context,
                elements * size_of::<T>() as u64,
            )?)
        } else {
            Self::Pageable(
                vec![T::default(); elements as usize],
                Staging::new(&gpu.context)?,
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
    pub(super) fn copy_to_device<'scope>(
        &'scope mut self,
        queue: &Queue<'_, 'scope>,
        to: &'scope DeviceMemory,
    ) -> Result<(), CudaError> {
        match self {
            Self::Pinned(memory) => queue.copy_to_device(to, memory.slice::<T>()),
            Self::Pageable(memory, staging) => queue.copy_to_device_staged(to, memory, staging),
        }
    }

    /// Copies all elements from the device.
    pub(super) fn copy_from_device<'scope>(
        &'scope mut self,
        queue: &Queue<'_, 'scope>,
        from: &'scope DeviceMemory,
    ) -> Result<(), CudaError> {
        match self {
            Self::Pinned(memory) => queue.copy_to_host(memory.slice_mut::<T>(), from, 0),
            Self::Pageable(memory, staging) => queue.copy_to_host_staged(memory, from, staging),
        }
    }
}

/// Creates words in host memory. `word` returns the word at an index. For copies to the device, it
/// returns random words. For copies from the device, it returns the complement of each word that
/// will arrive, so that the copy changes every word.
fn make_host_words(
    gpu: &Gpu,
    words: u64,
    is_pinned: bool,
    word: impl Fn(u64) -> u64 + Sync,
) -> Result<HostMemory<u64>, RunError> {
    let mut memory = HostMemory::new(gpu, words, is_pinned)?;
    fill_elements(memory.slice_mut(), word);
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
        copy_cost(size.word_count().saturating_mul(WORD_BYTES))
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let (words, to_device) = (size.word_count(), self.to_device);
        let host = make_host_words(gpu, words, self.is_pinned, |index| {
            let word = numbers::generate_bits(SEED_A, index);
            if to_device { word } else { !word }
        })?;
        let device = if to_device {
            gpu.allocate_poisoned(words * WORD_BYTES)?
        } else {
            gpu.allocate_random_words(words, SEED_A)?
        };
        prepare_work(
            (host, device),
            move |(host, device)| {
                gpu.run_timed(|queue| {
                    if to_device {
                        host.copy_to_device(queue, device)
                    } else {
                        host.copy_from_device(queue, device)
                    }
                })
            },
            move |(host, device)| {
                let check = make_random_check(SEED_A);
                Ok(if to_device {
                    gpu.check_memory_in_pieces(device, words, check)?
                } else {
                    check(host.slice(), 0)
                })
            },
        )
    }
}

/// The workload `both-pinned`. Its size is the number of bytes copied in each direction.
pub(super) struct BidirectionalCopy;

impl Program for BidirectionalCopy {
    fn cost_of(&self, size: Size) -> Cost {
        copy_cost(size.word_count().saturating_mul(2 * WORD_BYTES))
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let words = size.word_count();
        let from = make_host_words(gpu, words, true, |index| {
            numbers::generate_bits(SEED_A, index)
        })?;
        let to = make_host_words(gpu, words, true, |index| {
            !numbers::generate_bits(SEED_B, index)
        })?;
        let back = Stream::new(&gpu.context)?;
        let arrived = gpu.allocate_poisoned(words * WORD_BYTES)?;
        let sent = gpu.allocate_random_words(words, SEED_B)?;
        prepare_work(
            (arrived, to),
            move |(arrived, to)| {
                let elapsed = gpu.stream.run_timed_on_both(&back, |there, back| {
                    there.copy_to_device(arrived, from.slice())?;
                    back.copy_to_host(to.slice_mut(), &sent, 0)
                })?;
                Ok(elapsed.into())
            },
            move |(arrived, to)| {
                let there =
                    gpu.check_memory_in_pieces(arrived, words, make_random_check(SEED_A))?;
                Ok(there.merge(make_random_check(SEED_B)(to.slice(), 0)))
            },
        )
    }
}

/// Copies between the memory of two GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerCopy {
    OneWay,
    BothWays,
    /// The time of the smallest copy.
    Latency,
}

impl PeerCopy {
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::OneWay => "peer",
            Self::BothWays => "peer-both",
            Self::Latency => "peer-latency",
        }
    }
}

impl Program for PeerCopy {
    /// Returns the cost. The memory is that of one GPU; both GPUs use the same amount.
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.word_count().saturating_mul(WORD_BYTES);
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

    fn gpu_count(&self) -> usize {
        2
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let few = RunError::TooFewGpus {
            id: self.id(),
            needed: 2,
            found: 1,
        };
        let other = gpu.find_neighbor()?.ok_or(few)?.open()?;
        let budget = other.memory_budget()?;
        budget.check_bytes_fit(self.id(), self.cost_of(size).memory_bytes)?;
        gpu.context.enable_peer_access(&other.context)?;
        other.context.enable_peer_access(&gpu.context)?;
        let words = size.word_count();
        let bytes = words * WORD_BYTES;
        let sent = gpu.allocate_random_words(words, SEED_A)?;
        let arrived = other.allocate_poisoned(bytes)?;
        // The memory for copies in the other direction: the source on the other GPU, and the
        // destination on this one.
        let back = if *self == Self::BothWays {
            Some((
                other.allocate_random_words(words, SEED_B)?,
                gpu.allocate_poisoned(bytes)?,
            ))
        } else {
            None
        };
        let copies = if *self == Self::Latency {
            COPIES_IN_CHAIN
        } else {
            1
        };
        prepare_work(
            (arrived, back, other),
            move |(arrived, back, other)| {
                let elapsed = match back {
                    None => gpu.stream.run_timed(|queue| {
                        (0..copies).try_for_each(|_| queue.copy_between_devices(arrived, &sent))
                    })?,
                    Some((from, to)) => {
                        gpu.stream.run_timed_on_both(&other.stream, |there, back| {
                            there.copy_between_devices(arrived, &sent)?;
                            back.copy_between_devices(to, from)
                        })?
                    }
                };
                Ok(TimedRun::from(elapsed).divide_by(copies))
            },
            move |(arrived, back, other)| {
                let there =
                    other.check_memory_in_pieces(arrived, words, make_random_check(SEED_A))?;
                Ok(match back {
                    Some((_, to)) => there.merge(gpu.check_memory_in_pieces(
                        to,
                        words,
                        make_random_check(SEED_B),
                    )?),
                    None => there,
                })
            },
        )
    }
}
