//! One GPU as a cell: shade and color show a metric, and a letter shows a state that matters more.

use gpumon_fleet::{
    Rows,
    model::{GpuState, MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, TEMPERATURE, UTILIZATION},
};
use ratatui::style::Style;

use crate::terminal::glyphs::Glyphs;
use crate::{
    fleet::nodes::Line,
    terminal::columns::or_absent,
    top::theme::{Meaning, Theme},
};

/// The metric that cells show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Metric {
    #[default]
    Utilization,
    Memory,
    Power,
    Temperature,
    Conditions,
}

/// The temperatures at which the shade starts and ends: that of an idle board, and the one at which
/// boards slow down.
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

    /// Returns the id of the reading, or the key under which the reason for its absence is
    /// recorded.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Utilization => UTILIZATION,
            Self::Memory => MEMORY_USED,
            Self::Power => POWER,
            Self::Temperature => TEMPERATURE,
            Self::Conditions => "conditions",
        }
    }

    /// Returns the value as a fraction from 0 to 1, or `None` if it is unknown.
    pub(super) fn share(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        let value = rows.value(self.id(), row);
        let share = match self {
            Self::Utilization => value? / 100.0,
            Self::Memory => value? / rows.value(MEMORY_TOTAL, row)?,
            Self::Power => value? / rows.value(POWER_LIMIT, row)?,
            Self::Temperature => (value? - COOL_CELSIUS) / (HOT_CELSIUS - COOL_CELSIUS),
            Self::Conditions => {
                let worst = rows
                    .list_conditions(row)
                    .first()
                    .map_or(0, |condition| condition.severity);
                f64::from(worst.min(3)) / 3.0
            }
        };
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// Returns the number in the unit of the metric, in at most three characters.
    pub(super) fn format_reading(self, rows: &Rows<'_>, row: usize) -> String {
        match self {
            Self::Utilization | Self::Temperature | Self::Power => {
                let value = rows.value(self.id(), row);
                or_absent(value, |value| format!("{value:.0}"))
            }
            Self::Memory => {
                let share = self.share(rows, row);
                or_absent(share, |share| format!("{:.0}", share * 100.0))
            }
            Self::Conditions => match rows.list_conditions(row).len() {
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

/// Returns the number of cells per node: one for each index up to the highest, limited to `most`.
pub(super) fn count_cells(lines: &[Line<'_>], most: usize) -> usize {
    let of_line = |line: &Line<'_>| {
        let places = line.gpus.iter().map(|row| place(line.rows, *row) + 1);
        places.max()
    };
    let all = lines.iter().filter_map(of_line).max();
    all.unwrap_or(1).clamp(1, most)
}

/// Returns the position of a GPU's cell within its node. It does not change when other GPUs are
/// hidden.
pub(super) fn place(rows: &Rows<'_>, row: usize) -> usize {
    rows.fleet.gpus.index[row] as usize
}

/// Returns the character that fills a cell, and its style.
pub(super) fn cell(
    rows: &Rows<'_>,
    row: usize,
    metric: Metric,
    theme: &Theme,
    glyphs: Glyphs,
) -> (char, Style) {
    match rows.state(row) {
        GpuState::Lost => return ('x', theme.alarm),
        GpuState::Unknown => return ('?', theme.dim),
        _ => {}
    }
    match metric.share(rows, row) {
        None => ('?', theme.dim),
        // An idle GPU has a symbol that distinguishes it from a little load.
        Some(share) if share <= 0.005 => {
            (if glyphs == Glyphs::Ascii { '.' } else { '·' }, theme.dim)
        }
        Some(share) => (shade(share, glyphs), metric.style(theme, share)),
    }
}

fn shade(share: f64, glyphs: Glyphs) -> char {
    let shades = if glyphs == Glyphs::Ascii {
        ['-', '+', '*', '#']
    } else {
        ['░', '▒', '▓', '█']
    };
    shades[((share * 4.0) as usize).min(3)]
}
