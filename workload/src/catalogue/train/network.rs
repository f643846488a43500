//! The network and its training: `Dense(10, 10, sigmoid) -> Dense(10, 1)`, trained with Adam and
//! the mean squared error.

use std::ops::{Div, Neg, Sub};

use crate::{
    random::{SEED_A, SEED_B, generate_bits},
    real::Real,
};

/// The number of samples, which is also the number of inputs per sample and of hidden units.
pub(super) const SIDE: usize = 10;
pub(super) const WEIGHTS: usize = SIDE * SIDE;
/// The position of the first layer's biases among the parameters. All parameters are stored in one
/// array, layer by layer.
pub(super) const BIAS1: usize = WEIGHTS;
pub(super) const WEIGHTS2: usize = BIAS1 + SIDE;
pub(super) const BIAS2: usize = WEIGHTS2 + SIDE;
pub(super) const PARAMETERS: usize = BIAS2 + 1;

/// The learning rate. All constants of Adam have the same values as in the GPU kernels.
const RATE: f32 = 0.01;
const DECAY1: f32 = 0.9;
const DECAY2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

const SEED_OF_TARGETS: u64 = SEED_B ^ 1;
/// The maximum absolute value of the targets.
const TARGET_RANGE: f32 = 20.0;

/// The operations on numbers that training needs.
pub(super) trait Float:
    Real + Sub<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
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
pub(super) struct TrainingStart {
    pub(super) parameters: Vec<f32>,
    pub(super) inputs: Vec<f32>,
    pub(super) targets: Vec<f32>,
}

impl TrainingStart {
    pub(super) fn generate() -> Self {
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
        // Targets far from the initial outputs ensure that training has not converged after a
        // thousand steps.
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

pub(super) struct TrainingResult<T> {
    pub(super) parameters: Vec<T>,
    /// The loss before the last step.
    pub(super) loss: T,
}

pub(super) fn train<T: Float>(start: &TrainingStart, steps: u64) -> TrainingResult<T> {
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
        power1 *= f64::from(DECAY1);
        power2 *= f64::from(DECAY2);
        let (one, rate, tiny) = (
            T::from_f64(1.0),
            T::from_f64(f64::from(RATE)),
            T::from_f64(f64::from(EPSILON)),
        );
        let (decay1, decay2) = (
            T::from_f64(f64::from(DECAY1)),
            T::from_f64(f64::from(DECAY2)),
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

    /// The gradients must agree with the change of the loss when a single parameter is changed.
    #[test]
    fn gradients_match_change_of_loss() {
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
