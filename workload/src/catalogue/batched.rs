//! `matmul-batched`: many small matrix products in one launch.

use super::{
    matmul::{AMPERE, HOPPER, Tolerance},
    prelude::*,
};
use crate::{
    cpu_product::{CpuProduct, multiply_on_this_thread},
    parallel::CHUNK_ELEMENTS,
};

const PRODUCT_COUNT: u64 = 1000;
/// The number of elements that a CPU thread checks at a time.
const CHECKED_ELEMENTS: usize = 1 << 10;
/// The largest side of a product that `matmul_batched.cu` computes with a single block.
const MAX_WHOLE_SIDE: u64 = 104;
/// The tile sides of the kernels in `matmul_any.cu`, smallest first. They divide a larger product
/// into several tiles.
const TILE_SIDES: [u64; 2] = [32, 64];

pub(super) struct MatmulBatched;

impl Program for MatmulBatched {
    fn cost_of(&self, size: Size) -> Cost {
        let elements = count_elements(size.n);
        let bytes = elements.saturating_mul(3 * size.dtype.bytes());
        let operations = elements.saturating_mul(size.n).saturating_mul(2);
        Cost {
            memory_bytes: bytes,
            host_bytes: 0,
            moved_bytes: bytes,
            operations,
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        of_float!(size.dtype, |Float| prepare_on_gpu::<Float>(gpu, size))
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        of_float!(size.dtype, |Float| prepare_on_threads::<Float>(size.n))
    }
}

fn count_elements(n: u64) -> u64 {
    n.saturating_mul(n).saturating_mul(PRODUCT_COUNT)
}

/// A kernel for the products, with its launch parameters.
#[derive(Debug)]
struct KernelChoice {
    code: Code,
    /// The number of rows and columns of the tile that a block computes.
    tile: u64,
    threads: u32,
    /// The size of a block's dynamic shared memory in bytes.
    shared_bytes: u32,
}

impl KernelChoice {
    fn new(Size { n, dtype }: Size, capability: (u32, u32)) -> Self {
        if n <= TILE_SIDES[1] || n > MAX_WHOLE_SIDE || capability < AMPERE {
            let tile = TILE_SIDES
                .into_iter()
                .find(|tile| n <= *tile)
                .unwrap_or(TILE_SIDES[1]);
            return Self {
                code: kernels::MATMUL_ANY,
                tile,
                threads: THREADS_PER_BLOCK,
                shared_bytes: 0,
            };
        }
        let code = if capability >= HOPPER {
            kernels::MATMUL_BATCHED_HOPPER
        } else {
            kernels::MATMUL_BATCHED
        };
        let (threads, shared_bytes) = match dtype {
            // Shared memory contains three stages, each with 104 rows of 20 elements and 16 rows of
            // 108 elements.
            Dtype::Fp64 => (224, 3 * (104 * 20 + 16 * 108) * 8),
            // Shared memory contains both matrices, each with 104 rows of 108 elements.
            _ => (192, 2 * 104 * 108 * 4),
        };
        Self {
            code,
            tile: MAX_WHOLE_SIDE,
            threads,
            shared_bytes,
        }
    }
}

/// Prepares products on a GPU. The matrices are stored one after another, each in row-major order.
fn prepare_on_gpu<T: CpuProduct>(gpu: &Gpu, size: Size) -> PreparedResult<'_> {
    let Size { n, dtype } = size;
    let KernelChoice {
        code,
        tile,
        threads,
        shared_bytes,
    } = KernelChoice::new(size, gpu.device().capability);
    let kernel = gpu
        .load_kernel(code, &format!("matmul_batched_{dtype}_{tile}"))?
        .with_shared_memory(shared_bytes)?;
    let grid = Grid {
        blocks: (PRODUCT_COUNT * n.div_ceil(tile).pow(2)) as u32,
        threads,
    };
    let a = gpu.allocate_random_array::<T>(count_elements(n), SEED_A)?;
    let b = gpu.allocate_random_array::<T>(count_elements(n), SEED_B)?;
    prepare_work(
        gpu.allocate_poisoned(count_elements(n) * dtype.bytes())?,
        move |out| {
            let arguments = [Out(out), In(&a), In(&b), U64(n)];
            gpu.run_timed(|queue| queue.launch(&kernel, grid, &arguments))
        },
        move |out| {
            let expected = Inputs::<T>::new(n);
            Ok(
                gpu.check_memory_in_pieces(out, count_elements(n), |got: &[T], first| {
                    expected.check_elements(got, first)
                })?,
            )
        },
    )
}

/// The inputs in host memory, in row-major order.
struct Inputs<T> {
    a: Vec<T>,
    b: Vec<T>,
    n: usize,
}

impl<T: CpuProduct> Inputs<T> {
    fn new(n: u64) -> Self {
        Self {
            a: T::random_array(count_elements(n), SEED_A),
            b: T::random_array(count_elements(n), SEED_B),
            n: n as usize,
        }
    }

    /// Checks some elements of the result. `first` is the index of the first element in `got`.
    fn check_elements(&self, got: &[T], first: u64) -> Verification {
        let Self { a, b, n } = self;
        let bound = Tolerance::new(T::DTYPE, *n as u64);
        let found = parallel::map(
            (first as usize..)
                .step_by(CHECKED_ELEMENTS)
                .zip(got.chunks(CHECKED_ELEMENTS)),
            &|(first, got)| {
                let mut column = vec![T::default(); *n];
                let of_one = |(index, got): (usize, &T)| {
                    let (product, row, across) = (index / (n * n), index / n % n, index % n);
                    let b = &b[product * n * n..][..n * n];
                    column
                        .iter_mut()
                        .zip(b.iter().skip(across).step_by(*n))
                        .for_each(|(to, from)| *to = *from);
                    let (sum, size) =
                        T::exact_dot_product(&a[product * n * n + row * n..][..*n], &column);
                    bound.check_element(index as u64, got.to_f64(), sum, size)
                };
                (first..).zip(got).map(of_one).collect()
            },
        );
        found.into_iter().collect()
    }
}

fn prepare_on_threads<T: CpuProduct>(n: u64) -> PreparedResult<'static> {
    let inputs = Inputs::<T>::new(n);
    let out = numbers::generate_array(count_elements(n), |_| T::POISON);
    prepare_cpu_work(
        (inputs, out),
        |(Inputs { a, b, n }, out)| {
            let area = *n * *n;
            // If the products are small, a thread computes several of them at a time.
            let piece = (CHUNK_ELEMENTS / area).max(1) * area;
            let pieces = out
                .chunks_mut(piece)
                .zip(a.chunks(piece).zip(b.chunks(piece)));
            parallel::for_each(pieces, &|(out, (a, b))| {
                let inputs = a.chunks(area).zip(b.chunks(area));
                out.chunks_mut(area)
                    .zip(inputs)
                    .for_each(|(out, (a, b))| multiply_on_this_thread(out, a, b, *n));
            });
        },
        |(inputs, out)| inputs.check_elements(out, 0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_block_computes_whole_product_if_it_fits() {
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
    fn launch_parameters_match_kernel_source() {
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
        assert_eq!(side, MAX_WHOLE_SIDE);
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
