//! The characters that lines and bars are made of, by what the terminal can show.

use std::env;

use crate::terminal::screen::speaks_utf8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyphs {
    /// Braille: two by four dots in a cell.
    Braille,
    /// Half blocks, which the console of Linux has, too.
    Blocks,
    /// ASCII alone.
    Ascii,
}

impl Glyphs {
    pub(super) const ALL: [Self; 3] = [Self::Braille, Self::Blocks, Self::Ascii];

    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Braille => "braille",
            Self::Blocks => "blocks",
            Self::Ascii => "ascii",
        }
    }

    /// The best that this terminal and locale can show.
    pub(super) fn of_terminal() -> Self {
        match env::var("TERM").as_deref() {
            _ if !speaks_utf8() => Self::Ascii,
            Ok("linux") => Self::Blocks,
            _ => Self::Braille,
        }
    }

    pub(super) fn dots(self) -> (usize, usize) {
        match self {
            Self::Braille => (2, 4),
            Self::Blocks | Self::Ascii => (1, 2),
        }
    }

    /// A cell whose dot columns are filled from below, so many dots high each; `None` where there is no value.
    pub(super) fn column(self, heights: &[Option<usize>]) -> char {
        let first = heights.first().copied().flatten();
        match self {
            Self::Braille => {
                // Bits of the dots of the left and the right column, from below.
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

    /// A cell that a line passes through: of each dot column, the dots from below from which and up to which.
    pub(super) fn line(self, columns: &[(usize, usize)]) -> char {
        let first = columns.first().map_or(0, |(from, to)| to - from);
        match (self, first) {
            (Self::Braille, _) => {
                let bits = |of: fn(&(usize, usize)) -> usize| {
                    let heights: [Option<usize>; 2] =
                        std::array::from_fn(|at| columns.get(at).map(of));
                    match self.column(&heights) {
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

    /// A cell of a guide line, along the upper edge or through the middle of its row.
    pub(super) fn guide(self, is_middle: bool) -> char {
        match (self, is_middle) {
            (Self::Braille, true) => '⠂',
            (Self::Braille, false) => '⠁',
            (Self::Blocks, _) => '·',
            (Self::Ascii, _) => '.',
        }
    }

    /// One cell of a sparkline: a share of 1, or nothing where there is no value.
    pub(super) fn spark(self, share: Option<f64>) -> char {
        const LINES: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const LETTERS: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];
        let steps = if self == Self::Braille {
            LINES
        } else {
            LETTERS
        };
        share.map_or(' ', |share| {
            steps[((share.clamp(0.0, 1.0) * 7.0).round() as usize).min(7)]
        })
    }

    pub(super) fn has_lines(self) -> bool {
        self != Self::Ascii
    }

    pub(super) fn celsius(self) -> &'static str {
        if self == Self::Ascii { "C" } else { "°C" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_filled_from_below() {
        assert_eq!(Glyphs::Braille.column(&[Some(4), Some(4)]), '⣿');
        assert_eq!(Glyphs::Braille.column(&[Some(1), Some(0)]), '⡀');
        assert_eq!(Glyphs::Braille.column(&[None, Some(2)]), '⢠');
        assert_eq!(Glyphs::Braille.column(&[None, None]), ' ');
        assert_eq!(Glyphs::Blocks.column(&[Some(1)]), '▄');
        assert_eq!(Glyphs::Ascii.column(&[Some(9)]), '#');
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
    fn nothing_read_is_not_nothing_done() {
        assert_eq!(Glyphs::Braille.spark(None), ' ');
        assert_eq!(Glyphs::Braille.spark(Some(0.0)), '▁');
        assert_eq!(Glyphs::Ascii.spark(Some(1.0)), '#');
    }
}
