//! The kernels, as PTX, which `tools/kernels.py` makes of the sources beside it.

/// Random data.
pub(crate) const RANDOM: &str = include_str!("../kernels/random.ptx");
/// STREAM.
pub(crate) const STREAM: &str = include_str!("../kernels/stream.ptx");
/// A thread for each element.
pub(crate) const ELEMENTWISE: &str = include_str!("../kernels/elementwise.ptx");
/// Kernels that do next to nothing.
pub(crate) const LAUNCH: &str = include_str!("../kernels/launch.ptx");

#[cfg(test)]
mod tests {
    use super::*;

    /// A newer version than a driver knows is refused by it.
    #[test]
    fn every_driver_since_cuda_11_takes_them() {
        for ptx in [RANDOM, STREAM, ELEMENTWISE, LAUNCH] {
            let lines: Vec<_> = ptx.lines().filter(|line| line.starts_with('.')).take(3).collect();
            assert_eq!(lines, [".version 6.0", ".target sm_60", ".address_size 64"]);
        }
    }
}
