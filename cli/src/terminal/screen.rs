//! Standard output: a terminal with its size and capabilities, or a file.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use anstream::{AutoStream, ColorChoice};

use super::{Layout, glyphs::Glyphs, style::plain};

/// Returns `true` if the cursor of the terminal cannot be moved.
pub(crate) fn is_dumb() -> bool {
    env::var("TERM").is_ok_and(|terminal| terminal == "dumb" || terminal.is_empty())
}

/// Whether the output has colors.
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
    /// Creates the screen. `is_watched` indicates that the output is updated repeatedly.
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

    /// Returns the layout. On a terminal, lines have its width. Other outputs get plain text of any
    /// length.
    pub(crate) fn layout(&self) -> Layout {
        match size() {
            Some((width, height)) => Layout {
                width: Some(width),
                // One line remains free for the cursor.
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

    /// Prints an update of whole lines. It replaces the previous update, or follows it after an
    /// empty line.
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

    /// Leaves the last update on the screen and the cursor below it, and removes the `^C` that the
    /// terminal has printed.
    pub(crate) fn leave(&self) -> io::Result<()> {
        if self.is_renewed {
            write("\r\x1b[K")
        } else {
            Ok(())
        }
    }
}

/// Writes text and flushes it, so that no partial update is visible.
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns the control sequences that overwrite the screen line by line from the top and clear the
/// rest. Before the first update, the old content is scrolled into the terminal's history.
fn renewed(picture: &str, is_first: bool) -> String {
    let before = if is_first {
        "\n".repeat(size().and_then(|(_, height)| height).unwrap_or(0))
    } else {
        String::new()
    };
    let lines = picture.replace('\n', "\x1b[K\n");
    // Terminals with mode 2026 show the whole update at once, and others ignore the mode.
    format!("{before}\x1b[?2026h\x1b[H{lines}\x1b[J\x1b[?2026l")
}

/// Returns the columns and lines of standard output if it is a terminal that reports its columns.
/// Lines are `None` if it does not report them.
pub(crate) fn size() -> Option<(usize, Option<usize>)> {
    let size = rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .filter(|_| io::stdout().is_terminal())?;
    let height = Some(usize::from(size.ws_row)).filter(|height| *height > 0);
    (size.ws_col > 0).then_some((size.ws_col.into(), height))
}

/// Returns `true` if the locale's encoding is UTF-8. The first variable that is set determines it,
/// as in setlocale(3).
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
