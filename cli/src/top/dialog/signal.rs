//! The dialog that asks for confirmation before a signal is sent.

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
};

use super::{KeyEffect, Scroll, StyledLine, draw_box};
use crate::top::{
    kill::{KillSignal, PinnedProcess},
    painter::Painter,
    text::wrap,
};

/// The processes to signal and the signal to send. The processes are pinned, so that a reused PID
/// is not signaled.
pub(in crate::top) struct SignalDialog {
    pub(in crate::top) kill: KillSignal,
    /// The processes to signal, each with a description of its GPUs, start time, and command.
    pub(in crate::top) targets: Vec<(PinnedProcess, String)>,
    /// The reasons why some of the processes are not signaled.
    pub(in crate::top) refused: Vec<String>,
    pub(super) scroll: Scroll,
}

impl SignalDialog {
    pub(in crate::top) fn new(kill: KillSignal) -> Self {
        Self {
            kill,
            targets: Vec::new(),
            refused: Vec::new(),
            scroll: Scroll::default(),
        }
    }

    /// Handles a key. Only `y` confirms the signal, because Enter is easily pressed by mistake.
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> KeyEffect {
        let at = KillSignal::ALL
            .iter()
            .position(|kill| *kill == self.kill)
            .unwrap_or(0);
        match key.code {
            KeyCode::Char('y' | 'Y') => return KeyEffect::Yes,
            KeyCode::Esc | KeyCode::Char('q' | 'n') => return KeyEffect::Leave,
            KeyCode::Left => self.kill = KillSignal::ALL[at.saturating_sub(1)],
            KeyCode::Right | KeyCode::Tab => {
                self.kill = KillSignal::ALL[(at + 1).min(KillSignal::ALL.len() - 1)];
            }
            KeyCode::Char('i') => self.kill = KillSignal::Interrupt,
            KeyCode::Char('t') => self.kill = KillSignal::Terminate,
            KeyCode::Char('k') => self.kill = KillSignal::End,
            _ => drop(self.scroll.handle_key(key)),
        }
        KeyEffect::Stay
    }

    pub(super) fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect) {
        let theme = painter.theme;
        let columns = screen.width.saturating_sub(4).min(72);
        let whom = match &self.targets[..] {
            [
                (
                    PinnedProcess {
                        pid, name, user, ..
                    },
                    _,
                ),
            ] => format!(" to process {pid}, {name}, of {user}?"),
            targets => format!(" to {} processes?", targets.len()),
        };
        let mut lines: Vec<StyledLine> = vec![
            vec![
                ("Send SIG".to_owned(), theme.plain),
                (self.kill.name().to_owned(), theme.alarm),
                (whom, theme.plain),
            ],
            StyledLine::new(),
        ];
        let mut choice: StyledLine = Vec::new();
        for kill in KillSignal::ALL {
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
        lines.push(StyledLine::new());
        lines.push(vec![
            ("y".to_owned(), theme.alarm),
            (" sends   ".to_owned(), theme.plain),
            ("left right".to_owned(), theme.strong),
            (" choose   ".to_owned(), theme.plain),
            ("esc".to_owned(), theme.strong),
            (" sends nothing".to_owned(), theme.plain),
        ]);
        lines.push(StyledLine::new());
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
