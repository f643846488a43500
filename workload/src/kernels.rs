//! Kernels that several workloads share. `tools/kernels.py` compiles them from the sources in the
//! directory `kernels`. A kernel that only one workload uses is included in that workload's file
//! with [`ptx`].

use crate::cuda::Code;

macro_rules! ptx {
    ($name:literal) => {
        $crate::cuda::Code::Ptx($crate::kernels::packed!($name, ".ptx"))
    };
}
/// Includes a compressed file that was written by `build.rs`.
macro_rules! packed {
    ($($name:literal),*) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $($name),*))
    };
}
pub(crate) use {packed, ptx};

pub(crate) const RANDOM: Code = ptx!("random");
pub(crate) const STREAM: Code = ptx!("stream");
/// Kernels that compute one element per thread.
pub(crate) const ELEMENTWISE: Code = ptx!("elementwise");
/// Kernels for matrix products on any GPU, and for many small products.
pub(crate) const MATMUL_ANY: Code = ptx!("matmul_any");
/// Kernels that generate random matrices and check a product.
pub(crate) const MATMUL_CHECK: Code = ptx!("matmul_check");
/// Kernels for fp32 matrix products.
pub(crate) const MATMUL_FP32: Code = ptx!("matmul_fp32.compute_80");
/// Kernels for fp32 matrix products on Hopper.
pub(crate) const MATMUL_FP32_HOPPER: Code =
    Code::Cubin(packed!("matmul_fp32.sm_90a.cubin"), LISTING);
/// Kernels for batched products of matrices with up to 104 rows.
pub(crate) const MATMUL_BATCHED: Code = ptx!("matmul_batched.compute_80");
/// Kernels for batched products of matrices with up to 104 rows, for Hopper and later.
pub(crate) const MATMUL_BATCHED_HOPPER: Code = ptx!("matmul_batched.compute_90");
/// Kernels for fp64 matrix products with tensor cores.
pub(crate) const MATMUL_FP64: Code = ptx!("matmul_fp64.compute_80");
/// Kernels for matrix products of narrow types with tensor cores.
pub(crate) const MATMUL_TENSOR: Code = ptx!("matmul_tensor.compute_80");
/// Kernels for matrix products of 8-bit floating-point numbers with tensor cores.
pub(crate) const MATMUL_TENSOR_ADA: Code = ptx!("matmul_tensor.compute_89");
/// Kernels for matrix products with Hopper's tensor cores.
pub(crate) const MATMUL_HOPPER: Code = Code::Cubin(packed!("matmul_hopper.sm_90a.cubin"), LISTING);

const LISTING: &str = include_str!("../kernels/listing.txt");

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// A driver refuses kernels whose PTX version is newer than the driver supports.
    #[test]
    fn kernels_do_not_need_newer_driver() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut count = 0;
        for file in
            files.filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        {
            let name = file.file_stem().unwrap().to_str().unwrap();
            let (version, target) = match name.split_once(".compute_") {
                None => ("6.0", "sm_60"),
                Some((_, "80")) => ("7.0", "sm_80"),
                Some((_, "89")) => ("8.4", "sm_89"),
                Some((_, "90")) => ("7.8", "sm_90"),
                Some((_, other)) => panic!("{name}: which driver does {other} need?"),
            };
            let text = fs::read_to_string(&file).unwrap();
            let lines: Vec<_> = text
                .lines()
                .filter(|line| line.starts_with('.'))
                .take(3)
                .collect();
            assert_eq!(
                lines,
                [
                    &format!(".version {version}"),
                    &format!(".target {target}"),
                    ".address_size 64"
                ],
                "{name}"
            );
            count += 1;
        }
        assert!(count > 10, "{count} kernels");
    }
}
