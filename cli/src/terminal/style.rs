//! The colors. Each has one meaning, the same as on the web page. They are the terminal's own
//! colors, so they suit light and dark themes.

use anstyle::{AnsiColor, Effects, Style};

use crate::describe::{Level, Load};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
// Plain blue is illegible on black.
pub(crate) const UTILIZATION: Style = AnsiColor::BrightBlue.on_default().bold();
pub(crate) const MEMORY: Style = AnsiColor::Magenta.on_default();
/// The mark of simulated values, which is the same everywhere.
pub(crate) const SIMULATED: Style = AnsiColor::Yellow.on_default().bold();
/// A state without problems.
pub(crate) const WELL: Style = AnsiColor::Green.on_default();
/// Information that may interest the user.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Problems that need action.
pub(crate) const ALARM: Style = AnsiColor::Red.on_default().bold();

pub(crate) fn of_load(load: Load) -> Style {
    match load {
        Load::Light => WELL,
        Load::Moderate => NOTICE.bold(),
        Load::Heavy => ALARM.underline(),
    }
}

/// Returns the style of a bar, without the underline of the load's style.
pub(crate) fn of_load_bar(load: Load) -> Style {
    let style = of_load(load);
    style.effects(style.get_effects().remove(Effects::UNDERLINE))
}

pub(crate) fn of_level(level: Level) -> Style {
    match level {
        Level::Act => ALARM,
        Level::Warn => NOTICE,
        Level::Note => PLAIN,
        Level::Quiet => DIM,
    }
}

/// Removes all styles from a text.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
