//! The kernel of `matvec.cu`: a matrix times vectors.

use super::Known;

/// Arguments: the results, the matrix, the vectors, rows, columns, the number of vectors.
pub(super) const KERNELS: &[Known] = &[("matvec", |given, _| {
    let (rows, columns, count): (u64, u64, u64) = (given.at(3), given.at(4), given.at(5));
    let out = given.array::<f32>(0, rows * count);
    let matrix = given.array::<f32>(1, rows * columns);
    let vectors = given.array::<f32>(2, columns * count);
    for (out, vector) in out
        .chunks_mut(rows as usize)
        .zip(vectors.chunks(columns as usize))
    {
        for (out, row) in out.iter_mut().zip(matrix.chunks(columns as usize)) {
            *out = row.iter().zip(vector).map(|(a, b)| a * b).sum();
        }
    }
    (given.at(0), size_of_val(out))
})];
