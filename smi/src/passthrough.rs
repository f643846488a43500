//! nvidia-smi's own options and subcommands, typed behind plain `gpumon`.

use super::{
    options::{self, Flag},
    subcommands::{is_handed_over, subcommand},
};

/// Whether these words, typed behind `gpumon`, are meant for nvidia-smi: it is named, or one of
/// them is an option that it alone has, or the first is one of its commands that gpumon has not
/// itself. `is_own` knows gpumon's own commands, behind which the options are gpumon's.
pub fn is_passthrough(words: &[String], is_own: impl Fn(&str) -> bool) -> bool {
    let is_nvidias = |word: &String| match options::find(word) {
        Some(option) => !is_shared(option.flag),
        // `gpumon --columns` selects columns.
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

/// Options that mean something to plain `gpumon`, too.
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
