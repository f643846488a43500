//! The kernels of `random.cu`, which create random data.

use super::{Known, fill_randomly};

/// Arguments: the array, the number of elements, the seed.
pub(super) const KERNELS: &[Known] = &[
    ("random_fp32", |given, _| {
        fill_randomly(given, |bits| {
            ((bits >> 40).cast_signed() - (1 << 23)) as f32 / (1 << 23) as f32
        })
    }),
    ("random_fp64", |given, _| {
        fill_randomly(given, |bits| {
            ((bits >> 11).cast_signed() - (1 << 52)) as f64 / (1_u64 << 52) as f64
        })
    }),
    ("random_u64", |given, _| fill_randomly(given, |bits| bits)),
];
