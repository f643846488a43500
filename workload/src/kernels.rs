//! Kernels that several workloads share. `tools/kernels.py` makes all of them of the sources beside
//! them; a workload with a kernel of its own names that itself, by [`ptx`].

use crate::cuda::Code;

macro_rules! ptx {
    ($name:literal) => {
        $crate::cuda::Code::Ptx($crate::kernels::packed!($name, ".ptx"))
    };
}
/// What `build.rs` made of a file.
macro_rules! packed {
    ($($name:literal),*) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $($name),*))
    };
}
pub(crate) use {packed, ptx};

pub(crate) const RANDOM: Code = ptx!("random");
pub(crate) const STREAM: Code = ptx!("stream");
/// A thread for each element.
pub(crate) const ELEMENTWISE: Code = ptx!("elementwise");
/// Products on any GPU, and small ones in one go.
pub(crate) const MATMUL_ANY: Code = ptx!("matmul_any");
/// Random matrices, and the check of a product.
pub(crate) const MATMUL_CHECK: Code = ptx!("matmul_check");
/// Products of 32 bits.
pub(crate) const MATMUL_FP32: Code = ptx!("matmul_fp32.compute_80");
/// The same, for Hopper.
pub(crate) const MATMUL_FP32_HOPPER: Code =
    Code::Cubin(packed!("matmul_fp32.sm_90a.cubin"), LISTING);
/// Batched products of up to 104 rows.
pub(crate) const MATMUL_BATCHED: Code = ptx!("matmul_batched.compute_80");
/// The same, for Hopper and later.
pub(crate) const MATMUL_BATCHED_HOPPER: Code = ptx!("matmul_batched.compute_90");
/// Products of 64 bits by tensor cores.
pub(crate) const MATMUL_FP64: Code = ptx!("matmul_fp64.compute_80");
/// Products of narrow types by tensor cores.
pub(crate) const MATMUL_TENSOR: Code = ptx!("matmul_tensor.compute_80");
/// The same with 8 bits, floating point.
pub(crate) const MATMUL_TENSOR_ADA: Code = ptx!("matmul_tensor.compute_89");
/// Products by Hopper's tensor cores.
pub(crate) const MATMUL_HOPPER: Code = Code::Cubin(packed!("matmul_hopper.sm_90a.cubin"), LISTING);

const LISTING: &str = include_str!("../kernels/listing.txt");

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// A newer version than a driver knows is refused by it.
    #[test]
    fn no_kernel_asks_for_a_newer_driver_than_it_needs() {
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
