//! The help, which lists all key bindings.

use ratatui::{crossterm::event::KeyEvent, layout::Rect};

use super::{Answer, Line, Scroll, draw_box};
use crate::top::{
    keys::{BINDINGS, Part},
    model::{Model, Origin},
    painter::Painter,
    text::align_left,
};

#[derive(Default)]
pub(in crate::top) struct Help {
    pub(super) scroll: Scroll,
}

impl Help {
    pub(super) fn key(&mut self, key: KeyEvent) -> Answer {
        if self.scroll.key(key) {
            Answer::Stay
        } else {
            Answer::Leave
        }
    }

    pub(super) fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect, model: &Model) {
        let parts = [
            (Part::Screen, "The screen"),
            (Part::Charts, "Charts"),
            (Part::Processes, "Processes"),
            (Part::Replay, "Replay"),
        ];
        let mut lines: Vec<Line> = Vec::new();
        for (part, title) in parts {
            if part == Part::Replay && model.origin != Origin::Recording {
                continue;
            }
            if !lines.is_empty() {
                lines.push(Line::new());
            }
            lines.push(vec![(title.to_owned(), painter.theme.strong)]);
            for binding in BINDINGS.iter().filter(|binding| binding.part == part) {
                lines.push(vec![
                    (align_left(&binding.names(), 12), painter.theme.utilization),
                    (binding.help.to_owned(), painter.theme.plain),
                ]);
            }
        }
        lines.push(Line::new());
        let mouse = "Mouse: click a GPU, a tab, a heading or a process; again for details; the wheel scrolls.";
        lines.extend(
            crate::top::text::wrap(mouse, 60)
                .into_iter()
                .map(|line| vec![(line, painter.theme.dim)]),
        );
        draw_box(painter, screen, "Keys", 62, &lines, &mut self.scroll);
    }
}
