//! Colours, each with one meaning, the same as in the table and on the page.

use ratatui::style::{Color, Modifier, Style};

use crate::describe::{Level, Load};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThemeName {
    /// The terminal's own colours, as they suit a dark background.
    Dark,
    /// Deeper colours, for a light background.
    Light,
    /// Bright colours on black and nothing dimmed.
    HighContrast,
    /// No colour at all.
    Monochrome,
}

impl ThemeName {
    pub(super) const ALL: [Self; 4] = [Self::Dark, Self::Light, Self::HighContrast, Self::Monochrome];

    /// As it is written in the settings and on the command line.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::HighContrast => "high-contrast",
            Self::Monochrome => "monochrome",
        }
    }

    pub(super) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|theme| *theme == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Utilization,
    Memory,
    Power,
    Temperature,
    /// What crosses a link, a disk or a network card.
    Traffic,
}

#[derive(Debug, Clone)]
pub(super) struct Theme {
    pub(super) plain: Style,
    pub(super) strong: Style,
    pub(super) dim: Style,
    pub(super) utilization: Style,
    pub(super) memory: Style,
    pub(super) power: Style,
    pub(super) temperature: Style,
    pub(super) traffic: Style,
    /// Simulated values are marked in the same way everywhere.
    pub(super) simulated: Style,
    pub(super) well: Style,
    /// Somebody might want to know.
    pub(super) notice: Style,
    /// Somebody should act.
    pub(super) alarm: Style,
    /// The row or word that keys are about.
    pub(super) selected: Style,
    /// Text that was searched for.
    pub(super) found: Style,
}

impl Theme {
    pub(super) fn new(name: ThemeName) -> Self {
        let plain = Style::new();
        let colour = |colour| plain.fg(colour);
        let bold = |colour| plain.fg(colour).add_modifier(Modifier::BOLD);
        // A row of several colours would be a row of several blocks.
        let selected = plain.fg(Color::Reset).bg(Color::Reset).add_modifier(Modifier::REVERSED);
        match name {
            ThemeName::Dark => Self {
                plain,
                strong: plain.add_modifier(Modifier::BOLD),
                dim: colour(Color::DarkGray),
                // Plain blue cannot be read on black.
                utilization: bold(Color::LightBlue),
                memory: colour(Color::Magenta),
                power: colour(Color::Yellow),
                temperature: colour(Color::Cyan),
                traffic: colour(Color::Green),
                simulated: bold(Color::Yellow),
                well: colour(Color::Green),
                notice: colour(Color::Yellow),
                alarm: bold(Color::Red),
                selected,
                found: bold(Color::Yellow).add_modifier(Modifier::UNDERLINED),
            },
            // Of the 256: the sixteen that terminals choose themselves are often too pale on white.
            ThemeName::Light => Self {
                plain,
                strong: plain.add_modifier(Modifier::BOLD),
                dim: colour(Color::Indexed(242)),
                utilization: bold(Color::Indexed(25)),
                memory: colour(Color::Indexed(90)),
                power: colour(Color::Indexed(94)),
                temperature: colour(Color::Indexed(30)),
                traffic: colour(Color::Indexed(28)),
                simulated: bold(Color::Indexed(94)),
                well: colour(Color::Indexed(28)),
                notice: colour(Color::Indexed(94)),
                alarm: bold(Color::Indexed(124)),
                selected,
                found: bold(Color::Indexed(94)).add_modifier(Modifier::UNDERLINED),
            },
            ThemeName::HighContrast => {
                let plain = Style::new().fg(Color::Indexed(15)).bg(Color::Indexed(16));
                let bright = |colour| plain.fg(Color::Indexed(colour)).add_modifier(Modifier::BOLD);
                Self {
                    plain,
                    strong: plain.add_modifier(Modifier::BOLD),
                    dim: plain,
                    utilization: bright(117),
                    memory: bright(213),
                    power: bright(227),
                    temperature: bright(87),
                    traffic: bright(120),
                    simulated: bright(227),
                    well: bright(120),
                    notice: bright(227),
                    alarm: plain.fg(Color::Indexed(15)).bg(Color::Indexed(160)).add_modifier(Modifier::BOLD),
                    selected: plain.fg(Color::Indexed(16)).bg(Color::Indexed(15)).add_modifier(Modifier::BOLD),
                    found: plain.fg(Color::Indexed(16)).bg(Color::Indexed(227)),
                }
            }
            ThemeName::Monochrome => Self {
                plain,
                strong: plain.add_modifier(Modifier::BOLD),
                dim: plain.add_modifier(Modifier::DIM),
                utilization: plain.add_modifier(Modifier::BOLD),
                memory: plain,
                power: plain,
                temperature: plain,
                traffic: plain,
                simulated: plain.add_modifier(Modifier::BOLD),
                well: plain,
                notice: plain.add_modifier(Modifier::BOLD),
                alarm: plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                selected,
                found: plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            },
        }
    }

    /// With all that is measured in gray: it is of the past.
    pub(super) fn faded(&self) -> Self {
        let gray = self.dim;
        Self {
            plain: gray,
            strong: gray,
            utilization: gray,
            memory: gray,
            power: gray,
            temperature: gray,
            traffic: gray,
            well: gray,
            notice: gray,
            alarm: gray,
            ..self.clone()
        }
    }

    pub(super) fn of_load(&self, load: Load) -> Style {
        match load {
            Load::Light => self.well.remove_modifier(Modifier::BOLD),
            Load::Moderate => self.notice.add_modifier(Modifier::BOLD),
            Load::Heavy => self.alarm.add_modifier(Modifier::UNDERLINED),
        }
    }

    pub(super) fn of_level(&self, level: Level) -> Style {
        match level {
            Level::Act => self.alarm,
            Level::Warn => self.notice,
            Level::Note => self.plain,
            Level::Quiet => self.dim,
        }
    }

    pub(super) fn of(&self, meaning: Meaning) -> Style {
        match meaning {
            Meaning::Utilization => self.utilization,
            Meaning::Memory => self.memory,
            Meaning::Power => self.power,
            Meaning::Temperature => self.temperature,
            Meaning::Traffic => self.traffic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_theme_comes_round_to_the_first() {
        let mut theme = ThemeName::Dark;
        for _ in ThemeName::ALL {
            theme = theme.next();
        }
        assert_eq!(theme, ThemeName::Dark);
    }

    #[test]
    fn without_colours_there_is_none_and_an_alarm_still_stands_out() {
        let theme = Theme::new(ThemeName::Monochrome);
        for style in [theme.alarm, theme.memory, theme.dim, theme.notice, theme.of(Meaning::Power)] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
        assert!(theme.alarm.add_modifier.contains(Modifier::UNDERLINED));
    }
}
