//! The kernels of `train.cu`: training of a small network.

use super::{Arguments, Known};

const SIDE: usize = 10;
const WEIGHTS: usize = SIDE * SIDE;
const PARAMETERS: usize = WEIGHTS + SIDE + SIDE + 1;
const DECAY1: f32 = 0.9;
const DECAY2: f32 = 0.999;

/// Arguments: the arrays with the result first, then numbers, in the order of `train.cu`.
pub(super) const KERNELS: &[Known] = &[
    ("train_begin", |given, _| {
        let n = given.read_argument(5);
        let initial = given.array_at::<f32>(1, n);
        given.array_at::<f32>(0, n).copy_from_slice(initial);
        given.array_at::<f32>(2, n).fill(0.0);
        given.array_at::<f32>(3, n).fill(0.0);
        given.array_at::<f64>(4, 2).fill(1.0);
        (given.read_argument(0), n as usize * 4)
    }),
    ("train_product", multiply_matrices),
    ("train_add_bias", |given, _| {
        let bias = given.array_at::<f32>(1, given.read_argument(3));
        update_in_place(given, 2, |at, x| x + bias[at % bias.len()])
    }),
    ("train_sigmoid", |given, _| {
        update_in_place(given, 1, |_, x| sigmoid(x))
    }),
    ("train_sigmoid_back", |given, _| {
        let y = given.array_at::<f32>(1, given.read_argument(2));
        update_in_place(given, 2, |at, x| x * (y[at] * (1.0 - y[at])))
    }),
    ("train_subtract", |given, _| {
        let (a, b) = (
            given.array_at::<f32>(1, given.read_argument(3)),
            given.array_at::<f32>(2, given.read_argument(3)),
        );
        update_in_place(given, 3, |at, _| a[at] - b[at])
    }),
    ("train_scale", |given, _| {
        update_in_place(given, 2, |_, x| x * given.read_argument::<f32>(1))
    }),
    ("train_mean_square", |given, _| {
        let n: u64 = given.read_argument(2);
        let sum: f32 = given.array_at::<f32>(1, n).iter().map(|x| x * x).sum();
        given.array_at::<f32>(0, 1)[0] = sum / n as f32;
        (given.read_argument(0), 4)
    }),
    ("train_sum_rows", |given, _| {
        let (n, rows): (u64, u64) = (given.read_argument(2), given.read_argument(3));
        let a = given.array_at::<f32>(1, n * rows);
        update_in_place(given, 2, |at, _| {
            a.iter().skip(at).step_by(n as usize).sum()
        })
    }),
    ("train_tick", |given, _| {
        let powers = given.array_at::<f64>(0, 2);
        powers[0] *= f64::from(DECAY1);
        powers[1] *= f64::from(DECAY2);
        (given.read_argument(0), 16)
    }),
    ("train_adam", |given, _| {
        let n = given.read_argument(5);
        let gradients = given.array_at::<f32>(1, n);
        let (means, squares) = (given.array_at::<f32>(2, n), given.array_at::<f32>(3, n));
        let powers = given.array_at::<f64>(4, 2);
        update_in_place(given, 5, |at, x| {
            x - adam_step(
                gradients[at],
                &mut means[at],
                &mut squares[at],
                powers[0],
                powers[1],
            )
        })
    }),
    ("train_fused", run_all_steps),
];

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the amount by which a parameter decreases.
fn adam_step(gradient: f32, mean: &mut f32, square: &mut f32, power1: f64, power2: f64) -> f32 {
    *mean = DECAY1 * *mean + (1.0 - DECAY1) * gradient;
    *square = DECAY2 * *square + (1.0 - DECAY2) * gradient * gradient;
    0.01 * *mean / (1.0 - power1) as f32 / ((*square / (1.0 - power2) as f32).sqrt() + 1e-8)
}

/// Updates each element of the first array in place. The argument with the index `count` contains
/// the number of elements.
fn update_in_place(
    given: Arguments,
    count: usize,
    mut of: impl FnMut(usize, f32) -> f32,
) -> (u64, usize) {
    let out = given.array_at::<f32>(0, given.read_argument(count));
    out.iter_mut()
        .enumerate()
        .for_each(|(at, out)| *out = of(at, *out));
    (given.read_argument(0), size_of_val(out))
}

fn multiply_matrices(given: Arguments, _: u64) -> (u64, usize) {
    let [n, columns, inner, a_row, a_step, b_step, b_column] =
        [3, 4, 5, 6, 7, 8, 9].map(|index| given.read_argument::<u64>(index) as usize);
    let a = given.array_at::<f32>(
        1,
        ((n / columns - 1) * a_row + (inner - 1) * a_step + 1) as u64,
    );
    let b = given.array_at::<f32>(
        2,
        ((inner - 1) * b_step + (columns - 1) * b_column + 1) as u64,
    );
    update_in_place(given, 3, |at, _| {
        let (row, column) = (at / columns, at % columns);
        (0..inner)
            .map(|k| a[row * a_row + k * a_step] * b[k * b_step + column * b_column])
            .sum()
    })
}

/// Executes all steps in sequence.
fn run_all_steps(given: Arguments, _: u64) -> (u64, usize) {
    let out = given.array_at::<f32>(0, PARAMETERS as u64);
    let loss = given.array_at::<f32>(1, 1);
    let (x, y) = (
        given.array_at::<f32>(3, WEIGHTS as u64),
        given.array_at::<f32>(4, SIDE as u64),
    );
    out.copy_from_slice(given.array_at::<f32>(2, PARAMETERS as u64));
    let (mut means, mut squares) = ([0.0; PARAMETERS], [0.0; PARAMETERS]);
    let (mut power1, mut power2) = (1.0, 1.0);
    for _ in 0..given.read_argument::<u64>(5) {
        let (first, rest) = out.split_at(WEIGHTS);
        let (bias1, rest) = rest.split_at(SIDE);
        let (second, bias2) = rest.split_at(SIDE);
        let mut gradients = [0.0; PARAMETERS];
        loss[0] = 0.0;
        for (x, y) in x.chunks(SIDE).zip(&*y) {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let hidden: Vec<_> = first
                .chunks(SIDE)
                .zip(bias1)
                .map(|(weights, bias)| sigmoid(dot(weights, x) + bias))
                .collect();
            let off = dot(second, &hidden) + bias2[0] - y;
            loss[0] += off * off / SIDE as f32;
            let back = off * 2.0 / SIDE as f32;
            gradients[PARAMETERS - 1] += back;
            for unit in 0..SIDE {
                let back_unit = back * second[unit] * hidden[unit] * (1.0 - hidden[unit]);
                gradients[WEIGHTS + unit] += back_unit;
                gradients[WEIGHTS + SIDE + unit] += back * hidden[unit];
                for (k, x) in x.iter().enumerate() {
                    gradients[unit * SIDE + k] += back_unit * x;
                }
            }
        }
        power1 *= f64::from(DECAY1);
        power2 *= f64::from(DECAY2);
        for (at, out) in out.iter_mut().enumerate() {
            *out -= adam_step(
                gradients[at],
                &mut means[at],
                &mut squares[at],
                power1,
                power2,
            );
        }
    }
    (given.read_argument(0), size_of_val(out))
}
