//! What is done with each element, and what should come of it.

use crate::{check::Expected, double_double::DoubleDouble, real::Real};

/// The number that STREAM multiplies with. It has no short form, so that rounding shows.
const SCALAR: f64 = 0.42;

/// An operation on the elements of up to two arrays. What it has no input for is 0.
pub(super) trait Operation: Sync + 'static {
    /// What kernels, costs and checks need to know of it.
    const SHAPE: Shape;

    fn apply<T: Real>(a: T, b: T) -> T;
    fn expected<T: Real>(a: DoubleDouble, b: DoubleDouble) -> Expected;
}

pub(super) struct Shape {
    /// What frameworks call it; `None` where they have no such operation.
    pub(super) framework: Option<&'static str>,
    /// Its kernel, without the type at the end.
    pub(super) kernel: &'static str,
    pub(super) form: Form,
    pub(super) inputs: u64,
    /// Floating point operations for each element.
    pub(super) operations: u64,
    /// The largest error, in units of the type's precision at the size of what was computed with.
    pub(super) tolerance: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One of `stream.cu`: several packs for each thread.
    Stream,
    /// One of `elementwise.cu`: an element for each thread.
    Thread,
}

pub(super) fn scalar<T: Real>() -> T {
    T::from_f64(SCALAR)
}

pub(super) struct Copy;
pub(super) struct Scale;
pub(super) struct Add;
pub(super) struct Triad;
pub(super) struct Write;
pub(super) struct VectorAdd;
pub(super) struct Trig;
pub(super) struct Square;

impl Operation for Copy {
    const SHAPE: Shape = Shape {
        framework: None,
        kernel: "stream_copy",
        form: Form::Stream,
        inputs: 1,
        operations: 0,
        tolerance: 0.0,
    };

    fn apply<T: Real>(a: T, _: T) -> T {
        a
    }
    fn expected<T: Real>(a: DoubleDouble, _: DoubleDouble) -> Expected {
        rounded(a)
    }
}

impl Operation for Scale {
    const SHAPE: Shape = Shape {
        framework: Some("scale"),
        kernel: "stream_scale",
        form: Form::Stream,
        inputs: 1,
        operations: 1,
        tolerance: 0.5,
    };

    fn apply<T: Real>(a: T, _: T) -> T {
        scalar::<T>() * a
    }
    fn expected<T: Real>(a: DoubleDouble, _: DoubleDouble) -> Expected {
        rounded(DoubleDouble::from_f64(scalar::<T>().to_f64()) * a)
    }
}

impl Operation for Add {
    const SHAPE: Shape = Shape {
        framework: Some("add"),
        kernel: "stream_add",
        form: Form::Stream,
        inputs: 2,
        operations: 1,
        tolerance: 0.5,
    };

    fn apply<T: Real>(a: T, b: T) -> T {
        a + b
    }
    fn expected<T: Real>(a: DoubleDouble, b: DoubleDouble) -> Expected {
        rounded(a + b)
    }
}

impl Operation for Triad {
    /// Rounded twice, or once where the hardware fuses both operations.
    const SHAPE: Shape = Shape {
        framework: Some("triad"),
        kernel: "stream_triad",
        form: Form::Stream,
        inputs: 2,
        operations: 2,
        tolerance: 1.0,
    };

    fn apply<T: Real>(a: T, b: T) -> T {
        a + scalar::<T>() * b
    }
    fn expected<T: Real>(a: DoubleDouble, b: DoubleDouble) -> Expected {
        let product = DoubleDouble::from_f64(scalar::<T>().to_f64()) * b;
        Expected {
            value: a + product,
            scale: a.abs() + product.abs(),
        }
    }
}

impl Operation for Write {
    const SHAPE: Shape = Shape {
        framework: None,
        kernel: "stream_write",
        form: Form::Stream,
        inputs: 0,
        operations: 0,
        tolerance: 0.0,
    };

    fn apply<T: Real>(_: T, _: T) -> T {
        scalar()
    }
    fn expected<T: Real>(_: DoubleDouble, _: DoubleDouble) -> Expected {
        rounded(DoubleDouble::from_f64(scalar::<T>().to_f64()))
    }
}

impl Operation for VectorAdd {
    const SHAPE: Shape = Shape {
        framework: Some("add"),
        kernel: "vector_add",
        form: Form::Thread,
        inputs: 2,
        operations: 1,
        tolerance: 0.5,
    };

    fn apply<T: Real>(a: T, b: T) -> T {
        a + b
    }
    fn expected<T: Real>(a: DoubleDouble, b: DoubleDouble) -> Expected {
        rounded(a + b)
    }
}

impl Operation for Trig {
    /// Two units for each function, as CUDA's manual has it, are four of the squares; rounding those and the sum is less
    /// than two more.
    const SHAPE: Shape = Shape {
        framework: Some("trig"),
        kernel: "trig",
        form: Form::Thread,
        inputs: 1,
        operations: 5,
        tolerance: 6.0,
    };

    fn apply<T: Real>(a: T, _: T) -> T {
        let (cosine, sine) = a.cos_sin();
        cosine * cosine + sine * sine
    }
    /// The one thing that is known of it without computing: no precision is higher.
    fn expected<T: Real>(_: DoubleDouble, _: DoubleDouble) -> Expected {
        rounded(DoubleDouble::from_f64(1.0))
    }
}

impl Operation for Square {
    const SHAPE: Shape = Shape {
        framework: Some("square"),
        kernel: "square",
        form: Form::Thread,
        inputs: 1,
        operations: 1,
        tolerance: 0.5,
    };

    fn apply<T: Real>(a: T, _: T) -> T {
        a * a
    }
    fn expected<T: Real>(a: DoubleDouble, _: DoubleDouble) -> Expected {
        rounded(a * a)
    }
}

/// A value that is rounded once.
fn rounded(value: DoubleDouble) -> Expected {
    Expected {
        value,
        scale: value.abs(),
    }
}
