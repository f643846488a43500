//! `matmul-pinned` and `matmul-pageable`: a product of matrices in host memory, timed with the
//! copies to the GPU and back.

use super::{
    super::transfer::HostMemory,
    Matmul,
    on_cuda::{Product, padded_shape, result_bytes},
    values,
};
use crate::{catalogue::prelude::*, parallel::CHUNK_ELEMENTS, protocol::Shape};

/// The size of an element in bytes, in all three matrices.
const ELEMENT_BYTES: u64 = 4;

pub(in crate::catalogue) const DTYPES: &[Dtype] = &[Dtype::Tf32, Dtype::Fp32];

/// A product of matrices in host memory.
///
/// The matrices in host memory have the same layout as on the GPU, including the zeros that pad
/// them to whole tiles, so that each matrix is copied in one piece.
pub(in crate::catalogue) struct CopiedMatmul {
    pub(in crate::catalogue) is_pinned: bool,
}

impl Program for CopiedMatmul {
    fn cost_of(&self, size: Size) -> Cost {
        let host_bytes = super::kernel_select::padded_row_count(size.n)
            .saturating_pow(2)
            .saturating_mul(3 * ELEMENT_BYTES);
        Cost {
            host_bytes,
            ..Matmul::SQUARE.cost_of(size)
        }
    }

    /// Returns both types, because not every GPU has kernels for both.
    fn default_types(&self, _: Backend) -> Option<&'static [Dtype]> {
        Some(DTYPES)
    }

    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        Matmul::SQUARE.check_device(gpu, dtype)
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        self.check_device(gpu, size.dtype)?;
        let shape = Shape::from_side(size.n);
        let product = Product::new(gpu, shape, size.dtype)?;
        let on_gpu = gpu.allocate_poisoned(result_bytes(shape, size.dtype))?;
        // The matrices on the GPU are filled with poison, so that elements that are not copied are
        // detected.
        [&product.a, &product.b]
            .into_iter()
            .try_for_each(|matrix| gpu.fill_with_poison(matrix))?;
        let lie = MatrixStrides::new(&product);
        let elements = lie.pitch * lie.pitch;
        let host = || HostMemory::<f32>::new(gpu, elements, self.is_pinned);
        let (mut a, mut b, mut out) = (host()?, host()?, host()?);
        for (matrix, seed) in [(&mut a, SEED_A), (&mut b, SEED_B)] {
            fill_elements(matrix.slice_mut(), |place| {
                padded_element_at(size, lie, seed, place)
            });
        }
        fill_elements(out.slice_mut(), |_| f32::POISON);
        prepare_work(
            (product, on_gpu, [a, b, out]),
            |(product, on_gpu, [a, b, out])| {
                let ready = product.prepare_launch()?;
                product.gpu.run_timed(|queue| {
                    a.copy_to_device(queue, &product.a)?;
                    b.copy_to_device(queue, &product.b)?;
                    ready.launch(queue, on_gpu, 0)?;
                    out.copy_from_device(queue, on_gpu)
                })
            },
            // The product is verified on the GPU. After that, all words of the matrices and of the
            // result are compared between the GPU and the host.
            |(product, on_gpu, [a, b, out])| {
                let checked = product.verify(on_gpu)?;
                let wrong = [(&product.a, a), (&product.b, b), (&*on_gpu, out)]
                    .into_iter()
                    .map(|(there, here)| count_differences(product.gpu, there, here.slice()))
                    .sum::<Result<u64, _>>()?;
                Ok(Verification {
                    ok: checked.ok && wrong == 0,
                    wrong: checked.wrong + wrong,
                    ..checked
                })
            },
        )
    }

    fn operation_for_frameworks(&self, size: Size) -> Option<SharedOperation> {
        super::product_for_frameworks(size, true)
    }
}

/// The layout of A and B in memory. B's columns are treated like A's rows. The fields are the
/// number of elements in a line, the distance between neighboring rows, and the distance between
/// neighboring steps.
#[derive(Debug, Clone, Copy)]
struct MatrixStrides {
    pitch: u64,
    row: u64,
    step: u64,
}

impl MatrixStrides {
    fn new(product: &Product<'_>) -> Self {
        let pitch = padded_shape(product.shape).depth;
        let (row, step) = product.choice.layout.row_and_step_strides(pitch);
        Self { pitch, row, step }
    }
}

/// Returns the value at a position of a padded matrix: a random element, or zero in the padding.
fn padded_element_at(
    Size { n, dtype }: Size,
    MatrixStrides { pitch, row, step }: MatrixStrides,
    seed: u64,
    place: u64,
) -> f32 {
    let (first, second) = (place / pitch, place % pitch);
    let (row, step) = if row > step {
        (first, second)
    } else {
        (second, first)
    };
    if row < n && step < n {
        values::random_value(dtype, seed, row * n + step) as f32
    } else {
        0.0
    }
}

/// Returns the number of words that differ between a matrix on the GPU and its copy on the host.
fn count_differences(gpu: &Gpu, there: &DeviceMemory, here: &[f32]) -> Result<u64, CudaError> {
    let found = gpu.check_memory_in_pieces(there, here.len() as u64, |piece: &[f32], first| {
        let words = piece
            .chunks(CHUNK_ELEMENTS)
            .zip(here[first as usize..].chunks(CHUNK_ELEMENTS));
        let wrong = parallel::map(words, &|(a, b)| {
            a.iter()
                .zip(b)
                .filter(|(a, b)| a.to_bits() != b.to_bits())
                .count()
        });
        Verification::from_word_counts(piece.len() as u64, wrong.into_iter().sum::<usize>() as u64)
    })?;
    Ok(found.wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_elements_match_kernel_layout_with_zero_padding() {
        let size = Size {
            n: 3,
            dtype: Dtype::Fp32,
        };
        let expected =
            |row: u64, step: u64| values::random_value(Dtype::Fp32, SEED_A, row * 3 + step) as f32;
        let by_rows = MatrixStrides {
            pitch: 4,
            row: 4,
            step: 1,
        };
        let by_steps = MatrixStrides {
            pitch: 4,
            row: 1,
            step: 4,
        };
        for (lie, place, value) in [
            (by_rows, 4 + 2, expected(1, 2)),
            (by_steps, 4 + 2, expected(2, 1)),
            (by_rows, 3, 0.0),
            (by_steps, 13, 0.0),
        ] {
            assert_eq!(
                padded_element_at(size, lie, SEED_A, place).to_bits(),
                value.to_bits(),
                "{place}"
            );
        }
    }
}
