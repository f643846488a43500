//! The kernels of `stream.cu`: the STREAM benchmark.

use super::{Known, map_arrays, sum_words};

/// Arguments: three arrays, STREAM's factor, the number of elements.
pub(super) const KERNELS: &[Known] = &[
    ("stream_copy_fp32", |given, _| {
        map_arrays::<f32>(given, 4, 1, |a, _| a)
    }),
    ("stream_copy_fp64", |given, _| {
        map_arrays::<f64>(given, 4, 1, |a, _| a)
    }),
    ("stream_scale_fp32", |given, _| {
        map_arrays::<f32>(given, 4, 1, |a, _| given.read_argument::<f32>(3) * a)
    }),
    ("stream_scale_fp64", |given, _| {
        map_arrays::<f64>(given, 4, 1, |a, _| given.read_argument::<f64>(3) * a)
    }),
    ("stream_add_fp32", |given, _| {
        map_arrays::<f32>(given, 4, 2, |a, b| a + b)
    }),
    ("stream_add_fp64", |given, _| {
        map_arrays::<f64>(given, 4, 2, |a, b| a + b)
    }),
    ("stream_triad_fp32", |given, _| {
        map_arrays::<f32>(given, 4, 2, |a, b| a + given.read_argument::<f32>(3) * b)
    }),
    ("stream_triad_fp64", |given, _| {
        map_arrays::<f64>(given, 4, 2, |a, b| a + given.read_argument::<f64>(3) * b)
    }),
    ("stream_write_fp32", |given, _| {
        map_arrays::<f32>(given, 4, 0, |_, _| given.read_argument(3))
    }),
    ("stream_write_fp64", |given, _| {
        map_arrays::<f64>(given, 4, 0, |_, _| given.read_argument(3))
    }),
    ("stream_read_fp32", |given, blocks| {
        sum_words(given, blocks, |word: u32| u64::from(word))
    }),
    ("stream_read_fp64", |given, blocks| {
        sum_words(given, blocks, |word: u64| word)
    }),
];
