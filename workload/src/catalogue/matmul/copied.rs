//! `matmul-pinned` and `matmul-pageable`: a product of matrices that the host has, with what it costs to bring them and to
//! take the result back.

use super::{
    super::copied::HostMemory,
    MATMUL,
    product::{Product, in_memory, result_bytes},
    values,
};
use crate::{catalogue::prelude::*, parallel::CHUNK, protocol::Shape};

/// As in the tutorial that it is from.
const USUAL_SIDE: u64 = 3000;
/// Of an element of each of the three: what has 32 bits in memory.
const WIDTH: u64 = 4;

pub(in crate::catalogue) static PINNED: Copied = copied(
    "matmul-pinned",
    "Copies two matrices to the GPU, multiplies them there and copies the product back.",
    "The transfers over the bus take several times longer than the product.",
    true,
);
pub(in crate::catalogue) static PAGEABLE: Copied = copied(
    "matmul-pageable",
    "The same as matmul-pinned, from and to pageable host memory.",
    "Keep arrays on the device for as long as you compute with them.",
    false,
);

pub(in crate::catalogue) struct Copied {
    about: About,
    is_pinned: bool,
}

const fn copied(
    id: &'static str,
    does: &'static str,
    teaches: &'static str,
    is_pinned: bool,
) -> Copied {
    let about = About {
        id,
        does,
        teaches,
        dtypes: &[Dtype::Tf32, Dtype::Fp32],
        backends: &[Backend::Cuda],
        bound: Bound::Link,
        extent: Extent::Side,
    };
    Copied { about, is_pinned }
}

impl Workload for Copied {
    fn about(&self) -> &About {
        &self.about
    }

    /// Some GPUs lack one.
    fn every_type(&self) -> bool {
        true
    }

    fn shared(&self, size: Size) -> Option<Shared> {
        super::shared(size, true)
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        USUAL_SIDE
    }

    fn cost(&self, size: Size) -> Cost {
        let host_bytes = super::kernel_select::padded(size.n)
            .saturating_pow(2)
            .saturating_mul(3 * WIDTH);
        Cost {
            host_bytes,
            ..MATMUL.cost(size)
        }
    }

    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        MATMUL.check_device(gpu, dtype)
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        self.check_device(gpu, size.dtype)?;
        let shape = Shape::square(size.n);
        let product = Product::new(gpu, shape, size.dtype)?;
        let on_gpu = gpu.poisoned(result_bytes(shape, size.dtype))?;
        // Whatever is not copied is no number.
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
        Ok(Box::new(Ready {
            gpu,
            product,
            on_gpu,
            a,
            b,
            out,
        }))
    }
}

/// How A and B lie in memory, with B's columns where A's rows are: how many there are, and how far apart the elements are
/// of neighboring rows and of neighboring steps.
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

/// What stands at this place of a matrix: a random element, or a zero around them.
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

/// The matrices of the host lie as those of the GPU do, with zeros around them up to whole tiles, so that each is copied
/// in one piece.
struct Ready<'gpu> {
    gpu: &'gpu Gpu,
    product: Product<'gpu>,
    /// The result there.
    on_gpu: DeviceMemory,
    a: HostMemory<f32>,
    b: HostMemory<f32>,
    out: HostMemory<f32>,
}

impl Prepared for Ready<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            product,
            on_gpu,
            a,
            b,
            out,
        } = self;
        let ready = product.ready()?;
        gpu.time(|queue| {
            a.copy_in(queue, &product.a)?;
            b.copy_in(queue, &product.b)?;
            ready.launch(queue, on_gpu, 0)?;
            out.copy_out(queue, on_gpu)
        })
    }

    /// The product of what is on the GPU is checked there; that this is what the host has, and the host's result what
    /// the GPU has, is checked word by word.
    fn verify(&mut self) -> Result<Verification, RunError> {
        let Self {
            gpu,
            product,
            on_gpu,
            a,
            b,
            out,
        } = self;
        let checked = product.verify(on_gpu)?;
        let copies = [(&product.a, a), (&product.b, b), (&*on_gpu, out)];
        let wrong = copies
            .into_iter()
            .map(|(there, here)| differing(gpu, there, here.slice()))
            .sum::<Result<u64, _>>()?;
        Ok(Verification {
            ok: checked.ok && wrong == 0,
            wrong: checked.wrong + wrong,
            ..checked
        })
    }
}

/// How many words on the GPU are not those of the host.
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
