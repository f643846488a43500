//! The kernels, which `tools/kernels.py` makes of the sources beside them.

use crate::cuda::Code;

/// Random data.
pub(crate) const RANDOM: Code = Code::Ptx(include_str!("../kernels/random.ptx"));
/// STREAM.
pub(crate) const STREAM: Code = Code::Ptx(include_str!("../kernels/stream.ptx"));
/// A thread for each element.
pub(crate) const ELEMENTWISE: Code = Code::Ptx(include_str!("../kernels/elementwise.ptx"));
/// Kernels that do next to nothing.
pub(crate) const LAUNCH: Code = Code::Ptx(include_str!("../kernels/launch.ptx"));
/// SELU, and the operations that it is made of.
pub(crate) const SELU: Code = Code::Ptx(include_str!("../kernels/selu.ptx"));
/// A matrix times vectors.
pub(crate) const MATVEC: Code = Code::Ptx(include_str!("../kernels/matvec.ptx"));
/// Small matrices times their transposes.
pub(crate) const GRAM: Code = Code::Ptx(include_str!("../kernels/gram.ptx"));
/// Training of a small network.
pub(crate) const TRAIN: Code = Code::Ptx(include_str!("../kernels/train.ptx"));
/// Sums.
pub(crate) const REDUCE: Code = Code::Ptx(include_str!("../kernels/reduce.ptx"));
/// Loads that wait for each other.
pub(crate) const CHASE: Code = Code::Ptx(include_str!("../kernels/chase.ptx"));
/// Costly functions.
pub(crate) const TRANSCENDENTAL: Code = Code::Ptx(include_str!("../kernels/transcendental.ptx"));
/// What is not too little memory.
pub(crate) const OOM: Code = Code::Ptx(include_str!("../kernels/oom.ptx"));
/// A load that counts itself.
pub(crate) const SPIN: Code = Code::Ptx(include_str!("../kernels/spin.ptx"));
/// Products without end.
pub(crate) const BURN: Code = Code::Ptx(include_str!("../kernels/burn.ptx"));
/// Products on any GPU, and small ones in one go.
pub(crate) const MATMUL_ANY: Code = Code::Ptx(include_str!("../kernels/matmul_any.ptx"));
/// Random matrices, and the check of a product.
pub(crate) const MATMUL_CHECK: Code = Code::Ptx(include_str!("../kernels/matmul_check.ptx"));
/// Products of 32 bits.
pub(crate) const MATMUL_FP32: Code = Code::Ptx(include_str!("../kernels/matmul_fp32.compute_80.ptx"));
/// The same, for Hopper.
pub(crate) const MATMUL_FP32_HOPPER: Code = Code::Cubin(include_bytes!("../kernels/matmul_fp32.sm_90a.cubin"), LISTING);
/// Products of 64 bits by tensor cores.
pub(crate) const MATMUL_FP64: Code = Code::Ptx(include_str!("../kernels/matmul_fp64.compute_80.ptx"));
/// Products of narrow types by tensor cores.
pub(crate) const MATMUL_TENSOR: Code = Code::Ptx(include_str!("../kernels/matmul_tensor.compute_80.ptx"));
/// The same with 8 bits, floating point.
pub(crate) const MATMUL_TENSOR_ADA: Code = Code::Ptx(include_str!("../kernels/matmul_tensor.compute_89.ptx"));
/// Products by Hopper's tensor cores.
pub(crate) const MATMUL_HOPPER: Code = Code::Cubin(include_bytes!("../kernels/matmul_hopper.sm_90a.cubin"), LISTING);

const LISTING: &str = include_str!("../kernels/listing.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_for(code: Code, version: &str, target: &str) {
        let Code::Ptx(text) = code else { panic!("it is PTX") };
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with('.')).take(3).collect();
        assert_eq!(lines, [&format!(".version {version}"), &format!(".target {target}"), ".address_size 64"]);
    }

    /// A newer version than a driver knows is refused by it.
    #[test]
    fn no_kernel_asks_for_a_newer_driver_than_it_needs() {
        for code in [
            RANDOM,
            STREAM,
            ELEMENTWISE,
            LAUNCH,
            SELU,
            MATVEC,
            GRAM,
            TRAIN,
            REDUCE,
            CHASE,
            TRANSCENDENTAL,
            OOM,
            SPIN,
            BURN,
            MATMUL_ANY,
            MATMUL_CHECK,
        ] {
            is_for(code, "6.0", "sm_60");
        }
        for code in [MATMUL_FP32, MATMUL_FP64, MATMUL_TENSOR] {
            is_for(code, "7.0", "sm_80");
        }
        is_for(MATMUL_TENSOR_ADA, "8.4", "sm_89");
    }
}
