//! Colours, each with one meaning, the same as on the page. They are the terminal's own, so that they suit light and
//! dark themes.

use anstyle::{AnsiColor, Style};

pub(super) const PLAIN: Style = Style::new();
pub(super) const STRONG: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const UTILIZATION: Style = AnsiColor::Blue.on_default().bold();
pub(super) const MEMORY: Style = AnsiColor::Magenta.on_default();
pub(super) const POWER: Style = AnsiColor::Yellow.on_default();
pub(super) const TEMPERATURE: Style = AnsiColor::Cyan.on_default();
/// Simulated values are marked in the same way everywhere.
pub(super) const SIMULATED: Style = AnsiColor::Yellow.on_default().bold();
/// Somebody might want to know.
pub(super) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Somebody should act.
pub(super) const ALARM: Style = AnsiColor::Red.on_default().bold();

pub(super) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
