//! Tables whose columns are as wide as their widest cell. If a table is too wide, some columns are
//! omitted.

use std::cmp::Reverse;

use anstyle::Style;
use gpumon_probe::untrusted::escape_untrusted;
use unicode_width::UnicodeWidthStr;

use super::{
    line::{DIM, Line, paint, strip_styles},
    screen,
    text::{cut, wrap},
    units::ABSENT,
};

/// The width of the gap between two cells.
const GAP: usize = 1;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    heading: &'static str,
    align: Align,
    /// The column's rank. Columns with the highest rank are omitted first; columns of rank 0 are
    /// never omitted.
    rank: u8,
    width: usize,
    /// The minimum width of a shrinkable column. The column is cut down to this width before other
    /// columns are omitted.
    least: Option<usize>,
    is_optional: bool,
}

#[derive(Debug, Clone, Copy)]
enum Align {
    Left,
    Right,
    /// Aligns numbers at the decimal point, with room for the given number of digits after the
    /// point.
    Point(usize),
}

/// A column and the function that formats an item's cell in this column.
pub(crate) type Field<T> = (Column, fn(&T) -> String);

impl Column {
    pub(crate) const fn new_left_aligned(heading: &'static str, rank: u8) -> Self {
        Self {
            heading,
            align: Align::Left,
            rank,
            width: 0,
            least: None,
            is_optional: false,
        }
    }

    pub(crate) const fn new_right_aligned(heading: &'static str, rank: u8) -> Self {
        Self {
            align: Align::Right,
            ..Self::new_left_aligned(heading, rank)
        }
    }

    /// Returns a column of numbers that are aligned at the decimal point, with room for the given
    /// number of digits before and after the point.
    pub(crate) const fn new_point_aligned(
        heading: &'static str,
        before: usize,
        after: usize,
        rank: u8,
    ) -> Self {
        Self {
            align: Align::Point(after),
            width: before + 1 + after,
            ..Self::new_left_aligned(heading, rank)
        }
    }

    /// Sets the minimum width of the column.
    pub(crate) const fn with_min_width(self, width: usize) -> Self {
        Self { width, ..self }
    }

    /// Makes the column shrinkable: if there is too little room, its cells are cut, but not below
    /// the width `least`. The cells must not contain styles.
    pub(crate) const fn shrinkable_down_to(self, least: usize) -> Self {
        Self {
            least: Some(least),
            ..self
        }
    }

    /// Makes the column optional. An optional column is omitted if all its cells are dashes.
    pub(crate) const fn omit_if_absent(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// Aligns a cell, which may contain styles.
    fn align_cell(&self, cell: &str) -> String {
        let cell = self
            .least
            .map_or_else(|| cell.to_owned(), |_| cut(cell, self.width));
        let [before, after] = self.count_blanks(&strip_styles(&cell));
        format!("{:before$}{cell}{:after$}", "", "")
    }

    /// Returns the number of blanks before and after a cell.
    fn count_blanks(&self, shown: &str) -> [usize; 2] {
        let room = self.width.saturating_sub(shown.width());
        let after = match self.align {
            Align::Left => room,
            Align::Right => 0,
            // An integer or a dash ends directly before the position of the decimal point. Other
            // text without a point, such as a heading, is right-aligned.
            Align::Point(after) => match shown.split_once('.') {
                Some((_, digits)) => after.saturating_sub(digits.len()),
                None if shown.bytes().all(|byte| byte.is_ascii_digit()) || shown == ABSENT => {
                    after + 1
                }
                None => 0,
            },
        };
        let after = after.min(room);
        [room - after, after]
    }
}

pub(crate) trait Cell {
    /// Returns the text without styles. It has the same width as the cell.
    fn to_plain_text(&self) -> String;
}

impl Cell for String {
    fn to_plain_text(&self) -> String {
        strip_styles(self)
    }
}

impl<S> Cell for Line<S> {
    fn to_plain_text(&self) -> String {
        self.pieces().map(|(_, text)| text).collect()
    }
}

/// A part of a line that is shown if there is enough room.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    pub(crate) width: usize,
    /// The part's rank. Parts with the highest rank are omitted first; parts of rank 0 are never
    /// omitted.
    pub(crate) rank: u8,
    /// The width, in columns, that must remain for the rest of the line. If less would remain, this
    /// part is omitted.
    pub(crate) rest: usize,
}

/// Returns whether each part is shown in a line of `columns` columns. Parts with the same rank are
/// either all shown or all omitted.
pub(crate) fn choose_parts(parts: &[Part], gap: usize, columns: usize) -> Vec<bool> {
    let mut ranks: Vec<u8> = parts.iter().map(|part| part.rank).collect();
    ranks.sort_unstable_by_key(|rank| Reverse(*rank));
    ranks.dedup();
    let mut shown = vec![true; parts.len()];
    for rank in ranks.into_iter().filter(|rank| *rank > 0) {
        let chosen = || parts.iter().zip(&shown).filter(|(_, shown)| **shown);
        let taken: usize = chosen().map(|(part, _)| part.width + gap).sum();
        let of_rank = || parts.iter().filter(|part| part.rank == rank);
        let rest = of_rank().map(|part| part.rest).fold(0, usize::max);
        if taken + rest > columns + gap {
            for (shown, part) in shown.iter_mut().zip(parts) {
                *shown &= part.rank != rank;
            }
        }
    }
    shown
}

/// The visible columns of a table, with their widths.
#[derive(Debug)]
pub(crate) struct Columns {
    /// The visible columns, each with its index in the list of all columns.
    shown: Vec<(usize, Column)>,
    /// The width of the terminal, or `None` if the output is not a terminal.
    terminal: Option<usize>,
}

impl Columns {
    /// Returns the columns that fit, each as wide as its widest cell in `rows`.
    pub(crate) fn new<C: Cell>(
        all: &[Column],
        rows: &[impl AsRef<[C]>],
        terminal: Option<usize>,
    ) -> Self {
        let cells = |at: usize| rows.iter().map(move |row| row.as_ref()[at].to_plain_text());
        let mut shown: Vec<_> = (0..)
            .zip(all)
            .filter(|(at, column)| !column.is_optional || cells(*at).any(|cell| cell != ABSENT))
            .map(|(at, column)| {
                let widths = cells(at).map(|cell| cell.width());
                let width = widths.fold(column.width.max(column.heading.width()), usize::max);
                (at, column.with_min_width(width))
            })
            .collect();
        if let Some(room) = terminal {
            let parts = shown.iter().map(|(_, column)| Part {
                width: column
                    .least
                    .map_or(column.width, |least| least.min(column.width)),
                rank: column.rank,
                rest: 0,
            });
            let mut is_shown = choose_parts(&parts.collect::<Vec<_>>(), GAP, room).into_iter();
            shown.retain(|_| is_shown.next() == Some(true));
            let excess = width(&shown).saturating_sub(room);
            for (_, column) in &mut shown {
                if let Some(least) = column.least {
                    let least = least.min(column.width);
                    column.width = column.width.saturating_sub(excess).max(least);
                }
            }
        }
        Self { shown, terminal }
    }

    /// Returns the columns that fit, each as wide as its heading or minimum width, for a table
    /// whose rows are not known yet.
    pub(crate) fn with_headings(all: &[Column], terminal: Option<usize>) -> Self {
        Self::new::<String>(all, &[[]; 0], terminal)
    }

    /// Returns an empty list of columns, for output that consists only of sentences.
    pub(crate) fn empty(terminal: Option<usize>) -> Self {
        Self::with_headings(&[], terminal)
    }

    /// Returns the width of a line.
    pub(crate) fn width(&self) -> usize {
        width(&self.shown)
    }

    /// Returns the styled line of headings.
    pub(crate) fn headings(&self) -> String {
        paint(DIM, &self.plain_headings()) + "\n"
    }

    /// Returns the headings without a style.
    pub(crate) fn plain_headings(&self) -> String {
        self.join_cells(|_, column| column.align_cell(column.heading))
    }

    /// Joins the cells of a row, which consist of styled pieces, to a line. `blank` is the style of
    /// the space between the cells.
    pub(crate) fn join_pieces<S: Copy>(&self, cells: &[Line<S>], blank: S) -> Line<S> {
        let mut line = Line::default();
        for (at, column) in &self.shown {
            let [before, after] = column.count_blanks(&cells[*at].to_plain_text());
            line.push(blank, " ".repeat(before));
            line.extend(cells[*at].clone());
            line.push(blank, " ".repeat(after + GAP));
        }
        line
    }

    /// Formats a row as a line. `cells` contains one cell for each column, including omitted
    /// columns.
    pub(crate) fn format_row(&self, cells: &[String]) -> String {
        self.join_cells(|at, column| column.align_cell(&cells[at]))
    }

    /// Returns the headings, followed by one line for each row.
    pub(crate) fn format_rows<R: AsRef<[String]>>(&self, rows: &[R]) -> String {
        let lines = rows.iter().map(|row| self.format_row(row.as_ref()) + "\n");
        std::iter::once(self.headings()).chain(lines).collect()
    }

    /// Wraps a sentence. All lines except the first are indented by `indent` columns.
    pub(crate) fn wrap_sentence(&self, indent: usize, text: &str) -> String {
        let lines = self.terminal.map_or_else(
            || vec![text.to_owned()],
            |room| wrap(text, room.saturating_sub(indent).max(indent)),
        );
        lines.join(&format!("\n{:indent$}", ""))
    }

    /// Formats a line with a name in the first column, followed by a sentence.
    pub(crate) fn format_sentence_line(&self, name: &str, style: Style, text: &str) -> String {
        let width = self.shown.first().map_or(0, |(_, column)| column.width);
        format!(
            "{name:width$} {}\n",
            paint(
                style,
                &self.wrap_sentence(width + 1, &escape_untrusted(text))
            )
        )
    }

    /// Formats a remark as separate lines that are indented by `indent` columns.
    pub(crate) fn format_remark(&self, indent: usize, style: Style, text: &str) -> String {
        format!(
            "{:indent$}{}\n",
            "",
            paint(style, &self.wrap_sentence(indent, text))
        )
    }

    /// Appends text to a line if there is enough room. Otherwise, the text follows on a new line,
    /// indented by `indent` columns.
    pub(crate) fn append_or_wrap(&self, line: &str, indent: usize, text: &str) -> String {
        let width = strip_styles(line).width() + 2 + strip_styles(text).width();
        let is_room = self.terminal.is_none_or(|room| width <= room);
        if is_room {
            format!("{line}  {text}")
        } else {
            format!("{line}\n{:indent$}{text}", "")
        }
    }

    fn join_cells(&self, cell: impl Fn(usize, &Column) -> String) -> String {
        let cells: Vec<_> = self
            .shown
            .iter()
            .map(|(at, column)| cell(*at, column))
            .collect();
        cells.join(" ").trim_end().to_owned()
    }
}

fn width(shown: &[(usize, Column)]) -> usize {
    let widths = shown.iter().map(|(_, column)| column.width + GAP);
    widths.sum::<usize>().saturating_sub(GAP)
}

/// Formats items as a table. The result of `remark` is added after the line of each item.
pub(crate) fn format_table<T>(
    fields: &[Field<T>],
    items: &[T],
    terminal: Option<usize>,
    remark: impl Fn(&Columns, &T) -> String,
) -> String {
    let all: Vec<_> = fields.iter().map(|(column, _)| *column).collect();
    let cells = |item| fields.iter().map(|(_, cell)| cell(item)).collect();
    let rows: Vec<Vec<String>> = items.iter().map(cells).collect();
    let columns = Columns::new(&all, &rows, terminal);
    let lines = items
        .iter()
        .zip(&rows)
        .map(|(item, row)| format!("{}\n{}", columns.format_row(row), remark(&columns, item)));
    std::iter::once(columns.headings()).chain(lines).collect()
}

/// Returns the width of the terminal, or `None` if standard output is not a terminal.
pub(crate) fn terminal_columns() -> Option<usize> {
    screen::terminal_size().map(|(columns, _)| columns)
}

/// Formats a number with three significant digits and at most `most_decimals` decimals.
pub(crate) fn format_number(value: f64, most_decimals: usize) -> String {
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
        Column::new_left_aligned("name", 0).with_min_width(6),
        Column::new_point_aligned("us", 4, 2, 0),
        Column::new_right_aligned("W", 2).with_min_width(4),
        Column::new_left_aligned("result", 0).with_min_width(8),
    ];
    const NO_ROWS: [Vec<String>; 0] = [];

    #[test]
    fn numbers_keep_three_significant_digits() {
        let shown = [
            0.0, 0.0123, 0.62, 1.847, 9.996, 73.04, 512.4, 999.6, 17_312.0, 632_400.0,
        ]
        .map(|us| format_number(us, 3));
        assert_eq!(
            shown,
            [
                "0.00", "0.012", "0.620", "1.85", "10.0", "73.0", "512", "1000", "17300", "632000"
            ]
        );
    }

    #[test]
    fn decimal_points_are_aligned_despite_color_codes() {
        let columns = Columns::new(&ALL, &NO_ROWS, None);
        let line = |us: &str| {
            columns
                .format_row(&["copy", us, "700", "\u{1b}[32mverified\u{1b}[0m"].map(str::to_owned))
        };
        assert_eq!(
            strip_styles(&columns.headings()),
            "name        us    W result\n"
        );
        assert_eq!(
            line("1.85"),
            "copy      1.85  700 \u{1b}[32mverified\u{1b}[0m"
        );
        assert_eq!(
            line("512"),
            "copy    512     700 \u{1b}[32mverified\u{1b}[0m"
        );
        assert_eq!(
            line(ABSENT),
            "copy      -     700 \u{1b}[32mverified\u{1b}[0m"
        );
    }

    #[test]
    fn columns_with_highest_rank_are_omitted_first() {
        let headings =
            |terminal| strip_styles(&Columns::new(&ALL, &NO_ROWS, Some(terminal)).headings());
        assert_eq!(headings(28), "name        us    W result\n");
        assert_eq!(headings(27), "name        us result\n");
        assert_eq!(headings(5), "name        us result\n", "rank 0 stays");
        let columns = Columns::new(&ALL, &NO_ROWS, Some(20));
        assert_eq!(
            columns.wrap_sentence(7, "failed: too large by far"),
            "failed: too\n       large by far"
        );
        assert_eq!(
            columns.append_or_wrap("twelve wide.", 2, "below"),
            "twelve wide.  below"
        );
        assert_eq!(
            columns.append_or_wrap("twelve wide.", 2, "\u{1b}[2mbelow\u{1b}[0m!!"),
            "twelve wide.\n  \u{1b}[2mbelow\u{1b}[0m!!"
        );
    }

    #[test]
    fn wide_cells_shrink_or_omit_other_columns() {
        let all = [
            Column::new_right_aligned("cell", 0),
            Column::new_left_aligned("code", 0).shrinkable_down_to(6),
            Column::new_left_aligned("link", 0).omit_if_absent(),
        ];
        let rows = [["100000", "print(1 + 1)", ABSENT], ["2", "x", ABSENT]];
        let rows = rows.map(|row| row.map(str::to_owned));
        let table = |terminal| {
            let columns = Columns::new(&all, &rows, terminal);
            [0, 1]
                .map(|row: usize| columns.format_row(&rows[row]))
                .join("\n")
        };
        assert_eq!(table(None), "100000 print(1 + 1)\n     2 x");
        assert_eq!(table(Some(15)), "100000 print(1…\n     2 x");
        assert_eq!(table(Some(5)), "100000 print…\n     2 x", "the least width");
        let short = [["1", "x", ABSENT].map(str::to_owned)];
        assert_eq!(
            Columns::new(&all, &short, Some(5)).format_row(&short[0]),
            "   1 x"
        );
        assert_eq!(
            strip_styles(&Columns::new(&all, &short, Some(5)).headings()),
            "cell code\n",
            "short cells are not widened"
        );
    }
}
