//! The words that nvidia-smi knows: each option, its short and its long form, and whether a value follows.

/// What an option asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Help,
    Version,
    ListGpus,
    ListExcluded,
    /// The summary in so many columns.
    Columns,
    Log,
    Unit,
    Xml,
    Dtd,
    Sections,
    Id,
    File,
    Loop,
    LoopMs,
    Format,
    Query,
    HelpQuery,
    Hostname,
    /// A warning is to show in the exit code, too.
    ErrorOnWarning,
    /// An encrypted log for NVIDIA's own engineers.
    Debug,
    /// It changes a device, which is left to the vendor's own tool.
    Change,
}

/// Whether a value follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    None,
    Required,
    /// The next word is one if it does not look like an option.
    Optional,
}

/// One option.
#[derive(Debug)]
pub(crate) struct Opt {
    short: &'static str,
    long: &'static str,
    pub(crate) value: Value,
    pub(crate) asked: Asked,
}

const fn opt(short: &'static str, long: &'static str, value: Value, asked: Asked) -> Opt {
    Opt { short, long, value, asked }
}

/// All of them.
pub(crate) const OPTIONS: &[Opt] = &[
    opt("-h", "--help", Value::None, Asked::Help),
    opt("", "--version", Value::None, Asked::Version),
    opt("-L", "--list-gpus", Value::None, Asked::ListGpus),
    opt("-B", "--list-excluded-gpus", Value::None, Asked::ListExcluded),
    opt("-col", "--columns", Value::Required, Asked::Columns),
    opt("-q", "--query", Value::None, Asked::Log),
    opt("-u", "--unit", Value::None, Asked::Unit),
    opt("-x", "--xml-format", Value::None, Asked::Xml),
    opt("", "--dtd", Value::None, Asked::Dtd),
    opt("-d", "--display", Value::Required, Asked::Sections),
    opt("-i", "--id", Value::Required, Asked::Id),
    opt("-f", "--filename", Value::Required, Asked::File),
    opt("-l", "--loop", Value::Optional, Asked::Loop),
    opt("-lms", "--loop-ms", Value::Optional, Asked::LoopMs),
    opt("", "--format", Value::Required, Asked::Format),
    opt("", "--query-gpu", Value::Required, Asked::Query),
    opt("", "--query-compute-apps", Value::Required, Asked::Query),
    opt("", "--query-accounted-apps", Value::Required, Asked::Query),
    opt("", "--query-retired-pages", Value::Required, Asked::Query),
    opt("", "--query-remapped-rows", Value::Required, Asked::Query),
    opt("", "--query-supported-clocks", Value::Required, Asked::Query),
    opt("", "--help-query-gpu", Value::None, Asked::HelpQuery),
    opt("", "--help-query-compute-apps", Value::None, Asked::HelpQuery),
    opt("", "--help-query-accounted-apps", Value::None, Asked::HelpQuery),
    opt("", "--help-query-retired-pages", Value::None, Asked::HelpQuery),
    opt("", "--help-query-remapped-rows", Value::None, Asked::HelpQuery),
    opt("", "--help-query-supported-clocks", Value::None, Asked::HelpQuery),
    opt("", "--get-hostname", Value::None, Asked::Hostname),
    opt("-pm", "--persistence-mode", Value::Required, Asked::Change),
    opt("-e", "--ecc-config", Value::Required, Asked::Change),
    opt("-p", "--reset-ecc-errors", Value::Required, Asked::Change),
    opt("-c", "--compute-mode", Value::Required, Asked::Change),
    opt("", "--gom", Value::Required, Asked::Change),
    opt("-r", "--gpu-reset", Value::Optional, Asked::Change),
    opt("-vm", "--virt-mode", Value::Required, Asked::Change),
    opt("-lgc", "--lock-gpu-clocks", Value::Required, Asked::Change),
    opt("-m", "--mode", Value::Required, Asked::Change),
    opt("-rgc", "--reset-gpu-clocks", Value::None, Asked::Change),
    opt("-lmc", "--lock-memory-clocks", Value::Required, Asked::Change),
    opt("-rmc", "--reset-memory-clocks", Value::None, Asked::Change),
    opt("-lmcd", "--lock-memory-clocks-deferred", Value::Required, Asked::Change),
    opt("-rmcd", "--reset-memory-clocks-deferred", Value::None, Asked::Change),
    opt("-ac", "--applications-clocks", Value::Required, Asked::Change),
    opt("-rac", "--reset-applications-clocks", Value::None, Asked::Change),
    opt("-pl", "--power-limit", Value::Required, Asked::Change),
    opt("-sc", "--scope", Value::Required, Asked::Change),
    opt("-cc", "--cuda-clocks", Value::Required, Asked::Change),
    opt("-am", "--accounting-mode", Value::Required, Asked::Change),
    opt("-caa", "--clear-accounted-apps", Value::None, Asked::Change),
    opt("", "--auto-boost-default", Value::Required, Asked::Change),
    opt("", "--auto-boost-permission", Value::Required, Asked::Change),
    opt("-mig", "--multi-instance-gpu", Value::Required, Asked::Change),
    opt("-gtt", "--gpu-target-temp", Value::Required, Asked::Change),
    opt("-den", "--dram-encryption", Value::Required, Asked::Change),
    opt("", "--set-hostname", Value::Required, Asked::Change),
    opt("-eow", "--error-on-warning", Value::None, Asked::ErrorOnWarning),
    opt("-t", "--toggle-led", Value::Required, Asked::Change),
    opt("", "--debug", Value::Required, Asked::Debug),
];

impl Opt {
    /// How it is spelled, the short form first.
    pub(crate) fn spellings(&self) -> Vec<&'static str> {
        [self.short, self.long].into_iter().filter(|spelling| !spelling.is_empty()).collect()
    }

    /// Whether gpumon does what it asks for.
    pub(crate) fn is_heeded(&self) -> bool {
        !matches!(self.asked, Asked::Change | Asked::Columns | Asked::Debug)
    }
}

/// The option that a word names; the word may carry its value behind a `=`.
pub(crate) fn find(word: &str) -> Option<&'static Opt> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let is_named = |own: &str| !own.is_empty() && own == name;
    OPTIONS
        .iter()
        .find(|option| is_named(option.short) || is_named(option.long))
        .filter(|option| option.value != Value::None || name == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_found_by_either_name_and_with_its_value() {
        for (word, asked) in [
            ("-i", Asked::Id),
            ("-i=1", Asked::Id),
            ("--id=1", Asked::Id),
            ("-lms=500", Asked::LoopMs),
            ("--query-gpu=name", Asked::Query),
            ("-pm", Asked::Change),
        ] {
            assert_eq!(find(word).map(|option| option.asked), Some(asked), "{word}");
        }
        for word in ["", "-qx", "--bogus", "-q=1", "0", "-", "--"] {
            assert!(find(word).is_none(), "{word}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = OPTIONS.iter().flat_map(|option| [option.short, option.long]).collect();
        names.retain(|name| !name.is_empty());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
