//! Colors, each with one meaning, the same as on the page. They are the terminal's own, so that
//! they suit light and dark themes.

use anstyle::{AnsiColor, Effects, Style};

use crate::describe::{Level, Load};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
// Plain blue cannot be read on black.
pub(crate) const UTILIZATION: Style = AnsiColor::BrightBlue.on_default().bold();
pub(crate) const MEMORY: Style = AnsiColor::Magenta.on_default();
/// Simulated values are marked in the same way everywhere.
pub(crate) const SIMULATED: Style = AnsiColor::Yellow.on_default().bold();
/// All is well.
pub(crate) const WELL: Style = AnsiColor::Green.on_default();
/// Somebody might want to know.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Somebody should act.
pub(crate) const ALARM: Style = AnsiColor::Red.on_default().bold();

pub(crate) fn of_load(load: Load) -> Style {
    match load {
        Load::Light => WELL,
        Load::Moderate => NOTICE.bold(),
        Load::Heavy => ALARM.underline(),
    }
}

/// Returns the style of a bar, which is not underlined.
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

/// A text without its styles.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
