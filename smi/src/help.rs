//! `-h`: nvidia-smi's options, in gpumon's own words.

pub(crate) fn text() -> String {
    include_str!("help.txt").to_owned()
}
