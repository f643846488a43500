//! nvidia-smi's own options: short and long form, and whether a value follows.

use super::switches::Arity;

/// What an option means, whichever way it is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    Help,
    Version,
    ListGpus,
    ListExcluded,
    /// The summary in so many columns.
    Columns,
    /// `-q`.
    Query,
    Unit,
    Xml,
    Dtd,
    Sections,
    Id,
    File,
    Loop,
    LoopMs,
    Format,
    /// `--query-gpu` and its siblings.
    SelectiveQuery,
    HelpSelectiveQuery,
    Hostname,
    /// A warning is to show in the exit code, too.
    ErrorOnWarning,
    /// An encrypted log for NVIDIA's own engineers.
    Debug,
    /// It changes a device, which is left to the vendor's own tool.
    Change,
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

pub(crate) const OPTIONS: &[OptionDef] = &[
    opt("-h", "--help", Arity::None, Flag::Help),
    opt("", "--version", Arity::None, Flag::Version),
    opt("-L", "--list-gpus", Arity::None, Flag::ListGpus),
    opt(
        "-B",
        "--list-excluded-gpus",
        Arity::None,
        Flag::ListExcluded,
    ),
    opt("-col", "--columns", Arity::Required, Flag::Columns),
    opt("-q", "--query", Arity::None, Flag::Query),
    opt("-u", "--unit", Arity::None, Flag::Unit),
    opt("-x", "--xml-format", Arity::None, Flag::Xml),
    opt("", "--dtd", Arity::None, Flag::Dtd),
    opt("-d", "--display", Arity::Required, Flag::Sections),
    opt("-i", "--id", Arity::Required, Flag::Id),
    opt("-f", "--filename", Arity::Required, Flag::File),
    opt("-l", "--loop", Arity::Optional, Flag::Loop),
    opt("-lms", "--loop-ms", Arity::Optional, Flag::LoopMs),
    opt("", "--format", Arity::Required, Flag::Format),
    opt("", "--query-gpu", Arity::Required, Flag::SelectiveQuery),
    opt(
        "",
        "--query-compute-apps",
        Arity::Required,
        Flag::SelectiveQuery,
    ),
    opt(
        "",
        "--query-accounted-apps",
        Arity::Required,
        Flag::SelectiveQuery,
    ),
    opt(
        "",
        "--query-retired-pages",
        Arity::Required,
        Flag::SelectiveQuery,
    ),
    opt(
        "",
        "--query-remapped-rows",
        Arity::Required,
        Flag::SelectiveQuery,
    ),
    opt(
        "",
        "--query-supported-clocks",
        Arity::Required,
        Flag::SelectiveQuery,
    ),
    opt(
        "",
        "--help-query-gpu",
        Arity::None,
        Flag::HelpSelectiveQuery,
    ),
    opt(
        "",
        "--help-query-compute-apps",
        Arity::None,
        Flag::HelpSelectiveQuery,
    ),
    opt(
        "",
        "--help-query-accounted-apps",
        Arity::None,
        Flag::HelpSelectiveQuery,
    ),
    opt(
        "",
        "--help-query-retired-pages",
        Arity::None,
        Flag::HelpSelectiveQuery,
    ),
    opt(
        "",
        "--help-query-remapped-rows",
        Arity::None,
        Flag::HelpSelectiveQuery,
    ),
    opt(
        "",
        "--help-query-supported-clocks",
        Arity::None,
        Flag::HelpSelectiveQuery,
    ),
    opt("", "--get-hostname", Arity::None, Flag::Hostname),
    opt("-pm", "--persistence-mode", Arity::Required, Flag::Change),
    opt("-e", "--ecc-config", Arity::Required, Flag::Change),
    opt("-p", "--reset-ecc-errors", Arity::Required, Flag::Change),
    opt("-c", "--compute-mode", Arity::Required, Flag::Change),
    opt("", "--gom", Arity::Required, Flag::Change),
    opt("-r", "--gpu-reset", Arity::Optional, Flag::Change),
    opt("-vm", "--virt-mode", Arity::Required, Flag::Change),
    opt("-lgc", "--lock-gpu-clocks", Arity::Required, Flag::Change),
    opt("-m", "--mode", Arity::Required, Flag::Change),
    opt("-rgc", "--reset-gpu-clocks", Arity::None, Flag::Change),
    opt(
        "-lmc",
        "--lock-memory-clocks",
        Arity::Required,
        Flag::Change,
    ),
    opt("-rmc", "--reset-memory-clocks", Arity::None, Flag::Change),
    opt(
        "-lmcd",
        "--lock-memory-clocks-deferred",
        Arity::Required,
        Flag::Change,
    ),
    opt(
        "-rmcd",
        "--reset-memory-clocks-deferred",
        Arity::None,
        Flag::Change,
    ),
    opt(
        "-ac",
        "--applications-clocks",
        Arity::Required,
        Flag::Change,
    ),
    opt(
        "-rac",
        "--reset-applications-clocks",
        Arity::None,
        Flag::Change,
    ),
    opt("-svfd", "--set-vf-derate", Arity::Required, Flag::Change),
    opt("-pl", "--power-limit", Arity::Required, Flag::Change),
    opt("-sc", "--scope", Arity::Required, Flag::Change),
    opt("-cc", "--cuda-clocks", Arity::Required, Flag::Change),
    opt("-am", "--accounting-mode", Arity::Required, Flag::Change),
    opt("-caa", "--clear-accounted-apps", Arity::None, Flag::Change),
    opt("", "--auto-boost-default", Arity::Required, Flag::Change),
    opt("", "--auto-boost-permission", Arity::Required, Flag::Change),
    opt(
        "-mig",
        "--multi-instance-gpu",
        Arity::Required,
        Flag::Change,
    ),
    opt("-gtt", "--gpu-target-temp", Arity::Required, Flag::Change),
    opt("-den", "--dram-encryption", Arity::Required, Flag::Change),
    opt("", "--set-hostname", Arity::Required, Flag::Change),
    opt(
        "-eow",
        "--error-on-warning",
        Arity::None,
        Flag::ErrorOnWarning,
    ),
    opt("-t", "--toggle-led", Arity::Required, Flag::Change),
    opt("", "--debug", Arity::Required, Flag::Debug),
];

impl OptionDef {
    /// How it is spelled, the short form first.
    pub(crate) fn spellings(&self) -> Vec<&'static str> {
        [self.short, self.long]
            .into_iter()
            .filter(|spelling| !spelling.is_empty())
            .collect()
    }

    pub(crate) fn is_supported(&self) -> bool {
        !matches!(self.flag, Flag::Change | Flag::Columns | Flag::Debug)
    }
}

/// The option that a word names; the word may carry its value behind a `=`.
pub(crate) fn find(word: &str) -> Option<&'static OptionDef> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
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
            ("--query-gpu=name", Flag::SelectiveQuery),
            ("-pm", Flag::Change),
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
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
