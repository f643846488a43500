//! `matmul-pinned` and `matmul-pageable`: a product of matrices in host memory, timed with the
//! copies to the GPU and back.

use super::{
    super::transfer::HostMemory,
    Matmul,
    product::{Product, in_memory, result_bytes},
    values,
};
use crate::{catalogue::prelude::*, parallel::CHUNK, protocol::Shape};

/// The size of an element in memory, which has 32 bits in all three matrices.
const WIDTH: u64 = 4;

pub(in crate::catalogue) const DTYPES: &[Dtype] = &[Dtype::Tf32, Dtype::Fp32];

/// A product of matrices in host memory.
///
/// The host's matrices have the same layout as those of the GPU, with zeros around them up to whole
/// tiles, so that each is copied in one piece.
pub(in crate::catalogue) struct Copied {
    pub(in crate::catalogue) is_pinned: bool,
}

impl Program for Copied {
    fn cost_of(&self, size: Size) -> Cost {
        let host_bytes = super::kernel_select::padded(size.n)
            .saturating_pow(2)
            .saturating_mul(3 * WIDTH);
        Cost {
            host_bytes,
            ..Matmul::SQUARE.cost_of(size)
        }
    }

    /// Returns both types, because some GPUs lack one of them.
    fn each_type(&self, _: Backend) -> Option<&'static [Dtype]> {
        Some(DTYPES)
    }

    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        Matmul::SQUARE.check_device(gpu, dtype)
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        self.check_device(gpu, size.dtype)?;
        let shape = Shape::square(size.n);
        let product = Product::new(gpu, shape, size.dtype)?;
        let on_gpu = gpu.poisoned(result_bytes(shape, size.dtype))?;
        // Elements that are not copied remain poison.
        [&product.a, &product.b]
            .into_iter()
            .try_for_each(|matrix| gpu.poison(matrix))?;
        let lie = Lie::new(&product);
        let elements = lie.pitch * lie.pitch;
        let host = || HostMemory::<f32>::new(gpu, elements, self.is_pinned);
        let (mut a, mut b, mut out) = (host()?, host()?, host()?);
        for (matrix, seed) in [(&mut a, SEED_A), (&mut b, SEED_B)] {
            fill(matrix.slice_mut(), |place| element(size, lie, seed, place));
        }
        fill(out.slice_mut(), |_| f32::POISON);
        prepare_work(
            (product, on_gpu, [a, b, out]),
            |(product, on_gpu, [a, b, out])| {
                let ready = product.ready()?;
                product.gpu.time(|queue| {
                    a.copy_in(queue, &product.a)?;
                    b.copy_in(queue, &product.b)?;
                    ready.launch(queue, on_gpu, 0)?;
                    out.copy_out(queue, on_gpu)
                })
            },
            // The product is verified on the GPU. The comparison of all words then shows that the
            // matrices and the result are the same on the GPU and the host.
            |(product, on_gpu, [a, b, out])| {
                let checked = product.verify(on_gpu)?;
                let wrong = [(&product.a, a), (&product.b, b), (&*on_gpu, out)]
                    .into_iter()
                    .map(|(there, here)| differing(product.gpu, there, here.slice()))
                    .sum::<Result<u64, _>>()?;
                Ok(Verification {
                    ok: checked.ok && wrong == 0,
                    wrong: checked.wrong + wrong,
                    ..checked
                })
            },
        )
    }

    fn shared_operation(&self, size: Size) -> Option<Shared> {
        super::shared(size, true)
    }
}

/// The layout of A and B in memory, with B's columns in the role of A's rows: the length of a line,
/// and the distances between the elements of neighboring rows and of neighboring steps.
#[derive(Debug, Clone, Copy)]
struct Lie {
    pitch: u64,
    row: u64,
    step: u64,
}

impl Lie {
    fn new(product: &Product<'_>) -> Self {
        let pitch = in_memory(product.shape).depth;
        let (row, step) = product.choice.layout.strides(pitch);
        Self { pitch, row, step }
    }
}

/// Returns the value at a position of a matrix: a random element, or a zero around the elements.
fn element(Size { n, dtype }: Size, Lie { pitch, row, step }: Lie, seed: u64, place: u64) -> f32 {
    let (first, second) = (place / pitch, place % pitch);
    let (row, step) = if row > step {
        (first, second)
    } else {
        (second, first)
    };
    if row < n && step < n {
        values::random(dtype, seed, row * n + step) as f32
    } else {
        0.0
    }
}

/// Returns the number of words that differ between the GPU and the host.
fn differing(gpu: &Gpu, there: &DeviceMemory, here: &[f32]) -> Result<u64, CudaError> {
    let found = gpu.check(there, here.len() as u64, |piece: &[f32], first| {
        let words = piece
            .chunks(CHUNK)
            .zip(here[first as usize..].chunks(CHUNK));
        let wrong = parallel::map(words, &|(a, b)| {
            a.iter()
                .zip(b)
                .filter(|(a, b)| a.to_bits() != b.to_bits())
                .count()
        });
        Verification::for_words(piece.len() as u64, wrong.into_iter().sum::<usize>() as u64)
    })?;
    Ok(found.wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_as_the_kernel_wants_them_with_zeros_around() {
        let size = Size {
            n: 3,
            dtype: Dtype::Fp32,
        };
        let expected =
            |row: u64, step: u64| values::random(Dtype::Fp32, SEED_A, row * 3 + step) as f32;
        let by_rows = Lie {
            pitch: 4,
            row: 4,
            step: 1,
        };
        let by_steps = Lie {
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
                element(size, lie, SEED_A, place).to_bits(),
                value.to_bits(),
                "{place}"
            );
        }
    }
}
