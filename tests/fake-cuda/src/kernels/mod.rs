//! The program's kernels by name. There is one file for each file in `workload/kernels`.

mod burn;
mod chase;
mod elementwise;
mod gram;
mod launch;
mod matmul;
mod matvec;
mod oom;
mod random;
mod reduce;
mod selu;
mod spin;
mod stream;
mod train;
mod transcendental;

use std::{ffi::c_void, slice};

use crate::{
    activity::record_traffic,
    code::{Code, Outcome},
};

/// The arguments of a kernel in the driver's format: a pointer to each of them.
#[derive(Clone, Copy)]
pub(crate) struct Arguments(pub(crate) *const *const c_void);

/// A function that executes a kernel. It returns the address of the kernel's output and the number
/// of bytes.
pub(crate) type KernelFunction = fn(Arguments, blocks: u64) -> (u64, usize);

pub(crate) type Known = (&'static str, KernelFunction);

static KERNEL_TABLES: [&[Known]; 15] = [
    burn::KERNELS,
    chase::KERNELS,
    elementwise::KERNELS,
    gram::KERNELS,
    launch::KERNELS,
    matmul::KERNELS,
    matvec::KERNELS,
    oom::KERNELS,
    random::KERNELS,
    reduce::KERNELS,
    selu::KERNELS,
    spin::KERNELS,
    stream::KERNELS,
    train::KERNELS,
    transcendental::KERNELS,
];

/// The maximum number of threads in a block, and the number of registers that these threads share.
const MAX_THREADS: u32 = 1024;
const MAX_REGISTERS: u32 = 65_536;

pub(crate) fn find_kernel(name: &str) -> Option<&'static Known> {
    KERNEL_TABLES
        .into_iter()
        .flatten()
        .find(|(known, _)| *known == name)
}

/// Checks whether a kernel can run with this many threads in a block.
pub(crate) fn check_threads(name: &str, threads: u32) -> Outcome {
    match threads {
        0 => Err(Code::INVALID_VALUE),
        _ if threads > MAX_THREADS => Err(Code::INVALID_VALUE),
        _ if threads * oom::registers_per_thread(name) > MAX_REGISTERS => {
            Err(Code::LAUNCH_OUT_OF_RESOURCES)
        }
        _ => Ok(()),
    }
}

impl Arguments {
    fn read_argument<T: Copy>(self, index: usize) -> T {
        // SAFETY: the caller passes all arguments that the kernel of this name has, each with the
        // right type.
        unsafe { (*self.0.add(index)).cast::<T>().read_unaligned() }
    }

    /// Returns the array at the address in an argument.
    fn array_at<'a, T>(self, index: usize, elements: u64) -> &'a mut [T] {
        // SAFETY: as on a device, the caller guarantees that the array has this many elements.
        unsafe {
            slice::from_raw_parts_mut(
                self.read_argument::<u64>(index) as *mut T,
                elements as usize,
            )
        }
    }
}

/// Computes each element of the first array. The inputs are the elements with the same index in up
/// to two other arrays.
fn map_arrays<T: Copy + Default>(
    given: Arguments,
    count: usize,
    inputs: usize,
    of: impl Fn(T, T) -> T,
) -> (u64, usize) {
    let elements: u64 = given.read_argument(count);
    let out = given.array_at::<T>(0, elements);
    let input = |index| {
        if inputs >= index {
            &*given.array_at::<T>(index, elements)
        } else {
            &[]
        }
    };
    let (a, b) = (input(1), input(2));
    let or_zero = |array: &[T], index| array.get(index).copied().unwrap_or_default();
    out.iter_mut()
        .enumerate()
        .for_each(|(index, out)| *out = of(or_zero(a, index), or_zero(b, index)));
    record_traffic((1 + inputs) * size_of_val(out));
    (given.read_argument(0), size_of_val(out))
}

/// Writes the sum of all words into the output, which has one element for each block. The first
/// element is the sum, and the others are 0.
fn sum_words<T: Copy>(given: Arguments, blocks: u64, word: impl Fn(T) -> u64) -> (u64, usize) {
    let out = given.array_at::<u64>(0, blocks);
    let words = given.array_at::<T>(1, given.read_argument(2));
    out.fill(0);
    out[0] = words
        .iter()
        .fold(0, |sum, next| sum.wrapping_add(word(*next)));
    record_traffic(size_of_val(words) + size_of_val(out));
    (given.read_argument(0), size_of_val(out))
}

/// Fills an array with values that are computed from random bits.
fn fill_randomly<T>(given: Arguments, of: impl Fn(u64) -> T) -> (u64, usize) {
    let (elements, seed): (u64, u64) = (given.read_argument(1), given.read_argument(2));
    let out = given.array_at::<T>(0, elements);
    for (index, out) in (0..).zip(out.iter_mut()) {
        *out = of(random_bits(seed, index));
    }
    (given.read_argument(0), size_of_val(out))
}

/// Returns random bits by `SplitMix64`, from the seed and the index.
fn random_bits(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index + 1));
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn fake_kernels_match_kernels_of_gpumon() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workload/kernels");
        let mut names = BTreeSet::new();
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.file_name().is_some_and(|name| name == "listing.txt") {
                let text = fs::read_to_string(path).unwrap();
                // The listing has a section for each file, which starts with the name of the file
                // and a row of headings. Each line below describes the resources of one kernel.
                let rows = text
                    .lines()
                    .map(|line| line.split_whitespace().collect::<Vec<_>>());
                let kernels = rows
                    .filter(|words| words.get(1).is_some_and(|word| word.parse::<u32>().is_ok()));
                names.extend(kernels.map(|words| words[0].to_owned()));
            }
        }
        assert!(names.len() > 20, "{names:?}");
        let known: BTreeSet<_> = KERNEL_TABLES
            .into_iter()
            .flatten()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        assert_eq!(names, known);
    }
}
