//! The kernels of `selu.cu`: SELU, and the operations that it consists of.

use super::{Known, map_arrays};

/// Arguments: the arrays with the result first, then numbers, then the number of elements.
pub(super) const KERNELS: &[Known] = &[
    ("op_exp", |given, _| {
        map_arrays::<f32>(given, 2, 1, |a, _| a.exp())
    }),
    ("op_multiply", |given, _| {
        map_arrays::<f32>(given, 3, 1, |a, _| a * given.read_argument::<f32>(2))
    }),
    ("op_subtract", |given, _| {
        map_arrays::<f32>(given, 3, 1, |a, _| a - given.read_argument::<f32>(2))
    }),
    ("op_is_positive", |given, _| {
        let out = given.array_at::<u8>(0, given.read_argument(2));
        let input = given.array_at::<f32>(1, given.read_argument(2));
        out.iter_mut()
            .zip(input)
            .for_each(|(out, a)| *out = u8::from(*a > 0.0));
        (given.read_argument(0), size_of_val(out))
    }),
    ("op_select", |given, _| {
        let elements = given.read_argument(4);
        let out = given.array_at::<f32>(0, elements);
        let which = given.array_at::<u8>(1, elements);
        let (a, b) = (
            given.array_at::<f32>(2, elements),
            given.array_at::<f32>(3, elements),
        );
        for (index, out) in out.iter_mut().enumerate() {
            *out = if which[index] == 0 {
                b[index]
            } else {
                a[index]
            };
        }
        (given.read_argument(0), size_of_val(out))
    }),
    ("selu", |given, _| {
        let (alpha, scale): (f32, f32) = (given.read_argument(2), given.read_argument(3));
        map_arrays::<f32>(given, 4, 1, |x, _| {
            if x > 0.0 {
                x * scale
            } else {
                (x.exp() * alpha - alpha) * scale
            }
        })
    }),
];
