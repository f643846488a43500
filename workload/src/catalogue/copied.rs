//! An operation on a GPU with what it costs to bring the input there and the result back.

use std::marker::PhantomData;

use super::{
    on_cpu::check,
    operations::{Form, Operation},
    prelude::*,
};
use crate::cuda::{Plain, Staging};

/// An operation of one input, the host's memory on both ends.
pub(super) struct Copied<'gpu, Op, T> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    input: HostMemory<T>,
    a: DeviceMemory,
    out: DeviceMemory,
    result: HostMemory<T>,
    operation: PhantomData<Op>,
}

pub(super) enum HostMemory<T> {
    Pinned(PinnedMemory),
    Pageable(Vec<T>, Staging),
}

impl<T: Plain + Default> HostMemory<T> {
    pub(super) fn new(gpu: &Gpu, elements: u64, is_pinned: bool) -> Result<Self, RunError> {
        Ok(if is_pinned {
            Self::Pinned(gpu.context.pin(elements * size_of::<T>() as u64)?)
        } else {
            Self::Pageable(
                vec![T::default(); elements as usize],
                gpu.context.staging()?,
            )
        })
    }

    pub(super) fn slice(&self) -> &[T] {
        match self {
            Self::Pinned(memory) => memory.slice(),
            Self::Pageable(memory, _) => memory,
        }
    }

    pub(super) fn slice_mut(&mut self) -> &mut [T] {
        match self {
            Self::Pinned(memory) => memory.slice_mut(),
            Self::Pageable(memory, _) => memory,
        }
    }

    /// Copies all of it to the device.
    pub(super) fn copy_in<'scope>(
        &'scope mut self,
        queue: &Queue<'_, 'scope>,
        to: &'scope DeviceMemory,
    ) -> Result<(), CudaError> {
        match self {
            Self::Pinned(memory) => queue.copy_in(to, memory.slice::<T>()),
            Self::Pageable(memory, staging) => queue.copy_in_staged(to, memory, staging),
        }
    }

    /// Copies all of it from the device.
    pub(super) fn copy_out<'scope>(
        &'scope mut self,
        queue: &Queue<'_, 'scope>,
        from: &'scope DeviceMemory,
    ) -> Result<(), CudaError> {
        match self {
            Self::Pinned(memory) => queue.copy_out(memory.slice_mut::<T>(), from, 0),
            Self::Pageable(memory, staging) => queue.copy_out_staged(memory, from, staging),
        }
    }
}

impl<'gpu, Op: Operation, T: Real> Copied<'gpu, Op, T> {
    pub(super) fn new(gpu: &'gpu Gpu, elements: u64, is_pinned: bool) -> Result<Self, RunError> {
        assert!(
            Op::SHAPE.inputs == 1 && Op::SHAPE.form == Form::Thread,
            "{} has one input",
            Op::SHAPE.kernel
        );
        let bytes = elements * T::DTYPE.bytes();
        let (mut input, mut result) = (
            HostMemory::new(gpu, elements, is_pinned)?,
            HostMemory::new(gpu, elements, is_pinned)?,
        );
        fill(input.slice_mut(), |index| T::random(SEED_A, index));
        fill(result.slice_mut(), |_| T::POISON);
        Ok(Self {
            gpu,
            kernel: gpu.kernel(
                kernels::ELEMENTWISE,
                &format!("{}_{}", Op::SHAPE.kernel, T::DTYPE),
            )?,
            input,
            a: gpu.poisoned(bytes)?,
            out: gpu.poisoned(bytes)?,
            result,
            operation: PhantomData,
        })
    }
}

impl<Op: Operation, T: Real> Prepared for Copied<'_, Op, T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            kernel,
            input,
            a,
            out,
            result,
            ..
        } = self;
        let elements = input.slice().len() as u64;
        gpu.time(|queue| {
            input.copy_in(queue, a)?;
            let arguments = [Argument::Out(out), Argument::In(a), Argument::U64(elements)];
            queue.launch(kernel, thread_each(elements), &arguments)?;
            result.copy_out(queue, out)
        })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check::<Op, T>(self.result.slice(), 0))
    }
}
