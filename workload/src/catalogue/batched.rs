//! `matmul-batched`: many small products at once.

use super::{
    matmul::{AMPERE, HOPPER, Tolerance},
    prelude::*,
};
use crate::{
    cpu_product::{CpuProduct, multiply_here},
    parallel::CHUNK,
};

const PRODUCTS: u64 = 1000;
/// The number of elements that a CPU thread checks at a time.
const CHECKED: usize = 1 << 10;
/// The largest side of a product that a single block of `matmul_batched.cu` computes.
const WHOLE: u64 = 104;
/// The sides of tiles in `matmul_any.cu`, smallest first. A larger product consists of several
/// tiles.
const TILES: [u64; 2] = [32, 64];

pub(super) struct MatmulBatched;

impl Program for MatmulBatched {
    fn cost_of(&self, size: Size) -> Cost {
        let elements = elements(size.n);
        let bytes = elements.saturating_mul(3 * size.dtype.bytes());
        let operations = elements.saturating_mul(size.n).saturating_mul(2);
        Cost {
            memory_bytes: bytes,
            host_bytes: 0,
            moved_bytes: bytes,
            operations,
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        of_float!(size.dtype, |Float| on_cuda::<Float>(gpu, size))
    }

    fn on_cpu(&self, size: Size) -> Ready<'static> {
        of_float!(size.dtype, |Float| on_cpu::<Float>(size.n))
    }
}

fn elements(n: u64) -> u64 {
    n.saturating_mul(n).saturating_mul(PRODUCTS)
}

/// The kernel that multiplies, with its launch parameters.
#[derive(Debug)]
struct KernelChoice {
    code: Code,
    /// The number of rows and columns that a block computes.
    tile: u64,
    threads: u32,
    /// The dynamic shared memory of a block.
    shared_bytes: u32,
}

impl KernelChoice {
    fn new(Size { n, dtype }: Size, capability: (u32, u32)) -> Self {
        if n <= TILES[1] || n > WHOLE || capability < AMPERE {
            let tile = TILES
                .into_iter()
                .find(|tile| n <= *tile)
                .unwrap_or(TILES[1]);
            return Self {
                code: kernels::MATMUL_ANY,
                tile,
                threads: THREADS,
                shared_bytes: 0,
            };
        }
        let code = if capability >= HOPPER {
            kernels::MATMUL_BATCHED_HOPPER
        } else {
            kernels::MATMUL_BATCHED
        };
        let (threads, shared_bytes) = match dtype {
            // Three stages, each of 104 rows with 20 elements and 16 rows with 108 elements.
            Dtype::Fp64 => (224, 3 * (104 * 20 + 16 * 108) * 8),
            // Both matrices, each of 104 rows with 108 elements.
            _ => (192, 2 * 104 * 108 * 4),
        };
        Self {
            code,
            tile: WHOLE,
            threads,
            shared_bytes,
        }
    }
}

/// Prepares products on a GPU. The matrices are stored one after another, each row by row.
fn on_cuda<T: CpuProduct>(gpu: &Gpu, size: Size) -> Ready<'_> {
    let Size { n, dtype } = size;
    let KernelChoice {
        code,
        tile,
        threads,
        shared_bytes,
    } = KernelChoice::new(size, gpu.device().capability);
    let kernel = gpu
        .kernel(code, &format!("matmul_batched_{dtype}_{tile}"))?
        .with_shared_memory(shared_bytes)?;
    let grid = Grid {
        blocks: (PRODUCTS * n.div_ceil(tile).pow(2)) as u32,
        threads,
    };
    let a = gpu.random_array::<T>(elements(n), SEED_A)?;
    let b = gpu.random_array::<T>(elements(n), SEED_B)?;
    prepare_work(
        gpu.poisoned(elements(n) * dtype.bytes())?,
        move |out| {
            let arguments = [Out(out), In(&a), In(&b), U64(n)];
            gpu.time(|queue| queue.launch(&kernel, grid, &arguments))
        },
        move |out| {
            let expected = Inputs::<T>::new(n);
            Ok(gpu.check(out, elements(n), |got: &[T], first| {
                expected.check(got, first)
            })?)
        },
    )
}

/// Inputs in host memory, row by row.
struct Inputs<T> {
    a: Vec<T>,
    b: Vec<T>,
    n: usize,
}

impl<T: CpuProduct> Inputs<T> {
    fn new(n: u64) -> Self {
        Self {
            a: T::random_array(elements(n), SEED_A),
            b: T::random_array(elements(n), SEED_B),
            n: n as usize,
        }
    }

    /// Checks elements of the result. `first` is the index of the first element.
    fn check(&self, got: &[T], first: u64) -> Verification {
        let Self { a, b, n } = self;
        let bound = Tolerance::new(T::DTYPE, *n as u64);
        let found = parallel::map(
            (first as usize..).step_by(CHECKED).zip(got.chunks(CHECKED)),
            &|(first, got)| {
                let mut column = vec![T::default(); *n];
                let of_one = |(index, got): (usize, &T)| {
                    let (product, row, across) = (index / (n * n), index / n % n, index % n);
                    let b = &b[product * n * n..][..n * n];
                    column
                        .iter_mut()
                        .zip(b.iter().skip(across).step_by(*n))
                        .for_each(|(to, from)| *to = *from);
                    let (sum, size) = T::exact_sum(&a[product * n * n + row * n..][..*n], &column);
                    let error = bound.error(sum.distance_to(got.to_f64()), sum.abs(), size);
                    Verification::for_element(index as u64, error, 1.0)
                };
                (first..).zip(got).map(of_one).collect()
            },
        );
        found.into_iter().collect()
    }
}

fn on_cpu<T: CpuProduct>(n: u64) -> Ready<'static> {
    let inputs = Inputs::<T>::new(n);
    let out = random::array(elements(n), |_| T::POISON);
    prepare_on_cpu(
        (inputs, out),
        |(Inputs { a, b, n }, out)| {
            let area = *n * *n;
            // A thread computes several products at a time if they are small.
            let piece = (CHUNK / area).max(1) * area;
            let pieces = out
                .chunks_mut(piece)
                .zip(a.chunks(piece).zip(b.chunks(piece)));
            parallel::for_each(pieces, &|(out, (a, b))| {
                let inputs = a.chunks(area).zip(b.chunks(area));
                out.chunks_mut(area)
                    .zip(inputs)
                    .for_each(|(out, (a, b))| multiply_here(out, a, b, *n));
            });
        },
        |(inputs, out)| inputs.check(out, 0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_products_are_a_blocks_where_they_fit_and_the_gpu_has_the_memory() {
        let tile = |n, capability| {
            KernelChoice::new(
                Size {
                    n,
                    dtype: Dtype::Fp64,
                },
                capability,
            )
            .tile
        };
        assert_eq!(
            [20, 32, 33, 64, 65, 104, 105].map(|n| tile(n, HOPPER)),
            [32, 32, 64, 64, 104, 104, 64]
        );
        assert_eq!(
            [(7, 5), AMPERE, (12, 0)].map(|capability| tile(100, capability)),
            [64, 104, 104]
        );
    }

    #[test]
    fn a_kernel_has_the_threads_and_the_memory_that_its_source_names() {
        let source = include_str!("../../kernels/matmul_batched.cu");
        let named = |name: &str| {
            let (_, rest) = source.split_once(&format!("{name} = ")).unwrap();
            rest.split(|letter: char| !letter.is_ascii_digit())
                .next()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        let (side, slab, beyond) = (named("SIDE"), named("SLAB"), 4);
        assert_eq!(side, WHOLE);
        let of = |dtype| {
            let KernelChoice {
                threads,
                shared_bytes,
                ..
            } = KernelChoice::new(Size { n: side, dtype }, HOPPER);
            (u64::from(threads), u64::from(shared_bytes))
        };
        assert_eq!(
            of(Dtype::Fp32),
            (named("THREADS_32"), 2 * side * (side + beyond) * 4)
        );
        let stage = side * (slab + beyond) + slab * (side + beyond);
        assert_eq!(
            of(Dtype::Fp64),
            (named("THREADS_64"), named("STAGES") * stage * 8)
        );
    }
}
