//! What people read of what is reported: a line for each step, a bar that moves below them on a terminal, and at the end
//! the words. It knows nothing but these.

use std::io::{self, IsTerminal, Write};

use gpumon_workload::protocol::{Line, MemoryLevel, Report, Topic, exit_code::INTERRUPTED};

use super::bar;
use crate::{
    describe,
    exit::say,
    terminal::{
        glyphs::Glyphs,
        screen::is_dumb,
        style::{DIM, NOTICE, STRONG, WELL, paint},
        text::wrap,
    },
};

/// Lines are no longer than this, so that they can be read.
const WIDEST: usize = 100;
/// What stands before a sentence: when it was said, or what it is about.
const MARGIN: usize = 13;

pub(super) struct Page {
    /// Whether standard output is a terminal on which a line can be written again.
    is_live: bool,
    begun_ms: u64,
    /// What the last sentence was about.
    topic: Option<Topic>,
    level: Option<MemoryLevel>,
}

impl Page {
    pub(super) fn new() -> Self {
        Self {
            is_live: io::stdout().is_terminal() && !is_dumb(),
            begun_ms: 0,
            topic: None,
            level: None,
        }
    }

    pub(super) fn line(&mut self, Line { at_ms, report }: Line) -> io::Result<()> {
        match report {
            Report::Begun { title, devices, .. } => {
                self.begun_ms = at_ms;
                let on = devices
                    .iter()
                    .map(describe::device)
                    .collect::<Vec<_>>()
                    .join(", ");
                self.write(&format!(
                    "{}\n{}\n\n",
                    paint(STRONG, &describe::capital(&title)),
                    paint(DIM, &on)
                ))
            }
            Report::Progress { memory, .. } => {
                self.level = memory;
                self.write("")
            }
            Report::Said { topic, text } => {
                let text = self.sentence(topic, &text, at_ms);
                self.write(&text)
            }
            Report::Failed { error, .. } => {
                self.end()?;
                say(&error);
                Ok(())
            }
            Report::Ended { code } => {
                self.end()?;
                if code == INTERRUPTED {
                    say("interrupted: all memory was freed");
                }
                Ok(())
            }
            Report::Phase { .. }
            | Report::Result { .. }
            | Report::Tutorial { .. }
            | Report::Check { .. }
            | Report::Unknown => Ok(()),
        }
    }

    /// A sentence with its margin, below an empty line where what it is about is another than before.
    fn sentence(&mut self, topic: Topic, text: &str, at_ms: u64) -> String {
        let is_next = self.topic != Some(topic);
        let is_apart = is_next && self.topic.is_some();
        self.topic = Some(topic);
        let seconds = at_ms.saturating_sub(self.begun_ms) as f64 / 1e3;
        let (style, head) = match topic {
            Topic::Step => (DIM, format!("{seconds:5.1} s")),
            Topic::Cause => (NOTICE, "Cause".to_owned()),
            Topic::Fix => (WELL, "Fix".to_owned()),
            Topic::Lesson => (STRONG, "Takeaway".to_owned()),
            Topic::Proof => (DIM, "Verification".to_owned()),
            Topic::Other => (DIM, String::new()),
        };
        let head = if is_next || topic == Topic::Step {
            head
        } else {
            String::new()
        };
        let head = paint(style, &format!("{head:MARGIN$}"));
        let lines = wrap(text, columns().min(WIDEST).saturating_sub(MARGIN));
        let space = if is_apart { "\n" } else { "" };
        format!(
            "{space}{head}{}\n",
            lines.join(&format!("\n{:MARGIN$}", ""))
        )
    }

    /// Writes above the bar, and the bar again.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        match self.level.filter(|_| self.is_live) {
            // A line that fills the terminal to its edge would begin the next.
            Some(level) => {
                let bar = bar::line(&level, columns().saturating_sub(1), Glyphs::of_terminal());
                write!(out, "\r\x1b[K{text}{bar}")?;
            }
            None => write!(out, "{text}")?,
        }
        out.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        let had_bar = self.level.take().is_some() && self.is_live;
        self.write(if had_bar { "\r\x1b[K" } else { "" })
    }
}

/// Columns of the terminal; where there is none, as many as are easy to read.
fn columns() -> usize {
    rustix::termios::tcgetwinsize(io::stdout())
        .map_or(WIDEST, |size| usize::from(size.ws_col))
        .max(MARGIN + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::style::plain;

    #[test]
    fn sentences_stand_below_each_other_by_what_they_are_about() {
        let mut page = Page {
            is_live: false,
            begun_ms: 1_000,
            topic: None,
            level: None,
        };
        let said = [
            (Topic::Step, "It begins.", 1_200),
            (Topic::Step, "It goes on.", 13_500),
            (Topic::Fix, "Do this.", 14_000),
            (Topic::Fix, "Or that.", 14_000),
        ];
        let text: String = said
            .into_iter()
            .map(|(topic, text, at_ms)| page.sentence(topic, text, at_ms))
            .collect();
        let text = plain(&text);
        assert_eq!(
            text,
            "  0.2 s      It begins.\n 12.5 s      It goes on.\n\nFix          Do this.\n             Or that.\n"
        );
    }
}
