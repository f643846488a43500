//! The characters that lines and bars are made of, by what the terminal can show.

use std::env;

use crate::commands::show::screen::speaks_utf8;

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
                let bits = heights
                    .iter()
                    .zip(DOTS)
                    .map(|(height, dots)| dots.iter().take(height.unwrap_or(0)).fold(0, |bits, dot| bits | dot));
                match bits.fold(0, |all, bits| all | bits) {
                    0 => ' ',
                    bits => char::from_u32(0x2800 + bits).unwrap_or(' '),
                }
            }
            Self::Blocks => [' ', '▄', '█'][first.unwrap_or(0).min(2)],
            Self::Ascii => [' ', '.', '#'][first.unwrap_or(0).min(2)],
        }
    }

    /// One cell of a sparkline: a share of 1, or nothing where there is no value.
    pub(super) fn spark(self, share: Option<f64>) -> char {
        const LINES: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const LETTERS: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];
        let steps = if self == Self::Braille { LINES } else { LETTERS };
        share.map_or(' ', |share| steps[((share.clamp(0.0, 1.0) * 7.0).round() as usize).min(7)])
    }

    pub(super) fn has_lines(self) -> bool {
        self != Self::Ascii
    }

    pub(super) fn celsius(self) -> &'static str {
        if self == Self::Ascii { "C" } else { "°C" }
    }
}

/// What stands in the place of a character that a terminal without UTF-8 cannot show.
pub(super) fn in_ascii(symbol: &str) -> &'static str {
    match symbol {
        "…" => "~",
        "─" | "━" | "·" | "–" => "-",
        "│" => "|",
        "┌" | "┐" | "└" | "┘" | "├" | "┤" | "╭" | "╮" | "╰" | "╯" => "+",
        "▲" | "↑" => "^",
        "▼" | "↓" => "v",
        "←" | "◂" => "<",
        "→" | "▸" => ">",
        "●" => "*",
        _ => "?",
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
    fn nothing_read_is_not_nothing_done() {
        assert_eq!(Glyphs::Braille.spark(None), ' ');
        assert_eq!(Glyphs::Braille.spark(Some(0.0)), '▁');
        assert_eq!(Glyphs::Ascii.spark(Some(1.0)), '#');
    }
}
