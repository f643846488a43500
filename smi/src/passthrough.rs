//! Recognizes nvidia-smi's own options and subcommands among the arguments of `gpumon`.

use super::{
    options::{self, Flag},
    subcommands::{is_handed_over, subcommand},
};

/// Returns whether the arguments of `gpumon` are meant for nvidia-smi. This is so if the first word
/// is `smi` or one of nvidia-smi's subcommands that gpumon does not have, or if an option belongs
/// to nvidia-smi only. `is_own` returns whether a word is a gpumon command; options after such a
/// command belong to gpumon.
pub fn is_passthrough(words: &[String], is_own: impl Fn(&str) -> bool) -> bool {
    let is_nvidias = |word: &String| match options::find(word) {
        Some(option) => !is_shared(option.flag),
        // `--columns` belongs to gpumon, where it selects columns.
        None => options::is_option(word) && !word.starts_with("--columns"),
    };
    let is_subcommand = |name: &str| subcommand(name).is_some() || is_handed_over(name);
    words
        .first()
        .is_some_and(|word| word == "smi" || (is_subcommand(word) && !is_own(word)))
        || words
            .iter()
            .take_while(|word| word.starts_with('-') || !is_own(word))
            .any(is_nvidias)
}

/// Returns whether an option has a meaning in plain `gpumon`, too.
pub(super) fn is_shared(flag: Flag) -> bool {
    matches!(flag, Flag::Help | Flag::Version | Flag::Id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(line: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        is_passthrough(&words, |word| {
            ["collect", "serve", "wait", "doctor"].contains(&word)
        })
    }

    #[test]
    fn nvidia_smis_options_are_told_from_gpumons_own() {
        for line in [
            "-L",
            "-q -i 0",
            "-i 0 -q -d MEMORY",
            "--query-gpu=name --format=csv",
            "-l 1",
            "-col 2",
            "-pm 1",
            "dmon -c 1",
            "mig -lgi",
            "topo -m",
        ] {
            assert!(meant(line), "{line}");
        }
        for line in [
            "",
            "--json",
            "--csv --columns index,memory",
            "--columns=index",
            "-i 0",
            "--help",
            "collect --count 1",
            "serve --port 1",
            "wait --free 20GiB -- nvidia-smi -L",
            "doctor",
        ] {
            assert!(!meant(line), "{line}");
        }
    }
}
