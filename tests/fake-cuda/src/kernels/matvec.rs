//! The kernel of `matvec.cu`: a matrix times vectors.

use super::Known;

/// Arguments: the results, the matrix, the vectors, rows, columns, the number of vectors.
pub(super) const KERNELS: &[Known] = &[("matvec", |given, _| {
    let (rows, columns, count): (u64, u64, u64) = (
        given.read_argument(3),
        given.read_argument(4),
        given.read_argument(5),
    );
    let out = given.array_at::<f32>(0, rows * count);
    let matrix = given.array_at::<f32>(1, rows * columns);
    let vectors = given.array_at::<f32>(2, columns * count);
    for (out, vector) in out
        .chunks_mut(rows as usize)
        .zip(vectors.chunks(columns as usize))
    {
        for (out, row) in out.iter_mut().zip(matrix.chunks(columns as usize)) {
            *out = row.iter().zip(vector).map(|(a, b)| a * b).sum();
        }
    }
    (given.read_argument(0), size_of_val(out))
})];
