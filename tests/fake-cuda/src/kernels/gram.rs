//! The kernels of `gram.cu`: products of small matrices and their transposes.

use super::Known;

const SIDE: usize = 100;
const AREA: u64 = 10_000;

/// Arguments: the result and its input, with one block for each matrix. The arguments of
/// `gram_tiles` are the result, its trace, the matrix, and two arrays that are only needed if
/// blocks run in parallel.
pub(super) const KERNELS: &[Known] = &[
    ("gram", |given, blocks| {
        let out = given.array_at::<f32>(0, blocks * AREA);
        let matrices = given.array_at::<f32>(1, blocks * AREA);
        for (out, matrix) in out
            .chunks_mut(AREA as usize)
            .zip(matrices.chunks(AREA as usize))
        {
            multiply_by_transpose(out, matrix);
        }
        (given.read_argument(0), size_of_val(out))
    }),
    ("gram_tiles", |given, _| {
        let out = given.array_at::<f32>(0, AREA);
        multiply_by_transpose(out, given.array_at::<f32>(2, AREA));
        given.array_at(1, 1)[0] = sum_diagonal(out);
        (given.read_argument(0), size_of_val(out))
    }),
    ("trace", |given, blocks| {
        let out = given.array_at::<f32>(0, blocks);
        let products = given.array_at::<f32>(1, blocks * AREA);
        for (out, product) in out.iter_mut().zip(products.chunks(AREA as usize)) {
            *out = sum_diagonal(product);
        }
        (given.read_argument(0), size_of_val(out))
    }),
];

fn multiply_by_transpose(out: &mut [f32], matrix: &[f32]) {
    for (row, out) in matrix.chunks(SIDE).zip(out.chunks_mut(SIDE)) {
        for (column, out) in matrix.chunks(SIDE).zip(out) {
            *out = row.iter().zip(column).map(|(a, b)| a * b).sum();
        }
    }
}

fn sum_diagonal(product: &[f32]) -> f32 {
    product.iter().step_by(SIDE + 1).sum()
}
