//! Copies from one GPU's memory to another's: one way, both ways at once, and how long the smallest takes.

use super::prelude::*;

/// So much that the time of one start does not show.
const USUAL_BYTES: u64 = 1 << 30;
/// Copies of one run where the time of one is asked.
const CHAIN: u64 = 100;

pub(super) static ONE_WAY: Peer = peer(
    "peer",
    "Copies memory from one GPU to the next.",
    "NVLink connects GPUs at several times the bandwidth of PCIe.",
    Form::OneWay,
);
pub(super) static BOTH_WAYS: Peer = peer(
    "peer-both",
    "Copies memory from one GPU to the next, and other memory back at the same time.",
    "Links are full duplex: an exchange between two GPUs reaches twice the rate.",
    Form::BothWays,
);
pub(super) static LATENCY: Peer = peer(
    "peer-latency",
    "Copies eight bytes from one GPU to the next: the latency of one of a hundred copies in a row.",
    "The smallest copy between GPUs takes microseconds: prefer few large copies.",
    Form::Latency,
);

pub(super) struct Peer {
    about: About,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OneWay,
    BothWays,
    Latency,
}

const fn peer(id: &'static str, does: &'static str, teaches: &'static str, form: Form) -> Peer {
    let (bound, extent) = match form {
        Form::Latency => (Bound::Latency, Extent::Fixed),
        Form::OneWay | Form::BothWays => (Bound::Link, Extent::Elements),
    };
    Peer {
        about: About {
            id,
            does,
            teaches,
            dtypes: &[],
            backends: &[Backend::Cuda],
            bound,
            extent,
        },
        form,
    }
}

impl Workload for Peer {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, _: Backend, _: Dtype, budget: &MemoryBudget) -> u64 {
        match self.form {
            Form::Latency => WORD_BYTES,
            Form::OneWay | Form::BothWays => {
                USUAL_BYTES.min(budget.usable_bytes() / 4).max(WORD_BYTES)
            }
        }
    }

    /// The memory is that of each of the two.
    fn cost(&self, size: Size) -> Cost {
        let bytes = size.words().saturating_mul(WORD_BYTES);
        let (memory_bytes, moved_bytes) = match self.form {
            Form::OneWay => (bytes, bytes),
            Form::BothWays => (bytes.saturating_mul(2), bytes.saturating_mul(2)),
            Form::Latency => (bytes, 0),
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

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let few = RunError::TooFewGpus {
            id: self.about.id,
            needed: 2,
            found: 1,
        };
        let other = gpu.neighbor()?.ok_or(few)?.open()?;
        other
            .memory_budget()?
            .check(self.about.id, self.cost(size).memory_bytes)?;
        gpu.context.reach(&other.context)?;
        other.context.reach(&gpu.context)?;
        let words = size.words();
        let bytes = words * WORD_BYTES;
        let sent = gpu.random("random_u64", words, bytes, SEED_A)?;
        let arrived = other.poisoned(bytes)?;
        let back = if self.form == Form::BothWays {
            Some((
                other.random("random_u64", words, bytes, SEED_B)?,
                gpu.poisoned(bytes)?,
            ))
        } else {
            None
        };
        Ok(Box::new(Ready {
            gpu,
            sent,
            arrived,
            back,
            other,
            words,
            form: self.form,
        }))
    }
}

struct Ready<'gpu> {
    gpu: &'gpu Gpu,
    sent: DeviceMemory,
    /// On the other.
    arrived: DeviceMemory,
    /// What goes from the other, and where it arrives.
    back: Option<(DeviceMemory, DeviceMemory)>,
    other: Gpu,
    words: u64,
    form: Form,
}

impl Prepared for Ready<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            sent,
            arrived,
            back,
            other,
            form,
            ..
        } = self;
        let copies = if *form == Form::Latency { CHAIN } else { 1 };
        let elapsed = match back {
            None => gpu
                .stream
                .time(|queue| (0..copies).try_for_each(|_| queue.copy_across(arrived, sent)))?,
            Some((from, to)) => gpu.stream.time_both(&other.stream, |there, back| {
                there.copy_across(arrived, sent)?;
                back.copy_across(to, from)
            })?,
        };
        Ok(Sample::from(elapsed).of_one(copies))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let check = |gpu: &Gpu, memory, seed| gpu.check(memory, self.words, compare_random(seed));
        let there = check(&self.other, &self.arrived, SEED_A)?;
        Ok(match &self.back {
            Some((_, to)) => there.and(check(self.gpu, to, SEED_B)?),
            None => there,
        })
    }
}
