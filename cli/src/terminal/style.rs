//! The colors. Each color has one meaning, which is the same on the web page. The terminal's own
//! palette is used, so that the colors suit light and dark themes.

use anstyle::{AnsiColor, Effects, Style};

use crate::describe::{Level, LoadLevel};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
// Plain blue is hard to read on a black background.
pub(crate) const UTILIZATION: Style = AnsiColor::BrightBlue.on_default().bold();
pub(crate) const MEMORY: Style = AnsiColor::Magenta.on_default();
/// The label of simulated values, which has the same style in all views.
pub(crate) const SIMULATED: Style = AnsiColor::Yellow.on_default().bold();
/// A healthy state without problems.
pub(crate) const HEALTHY: Style = AnsiColor::Green.on_default();
/// Information that may be important to the user.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Problems that need action.
pub(crate) const ALARM: Style = AnsiColor::Red.on_default().bold();

pub(crate) fn choose_load_style(load: LoadLevel) -> Style {
    match load {
        LoadLevel::Light => HEALTHY,
        LoadLevel::Moderate => NOTICE.bold(),
        LoadLevel::Heavy => ALARM.underline(),
    }
}

/// Returns the style of a bar for a level of load. Unlike text, bars are not underlined.
pub(crate) fn choose_load_bar_style(load: LoadLevel) -> Style {
    let style = choose_load_style(load);
    style.effects(style.get_effects().remove(Effects::UNDERLINE))
}

pub(crate) fn choose_level_style(level: Level) -> Style {
    match level {
        Level::Act => ALARM,
        Level::Warn => NOTICE,
        Level::Note => PLAIN,
        Level::Quiet => DIM,
    }
}

/// Removes all styles from a text.
pub(crate) fn strip_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
