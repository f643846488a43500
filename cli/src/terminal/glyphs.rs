//! The characters of lines and bars, chosen by what the terminal can show.

use std::env;

use super::screen::{is_dumb, speaks_utf8};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyphs {
    /// Braille characters with two by four dots.
    Braille,
    /// Half blocks, which the Linux console has, too.
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

    /// Returns the best characters that the terminal and the locale support.
    pub(crate) fn of_terminal() -> Self {
        match env::var("TERM").as_deref() {
            _ if !speaks_utf8() || is_dumb() => Self::Ascii,
            Ok("linux") => Self::Blocks,
            _ => Self::Braille,
        }
    }

    pub(crate) fn dots(self) -> (usize, usize) {
        match self {
            Self::Braille => (2, 4),
            Self::Blocks | Self::Ascii => (1, 2),
        }
    }

    /// Returns a cell whose dot columns are filled from below to these heights in dots. `None` is
    /// an absent value.
    pub(crate) fn draw_column(self, heights: &[Option<usize>]) -> char {
        let first = heights.first().copied().flatten();
        match self {
            Self::Braille => {
                // These are the bits of the dots of the left and the right column, from below.
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

    /// Returns a cell with a part of a line. Each dot column has a first and a last dot, counted
    /// from below.
    pub(crate) fn line(self, columns: &[(usize, usize)]) -> char {
        let first = columns.first().map_or(0, |(from, to)| to - from);
        match (self, first) {
            (Self::Braille, _) => {
                let bits = |of: fn(&(usize, usize)) -> usize| {
                    let heights: [Option<usize>; 2] =
                        std::array::from_fn(|at| columns.get(at).map(of));
                    match self.draw_column(&heights) {
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

    /// Returns a cell of a guide line, along the upper edge or through the middle of its row.
    pub(crate) fn draw_guide(self, is_middle: bool) -> char {
        match (self, is_middle) {
            (Self::Braille, true) => '⠂',
            (Self::Braille, false) => '⠁',
            (Self::Blocks, _) => '·',
            (Self::Ascii, _) => '.',
        }
    }

    /// Returns a sparkline with one character per value between 0 and 1, and a blank for an absent
    /// one.
    pub(crate) fn draw_spark(self, shares: impl IntoIterator<Item = Option<f64>>) -> String {
        let steps: &[char] = match self {
            Self::Braille => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            Self::Blocks | Self::Ascii => &['_', '.', ',', '-', '=', '+', '*', '^'],
        };
        // A value above 0 is drawn above the base line.
        let step = |share: f64| {
            let step = (share.clamp(0.0, 1.0) * (steps.len() - 1) as f64).round() as usize;
            steps[if share > 0.005 { step.max(1) } else { step }]
        };
        let shares = shares.into_iter();
        shares.map(|share| share.map_or(' ', step)).collect()
    }

    /// Returns the full and the empty part of a bar: a heavy line or block and a light line with
    /// half steps, or `#` and `.`. `share` is between 0 and 1.
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

    /// Replaces dashes that the terminal cannot show.
    pub(crate) fn replace_dashes(self, text: &str) -> String {
        if self == Self::Braille {
            text.to_owned()
        } else {
            text.replace('–', "-")
        }
    }

    /// Returns the mark at the end of a text that was cut.
    pub(crate) fn ellipsis(self) -> &'static str {
        if self == Self::Braille { "…" } else { "~" }
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn dots_are_filled_from_below() {
        assert_eq!(Glyphs::Braille.draw_column(&[Some(4), Some(4)]), '⣿');
        assert_eq!(Glyphs::Braille.draw_column(&[Some(1), Some(0)]), '⡀');
        assert_eq!(Glyphs::Braille.draw_column(&[None, Some(2)]), '⢠');
        assert_eq!(Glyphs::Braille.draw_column(&[None, None]), ' ');
        assert_eq!(Glyphs::Blocks.draw_column(&[Some(1)]), '▄');
        assert_eq!(Glyphs::Ascii.draw_column(&[Some(9)]), '#');
    }

    #[test]
    fn a_line_has_the_dots_between_two_heights() {
        assert_eq!(Glyphs::Braille.line(&[(3, 4), (0, 4)]), '⢹');
        assert_eq!(Glyphs::Braille.line(&[(0, 0), (4, 4)]), ' ');
        assert_eq!(
            [(0, 0), (0, 1), (0, 2)].map(|dots| Glyphs::Blocks.line(&[dots])),
            [' ', '─', '│']
        );
        assert_eq!(Glyphs::Ascii.line(&[(1, 2)]), '-');
    }

    #[test]
    fn sparkline_shows_small_shares_and_gaps() {
        let shares = [None, Some(0.0), Some(0.01), Some(0.5), Some(1.0)];
        assert_eq!(Glyphs::Braille.draw_spark(shares), " ▁▂▅█");
        assert_eq!(Glyphs::Ascii.draw_spark(shares), " _.=^");
    }

    #[test]
    fn bar_has_its_width() {
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
    fn console_has_every_character_of_blocks() {
        let glyphs = Glyphs::Blocks;
        let (full, empty) = glyphs.draw_bar(0.45, 10);
        let spark = glyphs.draw_spark((0..=10).map(|tenth| Some(f64::from(tenth) / 10.0)));
        let drawn = [full, empty, spark, glyphs.ellipsis().to_owned()].concat();
        let drawn = drawn + &glyphs.replace_dashes("a – b") + glyphs.celsius();
        // The characters of the Linux console are listed in its `drivers/tty/vt/cp437.uni`.
        let is_known = |shown: char| shown.is_ascii() || "─█▌°".contains(shown);
        assert!(drawn.chars().all(is_known), "{drawn}");
    }

    #[test]
    fn bar_is_empty_at_nothing_full_at_all() {
        let bar = |share| Glyphs::Ascii.draw_bar(share, 10);
        assert_eq!(bar(0.0).0, "");
        assert_eq!(bar(0.001).0, "#");
        assert_eq!(bar(0.999).1, ".");
        assert_eq!(bar(1.0).1, "");
    }
}
