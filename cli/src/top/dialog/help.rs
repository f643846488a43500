//! The help dialog, which lists all key bindings.

use ratatui::{crossterm::event::KeyEvent, layout::Rect};

use super::{KeyEffect, Scroll, StyledLine, draw_box};
use crate::top::{
    keys::{BINDINGS, HelpSection},
    model::{Model, Origin},
    painter::Painter,
    text::align_left,
};

#[derive(Default)]
pub(in crate::top) struct Help {
    pub(super) scroll: Scroll,
}

impl Help {
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> KeyEffect {
        if self.scroll.handle_key(key) {
            KeyEffect::Stay
        } else {
            KeyEffect::Leave
        }
    }

    pub(super) fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect, model: &Model) {
        let parts = [
            (HelpSection::Screen, "The screen"),
            (HelpSection::Charts, "Charts"),
            (HelpSection::Processes, "Processes"),
            (HelpSection::Replay, "Replay"),
        ];
        let mut lines: Vec<StyledLine> = Vec::new();
        for (part, title) in parts {
            if part == HelpSection::Replay && model.origin != Origin::Recording {
                continue;
            }
            if !lines.is_empty() {
                lines.push(StyledLine::new());
            }
            lines.push(vec![(title.to_owned(), painter.theme.strong)]);
            for binding in BINDINGS.iter().filter(|binding| binding.part == part) {
                lines.push(vec![
                    (
                        align_left(&binding.format_keys(), 12),
                        painter.theme.utilization,
                    ),
                    (binding.help.to_owned(), painter.theme.plain),
                ]);
            }
        }
        lines.push(StyledLine::new());
        let mouse = "Mouse: click a GPU, a tab, a heading or a process; again for details; the \
                     wheel scrolls.";
        lines.extend(
            crate::top::text::wrap(mouse, 60)
                .into_iter()
                .map(|line| vec![(line, painter.theme.dim)]),
        );
        draw_box(painter, screen, "Keys", 62, &lines, &mut self.scroll);
    }
}
