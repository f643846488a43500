//! The training of a small network: operation by operation, with one graph per step, or with all
//! steps in one kernel. The network is `Dense(10, 10, sigmoid) -> Dense(10, 1)`, trained with Adam
//! and the mean squared error.
//!
//! This file trains on the CPU, and [`on_cuda`] on a GPU.

mod on_cuda;

use std::ops::{Div, Neg, Sub};

use self::on_cuda::{prepare_fused_steps, prepare_steps};
use super::{chain::LaunchMethod, prelude::*};
use crate::numbers::generate_bits;

/// The allowed error. Parameters are about 1 in size, and each step rounds them. The next step
/// corrects most of this error, because training converges from any state. After a thousand steps,
/// another order of additions causes a tenth of the allowed error, and omitting a single step
/// causes twice the allowed error.
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
                trained.map_or_else(Verification::empty, |trained| {
                    check_training(trained, size.n)
                })
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
fn check_training(trained: &TrainingResult<f32>, steps: u64) -> Verification {
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

/// The number of samples, which is also the number of inputs per sample and of hidden units.
const SIDE: usize = 10;
const WEIGHTS: usize = SIDE * SIDE;
/// The position of the first layer's biases among the parameters. All parameters are stored in one
/// array, layer by layer.
const BIAS1: usize = WEIGHTS;
const WEIGHTS2: usize = BIAS1 + SIDE;
const BIAS2: usize = WEIGHTS2 + SIDE;
const PARAMETERS: usize = BIAS2 + 1;

/// The learning rate. All constants of Adam have the same values as in the GPU kernels.
const LEARNING_RATE: f32 = 0.01;
const ADAM_DECAY1: f32 = 0.9;
const ADAM_DECAY2: f32 = 0.999;
const ADAM_EPSILON: f32 = 1e-8;

const SEED_OF_TARGETS: u64 = SEED_B ^ 1;
/// The maximum absolute value of the targets.
const TARGET_RANGE: f32 = 20.0;

/// The operations on numbers that training needs.
trait Float: Real + Sub<Output = Self> + Div<Output = Self> + Neg<Output = Self> {
    fn exp(self) -> Self;
    fn sqrt(self) -> Self;
}

impl Float for f32 {
    fn exp(self) -> Self {
        self.exp()
    }
    fn sqrt(self) -> Self {
        self.sqrt()
    }
}

impl Float for f64 {
    fn exp(self) -> Self {
        self.exp()
    }
    fn sqrt(self) -> Self {
        self.sqrt()
    }
}

/// The random initial state of the training.
struct TrainingStart {
    parameters: Vec<f32>,
    inputs: Vec<f32>,
    targets: Vec<f32>,
}

impl TrainingStart {
    fn generate() -> Self {
        let array = |elements: usize, seed| {
            (0..elements as u64)
                .map(|at| f32::from_random_bits(generate_bits(seed, at)))
                .collect()
        };
        let mut start = Self {
            parameters: array(PARAMETERS, SEED_A),
            inputs: array(WEIGHTS, SEED_B),
            targets: array(SIDE, SEED_OF_TARGETS),
        };
        // The targets are far from the initial outputs, so that training does not converge before
        // the last of a thousand steps.
        start
            .targets
            .iter_mut()
            .for_each(|target| *target *= TARGET_RANGE);
        // Parameters are divided by the square root of the number of inputs, so that no unit is
        // saturated.
        start
            .parameters
            .iter_mut()
            .for_each(|parameter| *parameter /= (SIDE as f32).sqrt());
        start
    }
}

struct TrainingResult<T> {
    parameters: Vec<T>,
    /// The loss before the last step.
    loss: T,
}

fn train<T: Float>(start: &TrainingStart, steps: u64) -> TrainingResult<T> {
    let of = |numbers: &[f32]| {
        numbers
            .iter()
            .map(|number| T::from_f64(f64::from(*number)))
            .collect::<Vec<T>>()
    };
    let (mut parameters, inputs, targets) =
        (of(&start.parameters), of(&start.inputs), of(&start.targets));
    let (mut means, mut squares) = (
        vec![T::default(); PARAMETERS],
        vec![T::default(); PARAMETERS],
    );
    let (mut power1, mut power2) = (1.0, 1.0);
    let mut loss = T::POISON;
    for _ in 0..steps {
        let (gradients, now) = compute_gradients(&parameters, &inputs, &targets);
        loss = now;
        power1 *= f64::from(ADAM_DECAY1);
        power2 *= f64::from(ADAM_DECAY2);
        let (one, rate, tiny) = (
            T::from_f64(1.0),
            T::from_f64(f64::from(LEARNING_RATE)),
            T::from_f64(f64::from(ADAM_EPSILON)),
        );
        let (decay1, decay2) = (
            T::from_f64(f64::from(ADAM_DECAY1)),
            T::from_f64(f64::from(ADAM_DECAY2)),
        );
        let all = parameters
            .iter_mut()
            .zip(gradients)
            .zip(means.iter_mut().zip(&mut squares));
        for ((parameter, gradient), (mean, square)) in all {
            *mean = decay1 * *mean + (one - decay1) * gradient;
            *square = decay2 * *square + (one - decay2) * gradient * gradient;
            let step = rate * *mean / T::from_f64(1.0 - power1);
            *parameter = *parameter - step / ((*square / T::from_f64(1.0 - power2)).sqrt() + tiny);
        }
    }
    TrainingResult { parameters, loss }
}

/// Returns the gradient of the loss for each parameter, and the loss.
fn compute_gradients<T: Float>(
    parameters: &[T],
    inputs: &[T],
    targets: &[T],
) -> ([T; PARAMETERS], T) {
    let (one, share) = (
        T::from_f64(1.0),
        T::from_f64(1.0) / T::from_f64(SIDE as f64),
    );
    let mut gradients = [T::default(); PARAMETERS];
    let mut loss = T::default();
    for (input, target) in inputs.chunks(SIDE).zip(targets) {
        let mut hidden = [T::default(); SIDE];
        for (unit, hidden) in hidden.iter_mut().enumerate() {
            let sum =
                dot_product(&parameters[unit * SIDE..][..SIDE], input) + parameters[BIAS1 + unit];
            *hidden = one / (one + (-sum).exp());
        }
        let off = dot_product(&parameters[WEIGHTS2..BIAS2], &hidden) + parameters[BIAS2] - *target;
        loss = loss + off * off * share;
        let back = off * (share + share);
        gradients[BIAS2] = gradients[BIAS2] + back;
        for (unit, hidden) in hidden.into_iter().enumerate() {
            let inner = back * parameters[WEIGHTS2 + unit] * (hidden * (one - hidden));
            gradients[WEIGHTS2 + unit] = gradients[WEIGHTS2 + unit] + back * hidden;
            gradients[BIAS1 + unit] = gradients[BIAS1 + unit] + inner;
            for (gradient, input) in gradients[unit * SIDE..][..SIDE].iter_mut().zip(input) {
                *gradient = *gradient + inner * *input;
            }
        }
    }
    (gradients, loss)
}

fn dot_product<T: Float>(a: &[T], b: &[T]) -> T {
    a.iter()
        .zip(b)
        .fold(T::default(), |sum, (a, b)| sum + *a * *b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_training_step_is_detected_despite_rounding_tolerance() {
        for steps in [1, 10, 100, 300, 1000] {
            let mut trained = train::<f32>(&TrainingStart::generate(), steps);
            let found = check_training(&trained, steps);
            assert!(
                found.ok && found.largest_error < TOLERANCE / 10.0,
                "{steps}: {found:?}"
            );
            assert_eq!(found.checked, 122);
            assert!(!check_training(&trained, steps + 1).ok, "{steps}");
            trained.loss = f32::NAN;
            assert_eq!(check_training(&trained, steps).first_wrong, Some(121));
        }
    }

    /// If a single parameter is changed, the loss must change as its gradient predicts.
    #[test]
    fn gradients_match_numerical_derivative_of_loss() {
        let start = TrainingStart::generate();
        let of = |numbers: &[f32]| {
            numbers
                .iter()
                .map(|number| f64::from(*number))
                .collect::<Vec<_>>()
        };
        let (parameters, inputs, targets) =
            (of(&start.parameters), of(&start.inputs), of(&start.targets));
        let (found, _) = compute_gradients(&parameters, &inputs, &targets);
        for at in 0..PARAMETERS {
            let loss = |change: f64| {
                let mut parameters = parameters.clone();
                parameters[at] += change;
                compute_gradients(&parameters, &inputs, &targets).1
            };
            let slope = (loss(1e-5) - loss(-1e-5)) / 2e-5;
            assert!(
                (slope - found[at]).abs() < 1e-6,
                "{at}: {slope} {}",
                found[at]
            );
        }
    }

    #[test]
    fn training_reduces_loss() {
        let start = TrainingStart::generate();
        let [first, last] = [1, 1000].map(|steps| train::<f64>(&start, steps).loss);
        assert!(last < first / 1000.0, "{first} {last}");
    }
}
