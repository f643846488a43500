//! Standard output: either a terminal with a size and capabilities, or a file.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use anstream::{AutoStream, ColorChoice};

use super::{Layout, glyphs::Glyphs, style::strip_styles};

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

    /// Returns the layout: on a terminal, lines have the terminal's width. Other outputs get plain
    /// text with lines of any length.
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
        write(&text)
    }

    /// Ends the updates: the last update remains on the screen, the cursor moves below it, and the
    /// `^C` printed by the terminal is removed.
    pub(crate) fn leave_last_update(&self) -> io::Result<()> {
        if self.is_renewed {
            write("\r\x1b[K")
        } else {
            Ok(())
        }
    }
}

/// Writes text and flushes standard output, so that no partial update is visible.
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Adds the control sequences by which an update overwrites the screen line by line from the top
/// and clears the rest. Before the first update, the screen's old content is scrolled into the
/// terminal's history.
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
