//! Copies between the host's memory and a device's.

use super::{copied::HostMemory, prelude::*};

/// So much that the time of one start does not show.
const USUAL_BYTES: u64 = 256 << 20;

pub(super) static TO_DEVICE_PINNED: Transfer = transfer(
    "h2d-pinned",
    "Copies pinned host memory to the device.",
    "Pinned memory is transferred at the full rate of the bus.",
    Direction::ToDevice,
    true,
);
pub(super) static TO_DEVICE_PAGEABLE: Transfer = transfer(
    "h2d-pageable",
    "Copies pageable host memory to the device.",
    "Pageable memory is copied through pinned buffers: with all CPU threads nearly at the rate of the bus.",
    Direction::ToDevice,
    false,
);
pub(super) static TO_HOST_PINNED: Transfer = transfer(
    "d2h-pinned",
    "Copies device memory to pinned host memory.",
    "Results return at the full rate of the bus, a small part of the bandwidth of device memory.",
    Direction::ToHost,
    true,
);
pub(super) static TO_HOST_PAGEABLE: Transfer = transfer(
    "d2h-pageable",
    "Copies device memory to pageable host memory.",
    "A notebook that prints an array takes this path; the driver alone uses one CPU thread, and is several times slower.",
    Direction::ToHost,
    false,
);

pub(super) struct Transfer {
    about: About,
    direction: Direction,
    is_pinned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToDevice,
    ToHost,
}

const fn transfer(
    id: &'static str,
    does: &'static str,
    teaches: &'static str,
    direction: Direction,
    is_pinned: bool,
) -> Transfer {
    let about = About {
        id,
        does,
        teaches,
        dtypes: &[],
        backends: &[Backend::Cuda],
        bound: Bound::Link,
        extent: Extent::Elements,
    };
    Transfer {
        about,
        direction,
        is_pinned,
    }
}

impl Workload for Transfer {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, _: Backend, _: Dtype, budget: &MemoryBudget) -> u64 {
        USUAL_BYTES.min(budget.usable_bytes() / 2).max(WORD_BYTES)
    }

    fn cost(&self, size: Size) -> Cost {
        let bytes = size.words().saturating_mul(WORD_BYTES);
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
        let mut host = HostMemory::new(gpu, words, self.is_pinned)?;
        let device = match self.direction {
            Direction::ToDevice => {
                fill(host.slice_mut(), |index| random::bits(SEED_A, index));
                gpu.poisoned(words * WORD_BYTES)?
            }
            Direction::ToHost => {
                // What no word is that comes from the device.
                fill(host.slice_mut(), |index| !random::bits(SEED_A, index));
                gpu.random("random_u64", words, words * WORD_BYTES, SEED_A)?
            }
        };
        Ok(Box::new(Ready {
            gpu,
            host,
            device,
            words,
            direction: self.direction,
        }))
    }
}

struct Ready<'gpu> {
    gpu: &'gpu Gpu,
    host: HostMemory<u64>,
    device: DeviceMemory,
    words: u64,
    direction: Direction,
}

impl Prepared for Ready<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            host,
            device,
            direction,
            ..
        } = self;
        gpu.time(|queue| match direction {
            Direction::ToDevice => host.copy_in(queue, device),
            Direction::ToHost => host.copy_out(queue, device),
        })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let check = compare_random(SEED_A);
        Ok(match self.direction {
            Direction::ToDevice => self.gpu.check(&self.device, self.words, check)?,
            Direction::ToHost => check(self.host.slice(), 0),
        })
    }
}
