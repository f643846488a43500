//! `-h`: nvidia-smi's options, told in our own words.

/// All of it.
pub(crate) fn text() -> String {
    include_str!("help.txt").to_owned()
}
