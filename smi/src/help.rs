//! `-h`: nvidia-smi's options, in gpumon's own words.

/// All of it.
pub(crate) fn text() -> String {
    include_str!("help.txt").to_owned()
}
