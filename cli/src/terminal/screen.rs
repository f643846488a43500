//! Standard output, which is either a terminal with a size and capabilities, or a file. Also the
//! characters for the charts that it can show.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use anstream::{AutoStream, ColorChoice};
use gpumon_probe::stat::Window;

use super::{Layout, line::strip_styles};

/// Returns `true` if the terminal does not support moving the cursor.
pub(crate) fn is_dumb_terminal() -> bool {
    env::var("TERM").is_ok_and(|terminal| terminal == "dumb" || terminal.is_empty())
}

/// When the output has colors.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum Color {
    /// Colors if the terminal supports them; `NO_COLOR` and `CLICOLOR_FORCE` override this
    #[default]
    Auto,
    /// Colors even if the output is not a terminal
    Always,
    /// No colors in any output
    Never,
}

pub(crate) struct Screen {
    has_colors: bool,
    pub(crate) is_renewed: bool,
    pictures: u64,
}

impl Screen {
    /// Creates the screen. `is_watched` means that the output is updated repeatedly.
    pub(crate) fn new(color: Color, is_watched: bool) -> Self {
        let has_colors = match color {
            Color::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        };
        let is_renewed = is_watched && terminal_size().is_some() && !is_dumb_terminal();
        Self {
            has_colors,
            is_renewed,
            pictures: 0,
        }
    }

    /// Returns the layout. On a terminal, lines are cut to the terminal's width. Other outputs get
    /// plain text with lines of any length.
    pub(crate) fn layout(&self) -> Layout {
        match terminal_size() {
            Some((width, height)) => Layout {
                width: Some(width),
                // The last line of the terminal remains free for the cursor.
                height: height
                    .filter(|_| self.is_renewed)
                    .map(|height| height.saturating_sub(1).max(1)),
                glyphs: Glyphs::from_terminal(),
            },
            None => Layout {
                width: None,
                height: None,
                glyphs: Glyphs::Ascii,
            },
        }
    }

    /// Prints an update that consists of whole lines. On a terminal, it replaces the previous
    /// update; otherwise, it follows the previous update after an empty line.
    pub(crate) fn show(&mut self, picture: &str) -> io::Result<()> {
        let picture = if self.has_colors {
            picture.to_owned()
        } else {
            strip_styles(picture)
        };
        let is_first = self.pictures == 0;
        self.pictures += 1;
        let text = match (self.is_renewed, is_first) {
            (false, true) => picture,
            (false, false) => format!("\n{picture}"),
            (true, _) => render_update(&picture, is_first),
        };
        write_output(&text)
    }

    /// Ends the updates: the last update remains on the screen, the cursor moves below it, and the
    /// `^C` printed by the terminal is removed.
    pub(crate) fn finish_updates(&self) -> io::Result<()> {
        if self.is_renewed {
            write_output("\r\x1b[K")
        } else {
            Ok(())
        }
    }
}

/// Writes text and flushes standard output, so that neither a terminal nor another program gets
/// only a part of the text.
pub(super) fn write_output(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns an update with the control sequences that overwrite the screen line by line from the top
/// and clear the rest. The first update also scrolls the screen's old content into the terminal's
/// history.
fn render_update(picture: &str, is_first: bool) -> String {
    let before = if is_first {
        "\n".repeat(terminal_size().and_then(|(_, height)| height).unwrap_or(0))
    } else {
        String::new()
    };
    let lines = picture.replace('\n', "\x1b[K\n");
    // Terminals that support mode 2026 show the whole update in one step; other terminals ignore
    // the mode.
    format!("{before}\x1b[?2026h\x1b[H{lines}\x1b[J\x1b[?2026l")
}

/// Returns the number of columns and lines of the terminal at standard output. Returns `None` if
/// there is no terminal or its columns are unknown. The lines are `None` if unknown.
pub(crate) fn terminal_size() -> Option<(usize, Option<usize>)> {
    let size = rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .filter(|_| io::stdout().is_terminal())?;
    let height = Some(usize::from(size.ws_row)).filter(|height| *height > 0);
    (size.ws_col > 0).then_some((size.ws_col.into(), height))
}

/// Returns `true` if the locale's encoding is UTF-8. As in setlocale(3), the first variable that is
/// set determines the locale.
pub(crate) fn is_utf8_locale() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        locale
            .to_ascii_lowercase()
            .replace('-', "")
            .contains("utf8")
    })
}

/// The characters for lines and bars, depending on what the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyphs {
    /// Braille characters, which contain dots in two columns and four rows.
    Braille,
    /// Half-block characters, which the Linux console also supports.
    Blocks,
    /// Only ASCII characters.
    Ascii,
}

impl Glyphs {
    pub(crate) const ALL: [Self; 3] = [Self::Braille, Self::Blocks, Self::Ascii];

    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Braille => "braille",
            Self::Blocks => "blocks",
            Self::Ascii => "ascii",
        }
    }

    /// Returns the most detailed character set that the terminal and the locale support.
    pub(crate) fn from_terminal() -> Self {
        match env::var("TERM").as_deref() {
            _ if !is_utf8_locale() || is_dumb_terminal() => Self::Ascii,
            Ok("linux") => Self::Blocks,
            _ => Self::Braille,
        }
    }

    pub(crate) fn dots_per_cell(self) -> (usize, usize) {
        match self {
            Self::Braille => (2, 4),
            Self::Blocks | Self::Ascii => (1, 2),
        }
    }

    /// Returns a character whose columns of dots are filled from the bottom. `heights` contains the
    /// number of filled dots in each column, or `None` for an absent value.
    pub(crate) fn column_character(self, heights: &[Option<usize>]) -> char {
        let first = heights.first().copied().flatten();
        match self {
            Self::Braille => {
                // The bits of the dots in the left and right columns, each from bottom to top.
                const DOTS: [[u32; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];
                let bits = heights.iter().zip(DOTS).map(|(height, dots)| {
                    dots.iter()
                        .take(height.unwrap_or(0))
                        .fold(0, |bits, dot| bits | dot)
                });
                match bits.fold(0, |all, bits| all | bits) {
                    0 => ' ',
                    bits => char::from_u32(0x2800 + bits).unwrap_or(' '),
                }
            }
            Self::Blocks => [' ', '▄', '█'][first.unwrap_or(0).min(2)],
            Self::Ascii => [' ', '.', '#'][first.unwrap_or(0).min(2)],
        }
    }

    /// Returns a character with a segment of a line. For each column of dots, `columns` contains
    /// the first and the last dot of the segment, counted from the bottom.
    pub(crate) fn line_character(self, columns: &[(usize, usize)]) -> char {
        let first = columns.first().map_or(0, |(from, to)| to - from);
        match (self, first) {
            (Self::Braille, _) => {
                let bits = |of: fn(&(usize, usize)) -> usize| {
                    let heights: [Option<usize>; 2] =
                        std::array::from_fn(|at| columns.get(at).map(of));
                    match self.column_character(&heights) {
                        ' ' => 0,
                        filled => u32::from(filled) - 0x2800,
                    }
                };
                let between = bits(|at| at.1) & !bits(|at| at.0);
                char::from_u32(0x2800 + between)
                    .filter(|_| between > 0)
                    .unwrap_or(' ')
            }
            (_, 0) => ' ',
            (Self::Blocks, 1) => '─',
            (Self::Blocks, _) => '│',
            (Self::Ascii, 1) => '-',
            (Self::Ascii, _) => '|',
        }
    }

    /// Returns a character for a horizontal guide line, at the middle or the upper edge of the text
    /// row.
    pub(crate) fn guide_character(self, is_middle: bool) -> char {
        match (self, is_middle) {
            (Self::Braille, true) => '⠂',
            (Self::Braille, false) => '⠁',
            (Self::Blocks, _) => '·',
            (Self::Ascii, _) => '.',
        }
    }

    /// Returns a sparkline with one character per value. Values are between 0 and 1; absent values
    /// become blanks.
    pub(crate) fn draw_sparkline(self, shares: impl IntoIterator<Item = Option<f64>>) -> String {
        let steps: &[char] = match self {
            Self::Braille => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            Self::Blocks | Self::Ascii => &['_', '.', ',', '-', '=', '+', '*', '^'],
        };
        // A value above 0.5 % must not look like 0, so it is drawn at least one step high.
        let step = |share: f64| {
            let step = (share.clamp(0.0, 1.0) * (steps.len() - 1) as f64).round() as usize;
            steps[if share > 0.005 { step.max(1) } else { step }]
        };
        let shares = shares.into_iter();
        shares.map(|share| share.map_or(' ', step)).collect()
    }

    /// Returns the filled and the empty part of a bar. `share` is between 0 and 1. The filled part
    /// consists of heavy lines, blocks or `#`, and the empty part of light lines or `.`. Heavy
    /// lines and blocks can fill half a column.
    ///
    /// A share above 0 fills at least the smallest step, and a share below 1 never fills the whole
    /// bar.
    pub(crate) fn draw_bar(self, share: f64, columns: usize) -> (String, String) {
        let steps_per_column = if self == Self::Ascii { 1 } else { 2 };
        let steps = columns * steps_per_column;
        let share = share.clamp(0.0, 1.0);
        let mut filled = (share * steps as f64).round() as usize;
        if share > 0.0 {
            filled = filled.max(1);
        }
        if share < 1.0 {
            filled = filled.min(steps.saturating_sub(1));
        }
        let (full, half, empty) = match self {
            Self::Braille => ("━", "╸", "─"),
            Self::Blocks => ("█", "▌", "─"),
            Self::Ascii => ("#", "", "."),
        };
        let (whole, halves) = (filled / steps_per_column, filled % steps_per_column);
        (
            full.repeat(whole) + &half.repeat(halves),
            empty.repeat(columns - whole - halves),
        )
    }

    pub(crate) fn celsius(self) -> &'static str {
        if self == Self::Ascii { "C" } else { "°C" }
    }

    /// Replaces dashes with hyphens if the terminal cannot show dashes.
    pub(crate) fn replace_dashes(self, text: &str) -> String {
        if self == Self::Braille {
            text.to_owned()
        } else {
            text.replace('–', "-")
        }
    }

    /// Returns the character that marks the end of text that was cut.
    pub(crate) fn ellipsis(self) -> &'static str {
        if self == Self::Braille { "…" } else { "~" }
    }
}

/// Divides the last `span_ms` before `now_ms` into `columns` equal parts, and returns the mean
/// value of each part. Parts without values are `None`.
pub(crate) fn average_by_column(
    values: &[(u64, f64)],
    now_ms: u64,
    span_ms: u64,
    columns: usize,
) -> Vec<Option<f64>> {
    let mut parts = vec![Window::default(); columns];
    for (at_ms, value) in values {
        let age_ms = now_ms.saturating_sub(*at_ms);
        if age_ms < span_ms && columns > 0 {
            let part = columns - 1 - (age_ms * columns as u64 / span_ms) as usize;
            parts[part].add(*value, 1.0);
        }
    }
    parts.iter().map(Window::mean).collect()
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn chart_columns_are_filled_from_bottom() {
        assert_eq!(Glyphs::Braille.column_character(&[Some(4), Some(4)]), '⣿');
        assert_eq!(Glyphs::Braille.column_character(&[Some(1), Some(0)]), '⡀');
        assert_eq!(Glyphs::Braille.column_character(&[None, Some(2)]), '⢠');
        assert_eq!(Glyphs::Braille.column_character(&[None, None]), ' ');
        assert_eq!(Glyphs::Blocks.column_character(&[Some(1)]), '▄');
        assert_eq!(Glyphs::Ascii.column_character(&[Some(9)]), '#');
    }

    #[test]
    fn chart_line_fills_dots_between_two_heights() {
        assert_eq!(Glyphs::Braille.line_character(&[(3, 4), (0, 4)]), '⢹');
        assert_eq!(Glyphs::Braille.line_character(&[(0, 0), (4, 4)]), ' ');
        assert_eq!(
            [(0, 0), (0, 1), (0, 2)].map(|dots| Glyphs::Blocks.line_character(&[dots])),
            [' ', '─', '│']
        );
        assert_eq!(Glyphs::Ascii.line_character(&[(1, 2)]), '-');
    }

    #[test]
    fn sparkline_shows_small_shares_and_gaps() {
        let shares = [None, Some(0.0), Some(0.01), Some(0.5), Some(1.0)];
        assert_eq!(Glyphs::Braille.draw_sparkline(shares), " ▁▂▅█");
        assert_eq!(Glyphs::Ascii.draw_sparkline(shares), " _.=^");
    }

    #[test]
    fn bar_has_requested_width() {
        for glyphs in Glyphs::ALL {
            for columns in [1, 7, 30] {
                for step in 0..=100 {
                    let (full, empty) = glyphs.draw_bar(f64::from(step) / 100.0, columns);
                    assert_eq!(
                        full.width() + empty.width(),
                        columns,
                        "{step} % of {columns}"
                    );
                }
            }
        }
    }

    #[test]
    fn block_glyphs_use_only_linux_console_characters() {
        let glyphs = Glyphs::Blocks;
        let (full, empty) = glyphs.draw_bar(0.45, 10);
        let spark = glyphs.draw_sparkline((0..=10).map(|tenth| Some(f64::from(tenth) / 10.0)));
        let drawn = [full, empty, spark, glyphs.ellipsis().to_owned()].concat();
        let drawn = drawn + &glyphs.replace_dashes("a – b") + glyphs.celsius();
        // The characters of the Linux console are listed in the kernel's
        // `drivers/tty/vt/cp437.uni`.
        let is_known = |shown: char| shown.is_ascii() || "─█▌°".contains(shown);
        assert!(drawn.chars().all(is_known), "{drawn}");
    }

    #[test]
    fn bar_is_empty_at_zero_full_at_one() {
        let bar = |share| Glyphs::Ascii.draw_bar(share, 10);
        assert_eq!(bar(0.0).0, "");
        assert_eq!(bar(0.001).0, "#");
        assert_eq!(bar(0.999).1, ".");
        assert_eq!(bar(1.0).1, "");
    }
}

#[cfg(test)]
mod chart_tests {
    use super::*;

    #[test]
    fn chart_column_shows_mean_and_gap_stays_empty() {
        let values = [
            (1_000, 0.0),
            (2_000, 0.0),
            (21_000, 100.0),
            (31_000, 100.0),
            (36_000, 0.0),
            (39_000, 2.0),
        ];
        assert_eq!(
            average_by_column(&values, 40_000, 40_000, 4),
            [Some(0.0), None, Some(100.0), Some(34.0)]
        );
    }

    #[test]
    fn chart_column_ignores_values_before_span() {
        let values = [(1_000, 50.0), (99_000, 1.0)];
        assert_eq!(
            average_by_column(&values, 100_000, 60_000, 2),
            [None, Some(1.0)]
        );
        assert_eq!(average_by_column(&values, 100_000, 60_000, 0), []);
    }
}
