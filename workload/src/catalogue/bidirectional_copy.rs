//! `both-pinned`: copies between host and device, both ways at once.

use super::{copied::HostMemory, prelude::*};
use crate::cuda::Stream;

static ABOUT: About = About {
    id: "both-pinned",
    does: "Copies pinned host memory to the device, and other device memory to the host at the same time.",
    teaches: "PCIe is full duplex: copies in opposite directions overlap, each at nearly its full rate.",
    dtypes: &[],
    backends: &[Backend::Cuda],
    bound: Bound::Link,
    extent: Extent::Elements,
};

/// Of each direction: so much that the time of one start does not show.
const USUAL_BYTES: u64 = 256 << 20;

pub(super) struct BidirectionalCopy;

impl Workload for BidirectionalCopy {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn usual_n(&self, _: Backend, _: Dtype, budget: &MemoryBudget) -> u64 {
        USUAL_BYTES.min(budget.usable_bytes() / 4).max(WORD_BYTES)
    }

    fn cost(&self, size: Size) -> Cost {
        let bytes = size.words().saturating_mul(2 * WORD_BYTES);
        Cost {
            memory_bytes: bytes,
            host_bytes: bytes,
            moved_bytes: bytes,
            operations: 0,
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let words = size.words();
        let (mut from, mut to) = (
            HostMemory::new(gpu, words, true)?,
            HostMemory::new(gpu, words, true)?,
        );
        fill(from.slice_mut(), |index| random::bits(SEED_A, index));
        // What no word is that comes from the device.
        fill(to.slice_mut(), |index| !random::bits(SEED_B, index));
        Ok(Box::new(Ready {
            gpu,
            back: gpu.context.stream()?,
            from,
            arrived: gpu.poisoned(words * WORD_BYTES)?,
            sent: gpu.random("random_u64", words, words * WORD_BYTES, SEED_B)?,
            to,
            words,
        }))
    }
}

struct Ready<'gpu> {
    gpu: &'gpu Gpu,
    /// The stream of the way back.
    back: Stream,
    from: HostMemory<u64>,
    arrived: DeviceMemory,
    sent: DeviceMemory,
    to: HostMemory<u64>,
    words: u64,
}

impl Prepared for Ready<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            back,
            from,
            arrived,
            sent,
            to,
            ..
        } = self;
        let elapsed = gpu.stream.time_both(back, |there, back| {
            there.copy_in(arrived, from.slice())?;
            back.copy_out(to.slice_mut(), sent, 0)
        })?;
        Ok(elapsed.into())
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let there = self
            .gpu
            .check(&self.arrived, self.words, compare_random(SEED_A))?;
        Ok(there.and(compare_random(SEED_B)(self.to.slice(), 0)))
    }
}
