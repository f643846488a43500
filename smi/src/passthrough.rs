//! Detection of nvidia-smi options and subcommands in the arguments of `gpumon`.

use super::{
    options::{self, Flag},
    subcommands::{find_subcommand, is_handed_over},
};

/// Returns `true` if the arguments of `gpumon` are meant for nvidia-smi: if the first word is `smi`
/// or an nvidia-smi subcommand that gpumon does not have, or if there is an option that only
/// nvidia-smi has. `is_own` returns whether a word is a gpumon command; options after such a
/// command belong to gpumon.
pub fn is_passthrough(words: &[String], is_own: impl Fn(&str) -> bool) -> bool {
    let is_nvidias = |word: &String| match options::find_option(word) {
        Some(option) => !has_meaning_in_gpumon(option.flag),
        // `--columns` is an option of gpumon, where it selects columns.
        None => options::is_option(word) && !word.starts_with("--columns"),
    };
    let is_subcommand = |name: &str| find_subcommand(name).is_some() || is_handed_over(name);
    words
        .first()
        .is_some_and(|word| word == "smi" || (is_subcommand(word) && !is_own(word)))
        || words
            .iter()
            .take_while(|word| word.starts_with('-') || !is_own(word))
            .any(is_nvidias)
}

/// Returns `true` if an option also has a meaning in plain `gpumon`.
pub(super) fn has_meaning_in_gpumon(flag: Flag) -> bool {
    matches!(flag, Flag::Help | Flag::Version | Flag::Id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_meant_for_nvidia_smi(line: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        is_passthrough(&words, |word| {
            ["collect", "serve", "wait", "doctor"].contains(&word)
        })
    }

    #[test]
    fn options_are_attributed_to_the_right_tool() {
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
            assert!(is_meant_for_nvidia_smi(line), "{line}");
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
            assert!(!is_meant_for_nvidia_smi(line), "{line}");
        }
    }
}
