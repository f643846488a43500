//! `launch-latency`: what starting a kernel takes.

use super::prelude::*;

const KERNELS: Code = ptx!("launch");

/// So many kernels that what comes before and after them does not show.
const CHAIN: u64 = 1000;

static ABOUT: About = About {
    id: "launch-latency",
    does: "Launches empty kernels: 1000 in a row by the clock of the device, and one with its end by that of the host.",
    teaches: "A launch takes microseconds: many small kernels are slower than one that does all of their work.",
    dtypes: &[],
    backends: &[Backend::Cuda],
    bound: Bound::Driver,
    extent: Extent::Fixed,
};

pub(super) struct LaunchLatency;

impl Workload for LaunchLatency {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        1
    }

    fn cost(&self, _: Size) -> Cost {
        Cost {
            memory_bytes: 8,
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, _: Size) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let counter = gpu.context.allocate(8)?;
        gpu.stream.run(|queue| queue.fill(&counter, 0))?;
        let code = gpu.context.load(KERNELS)?;
        Ok(Box::new(Ready {
            gpu,
            empty: code.kernel("empty")?,
            count: code.kernel("count")?,
            counter,
            runs: 0,
        }))
    }
}

struct Ready<'gpu> {
    gpu: &'gpu Gpu,
    empty: Kernel,
    count: Kernel,
    /// How many runs the device has seen to their end.
    counter: DeviceMemory,
    runs: u64,
}

impl Prepared for Ready<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            empty,
            count,
            counter,
            runs,
        } = self;
        let chain =
            gpu.time(|queue| (0..CHAIN).try_for_each(|_| queue.launch(empty, Grid::ONE, &[])))?;
        let host_us = gpu
            .stream
            .run(|queue| queue.launch(empty, Grid::ONE, &[]))?;
        gpu.stream
            .run(|queue| queue.launch(count, Grid::ONE, &[Argument::Out(counter)]))?;
        *runs += 1;
        Ok(Sample {
            host_us,
            ..chain.of_one(CHAIN)
        })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let runs = self.runs;
        let found = self.gpu.check(&self.counter, 1, |words: &[u64], first| {
            compare_words(words, first, |_| runs)
        })?;
        Ok(if runs == 0 {
            Verification::nothing()
        } else {
            found
        })
    }
}
