//! The question before a signal is sent.

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
};

use super::{Answer, Line, Scroll, draw_box};
use crate::top::{
    kill::{Kill, Target},
    painter::Painter,
    text::cut,
};

/// A process that is held fast, and the signal it may get.
pub(in crate::top) struct Question {
    pub(in crate::top) target: Target,
    pub(in crate::top) kill: Kill,
    /// GPU, start, and command.
    pub(in crate::top) about: Vec<String>,
}

impl Question {
    /// Only `y` sends: enter is pressed too easily.
    pub(super) fn key(&mut self, key: KeyEvent) -> Answer {
        let at = Kill::ALL.iter().position(|kill| *kill == self.kill).unwrap_or(0);
        match key.code {
            KeyCode::Char('y' | 'Y') => return Answer::Yes,
            KeyCode::Esc | KeyCode::Char('q' | 'n') => return Answer::Leave,
            KeyCode::Left | KeyCode::Up => self.kill = Kill::ALL[at.saturating_sub(1)],
            KeyCode::Right | KeyCode::Down | KeyCode::Tab => self.kill = Kill::ALL[(at + 1).min(Kill::ALL.len() - 1)],
            KeyCode::Char('i') => self.kill = Kill::Interrupt,
            KeyCode::Char('t') => self.kill = Kill::Terminate,
            KeyCode::Char('k') => self.kill = Kill::End,
            _ => {}
        }
        Answer::Stay
    }

    pub(super) fn draw(&self, painter: &mut Painter<'_>, screen: Rect) {
        let theme = painter.theme;
        let Target { pid, name, user, .. } = &self.target;
        let columns = screen.width.saturating_sub(4).min(64);
        let mut lines: Vec<Line> = vec![
            vec![
                ("Send SIG".to_owned(), theme.plain),
                (self.kill.name().to_owned(), theme.alarm),
                (" to process ".to_owned(), theme.plain),
                (pid.to_string(), theme.strong),
                (format!(", {name}, of {user}?"), theme.plain),
            ],
            Line::new(),
        ];
        lines.extend(self.about.iter().map(|line| vec![(cut(line, columns.into()), theme.dim)]));
        lines.push(Line::new());
        let mut choice: Line = Vec::new();
        for kill in Kill::ALL {
            let style = if kill == self.kill { theme.selected } else { theme.plain };
            choice.extend([(format!(" {} ", kill.name()), style), ("  ".to_owned(), theme.plain)]);
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
            (" leaves it alone".to_owned(), theme.plain),
        ]);
        draw_box(painter, screen, "Signal", columns, &lines, &mut Scroll::default());
    }
}
