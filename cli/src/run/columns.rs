//! Columns of a report: as wide at its first line as at its last, and as many as the terminal has room for.

use anstyle::Style;
use gpumon_probe::untrusted::escaped;
use unicode_width::UnicodeWidthStr;

use crate::{
    commands::show::screen,
    table::style::{paint, plain},
    top::text::wrap,
};

/// What stands where there is no number.
pub(crate) const NONE: &str = "-";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) align: Align,
    /// Columns with the highest rank go first where there is no room; those with 0 stay.
    pub(crate) rank: u8,
}

impl Column {
    pub(crate) const fn new(heading: &'static str, align: Align, rank: u8) -> Self {
        Self {
            heading,
            align,
            rank,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Align {
    Left(usize),
    Right(usize),
    /// Points stand below each other, with room for so many digits before and behind them.
    Point(usize, usize),
}

/// What is shown of a report's columns.
#[derive(Debug)]
pub(crate) struct Columns {
    /// By their place among all.
    shown: Vec<(usize, Column)>,
    /// Of the terminal; `None` where the output is none.
    terminal: Option<usize>,
}

impl Columns {
    pub(crate) fn new(all: &[Column], terminal: Option<usize>) -> Self {
        let mut shown: Vec<_> = all.iter().copied().enumerate().collect();
        while terminal.is_some_and(|room| width(&shown) > room)
            && let Some(rank) = shown
                .iter()
                .map(|(_, column)| column.rank)
                .max()
                .filter(|rank| *rank > 0)
        {
            shown.retain(|(_, column)| column.rank != rank);
        }
        Self { shown, terminal }
    }

    pub(crate) fn headings(&self) -> String {
        self.join(|_, column| column.align.place(column.heading))
    }

    /// A line of these cells, one for each column that there could be.
    pub(crate) fn line(&self, cells: &[String]) -> String {
        self.join(|at, column| column.align.place(&cells[at]))
    }

    /// A sentence in lines that begin so many columns from the left.
    pub(crate) fn sentence(&self, indent: usize, text: &str) -> String {
        let lines = self.terminal.map_or_else(
            || vec![text.to_owned()],
            |room| wrap(text, room.saturating_sub(indent).max(indent)),
        );
        lines.join(&format!("\n{:indent$}", ""))
    }

    /// A line of a name in the first column and a sentence beside it.
    pub(crate) fn sentence_line(&self, name: &str, style: Style, text: &str) -> String {
        let width = self
            .shown
            .first()
            .map_or(0, |(_, column)| column.align.width());
        format!(
            "{name:width$} {}\n",
            paint(style, &self.sentence(width + 1, &escaped(text)))
        )
    }

    /// A remark below a line, so many columns from the left.
    pub(crate) fn remark(&self, indent: usize, style: Style, text: &str) -> String {
        format!(
            "{:indent$}{}\n",
            "",
            paint(style, &self.sentence(indent, text))
        )
    }

    /// A text behind a line, or so many columns from the left below it where there is no room.
    pub(crate) fn behind(&self, line: &str, indent: usize, text: &str) -> String {
        let width = plain(line).width() + 2 + plain(text).width();
        let is_room = self.terminal.is_none_or(|room| width <= room);
        if is_room {
            format!("{line}  {text}")
        } else {
            format!("{line}\n{:indent$}{text}", "")
        }
    }

    fn join(&self, cell: impl Fn(usize, &Column) -> String) -> String {
        let cells: Vec<_> = self
            .shown
            .iter()
            .map(|(at, column)| cell(*at, column))
            .collect();
        cells.join(" ").trim_end().to_owned()
    }
}

/// Columns of the terminal that is written to.
pub(crate) fn terminal_columns() -> Option<usize> {
    screen::size().map(|(columns, _)| columns)
}

fn width(shown: &[(usize, Column)]) -> usize {
    shown
        .iter()
        .map(|(_, column)| column.align.width() + 1)
        .sum::<usize>()
        .saturating_sub(1)
}

impl Align {
    fn width(self) -> usize {
        match self {
            Self::Left(width) | Self::Right(width) => width,
            Self::Point(before, behind) => before + 1 + behind,
        }
    }

    /// Widths are those of what is seen: a cell may have colors.
    fn place(self, cell: &str) -> String {
        let seen = plain(cell);
        let room = self.width().saturating_sub(seen.width());
        let behind = match self {
            Self::Left(_) => room,
            Self::Right(_) => 0,
            // A heading stands above the digits, a dash where the last digit before the point does.
            Self::Point(_, behind) => match seen.split_once('.') {
                Some((_, digits)) => behind.saturating_sub(digits.len()),
                None if seen.bytes().all(|byte| byte.is_ascii_digit()) || seen == NONE => {
                    behind + 1
                }
                None => 0,
            },
        };
        let behind = behind.min(room);
        format!("{:before$}{cell}{:behind$}", "", "", before = room - behind)
    }
}

/// Writes a value, or the dash of a missing one.
pub(crate) fn value_or_none(value: Option<f64>, write: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), write)
}

/// A number with three significant digits, of which so many at most stand behind the point.
pub(crate) fn number(value: f64, most_decimals: usize) -> String {
    let value: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let magnitude = if value == 0.0 {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    let decimals = usize::try_from(2 - magnitude)
        .unwrap_or(0)
        .min(most_decimals);
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Column; 4] = [
        Column {
            heading: "name",
            align: Align::Left(6),
            rank: 0,
        },
        Column {
            heading: "us",
            align: Align::Point(4, 2),
            rank: 0,
        },
        Column {
            heading: "W",
            align: Align::Right(4),
            rank: 2,
        },
        Column {
            heading: "result",
            align: Align::Left(8),
            rank: 0,
        },
    ];

    #[test]
    fn three_digits_count_and_the_rest_is_zeros() {
        let shown = [
            0.0, 0.0123, 0.62, 1.847, 9.996, 73.04, 512.4, 999.6, 17_312.0, 632_400.0,
        ]
        .map(|us| number(us, 3));
        assert_eq!(
            shown,
            [
                "0.00", "0.012", "0.620", "1.85", "10.0", "73.0", "512", "1000", "17300", "632000"
            ]
        );
    }

    #[test]
    fn points_stand_below_each_other_and_colors_take_no_room() {
        let columns = Columns::new(&ALL, None);
        let line = |us: &str| {
            columns.line(&["copy", us, "700", "\u{1b}[32mverified\u{1b}[0m"].map(str::to_owned))
        };
        assert_eq!(columns.headings(), "name        us    W result");
        assert_eq!(
            line("1.85"),
            "copy      1.85  700 \u{1b}[32mverified\u{1b}[0m"
        );
        assert_eq!(
            line("512"),
            "copy    512     700 \u{1b}[32mverified\u{1b}[0m"
        );
        assert_eq!(
            line(NONE),
            "copy      -     700 \u{1b}[32mverified\u{1b}[0m"
        );
    }

    #[test]
    fn where_there_is_no_room_what_tells_least_goes_first() {
        let headings = |terminal| Columns::new(&ALL, Some(terminal)).headings();
        assert_eq!(headings(28), "name        us    W result");
        assert_eq!(headings(27), "name        us result");
        assert_eq!(headings(5), "name        us result", "the rest stays");
        let columns = Columns::new(&ALL, Some(20));
        assert_eq!(
            columns.sentence(7, "failed: too large by far"),
            "failed: too\n       large by far"
        );
        assert_eq!(
            columns.behind("twelve wide.", 2, "below"),
            "twelve wide.  below"
        );
        assert_eq!(
            columns.behind("twelve wide.", 2, "\u{1b}[2mbelow\u{1b}[0m!!"),
            "twelve wide.\n  \u{1b}[2mbelow\u{1b}[0m!!"
        );
    }
}
