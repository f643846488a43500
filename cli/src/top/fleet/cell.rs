//! A GPU as a single cell. Its shade and color show a metric; a letter shows a state that is more
//! important than the metric.

use gpumon_fleet::{
    Rows,
    model::{GpuState, MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, TEMPERATURE, UTILIZATION},
};
use ratatui::style::Style;

use crate::terminal::glyphs::Glyphs;
use crate::{
    fleet::nodes::FleetLine,
    terminal::columns::format_optional,
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

/// The temperatures of the lightest and the darkest shade: that of an idle board, and that at which
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

    /// Returns the ID of the metric, by which readings and the reasons for their absence are
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

    /// Returns the value as a fraction from 0 to 1, or `None` if the value is unknown.
    pub(super) fn read_fraction(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
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

    /// Formats the value in the metric's unit, with at most three characters.
    pub(super) fn format_reading(self, rows: &Rows<'_>, row: usize) -> String {
        match self {
            Self::Utilization | Self::Temperature | Self::Power => {
                let value = rows.value(self.id(), row);
                format_optional(value, |value| format!("{value:.0}"))
            }
            Self::Memory => {
                let share = self.read_fraction(rows, row);
                format_optional(share, |share| format!("{:.0}", share * 100.0))
            }
            Self::Conditions => match rows.list_conditions(row).len() {
                0 => "-".to_owned(),
                many => many.to_string(),
            },
        }
    }

    fn style(self, theme: &Theme, share: f64) -> Style {
        match self {
            Self::Utilization => theme.choose_meaning_style(Meaning::Utilization),
            Self::Memory => theme.choose_meaning_style(Meaning::Memory),
            Self::Power => theme.choose_meaning_style(Meaning::Power),
            Self::Temperature => theme.choose_meaning_style(Meaning::Temperature),
            Self::Conditions if share > 0.9 => theme.alarm,
            Self::Conditions => theme.notice,
        }
    }
}

/// Returns the number of cells per node, which covers the highest GPU index but is limited to
/// `most`.
pub(super) fn count_cells(lines: &[FleetLine<'_>], most: usize) -> usize {
    let of_line = |line: &FleetLine<'_>| {
        let places = line
            .gpus
            .iter()
            .map(|row| cell_position(line.rows, *row) + 1);
        places.max()
    };
    let all = lines.iter().filter_map(of_line).max();
    all.unwrap_or(1).clamp(1, most)
}

/// Returns the position of a GPU's cell within its node. Hiding other GPUs does not change the
/// position.
pub(super) fn cell_position(rows: &Rows<'_>, row: usize) -> usize {
    rows.fleet.gpus.index[row] as usize
}

/// Returns the character that fills a cell, and its style.
pub(super) fn draw_cell(
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
    match metric.read_fraction(rows, row) {
        None => ('?', theme.dim),
        // An idle GPU is drawn as a dot to distinguish it from a GPU with a low load.
        Some(share) if share <= 0.005 => {
            (if glyphs == Glyphs::Ascii { '.' } else { '·' }, theme.dim)
        }
        Some(share) => (
            choose_shade_character(share, glyphs),
            metric.style(theme, share),
        ),
    }
}

fn choose_shade_character(share: f64, glyphs: Glyphs) -> char {
    let shades = if glyphs == Glyphs::Ascii {
        ['-', '+', '*', '#']
    } else {
        ['░', '▒', '▓', '█']
    };
    shades[((share * 4.0) as usize).min(3)]
}
