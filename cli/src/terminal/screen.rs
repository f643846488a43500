//! The destination of the output: a terminal with its size and capabilities, or a file.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use anstream::{AutoStream, ColorChoice};

use super::{Layout, glyphs::Glyphs, style::plain};

/// Returns whether the cursor cannot be moved.
pub(crate) fn is_dumb() -> bool {
    env::var("TERM").is_ok_and(|terminal| terminal == "dumb" || terminal.is_empty())
}

/// Whether text has colors.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum Color {
    /// If the terminal supports colors; `NO_COLOR` and `CLICOLOR_FORCE` override this
    #[default]
    Auto,
    /// Even if the output is not a terminal
    Always,
    /// No colors
    Never,
}

pub(crate) struct Screen {
    has_colors: bool,
    pub(crate) is_renewed: bool,
    pictures: u64,
}

impl Screen {
    /// `is_watched` where one picture follows the other.
    pub(crate) fn new(color: Color, is_watched: bool) -> Self {
        let has_colors = match color {
            Color::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        };
        let is_renewed = is_watched && size().is_some() && !is_dumb();
        Self {
            has_colors,
            is_renewed,
            pictures: 0,
        }
    }

    /// A terminal is filled to its width and no further; anything else gets plain text, and all of
    /// it.
    pub(crate) fn layout(&self) -> Layout {
        match size() {
            Some((width, height)) => Layout {
                width: Some(width),
                // The cursor needs a line, too.
                height: height
                    .filter(|_| self.is_renewed)
                    .map(|height| height.saturating_sub(1).max(1)),
                glyphs: Glyphs::of_terminal(),
            },
            None => Layout {
                width: None,
                height: None,
                glyphs: Glyphs::Ascii,
            },
        }
    }

    /// Shows a picture of whole lines: in the place of the one before it, or after an empty line.
    pub(crate) fn show(&mut self, picture: &str) -> io::Result<()> {
        let picture = if self.has_colors {
            picture.to_owned()
        } else {
            plain(picture)
        };
        let is_first = self.pictures == 0;
        self.pictures += 1;
        let text = match (self.is_renewed, is_first) {
            (false, true) => picture,
            (false, false) => format!("\n{picture}"),
            (true, _) => renewed(&picture, is_first),
        };
        write(&text)
    }

    /// Leaves the last picture as it is, with the cursor below it, and without the `^C` that the
    /// terminal has put there.
    pub(crate) fn leave(&self) -> io::Result<()> {
        if self.is_renewed {
            write("\r\x1b[K")
        } else {
            Ok(())
        }
    }
}

/// At once, so that nobody sees half of it.
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// From the top of the screen, each line over the old one, and nothing of the old ones left below.
/// What was on the screen before the first picture goes up into what can be scrolled back to.
fn renewed(picture: &str, is_first: bool) -> String {
    let before = if is_first {
        "\n".repeat(size().and_then(|(_, height)| height).unwrap_or(0))
    } else {
        String::new()
    };
    let lines = picture.replace('\n', "\x1b[K\n");
    // Terminals that know the mode 2026 show it all at once; the others pass over it.
    format!("{before}\x1b[?2026h\x1b[H{lines}\x1b[J\x1b[?2026l")
}

/// Columns and lines, where standard output is a terminal that tells its columns. One that tells no
/// lines has any number.
pub(crate) fn size() -> Option<(usize, Option<usize>)> {
    let size = rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .filter(|_| io::stdout().is_terminal())?;
    let height = Some(usize::from(size.ws_row)).filter(|height| *height > 0);
    (size.ws_col > 0).then_some((size.ws_col.into(), height))
}

/// Whether the locale's characters are UTF-8, by the first of the variables that is set, as
/// setlocale(3) has it.
pub(crate) fn speaks_utf8() -> bool {
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
