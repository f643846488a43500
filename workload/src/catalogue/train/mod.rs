//! The training of a small network: operation by operation, with one graph per step, or with all
//! steps in one kernel.
//!
//! - [`network`] defines the network and its training on the CPU, and [`on_cuda`] its training on a
//!   GPU.

mod network;
mod on_cuda;

use self::{
    network::{TrainingResult, TrainingStart, train},
    on_cuda::{prepare_fused_steps, prepare_steps},
};
use super::chain::LaunchMethod;
use crate::catalogue::prelude::*;

/// The allowed error. Parameters are about 1 in size, and each step rounds them. The next step
/// corrects most of the error, because training converges from any state. A different order of
/// additions causes a tenth of this error after a thousand steps. Omitting a single step causes
/// twice this error.
const TOLERANCE: f64 = 2000.0;
/// The maximum number of steps. After these steps, training has converged, and the remaining
/// gradients are rounding errors that cannot be checked.
const MAX_STEPS: u64 = 1000;
/// The memory that a run is assumed to use in total, in bytes. No array is larger than one or two
/// pages.
const MEMORY_BYTES: u64 = 8192;
/// The number of operations per step: the matrix products of the forward and backward pass, and ten
/// operations per parameter.
const OPERATIONS: u64 = 10 * (6 * 110 + 10 * 10) + 10 * 121;

pub(super) struct Train(pub(super) LaunchMethod);

impl Program for Train {
    fn cost_of(&self, size: Size) -> Cost {
        Cost {
            memory_bytes: MEMORY_BYTES,
            operations: size.n.saturating_mul(OPERATIONS),
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        self.check_step_count(size)?;
        match self.0 {
            LaunchMethod::Fused => prepare_fused_steps(gpu, size.n),
            form => prepare_steps(gpu, form, size.n),
        }
    }

    /// Prepares a run on a single thread. The work is too small for waking other threads.
    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        self.check_step_count(size)?;
        let start = TrainingStart::generate();
        prepare_cpu_work(
            // Before the first run, there is no result.
            None,
            move |trained| *trained = Some(train(&start, size.n)),
            move |trained| {
                let trained = trained.as_ref();
                trained.map_or_else(Verification::empty, |trained| check(trained, size.n))
            },
        )
    }
}

impl Train {
    fn check_step_count(&self, size: Size) -> Result<(), RunError> {
        if size.n <= MAX_STEPS {
            return Ok(());
        }
        Err(RunError::TooOften {
            id: self.id(),
            most: MAX_STEPS,
        })
    }

    pub(super) const fn id(&self) -> &'static str {
        match self.0 {
            LaunchMethod::PerOp => "train-per-op",
            LaunchMethod::Graph => "train-graph",
            LaunchMethod::Fused => "train",
        }
    }
}

/// Checks every parameter and the loss against the same training in 64-bit numbers.
fn check(trained: &TrainingResult<f32>, steps: u64) -> Verification {
    let expected = train::<f64>(&TrainingStart::generate(), steps);
    let near = |value: f64| Expected::new(value, value.abs().max(1.0));
    let parameters = compare_elements(&trained.parameters, 0, TOLERANCE, |index| {
        near(expected.parameters[index as usize])
    });
    let first = trained.parameters.len() as u64;
    parameters.merge(compare_elements(&[trained.loss], first, TOLERANCE, |_| {
        near(expected.loss)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_step_exceeds_tolerance_but_rounding_does_not() {
        for steps in [1, 10, 100, 300, 1000] {
            let mut trained = train::<f32>(&TrainingStart::generate(), steps);
            let found = check(&trained, steps);
            assert!(
                found.ok && found.largest_error < TOLERANCE / 10.0,
                "{steps}: {found:?}"
            );
            assert_eq!(found.checked, 122);
            assert!(!check(&trained, steps + 1).ok, "{steps}");
            trained.loss = f32::NAN;
            assert_eq!(check(&trained, steps).first_wrong, Some(121));
        }
    }
}
