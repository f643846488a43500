//! A GPU as a cell: how much of something it has by shade and color, and what it is at where that matters more.

use ratatui::style::Style;

use crate::{
    fleet::{
        nodes::NodeSum,
        rows::{Measured, Rows, Use},
    },
    top::{
        glyphs::Glyphs,
        theme::{Meaning, Theme},
    },
};

/// What cells tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Metric {
    #[default]
    Utilization,
    Memory,
    Power,
    Temperature,
    Conditions,
}

/// Where the shade of a temperature begins and ends: that of a board at rest, and where boards slow down.
const COOL_CELSIUS: f64 = 25.0;
const HOT_CELSIUS: f64 = 90.0;

impl Metric {
    pub(super) const ALL: [Self; 5] = [
        Self::Utilization,
        Self::Memory,
        Self::Power,
        Self::Temperature,
        Self::Conditions,
    ];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Utilization => "utilization",
            Self::Memory => "memory",
            Self::Power => "power",
            Self::Temperature => "temperature",
            Self::Conditions => "conditions",
        }
    }

    /// What is read for it.
    pub(super) fn measured(self) -> Option<Measured> {
        match self {
            Self::Utilization => Some(Measured::Utilization),
            Self::Memory => Some(Measured::MemoryUsed),
            Self::Power => Some(Measured::Power),
            Self::Temperature => Some(Measured::Temperature),
            Self::Conditions => None,
        }
    }

    /// From 0 to 1; `None` where it is not known.
    pub(super) fn share(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        let read = |measured| rows.reading(measured, row);
        let share = match self {
            Self::Utilization => read(Measured::Utilization)? / 100.0,
            Self::Memory => read(Measured::MemoryUsed)? / read(Measured::MemoryTotal)?,
            Self::Power => read(Measured::Power)? / read(Measured::PowerLimit)?,
            Self::Temperature => {
                (read(Measured::Temperature)? - COOL_CELSIUS) / (HOT_CELSIUS - COOL_CELSIUS)
            }
            Self::Conditions => {
                let worst = rows
                    .conditions(row)
                    .first()
                    .map_or(0, |condition| condition.severity);
                f64::from(worst.min(3)) / 3.0
            }
        };
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// The number, in the unit of the metric, of at most three letters.
    pub(super) fn number(self, rows: &Rows<'_>, row: usize) -> String {
        match self {
            Self::Utilization | Self::Temperature | Self::Power => {
                let value = self
                    .measured()
                    .and_then(|measured| rows.reading(measured, row));
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
            }
            Self::Memory => self
                .share(rows, row)
                .map_or_else(|| "-".to_owned(), |share| format!("{:.0}", share * 100.0)),
            Self::Conditions => match rows.conditions(row).len() {
                0 => "-".to_owned(),
                many => many.to_string(),
            },
        }
    }

    fn style(self, theme: &Theme, share: f64) -> Style {
        match self {
            Self::Utilization => theme.of(Meaning::Utilization),
            Self::Memory => theme.of(Meaning::Memory),
            Self::Power => theme.of(Meaning::Power),
            Self::Temperature => theme.of(Meaning::Temperature),
            Self::Conditions if share > 0.9 => theme.alarm,
            Self::Conditions => theme.notice,
        }
    }
}

/// How many cells a node of these has room for: one for each index up to its highest, and so many at most.
pub(super) fn cells(rows: &Rows<'_>, sums: &[NodeSum], most: usize) -> usize {
    let all = sums
        .iter()
        .flat_map(|sum| &sum.rows)
        .map(|row| place(rows, *row) + 1)
        .max();
    all.unwrap_or(1).clamp(1, most)
}

/// Which cell of its node a GPU has, also where others are left out.
pub(super) fn place(rows: &Rows<'_>, row: usize) -> usize {
    rows.fleet.gpus.index[row] as usize
}

/// A character that fills a cell, and its color.
pub(super) fn cell(
    rows: &Rows<'_>,
    row: usize,
    metric: Metric,
    theme: &Theme,
    glyphs: Glyphs,
) -> (char, Style) {
    match rows.use_of(row) {
        Use::Lost => return ('x', theme.alarm),
        Use::Unknown => return ('?', theme.dim),
        _ => {}
    }
    match metric.share(rows, row) {
        None => ('?', theme.dim),
        // Nothing, which is not the same as little.
        Some(share) if share <= 0.005 => (if glyphs.has_lines() { '·' } else { '.' }, theme.dim),
        Some(share) => (shade(share, glyphs), metric.style(theme, share)),
    }
}

fn shade(share: f64, glyphs: Glyphs) -> char {
    let shades = if glyphs.has_lines() {
        ['░', '▒', '▓', '█']
    } else {
        ['-', '+', '*', '#']
    };
    shades[((share * 4.0) as usize).min(3)]
}
