//! nvidia-smi's options: their short and long forms, and whether a value follows.

use super::{Refusal, query::QueryKind, switches::Arity};

/// The meaning of an option, independent of its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    Help,
    Version,
    ListGpus,
    /// The option `-q`, which prints the log.
    Query,
    Xml,
    Dtd,
    Sections,
    Id,
    File,
    Loop,
    LoopMs,
    Format,
    /// `--query-gpu` and the other queries for selected fields.
    SelectiveQuery(QueryKind),
    HelpSelectiveQuery(QueryKind),
    /// The option that makes a warning change the exit code.
    ErrorOnWarning,
}

#[derive(Debug)]
pub(crate) struct OptionDef {
    short: &'static str,
    long: &'static str,
    pub(crate) arity: Arity,
    pub(crate) flag: Flag,
}

const fn opt(short: &'static str, long: &'static str, arity: Arity, flag: Flag) -> OptionDef {
    OptionDef {
        short,
        long,
        arity,
        flag,
    }
}

const fn selective(kind: QueryKind) -> OptionDef {
    opt(
        "",
        kind.switch(),
        Arity::Required,
        Flag::SelectiveQuery(kind),
    )
}

const fn help_of(kind: QueryKind) -> OptionDef {
    opt(
        "",
        kind.help_switch(),
        Arity::None,
        Flag::HelpSelectiveQuery(kind),
    )
}

pub(crate) const OPTIONS: &[OptionDef] = &[
    opt("-h", "--help", Arity::None, Flag::Help),
    opt("", "--version", Arity::None, Flag::Version),
    opt("-L", "--list-gpus", Arity::None, Flag::ListGpus),
    opt("-q", "--query", Arity::None, Flag::Query),
    opt("-x", "--xml-format", Arity::None, Flag::Xml),
    opt("", "--dtd", Arity::None, Flag::Dtd),
    opt("-d", "--display", Arity::Required, Flag::Sections),
    opt("-i", "--id", Arity::Required, Flag::Id),
    opt("-f", "--filename", Arity::Required, Flag::File),
    opt("-l", "--loop", Arity::Optional, Flag::Loop),
    opt("-lms", "--loop-ms", Arity::Optional, Flag::LoopMs),
    opt("", "--format", Arity::Required, Flag::Format),
    selective(QueryKind::Gpu),
    selective(QueryKind::ComputeApps),
    selective(QueryKind::AccountedApps),
    selective(QueryKind::RetiredPages),
    selective(QueryKind::RemappedRows),
    selective(QueryKind::SupportedClocks),
    help_of(QueryKind::Gpu),
    help_of(QueryKind::ComputeApps),
    help_of(QueryKind::AccountedApps),
    help_of(QueryKind::RetiredPages),
    help_of(QueryKind::RemappedRows),
    help_of(QueryKind::SupportedClocks),
    opt(
        "-eow",
        "--error-on-warning",
        Arity::None,
        Flag::ErrorOnWarning,
    ),
];

impl OptionDef {
    /// Returns the spellings of the option, the short form first.
    pub(crate) fn spellings(&self) -> Vec<&'static str> {
        [self.short, self.long]
            .into_iter()
            .filter(|spelling| !spelling.is_empty())
            .collect()
    }
}

/// Options that change the settings of a GPU.
#[rustfmt::skip]
const CHANGING: &[&str] = &[
    "-pm", "--persistence-mode", "-e", "--ecc-config", "-p", "--reset-ecc-errors", "-c",
    "--compute-mode", "--gom", "-r", "--gpu-reset", "-vm", "--virt-mode", "-lgc",
    "--lock-gpu-clocks", "-m", "--mode", "-rgc", "--reset-gpu-clocks", "-lmc",
    "--lock-memory-clocks", "-rmc", "--reset-memory-clocks", "-lmcd",
    "--lock-memory-clocks-deferred", "-rmcd", "--reset-memory-clocks-deferred", "-ac",
    "--applications-clocks", "-rac", "--reset-applications-clocks", "-svfd", "--set-vf-derate",
    "-pl", "--power-limit", "-sc", "--scope", "-cc", "--cuda-clocks", "-am",
    "--accounting-mode", "-caa", "--clear-accounted-apps", "--auto-boost-default",
    "--auto-boost-permission", "-mig", "--multi-instance-gpu", "-gtt", "--gpu-target-temp",
    "-den", "--dram-encryption", "--set-hostname", "-t", "--toggle-led",
];

/// Options that only NVIDIA's own tool can handle.
#[rustfmt::skip]
const HANDED_OVER: &[&str] = &[
    "-B", "--list-excluded-gpus", "-col", "--columns", "-u", "--unit", "--get-hostname",
    "--debug",
];

/// Returns the option's name from a word that may contain a value after `=`.
fn name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// Returns the reason why a word is left to NVIDIA's own tool; `None` if the word is not such an
/// option.
pub(crate) fn find_refusal(word: &str) -> Option<Refusal> {
    let name = name(word);
    if CHANGING.contains(&name) {
        Some(Refusal::changes_the_gpu(name))
    } else if HANDED_OVER.contains(&name) {
        Some(Refusal::handed_over(name))
    } else {
        None
    }
}

/// Returns whether a word is an option of nvidia-smi.
pub(crate) fn is_option(word: &str) -> bool {
    find(word).is_some() || find_refusal(word).is_some()
}

/// Returns the option that a word names. The word may contain a value after `=`.
pub(crate) fn find(word: &str) -> Option<&'static OptionDef> {
    let name = name(word);
    let is_named = |own: &str| !own.is_empty() && own == name;
    OPTIONS
        .iter()
        .find(|option| is_named(option.short) || is_named(option.long))
        .filter(|option| option.arity != Arity::None || name == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_found_by_either_name_and_with_its_value() {
        for (word, flag) in [
            ("-i", Flag::Id),
            ("-i=1", Flag::Id),
            ("--id=1", Flag::Id),
            ("-lms=500", Flag::LoopMs),
            ("--query-gpu=name", Flag::SelectiveQuery(QueryKind::Gpu)),
        ] {
            assert_eq!(find(word).map(|option| option.flag), Some(flag), "{word}");
        }
        for word in ["", "-qx", "--bogus", "-q=1", "0", "-", "--"] {
            assert!(find(word).is_none(), "{word}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = OPTIONS
            .iter()
            .flat_map(|option| [option.short, option.long])
            .collect();
        names.retain(|name| !name.is_empty());
        names.extend(CHANGING);
        names.extend(HANDED_OVER);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
