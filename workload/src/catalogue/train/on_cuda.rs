//! The training of the small network on a GPU.

use super::{
    BIAS1, BIAS2, PARAMETERS, SIDE, TrainingResult, TrainingStart, WEIGHTS, WEIGHTS2,
    check_training,
};
use crate::catalogue::{
    chain::{Chain, LaunchMethod},
    prelude::*,
};

const KERNELS: Code = ptx!("train");
/// The grid of the fused kernel. A single block computes the whole network.
const FUSED_GRID: Grid = Grid {
    blocks: 1,
    threads: 128,
};
const ELEMENT_BYTES: usize = 4;

/// The names of the kernels of a training step, in the order of their use.
const KERNEL_NAMES: [&str; 10] = [
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

/// Allocates the arrays, and copies the initial state to the GPU. The order is: parameters, loss,
/// initial parameters, inputs, targets, gradients, means, squares, powers, hidden units,
/// predictions, their errors, and errors of the hidden units.
fn allocate_arrays(gpu: &Gpu) -> Result<Vec<DeviceMemory>, CudaError> {
    let start = TrainingStart::generate();
    let room = |elements: usize| gpu.allocate_poisoned((elements * ELEMENT_BYTES) as u64);
    Ok(vec![
        room(PARAMETERS)?,
        room(1)?,
        gpu.copy_to_device(&start.parameters)?,
        gpu.copy_to_device(&start.inputs)?,
        gpu.copy_to_device(&start.targets)?,
        room(PARAMETERS)?,
        room(PARAMETERS)?,
        room(PARAMETERS)?,
        gpu.allocate_poisoned(2 * 8)?,
        room(WEIGHTS)?,
        room(SIDE)?,
        room(SIDE)?,
        room(WEIGHTS)?,
    ])
}

/// Converts the arrays to a fixed-size array reference. The order stays the same.
fn to_fixed_size_array(memory: &[DeviceMemory]) -> &[DeviceMemory; 13] {
    memory.first_chunk().expect("the memory has all arrays")
}

pub(super) fn prepare_steps(gpu: &Gpu, form: LaunchMethod, steps: u64) -> PreparedResult<'_> {
    let kernels = gpu.load_kernels(KERNELS, &KERNEL_NAMES)?;
    let begin = gpu.load_kernel(KERNELS, "train_begin")?;
    prepare_work(
        Chain::new(
            gpu,
            form,
            Box::new(queue_step),
            allocate_arrays(gpu)?,
            kernels,
        )?,
        move |step| {
            let [out, _, initial, _, _, _, means, squares, powers, ..] =
                to_fixed_size_array(step.memory());
            gpu.run_timed(|queue| {
                let arguments = [
                    Out(out),
                    In(initial),
                    Out(means),
                    Out(squares),
                    Out(powers),
                    U64(PARAMETERS as u64),
                ];
                queue.launch(&begin, grid_for_elements(PARAMETERS as u64), &arguments)?;
                (0..steps).try_for_each(|_| step.enqueue(queue))
            })
        },
        move |step| Ok(check_training(&read_result(gpu, step.memory())?, steps)),
    )
}

/// Queues the kernels of one training step.
fn queue_step<'held>(
    queue: &Queue<'_, 'held>,
    memory: &'held [DeviceMemory],
    kernels: &'held [Kernel],
) -> Result<(), CudaError> {
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
    let [
        out,
        loss,
        _,
        inputs,
        targets,
        gradients,
        means,
        squares,
        powers,
        hidden,
        predicted,
        off,
        back,
    ] = to_fixed_size_array(memory);
    let from = |array, element: usize| At(array, (element * ELEMENT_BYTES) as u64);
    let number = |number: usize| U64(number as u64);
    let launch = |kernel, elements: usize, arguments: &[Argument<'held>]| {
        queue.launch(kernel, grid_for_elements(elements as u64), arguments)
    };
    // `shape` contains the number of elements of the result, the number of its columns, and the
    // number of terms per element. These are followed by distances in the input arrays: between
    // rows and between terms of the first input, and between terms and between columns of the
    // second input.
    let multiply = |out, a, b, shape: [usize; 7]| {
        let numbers = shape.into_iter().map(number);
        let arguments: Vec<_> = [out, a, b].into_iter().chain(numbers).collect();
        launch(product, shape[0], &arguments)
    };
    multiply(
        Out(hidden),
        In(inputs),
        In(out),
        [WEIGHTS, SIDE, SIDE, SIDE, 1, 1, SIDE],
    )?;
    let bias = [Out(hidden), from(out, BIAS1), number(WEIGHTS), number(SIDE)];
    launch(add_bias, WEIGHTS, &bias)?;
    launch(sigmoid, WEIGHTS, &[Out(hidden), number(WEIGHTS)])?;
    multiply(
        Out(predicted),
        In(hidden),
        from(out, WEIGHTS2),
        [SIDE, 1, SIDE, SIDE, 1, 1, 0],
    )?;
    let bias = [Out(predicted), from(out, BIAS2), number(SIDE), number(1)];
    launch(add_bias, SIDE, &bias)?;
    let errors = [Out(off), In(predicted), In(targets), number(SIDE)];
    launch(subtract, SIDE, &errors)?;
    launch(mean_square, 1, &[Out(loss), In(off), number(SIDE)])?;
    let slopes = [Out(off), F32(2.0 / SIDE as f32), number(SIDE)];
    launch(scale, SIDE, &slopes)?;
    multiply(
        from(gradients, WEIGHTS2),
        In(off),
        In(hidden),
        [SIDE, SIDE, SIDE, 0, 1, SIDE, 1],
    )?;
    let of_bias = [from(gradients, BIAS2), In(off), number(1), number(SIDE)];
    launch(sum_rows, 1, &of_bias)?;
    multiply(
        Out(back),
        In(off),
        from(out, WEIGHTS2),
        [WEIGHTS, SIDE, 1, 1, 0, 0, 1],
    )?;
    let through = [Out(back), In(hidden), number(WEIGHTS)];
    launch(sigmoid_back, WEIGHTS, &through)?;
    multiply(
        Out(gradients),
        In(back),
        In(inputs),
        [WEIGHTS, SIDE, SIDE, 1, SIDE, SIDE, 1],
    )?;
    let of_bias = [from(gradients, BIAS1), In(back), number(SIDE), number(SIDE)];
    launch(sum_rows, SIDE, &of_bias)?;
    launch(tick, 1, &[Out(powers)])?;
    for (part, next) in [
        (0, BIAS1),
        (BIAS1, WEIGHTS2),
        (WEIGHTS2, BIAS2),
        (BIAS2, PARAMETERS),
    ] {
        let [out, gradients, means, squares] =
            [out, gradients, means, squares].map(|array| from(array, part));
        let arguments = [
            out,
            gradients,
            means,
            squares,
            In(powers),
            number(next - part),
        ];
        launch(adam, next - part, &arguments)?;
    }
    Ok(())
}

/// Prepares training that runs all steps in one kernel.
pub(super) fn prepare_fused_steps(gpu: &Gpu, steps: u64) -> PreparedResult<'_> {
    let kernel = gpu.load_kernel(KERNELS, "train_fused")?;
    prepare_work(
        allocate_arrays(gpu)?,
        move |memory| {
            let [out, loss, initial, inputs, targets, ..] = to_fixed_size_array(memory);
            let arguments = [
                Out(out),
                Out(loss),
                In(initial),
                In(inputs),
                In(targets),
                U64(steps),
            ];
            gpu.run_timed(|queue| queue.launch(&kernel, FUSED_GRID, &arguments))
        },
        move |memory| Ok(check_training(&read_result(gpu, memory)?, steps)),
    )
}

fn read_result(gpu: &Gpu, memory: &[DeviceMemory]) -> Result<TrainingResult<f32>, CudaError> {
    let [out, loss, ..] = to_fixed_size_array(memory);
    let loss: Vec<f32> = gpu.copy_to_host(loss)?;
    Ok(TrainingResult {
        parameters: gpu.copy_to_host(out)?,
        loss: loss[0],
    })
}
