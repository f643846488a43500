//! The settings of the live screen, as command-line options and as keys of the settings file. They
//! are read at the start, and saved to the file only on request.

use std::{env, path::Path};

use clap::{
    ArgAction, FromArgMatches as _, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};

use super::{
    layout::View,
    metrics::{METRICS, default_metrics, find_metric_position, list_metrics, metric_key},
    processes::Column,
    theme::ThemeName,
};
use crate::{
    command_definition,
    config::{self, ResolvedArguments},
    describe::Thresholds,
    options::value_name,
    terminal::screen::Glyphs,
};

/// The selectable time ranges of charts, in seconds.
pub(super) const RANGES_S: [u64; 11] = [
    1,
    10,
    60,
    120,
    300,
    900,
    3600,
    6 * 3600,
    DAY_S,
    7 * DAY_S,
    30 * DAY_S,
];
const DAY_S: u64 = 24 * 3600;

/// The table of the live screen in the settings file, and the prefix of its environment variables.
const SETTINGS_TABLE: &str = "top";
const VARIABLE_PREFIX: &str = "GPUMON_TOP_";

/// The value of the setting for the charts' characters that selects them by the terminal's
/// capabilities.
const AUTO_GLYPHS: &str = "auto";

/// Settings of the live screen's appearance.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub(crate) struct Settings {
    /// Color theme; auto follows the background of the terminal
    #[arg(
        long,
        env = "GPUMON_TOP_THEME",
        value_name = "THEME",
        value_enum,
        default_value_t = ThemeName::Auto
    )]
    pub(super) theme: ThemeName,

    /// The sampling interval in milliseconds. Only `gpumon top` has this option.
    #[arg(skip = 1000_u32)]
    pub(crate) interval_ms: u32,

    /// View shown at start
    #[arg(
        long, env = "GPUMON_TOP_VIEW", value_name = "VIEW", value_enum,
        default_value_t = View::Charts
    )]
    pub(super) view: View,

    /// Column by which processes are sorted
    #[arg(
        long, env = "GPUMON_TOP_SORT", value_name = "COLUMN", value_enum,
        default_value_t = Column::Memory
    )]
    pub(super) sort: Column,

    /// Whether the sort order is descending
    #[arg(
        long, env = "GPUMON_TOP_DESCENDING", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true", value_name = "BOOL",
        default_value = "true", hide_possible_values = true
    )]
    pub(super) descending: bool,

    /// Whether processes are shown as a tree
    #[arg(
        long, env = "GPUMON_TOP_TREE", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true", value_name = "BOOL",
        default_value = "false", hide_possible_values = true
    )]
    pub(super) tree: bool,

    /// Columns of the process list, comma-separated, in this order
    #[arg(
        long, env = "GPUMON_TOP_COLUMNS", value_name = "COLUMNS", value_delimiter = ',',
        value_enum, default_value = join_names(&Column::default_columns())
    )]
    pub(super) columns: Vec<Column>,

    /// Fields that are charted for each GPU, comma-separated
    #[arg(
        long, env = "GPUMON_TOP_METRICS", value_name = "FIELDS", value_delimiter = ',',
        default_value = default_metrics_text(), value_parser = metric_parser()
    )]
    pub(super) metrics: Vec<usize>,

    /// Time range of the charts in seconds; more than an hour requires a server
    #[arg(
        long, env = "GPUMON_TOP_RANGE_S", value_name = "SECONDS", default_value = "120",
        value_parser = range_parser()
    )]
    pub(super) range_s: u64,

    /// Characters of the charts; auto follows the capabilities of the terminal
    // The full path `std::option::Option` makes `None` a valid value of the option. With `Option`,
    // clap would make the option itself optional.
    #[arg(
        long, env = "GPUMON_TOP_GLYPHS", value_name = "GLYPHS", default_value = AUTO_GLYPHS,
        value_parser = glyphs_parser()
    )]
    pub(super) glyphs: std::option::Option<Glyphs>,

    /// Whether the mouse is used; if not, the terminal can select text
    #[arg(
        long, env = "GPUMON_TOP_MOUSE", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true", value_name = "BOOL",
        default_value = "true", hide_possible_values = true
    )]
    pub(crate) mouse: bool,

    #[command(flatten)]
    pub(super) thresholds: Thresholds,
}

/// Returns the thresholds in the settings of the live screen, because `gpumon` uses the same
/// thresholds for its table. `resolved` is the command line of `gpumon`.
pub(crate) fn read_thresholds(resolved: &ResolvedArguments) -> Thresholds {
    let is_set = resolved
        .entries
        .iter()
        .any(|entry| entry.key.table == Some(SETTINGS_TABLE));
    let is_set = is_set
        || env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with(VARIABLE_PREFIX));
    if is_set {
        read_screen_settings(resolved.config_path())
            .map(|settings| settings.thresholds)
            .unwrap_or_default()
    } else {
        Thresholds::default()
    }
}

/// Returns the settings of the live screen from files and environment variables. Settings that are
/// in neither have their defaults.
fn read_screen_settings(config: Option<&Path>) -> Option<Settings> {
    let config = config.map(|path| [std::ffi::OsString::from("--config"), path.into()]);
    let words: Vec<_> = ["gpumon".into(), SETTINGS_TABLE.into()]
        .into_iter()
        .chain(config.into_iter().flatten())
        .collect();
    let resolved =
        config::resolve_command_line(&command_definition::build_command(), &words).ok()?;
    let own = resolved.matches.subcommand_matches(SETTINGS_TABLE)?;
    Settings::from_arg_matches(own).ok()
}

impl Settings {
    /// Removes duplicate entries from all lists.
    pub(super) fn without_repetitions(mut self) -> Self {
        fn remove_repetitions<T: PartialEq>(list: Vec<T>) -> Vec<T> {
            let mut kept = Vec::new();
            for item in list {
                if !kept.contains(&item) {
                    kept.push(item);
                }
            }
            kept
        }
        self.columns = remove_repetitions(self.columns);
        self.metrics = remove_repetitions(self.metrics);
        self
    }

    /// Writes the settings to their table in the file `path`. The rest of the file is preserved.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        config::write_table(path, SETTINGS_TABLE, &self.to_entries())
    }

    pub(super) fn to_entries(&self) -> Vec<(&'static str, String)> {
        let quoted = |text: &str| format!("\"{text}\"");
        let list = |words: Vec<String>| format!("[{}]", words.join(", "));
        let pair = |pair: [u32; 2]| format!("{pair:?}");
        vec![
            ("theme", quoted(&value_name(&self.theme))),
            ("interval-ms", self.interval_ms.to_string()),
            ("view", quoted(&value_name(&self.view))),
            ("sort", quoted(&value_name(&self.sort))),
            ("descending", self.descending.to_string()),
            ("tree", self.tree.to_string()),
            (
                "columns",
                list(
                    self.columns
                        .iter()
                        .map(|column| quoted(&value_name(column)))
                        .collect(),
                ),
            ),
            (
                "metrics",
                list(
                    self.metrics
                        .iter()
                        .map(|metric| quoted(metric_key(METRICS[*metric])))
                        .collect(),
                ),
            ),
            ("range-s", self.range_s.to_string()),
            (
                "glyphs",
                quoted(self.glyphs.map_or(AUTO_GLYPHS, Glyphs::id)),
            ),
            ("mouse", self.mouse.to_string()),
            ("utilization-thresholds", pair(self.thresholds.utilization)),
            ("memory-thresholds", pair(self.thresholds.memory)),
            ("temperature-thresholds", pair(self.thresholds.temperature)),
            ("power-thresholds", pair(self.thresholds.power)),
        ]
    }
}

#[cfg(any(fuzzing, test))]
impl Default for Settings {
    /// Returns the default settings, regardless of environment variables and files.
    fn default() -> Self {
        let command = <Self as clap::Args>::augment_args(clap::Command::new("gpumon"));
        let command = command.mut_args(|arg| arg.env(clap::builder::Resettable::Reset));
        Self::from_arg_matches(&command.get_matches_from(["gpumon"])).unwrap()
    }
}

// Parsers and defaults for the options above.

fn join_names(values: &[impl ValueEnum]) -> String {
    values.iter().map(value_name).collect::<Vec<_>>().join(",")
}

/// Returns a parser for metrics. Its values are positions in `METRICS`.
fn metric_parser() -> impl TypedValueParser<Value = usize> {
    PossibleValuesParser::new(list_metrics().map(|metric| metric_key(METRICS[metric])))
        .try_map(|name| find_metric_position(&name).ok_or("use a name from the list"))
}

fn default_metrics_text() -> String {
    default_metrics()
        .into_iter()
        .map(|metric| metric_key(METRICS[metric]))
        .collect::<Vec<_>>()
        .join(",")
}

fn range_parser() -> impl TypedValueParser<Value = u64> {
    PossibleValuesParser::new(RANGES_S.map(|range| range.to_string()))
        .try_map(|text| text.parse::<u64>())
}

fn glyphs_parser() -> impl TypedValueParser<Value = Option<Glyphs>> {
    let [braille, blocks, ascii] = Glyphs::ALL.map(Glyphs::id);
    PossibleValuesParser::new([AUTO_GLYPHS, braille, blocks, ascii])
        .map(|name| Glyphs::ALL.into_iter().find(|glyphs| glyphs.id() == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Keys;

    #[test]
    fn written_default_settings_contain_every_key() {
        let keys = Keys::new();
        let mut written = Settings::default().to_entries();
        for key in keys.iter_table(Some(SETTINGS_TABLE)) {
            let place = written.iter().position(|(name, _)| *name == key.name());
            let (_, value) =
                written.remove(place.unwrap_or_else(|| panic!("W writes {}", key.name())));
            // `interval-ms` has no default, because a recording has its own interval. It is
            // therefore the only key whose example differs from the value that `W` writes.
            assert!(
                value == key.example_value() || key.name() == "interval-ms",
                "{}: {value}",
                key.name()
            );
        }
        assert_eq!(written, [], "W writes what is no key");
    }

    #[test]
    fn repeated_list_entries_are_removed() {
        let settings = Settings {
            columns: vec![Column::Pid, Column::Pid],
            metrics: vec![1, 0, 1],
            ..Settings::default()
        };
        let settings = settings.without_repetitions();
        assert_eq!(
            (settings.columns, settings.metrics),
            (vec![Column::Pid], vec![1, 0])
        );
    }
}
