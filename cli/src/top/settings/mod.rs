//! What a person likes: read from a file at the start, written to it on request and never otherwise.

mod file;

use std::{env, path::PathBuf};

use gpumon_server::frame::INTERVAL_MS;

use self::file::Entry;
pub(super) use self::file::{BadSettings, File};
use super::{
    glyphs::Glyphs,
    metrics::{METRICS, default_metrics, key, position},
    processes::Column,
    theme::ThemeName,
    view::View,
};
use crate::{describe::Thresholds, suggest::nearest};

/// The stretches of time that charts can show, in seconds.
pub(super) const RANGES_S: [u64; 11] = [1, 10, 60, 120, 300, 900, 3600, 6 * 3600, DAY_S, 7 * DAY_S, 30 * DAY_S];
const DAY_S: u64 = 24 * 3600;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) theme: ThemeName,
    pub(super) interval_ms: u32,
    pub(super) view: View,
    pub(super) sort: Column,
    pub(super) descending: bool,
    pub(super) tree: bool,
    /// Columns of processes, in their order.
    pub(super) columns: Vec<Column>,
    /// What a GPU's charts show, by their places in `METRICS`.
    pub(super) metrics: Vec<usize>,
    pub(super) range_s: u64,
    /// What charts are drawn with; `None` goes by the terminal.
    pub(super) glyphs: Option<Glyphs>,
    pub(super) mouse: bool,
    pub(super) thresholds: Thresholds,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: ThemeName::Dark,
            interval_ms: 1000,
            view: View::Charts,
            sort: Column::Memory,
            descending: true,
            tree: false,
            columns: Column::usual(),
            metrics: default_metrics(),
            range_s: 120,
            glyphs: None,
            mouse: true,
            thresholds: Thresholds::default(),
        }
    }
}

const KEYS: [&str; 15] = [
    "theme",
    "interval_ms",
    "view",
    "sort",
    "descending",
    "tree",
    "columns",
    "metrics",
    "range_s",
    "glyphs",
    "mouse",
    "utilization_thresholds",
    "memory_thresholds",
    "temperature_thresholds",
    "power_thresholds",
];

/// The thresholds of the file that nobody named, and what is wrong with it.
pub(crate) fn thresholds() -> (Thresholds, Vec<String>) {
    let Some(path) = usual_path() else { return Default::default() };
    let (file, bad) = File::usual(&path);
    let (settings, mistakes) = Settings::of(&file);
    (settings.thresholds, bad.into_iter().chain(mistakes).map(|mistake| mistake.to_string()).collect())
}

/// What the file that nobody named sets, where there is one: neither its comments nor what is wrong in it, which can be
/// anything.
pub(crate) fn effective() -> Option<String> {
    let (file, _) = File::usual(&usual_path()?);
    let (settings, mistakes) = Settings::of(&file);
    let wrong = format!("# settings that are wrong and have no effect: {}\n", mistakes.len());
    let lines = settings.written().into_iter().map(|(key, value)| format!("{key} = {value}\n"));
    (!file.is_new).then(|| wrong + &lines.collect::<String>())
}

/// Where the settings are, unless another file is named.
pub(super) fn usual_path() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("gpumon").join("top.toml"))
}

impl Settings {
    /// What a file sets, and what is wrong with it; what it does not set, or sets wrongly, is as usual.
    pub(super) fn of(file: &File) -> (Self, Vec<BadSettings>) {
        let mut settings = Self::default();
        let mistakes = match file.entries() {
            Ok(entries) => entries.iter().filter_map(|entry| settings.set(entry).err()).collect(),
            Err(bad) => vec![bad],
        };
        (settings, mistakes)
    }

    fn set(&mut self, entry: &Entry<'_>) -> Result<(), BadSettings> {
        match entry.key.as_str() {
            "theme" => self.theme = entry.one_of(&theme_names(), theme)?,
            "interval_ms" => self.interval_ms = entry.number(INTERVAL_MS)?,
            "view" => self.view = entry.one_of(&View::ALL.map(View::id), view)?,
            "sort" => self.sort = entry.one_of(&Column::ALL.map(Column::id), Column::of_id)?,
            "descending" => self.descending = entry.boolean()?,
            "tree" => self.tree = entry.boolean()?,
            "columns" => self.columns = entry.several_of(&Column::ALL.map(Column::id), Column::of_id)?,
            "metrics" => self.metrics = entry.several_of(&metric_names(), position)?,
            "range_s" => {
                let allowed = RANGES_S.map(|range| range.to_string());
                let range = u64::from(entry.number(1..=30 * 24 * 3600)?);
                self.range_s = RANGES_S
                    .into_iter()
                    .find(|known| *known == range)
                    .ok_or_else(|| entry.bad(&format!("use one of {}", allowed.join(", "))))?;
            }
            "glyphs" => {
                let word = entry.one_of(&glyph_names(), |id| glyph_names().into_iter().find(|known| *known == id))?;
                self.glyphs = Glyphs::ALL.into_iter().find(|glyphs| glyphs.id() == word);
            }
            "mouse" => self.mouse = entry.boolean()?,
            "utilization_thresholds" => self.thresholds.utilization = entry.percentages()?,
            "memory_thresholds" => self.thresholds.memory = entry.percentages()?,
            "temperature_thresholds" => self.thresholds.temperature = entry.percentages()?,
            "power_thresholds" => self.thresholds.power = entry.percentages()?,
            unknown => {
                let hint = nearest(unknown, KEYS).map_or_else(
                    || format!("use one of {}", KEYS.join(", ")),
                    |near| format!("did you mean '{near}'?"),
                );
                return Err(entry.error(&format!("unknown setting '{unknown}': {hint}")));
            }
        }
        Ok(())
    }

    pub(super) fn written(&self) -> Vec<(&'static str, String)> {
        let quoted = |text: &str| format!("\"{text}\"");
        let list = |words: Vec<&str>| format!("[{}]", words.into_iter().map(quoted).collect::<Vec<_>>().join(", "));
        vec![
            ("theme", quoted(self.theme.id())),
            ("interval_ms", self.interval_ms.to_string()),
            ("view", quoted(self.view.id())),
            ("sort", quoted(self.sort.id())),
            ("descending", self.descending.to_string()),
            ("tree", self.tree.to_string()),
            ("columns", list(self.columns.iter().map(|column| column.id()).collect())),
            ("metrics", list(self.metrics.iter().map(|metric| key(METRICS[*metric])).collect())),
            ("range_s", self.range_s.to_string()),
            ("glyphs", quoted(self.glyphs.map_or("auto", Glyphs::id))),
            ("mouse", self.mouse.to_string()),
            ("utilization_thresholds", format!("{:?}", self.thresholds.utilization)),
            ("memory_thresholds", format!("{:?}", self.thresholds.memory)),
            ("temperature_thresholds", format!("{:?}", self.thresholds.temperature)),
            ("power_thresholds", format!("{:?}", self.thresholds.power)),
        ]
    }
}

fn theme_names() -> [&'static str; ThemeName::ALL.len()] {
    ThemeName::ALL.map(ThemeName::id)
}

fn theme(id: &str) -> Option<ThemeName> {
    ThemeName::ALL.into_iter().find(|theme| theme.id() == id)
}

pub(crate) fn parse_theme(text: &str) -> Result<ThemeName, String> {
    theme(text).ok_or_else(|| {
        let near = nearest(text, theme_names()).map(|near| format!("did you mean '{near}'? "));
        format!("{}use {}", near.unwrap_or_default(), theme_names().join(", "))
    })
}

fn view(id: &str) -> Option<View> {
    View::ALL.into_iter().find(|view| view.id() == id)
}

fn metric_names() -> Vec<&'static str> {
    METRICS.iter().map(|field| key(field)).collect()
}

fn glyph_names() -> [&'static str; 4] {
    let [braille, blocks, ascii] = Glyphs::ALL.map(Glyphs::id);
    ["auto", braille, blocks, ascii]
}

#[cfg(test)]
mod tests;
