//! An operation on the CPU: on all of its threads, or on one.

use std::marker::PhantomData;

use super::{operations::Operation, prelude::*};

/// Elements that a thread takes at a time: enough that taking them costs nothing.
const CHUNK: usize = 1 << 15;

/// The arrays of an operation. Those that it does not read are empty.
pub(super) struct OnCpu<Op, T> {
    a: Vec<T>,
    b: Vec<T>,
    out: Vec<T>,
    /// Whether one thread does everything.
    is_alone: bool,
    operation: PhantomData<Op>,
}

impl<Op: Operation, T: Real> OnCpu<Op, T> {
    /// Each array is first written by the threads that work on it, so that it lies where they are: in their memory, and in
    /// their caches.
    pub(super) fn new(elements: u64, is_alone: bool) -> Self {
        let array = |elements: u64, element: &(dyn Fn(u64) -> T + Sync)| {
            if is_alone {
                (0..elements).map(element).collect()
            } else {
                random::array(elements, element)
            }
        };
        let input = |inputs, seed| {
            array(
                if Op::SHAPE.inputs >= inputs {
                    elements
                } else {
                    0
                },
                &|index| T::random(seed, index),
            )
        };
        let (a, b, out) = (
            input(1, SEED_A),
            input(2, SEED_B),
            array(elements, &|_| T::POISON),
        );
        Self {
            a,
            b,
            out,
            is_alone,
            operation: PhantomData,
        }
    }
}

impl<Op: Operation, T: Real> Prepared for OnCpu<Op, T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            a,
            b,
            out,
            is_alone,
            ..
        } = self;
        Ok(Sample::on_cpu(|| {
            if *is_alone {
                apply::<Op, T>(out, a, b);
            } else {
                parallel::for_each(out.chunks_mut(CHUNK).enumerate(), &|(chunk, out)| {
                    apply::<Op, T>(out, part(a, chunk), part(b, chunk));
                });
            }
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check::<Op, T>(&self.out, 0))
    }
}

/// What a chunk of the result is made of; nothing of an array that is not read.
fn part<T>(array: &[T], chunk: usize) -> &[T] {
    let begin = (chunk * CHUNK).min(array.len());
    &array[begin..(begin + CHUNK).min(array.len())]
}

/// One loop for each number of inputs, which the compiler makes work on several elements at once.
fn apply<Op: Operation, T: Real>(out: &mut [T], a: &[T], b: &[T]) {
    match Op::SHAPE.inputs {
        0 => out.fill(Op::apply(T::default(), T::default())),
        1 => out
            .iter_mut()
            .zip(a)
            .for_each(|(out, a)| *out = Op::apply(*a, T::default())),
        _ => out
            .iter_mut()
            .zip(a.iter().zip(b))
            .for_each(|(out, (a, b))| *out = Op::apply(*a, *b)),
    }
}

pub(super) fn check<Op: Operation, T: Real>(out: &[T], first: u64) -> Verification {
    compare(out, first, Op::SHAPE.tolerance, |index| {
        Op::expected::<T>(
            T::random_exact(SEED_A, index),
            T::random_exact(SEED_B, index),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{super::operations, *};

    #[test]
    fn one_flipped_bit_is_found() {
        let mut work = OnCpu::<operations::Triad, f64>::new(100_003, false);
        work.run().unwrap();
        assert!(work.verify().unwrap().ok);
        work.out[77_777] = f64::from_bits(work.out[77_777].to_bits() ^ 1 << 40);
        let found = work.verify().unwrap();
        assert_eq!(
            (found.ok, found.wrong, found.first_wrong),
            (false, 1, Some(77_777))
        );
    }
}
