//! `launch-latency`: what starting a kernel takes.

use super::prelude::*;

/// So many kernels that what comes before and after them does not show.
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
        // How many runs the device has seen to their end, and how many there were.
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
