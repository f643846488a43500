//! The training of a small network: operation by operation, with one graph per step, and with all
//! steps in one kernel.
//!
//! - [`network`] defines the network and its training on the CPU, and [`on_cuda`] its training on a
//!   GPU.

mod network;
mod on_cuda;

use self::{
    network::{Start, Trained, train},
    on_cuda::{prepare_fused, prepare_steps},
};
use super::chain::Form;
use crate::catalogue::prelude::*;

/// The tolerance. Parameters have a size of about 1, and each step rounds them. The next step
/// corrects most of the error, because training descends from any state. Another order of additions
/// results in a tenth of this error after a thousand steps, and leaving out a single step results
/// in twice this error.
const TOLERANCE: f64 = 2000.0;
/// The maximum number of steps. After more steps, there is nothing to learn, and the remaining
/// gradients are rounding errors that cannot be checked.
const MOST_STEPS: u64 = 1000;
/// The assumed memory in total. No array is larger than a page or two.
const MEMORY_BYTES: u64 = 8192;
/// The number of operations per step: products forward and backward, and ten operations per
/// parameter.
const OPERATIONS: u64 = 10 * (6 * 110 + 10 * 10) + 10 * 121;

pub(super) struct Train(pub(super) Form);

impl Program for Train {
    fn cost_of(&self, size: Size) -> Cost {
        Cost {
            memory_bytes: MEMORY_BYTES,
            operations: size.n.saturating_mul(OPERATIONS),
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        self.check(size)?;
        match self.0 {
            Form::Fused => prepare_fused(gpu, size.n),
            form => prepare_steps(gpu, form, size.n),
        }
    }

    /// Prepares a run on one thread, because no part of it is worth waking another.
    fn on_cpu(&self, size: Size) -> Ready<'static> {
        self.check(size)?;
        let start = Start::random();
        prepare_on_cpu(
            // There is no result before the first run.
            None,
            move |trained| *trained = Some(train(&start, size.n)),
            move |trained| {
                let trained = trained.as_ref();
                trained.map_or_else(Verification::nothing, |trained| check(trained, size.n))
            },
        )
    }
}

impl Train {
    fn check(&self, size: Size) -> Result<(), RunError> {
        if size.n <= MOST_STEPS {
            return Ok(());
        }
        Err(RunError::TooOften {
            id: self.id(),
            most: MOST_STEPS,
        })
    }

    pub(super) const fn id(&self) -> &'static str {
        match self.0 {
            Form::PerOp => "train-per-op",
            Form::Graph => "train-graph",
            Form::Fused => "train",
        }
    }
}

/// Checks every parameter and the loss against the same training in f64.
fn check(trained: &Trained<f32>, steps: u64) -> Verification {
    let expected = train::<f64>(&Start::random(), steps);
    let near = |value: f64| Expected::new(value, value.abs().max(1.0));
    let parameters = compare(&trained.parameters, 0, TOLERANCE, |index| {
        near(expected.parameters[index as usize])
    });
    let first = trained.parameters.len() as u64;
    parameters.and(compare(&[trained.loss], first, TOLERANCE, |_| {
        near(expected.loss)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_stays_far_below_the_tolerance_and_a_lost_step_does_not() {
        for steps in [1, 10, 100, 300, 1000] {
            let mut trained = train::<f32>(&Start::random(), steps);
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
