//! Training of a small network: operation by operation, with a graph for each step, and all steps in one kernel.
//!
//! - [`network`] is the network and how it is trained on the CPU, [`on_cuda`] the same on a GPU.

mod network;
mod on_cuda;

use self::{
    network::{Start, Trained, train},
    on_cuda::{Fused, Stepwise},
};
use super::chain::Form;
use crate::catalogue::prelude::*;

const USUAL_STEPS: u64 = 1000;
/// Parameters are of the size of 1, and each step rounds them. What is lost at one step is mostly found again at the next,
/// since training goes downhill from wherever it is. Another order of adding leaves a tenth of this after a thousand steps,
/// of which a single one that is left out makes twice as much.
const TOLERANCE: f64 = 2000.0;
/// Behind them there is nothing left to learn, and what remains of the slopes is rounding, which nobody could check.
const MOST_STEPS: u64 = USUAL_STEPS;
/// No array of it is larger than a page or two.
const MEMORY_BYTES: u64 = 8192;
/// Of one step: products there and back, and ten for each parameter.
const OPERATIONS: u64 = 10 * (6 * 110 + 10 * 10) + 10 * 121;

pub(super) static PER_OP: Train = new(
    "train-per-op",
    "Trains a network of 121 parameters for 1000 steps, with nineteen kernels per step.",
    "Launch overhead limits a network this small on any GPU: use the CPU, or a compiler.",
    Form::PerOp,
);
pub(super) static GRAPH: Train = new(
    "train-graph",
    "Trains a network of 121 parameters for 1000 steps, with one CUDA graph per step.",
    "A fixed step is recorded once and launched with a single call.",
    Form::Graph,
);
pub(super) static FUSED: Train = new(
    "train",
    "Trains a network of 121 parameters for 1000 steps in one kernel.",
    "A model that fits one multiprocessor needs neither launches nor memory traffic between steps.",
    Form::Fused,
);

pub(super) struct Train {
    about: About,
    form: Form,
}

const fn new(id: &'static str, does: &'static str, teaches: &'static str, form: Form) -> Train {
    let backends: &[Backend] = if matches!(form, Form::Fused) {
        &[Backend::Cuda, Backend::Cpu]
    } else {
        &[Backend::Cuda]
    };
    let about = About {
        id,
        does,
        teaches,
        dtypes: &[Dtype::Fp32],
        backends,
        bound: Bound::Latency,
        extent: Extent::Times,
    };
    Train { about, form }
}

impl Workload for Train {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        USUAL_STEPS
    }

    fn cost(&self, size: Size) -> Cost {
        Cost {
            memory_bytes: MEMORY_BYTES,
            operations: size.n.saturating_mul(OPERATIONS),
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        self.check(size)?;
        Ok(match self.form {
            Form::Fused => Box::new(Fused::new(gpu, size.n)?),
            form => Box::new(Stepwise::new(gpu, form, size.n)?),
        })
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        self.check(size)?;
        Ok(Box::new(OnCpu {
            start: Start::random(),
            steps: size.n,
            trained: None,
        }))
    }
}

impl Train {
    fn check(&self, size: Size) -> Result<(), RunError> {
        let is_too_long = size.n > MOST_STEPS;
        if is_too_long {
            Err(RunError::TooOften {
                id: self.about.id,
                most: MOST_STEPS,
            })
        } else {
            Ok(())
        }
    }
}

/// On one thread: no part of it is worth waking another.
struct OnCpu {
    start: Start,
    steps: u64,
    /// `None` before the first run.
    trained: Option<Trained<f32>>,
}

impl Prepared for OnCpu {
    fn run(&mut self) -> Result<Sample, RunError> {
        Ok(Sample::on_cpu(|| {
            self.trained = Some(train(&self.start, self.steps));
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(self
            .trained
            .as_ref()
            .map_or_else(Verification::nothing, |trained| check(trained, self.steps)))
    }
}

/// Every parameter and the loss, against the same training in f64.
fn check(trained: &Trained<f32>, steps: u64) -> Verification {
    let expected = train::<f64>(&Start::random(), steps);
    let near = |value: f64| Expected {
        value: DoubleDouble::from_f64(value),
        scale: value.abs().max(1.0),
    };
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
