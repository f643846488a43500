//! The kernels of `elementwise.cu`, with one thread for each element.

use super::{Known, map_arrays};

/// Arguments: the arrays with the result first, and the number of elements.
pub(super) const KERNELS: &[Known] = &[
    ("vector_add_fp32", |given, _| {
        map_arrays::<f32>(given, 3, 2, |a, b| a + b)
    }),
    ("vector_add_fp64", |given, _| {
        map_arrays::<f64>(given, 3, 2, |a, b| a + b)
    }),
    ("trig_fp32", |given, _| {
        map_arrays::<f32>(given, 2, 1, |a, _| a.cos() * a.cos() + a.sin() * a.sin())
    }),
    ("trig_fp64", |given, _| {
        map_arrays::<f64>(given, 2, 1, |a, _| a.cos() * a.cos() + a.sin() * a.sin())
    }),
    ("square_fp32", |given, _| {
        map_arrays::<f32>(given, 2, 1, |a, _| a * a)
    }),
    ("square_fp64", |given, _| {
        map_arrays::<f64>(given, 2, 1, |a, _| a * a)
    }),
];
