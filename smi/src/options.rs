//! nvidia-smi's options: their short and long forms, and whether they take a value.

use super::{Refusal, query::QueryKind, subcommand::Arity};

/// The meaning of an option, regardless of whether the short or the long form is used.
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
    /// The option `--query-gpu`, or another option that queries selected fields.
    SelectiveQuery(QueryKind),
    HelpSelectiveQuery(QueryKind),
    /// The option `-eow`, with which warnings change the exit code.
    ErrorOnWarning,
}

#[derive(Debug)]
pub(crate) struct OptionDef {
    short: &'static str,
    long: &'static str,
    pub(crate) arity: Arity,
    pub(crate) flag: Flag,
}

const fn define_option(
    short: &'static str,
    long: &'static str,
    arity: Arity,
    flag: Flag,
) -> OptionDef {
    OptionDef {
        short,
        long,
        arity,
        flag,
    }
}

const fn define_query(kind: QueryKind) -> OptionDef {
    define_option(
        "",
        kind.switch(),
        Arity::Required,
        Flag::SelectiveQuery(kind),
    )
}

const fn define_query_help(kind: QueryKind) -> OptionDef {
    define_option(
        "",
        kind.help_switch(),
        Arity::None,
        Flag::HelpSelectiveQuery(kind),
    )
}

pub(crate) const OPTIONS: &[OptionDef] = &[
    define_option("-h", "--help", Arity::None, Flag::Help),
    define_option("", "--version", Arity::None, Flag::Version),
    define_option("-L", "--list-gpus", Arity::None, Flag::ListGpus),
    define_option("-q", "--query", Arity::None, Flag::Query),
    define_option("-x", "--xml-format", Arity::None, Flag::Xml),
    define_option("", "--dtd", Arity::None, Flag::Dtd),
    define_option("-d", "--display", Arity::Required, Flag::Sections),
    define_option("-i", "--id", Arity::Required, Flag::Id),
    define_option("-f", "--filename", Arity::Required, Flag::File),
    define_option("-l", "--loop", Arity::Optional, Flag::Loop),
    define_option("-lms", "--loop-ms", Arity::Optional, Flag::LoopMs),
    define_option("", "--format", Arity::Required, Flag::Format),
    define_query(QueryKind::Gpu),
    define_query(QueryKind::ComputeApps),
    define_query(QueryKind::AccountedApps),
    define_query(QueryKind::RetiredPages),
    define_query(QueryKind::RemappedRows),
    define_query(QueryKind::SupportedClocks),
    define_query_help(QueryKind::Gpu),
    define_query_help(QueryKind::ComputeApps),
    define_query_help(QueryKind::AccountedApps),
    define_query_help(QueryKind::RetiredPages),
    define_query_help(QueryKind::RemappedRows),
    define_query_help(QueryKind::SupportedClocks),
    define_option(
        "-eow",
        "--error-on-warning",
        Arity::None,
        Flag::ErrorOnWarning,
    ),
];

impl OptionDef {
    /// Returns the forms of the option, starting with the short form.
    pub(crate) fn spellings(&self) -> Vec<&'static str> {
        [self.short, self.long]
            .into_iter()
            .filter(|spelling| !spelling.is_empty())
            .collect()
    }
}

/// Options that change a GPU's settings.
#[rustfmt::skip]
const CHANGING_OPTIONS: &[&str] = &[
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
const HANDED_OVER_OPTIONS: &[&str] = &[
    "-B", "--list-excluded-gpus", "-col", "--columns", "-u", "--unit", "--get-hostname",
    "--debug",
];

/// Returns the option's name, without a value after `=`.
fn option_name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// Returns a refusal if `word` is an option that only NVIDIA's own tool can handle, otherwise
/// `None`.
pub(crate) fn find_option_refusal(word: &str) -> Option<Refusal> {
    let name = option_name(word);
    if CHANGING_OPTIONS.contains(&name) {
        Some(Refusal::new_gpu_change(name))
    } else if HANDED_OVER_OPTIONS.contains(&name) {
        Some(Refusal::new_nvidia_only(name))
    } else {
        None
    }
}

/// Returns `true` if `word` is an nvidia-smi option.
pub(crate) fn is_option(word: &str) -> bool {
    find_option(word).is_some() || find_option_refusal(word).is_some()
}

/// Returns the option that `word` stands for. `word` may include a value after `=`.
pub(crate) fn find_option(word: &str) -> Option<&'static OptionDef> {
    let name = option_name(word);
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
    fn option_is_found_with_or_without_attached_value() {
        for (word, flag) in [
            ("-i", Flag::Id),
            ("-i=1", Flag::Id),
            ("--id=1", Flag::Id),
            ("-lms=500", Flag::LoopMs),
            ("--query-gpu=name", Flag::SelectiveQuery(QueryKind::Gpu)),
        ] {
            assert_eq!(
                find_option(word).map(|option| option.flag),
                Some(flag),
                "{word}"
            );
        }
        for word in ["", "-qx", "--bogus", "-q=1", "0", "-", "--"] {
            assert!(find_option(word).is_none(), "{word}");
        }
    }

    #[test]
    fn option_spellings_are_unique() {
        let mut names: Vec<_> = OPTIONS
            .iter()
            .flat_map(|option| [option.short, option.long])
            .collect();
        names.retain(|name| !name.is_empty());
        names.extend(CHANGING_OPTIONS);
        names.extend(HANDED_OVER_OPTIONS);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
