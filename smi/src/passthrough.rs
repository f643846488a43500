//! nvidia-smi's own options and subcommands, typed behind plain `gpumon`.

use super::{
    options::{self, Flag},
    subcommands::subcommand,
};

/// Whether these words, typed behind `gpumon`, are meant for nvidia-smi: it is named, or one of them is an option that it
/// alone has, or the first is one of its commands that gpumon has not itself. `is_own` knows gpumon's own commands, behind which the options are
/// gpumon's.
pub fn is_passthrough(words: &[String], is_own: impl Fn(&str) -> bool) -> bool {
    let own =
        |word: &String| options::find(word).is_some_and(|option| !is_shared(option.flag, word));
    words
        .first()
        .is_some_and(|word| word == "smi" || (subcommand(word).is_some() && !is_own(word)))
        || words
            .iter()
            .take_while(|word| word.starts_with('-') || !is_own(word))
            .any(own)
}

/// Options that mean something to plain `gpumon`, too.
pub(super) fn is_shared(flag: Flag, word: &str) -> bool {
    match flag {
        Flag::Help | Flag::Version | Flag::Id => true,
        Flag::Columns => word.starts_with("--"),
        _ => false,
    }
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
