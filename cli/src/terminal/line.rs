//! Lines of styled text of known width, and the styles.

use anstyle::{AnsiColor, Effects, Style};
use gpumon_probe::untrusted;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Layout, screen::Glyphs};
use crate::describe::{Level, LoadLevel};

/// A line of text pieces, each with a style or a role.
#[derive(Debug, Clone)]
pub(crate) struct Line<S = Style>(Vec<(S, String)>);

impl<S> Default for Line<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Line<S> {
    pub(crate) fn new(style: S, text: impl Into<String>) -> Self {
        Self(vec![(style, text.into())])
    }

    pub(crate) fn push(&mut self, style: S, text: impl Into<String>) {
        self.0.push((style, text.into()));
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the line with each style replaced by the result of `style`.
    pub(crate) fn map<T>(self, style: impl Fn(S) -> T) -> Line<T> {
        let pieces = self.0.into_iter();
        Line(pieces.map(|(of, text)| (style(of), text)).collect())
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&S, &str)> {
        self.0.iter().map(|(style, text)| (style, text.as_str()))
    }

    /// Returns the pieces of text, each with its style.
    pub(crate) fn into_pieces(self) -> Vec<(String, S)> {
        self.0
            .into_iter()
            .map(|(style, text)| (text, style))
            .collect()
    }
}

impl Line {
    /// Returns the styled line, cut to the terminal's width. A cut line ends with an ellipsis.
    /// Trailing blanks are removed.
    pub(crate) fn paint(mut self, layout: Layout) -> String {
        while let Some((_, text)) = self.0.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            self.0.pop();
        }
        let texts: Vec<&str> = self.0.iter().map(|(_, text)| text.as_str()).collect();
        let shown = fit_pieces(&texts, layout.width.unwrap_or(usize::MAX), layout);
        let styled = |(shown, (style, _)): (String, &(Style, String))| {
            if shown.trim().is_empty() {
                shown
            } else {
                paint(*style, &shown)
            }
        };
        shown.into_iter().zip(&self.0).map(styled).collect()
    }
}

/// Fits consecutive pieces of text into `columns` columns. If the text is cut, it ends with exactly
/// one ellipsis, even if one of the pieces already ends with an ellipsis. Trailing blanks are
/// removed.
pub(crate) fn fit_pieces(pieces: &[&str], columns: usize, layout: Layout) -> Vec<String> {
    let mut rest = pieces.concat().trim_end_matches(' ').width();
    let (mut room, sign) = (columns, layout.glyphs.ellipsis());
    let mut fitted: Vec<String> = Vec::new();
    for piece in pieces {
        // If the rest of the text does not fit, this piece is cut, unless it leaves a column for an
        // ellipsis. One ellipsis replaces the end of the cut piece and all later pieces.
        let mut shown = match piece {
            _ if rest > room => cut_with_continuation(piece, room, layout),
            whole if whole.width() <= room => (*whole).to_owned(),
            blanks_behind => pad_end(blanks_behind.trim_end_matches(' '), room),
        };
        rest = rest.saturating_sub(piece.width());
        room = room.saturating_sub(shown.width());
        if shown == sign
            && *piece != sign
            && fitted.last().is_some_and(|before| before.ends_with(sign))
        {
            shown.clear();
        }
        fitted.push(shown);
        if room == 0 {
            break;
        }
    }
    fitted
}

/// Cuts text to `columns` columns. Text that was cut ends with an ellipsis.
pub(crate) fn cut(text: &str, columns: usize, layout: Layout) -> String {
    if text.width() <= columns {
        text.to_owned()
    } else {
        cut_with_continuation(text, columns, layout)
    }
}

/// Cuts text that is followed by another piece. Text that exactly fills the columns is cut too,
/// because the ellipsis needs a column.
fn cut_with_continuation(text: &str, columns: usize, layout: Layout) -> String {
    if text.width() < columns {
        return text.to_owned();
    }
    let Some(before_sign) = columns.checked_sub(1) else {
        return String::new();
    };
    let mut width = 0;
    let fits = text.chars().take_while(|character| {
        width += character.width().unwrap_or(0);
        width <= before_sign
    });
    // Text that was cut earlier already ends with an ellipsis, which is removed to avoid a second
    // one.
    fits.collect::<String>()
        .trim_end_matches(layout.glyphs.ellipsis())
        .to_owned()
        + layout.glyphs.ellipsis()
}

pub(crate) fn pad_start(text: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(text.width())) + text
}

pub(crate) fn pad_end(text: &str, columns: usize) -> String {
    text.to_owned() + &" ".repeat(columns.saturating_sub(text.width()))
}

/// Makes untrusted text safe for a terminal. Characters that the terminal cannot show become
/// question marks.
pub(crate) fn make_printable(text: &str, layout: Layout) -> String {
    let shown = |letter: char| match untrusted::to_printable(letter) {
        letter
            if !letter.is_ascii() && layout.width.is_some() && layout.glyphs == Glyphs::Ascii =>
        {
            '?'
        }
        letter => letter,
    };
    text.chars().map(shown).collect()
}

// The colors. Each color has one meaning, which is the same on the web page. The terminal's own
// palette is used, so that the colors suit light and dark themes.

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
// Plain blue is hard to read on a black background.
pub(crate) const UTILIZATION: Style = AnsiColor::BrightBlue.on_default().bold();
pub(crate) const MEMORY: Style = AnsiColor::Magenta.on_default();
/// The label of simulated values, which has the same style in all views.
pub(crate) const SIMULATED: Style = AnsiColor::Yellow.on_default().bold();
/// A healthy state without problems.
pub(crate) const HEALTHY: Style = AnsiColor::Green.on_default();
/// Information that may be important to the user.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Problems that need action.
pub(crate) const ALARM: Style = AnsiColor::Red.on_default().bold();

pub(crate) fn choose_load_style(load: LoadLevel) -> Style {
    match load {
        LoadLevel::Light => HEALTHY,
        LoadLevel::Moderate => NOTICE.bold(),
        LoadLevel::Heavy => ALARM.underline(),
    }
}

/// Returns the style of a bar for a level of load. Unlike text, bars are not underlined.
pub(crate) fn choose_load_bar_style(load: LoadLevel) -> Style {
    let style = choose_load_style(load);
    style.effects(style.get_effects().remove(Effects::UNDERLINE))
}

pub(crate) fn choose_level_style(level: Level) -> Style {
    match level {
        Level::Act => ALARM,
        Level::Warn => NOTICE,
        Level::Note => PLAIN,
        Level::Quiet => DIM,
    }
}

/// Removes all styles from a text.
pub(crate) fn strip_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_layout(width: usize) -> Layout {
        Layout {
            width: Some(width),
            height: None,
            glyphs: Glyphs::Braille,
        }
    }

    #[test]
    fn line_is_truncated_to_width_with_ellipsis() {
        let mut line = Line::new(PLAIN, "abc");
        line.push(PLAIN, "def");
        for (width, shown) in [
            (7, "abcdef"),
            (6, "abcdef"),
            (5, "abcd…"),
            (4, "abc…"),
            (3, "ab…"),
            (1, "…"),
            (0, ""),
        ] {
            assert_eq!(line.clone().paint(make_layout(width)), shown, "{width}");
        }
    }

    #[test]
    fn text_truncated_twice_has_one_ellipsis() {
        assert_eq!(
            [5, 4, 3].map(|columns| cut("abc… and more", columns, make_layout(80))),
            ["abc…", "abc…", "ab…"]
        );
        assert_eq!(
            fit_pieces(&["ab…", "def"], 4, make_layout(80)).concat(),
            "ab…"
        );
        let pieces =
            |columns| fit_pieces(&["abc…", "  ", "def", "  "], columns, make_layout(80)).concat();
        assert_eq!(
            [10, 9, 8, 6, 5, 4, 3].map(pieces),
            [
                "abc…  def ",
                "abc…  def",
                "abc…  d…",
                "abc… …",
                "abc…",
                "abc…",
                "ab…"
            ]
        );
    }

    #[test]
    fn wide_letters_take_two_columns_each() {
        assert_eq!(cut("訓練データ", 10, make_layout(80)), "訓練データ");
        assert_eq!(cut("訓練データ", 9, make_layout(80)), "訓練デー…");
        assert_eq!(cut("訓練データ", 8, make_layout(80)), "訓練デ…");
        assert_eq!(pad_start("訓", 4), "  訓");
    }

    #[test]
    fn untrusted_text_loses_control_and_direction_characters() {
        assert_eq!(
            make_printable("a\u{1b}[2J\u{9b}b\u{202e}c\n", make_layout(80)),
            "a [2J b?c "
        );
        assert_eq!(
            make_printable(
                "é",
                Layout {
                    width: Some(80),
                    height: None,
                    glyphs: Glyphs::Ascii
                }
            ),
            "?"
        );
        assert_eq!(
            make_printable(
                "é",
                Layout {
                    width: None,
                    height: None,
                    glyphs: Glyphs::Ascii
                }
            ),
            "é",
            "a pipe takes any letter"
        );
    }
}
