//! The confirmation before a signal is sent.

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
};

use super::{Answer, Line, Scroll, draw_box};
use crate::top::{
    kill::{Kill, Target},
    painter::Painter,
    text::wrap,
};

/// Pinned processes, and the signal to send them.
pub(in crate::top) struct Question {
    pub(in crate::top) kill: Kill,
    /// The processes, each with its GPUs, start time, and command.
    pub(in crate::top) targets: Vec<(Target, String)>,
    /// The reasons why other processes get no signal.
    pub(in crate::top) refused: Vec<String>,
    pub(super) scroll: Scroll,
}

impl Question {
    pub(in crate::top) fn new(kill: Kill) -> Self {
        Self {
            kill,
            targets: Vec::new(),
            refused: Vec::new(),
            scroll: Scroll::default(),
        }
    }

    /// Handles a key. Only `y` confirms, because Enter is easily pressed by mistake.
    pub(super) fn key(&mut self, key: KeyEvent) -> Answer {
        let at = Kill::ALL
            .iter()
            .position(|kill| *kill == self.kill)
            .unwrap_or(0);
        match key.code {
            KeyCode::Char('y' | 'Y') => return Answer::Yes,
            KeyCode::Esc | KeyCode::Char('q' | 'n') => return Answer::Leave,
            KeyCode::Left => self.kill = Kill::ALL[at.saturating_sub(1)],
            KeyCode::Right | KeyCode::Tab => {
                self.kill = Kill::ALL[(at + 1).min(Kill::ALL.len() - 1)];
            }
            KeyCode::Char('i') => self.kill = Kill::Interrupt,
            KeyCode::Char('t') => self.kill = Kill::Terminate,
            KeyCode::Char('k') => self.kill = Kill::End,
            _ => drop(self.scroll.key(key)),
        }
        Answer::Stay
    }

    pub(super) fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect) {
        let theme = painter.theme;
        let columns = screen.width.saturating_sub(4).min(72);
        let whom = match &self.targets[..] {
            [
                (
                    Target {
                        pid, name, user, ..
                    },
                    _,
                ),
            ] => format!(" to process {pid}, {name}, of {user}?"),
            targets => format!(" to {} processes?", targets.len()),
        };
        let mut lines: Vec<Line> = vec![
            vec![
                ("Send SIG".to_owned(), theme.plain),
                (self.kill.name().to_owned(), theme.alarm),
                (whom, theme.plain),
            ],
            Line::new(),
        ];
        let mut choice: Line = Vec::new();
        for kill in Kill::ALL {
            let style = if kill == self.kill {
                theme.selected
            } else {
                theme.plain
            };
            choice.extend([
                (format!(" {} ", kill.name()), style),
                ("  ".to_owned(), theme.plain),
            ]);
        }
        choice.push((self.kill.effect().to_owned(), theme.dim));
        lines.push(choice);
        lines.push(Line::new());
        lines.push(vec![
            ("y".to_owned(), theme.alarm),
            (" sends   ".to_owned(), theme.plain),
            ("left right".to_owned(), theme.strong),
            (" choose   ".to_owned(), theme.plain),
            ("esc".to_owned(), theme.strong),
            (" sends nothing".to_owned(), theme.plain),
        ]);
        lines.push(Line::new());
        let mut list = |text: &str, style| {
            lines.extend(
                wrap(text, columns.into())
                    .into_iter()
                    .take(2)
                    .map(|line| vec![(line, style)]),
            );
        };
        for (target, about) in &self.targets {
            if self.targets.len() > 1 {
                list(
                    &format!("{} of {}, {about}", target.label(), target.user),
                    theme.plain,
                );
            } else {
                list(about, theme.dim);
            }
        }
        for why in &self.refused {
            list(why, theme.notice);
        }
        draw_box(painter, screen, "Signal", columns, &lines, &mut self.scroll);
    }
}
