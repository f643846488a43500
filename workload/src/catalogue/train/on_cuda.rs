//! Training on a GPU.

use super::{
    check,
    network::{BIAS1, BIAS2, PARAMETERS, SIDE, Start, Trained, WEIGHTS, WEIGHTS2},
};
use crate::{
    catalogue::chain::{Chain, Form},
    catalogue::prelude::*,
};

const KERNELS: Code = ptx!("train");
/// The whole network in one block.
const FUSED_GRID: Grid = Grid {
    blocks: 1,
    threads: 128,
};
const WIDTH: usize = 4;

/// The places of the arrays in the memory of [`step`].
const OUT: usize = 0;
const LOSS: usize = 1;
const INITIAL: usize = 2;
const INPUTS: usize = 3;
const TARGETS: usize = 4;
const GRADIENTS: usize = 5;
const MEANS: usize = 6;
const SQUARES: usize = 7;
const POWERS: usize = 8;
const HIDDEN: usize = 9;
const PREDICTED: usize = 10;
const OFF: usize = 11;
const BACK: usize = 12;

/// The kernels of [`step`], by their places.
const NAMES: [&str; 10] = [
    "train_product",
    "train_add_bias",
    "train_sigmoid",
    "train_sigmoid_back",
    "train_subtract",
    "train_scale",
    "train_mean_square",
    "train_sum_rows",
    "train_tick",
    "train_adam",
];

/// Memory with what training begins with, and with room for what it makes.
fn memory(gpu: &Gpu) -> Result<Vec<DeviceMemory>, CudaError> {
    let start = Start::random();
    let budget = |elements: usize| gpu.poisoned((elements * WIDTH) as u64);
    Ok(vec![
        budget(PARAMETERS)?,
        budget(1)?,
        gpu.upload(&start.parameters)?,
        gpu.upload(&start.inputs)?,
        gpu.upload(&start.targets)?,
        budget(PARAMETERS)?,
        budget(PARAMETERS)?,
        budget(PARAMETERS)?,
        gpu.poisoned(2 * 8)?,
        budget(WEIGHTS)?,
        budget(SIDE)?,
        budget(SIDE)?,
        budget(WEIGHTS)?,
    ])
}

pub(super) struct Stepwise<'gpu> {
    gpu: &'gpu Gpu,
    begin: Kernel,
    step: Chain,
    steps: u64,
}

impl<'gpu> Stepwise<'gpu> {
    pub(super) fn new(gpu: &'gpu Gpu, form: Form, steps: u64) -> Result<Self, RunError> {
        let code = gpu.context.load(KERNELS)?;
        let kernels = NAMES
            .iter()
            .map(|name| code.kernel(name))
            .collect::<Result<_, _>>()?;
        let step = Chain::new(gpu, form, Box::new(step), memory(gpu)?, kernels)?;
        Ok(Self {
            gpu,
            begin: code.kernel("train_begin")?,
            step,
            steps,
        })
    }
}

impl Prepared for Stepwise<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            begin,
            step,
            steps,
        } = self;
        let memory = step.memory();
        gpu.time(|queue| {
            let arguments = [
                Argument::Out(&memory[OUT]),
                Argument::In(&memory[INITIAL]),
                Argument::Out(&memory[MEANS]),
                Argument::Out(&memory[SQUARES]),
                Argument::Out(&memory[POWERS]),
                Argument::U64(PARAMETERS as u64),
            ];
            queue.launch(begin, thread_each(PARAMETERS as u64), &arguments)?;
            (0..*steps).try_for_each(|_| step.put(queue))
        })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(&trained(self.gpu, self.step.memory())?, self.steps))
    }
}

/// Puts the kernels of one step into a queue.
fn step<'held>(
    queue: &Queue<'_, 'held>,
    memory: &'held [DeviceMemory],
    kernels: &'held [Kernel],
) -> Result<(), CudaError> {
    use Argument::{At, F32, In, Out, U64};
    let [
        product,
        add_bias,
        sigmoid,
        sigmoid_back,
        subtract,
        scale,
        mean_square,
        sum_rows,
        tick,
        adam,
    ] = kernels
    else {
        unreachable!("there are as many kernels as names");
    };
    let from = |array: usize, element: usize| At(&memory[array], (element * WIDTH) as u64);
    let number = |number: usize| U64(number as u64);
    let launch = |kernel, elements: usize, arguments: &[Argument<'held>]| {
        queue.launch(kernel, thread_each(elements as u64), arguments)
    };
    // Elements, columns and terms of the result, then the steps: row and term of the first array, term and column of
    // the second.
    let multiply = |out, a, b, shape: [usize; 7]| {
        let numbers = shape.into_iter().map(number);
        let arguments: Vec<_> = [out, a, b].into_iter().chain(numbers).collect();
        launch(product, shape[0], &arguments)
    };
    let array = |at: usize| In(&memory[at]);
    multiply(
        array(HIDDEN),
        array(INPUTS),
        array(OUT),
        [WEIGHTS, SIDE, SIDE, SIDE, 1, 1, SIDE],
    )?;
    launch(
        add_bias,
        WEIGHTS,
        &[
            array(HIDDEN),
            from(OUT, BIAS1),
            number(WEIGHTS),
            number(SIDE),
        ],
    )?;
    launch(sigmoid, WEIGHTS, &[array(HIDDEN), number(WEIGHTS)])?;
    multiply(
        array(PREDICTED),
        array(HIDDEN),
        from(OUT, WEIGHTS2),
        [SIDE, 1, SIDE, SIDE, 1, 1, 0],
    )?;
    launch(
        add_bias,
        SIDE,
        &[array(PREDICTED), from(OUT, BIAS2), number(SIDE), number(1)],
    )?;
    launch(
        subtract,
        SIDE,
        &[array(OFF), array(PREDICTED), array(TARGETS), number(SIDE)],
    )?;
    launch(
        mean_square,
        1,
        &[Out(&memory[LOSS]), array(OFF), number(SIDE)],
    )?;
    launch(
        scale,
        SIDE,
        &[array(OFF), F32(2.0 / SIDE as f32), number(SIDE)],
    )?;
    multiply(
        from(GRADIENTS, WEIGHTS2),
        array(OFF),
        array(HIDDEN),
        [SIDE, SIDE, SIDE, 0, 1, SIDE, 1],
    )?;
    launch(
        sum_rows,
        1,
        &[from(GRADIENTS, BIAS2), array(OFF), number(1), number(SIDE)],
    )?;
    multiply(
        array(BACK),
        array(OFF),
        from(OUT, WEIGHTS2),
        [WEIGHTS, SIDE, 1, 1, 0, 0, 1],
    )?;
    launch(
        sigmoid_back,
        WEIGHTS,
        &[array(BACK), array(HIDDEN), number(WEIGHTS)],
    )?;
    multiply(
        array(GRADIENTS),
        array(BACK),
        array(INPUTS),
        [WEIGHTS, SIDE, SIDE, 1, SIDE, SIDE, 1],
    )?;
    launch(
        sum_rows,
        SIDE,
        &[
            from(GRADIENTS, BIAS1),
            array(BACK),
            number(SIDE),
            number(SIDE),
        ],
    )?;
    launch(tick, 1, &[Out(&memory[POWERS])])?;
    for (part, next) in [
        (0, BIAS1),
        (BIAS1, WEIGHTS2),
        (WEIGHTS2, BIAS2),
        (BIAS2, PARAMETERS),
    ] {
        let arrays = [
            from(OUT, part),
            from(GRADIENTS, part),
            from(MEANS, part),
            from(SQUARES, part),
        ];
        let arguments: Vec<_> = arrays
            .into_iter()
            .chain([array(POWERS), number(next - part)])
            .collect();
        launch(adam, next - part, &arguments)?;
    }
    Ok(())
}

pub(super) struct Fused<'gpu> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    memory: Vec<DeviceMemory>,
    steps: u64,
}

impl<'gpu> Fused<'gpu> {
    pub(super) fn new(gpu: &'gpu Gpu, steps: u64) -> Result<Self, RunError> {
        Ok(Self {
            gpu,
            kernel: gpu.kernel(KERNELS, "train_fused")?,
            memory: memory(gpu)?,
            steps,
        })
    }
}

impl Prepared for Fused<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            kernel,
            memory,
            steps,
        } = self;
        let [out, loss, initial, inputs, targets] =
            [OUT, LOSS, INITIAL, INPUTS, TARGETS].map(|at| &memory[at]);
        let arguments = [
            Argument::Out(out),
            Argument::Out(loss),
            Argument::In(initial),
            Argument::In(inputs),
            Argument::In(targets),
            Argument::U64(*steps),
        ];
        gpu.time(|queue| queue.launch(kernel, FUSED_GRID, &arguments))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(&trained(self.gpu, &self.memory)?, self.steps))
    }
}

fn trained(gpu: &Gpu, memory: &[DeviceMemory]) -> Result<Trained<f32>, CudaError> {
    let loss: Vec<f32> = gpu.download(&memory[LOSS])?;
    Ok(Trained {
        parameters: gpu.download(&memory[OUT])?,
        loss: loss[0],
    })
}
