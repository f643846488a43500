//! Every key and what it does.

use ratatui::{crossterm::event::KeyEvent, layout::Rect};

use super::{Answer, Line, Scroll, draw_box};
use crate::top::{
    keys::{BINDINGS, Part},
    pen::Pen,
    text::left,
    world::{Origin, World},
};

#[derive(Default)]
pub(in crate::top) struct Help {
    pub(super) scroll: Scroll,
}

impl Help {
    pub(super) fn key(&mut self, key: KeyEvent) -> Answer {
        if self.scroll.key(key) { Answer::Stay } else { Answer::Leave }
    }

    pub(super) fn draw(&mut self, pen: &mut Pen<'_>, screen: Rect, world: &World) {
        let parts = [
            (Part::Screen, "The screen"),
            (Part::Charts, "Charts"),
            (Part::Processes, "Processes"),
            (Part::Replay, "Replay"),
        ];
        let mut lines: Vec<Line> = Vec::new();
        for (part, title) in parts {
            if part == Part::Replay && world.origin != Origin::Recording {
                continue;
            }
            if !lines.is_empty() {
                lines.push(Line::new());
            }
            lines.push(vec![(title.to_owned(), pen.theme.strong)]);
            for binding in BINDINGS.iter().filter(|binding| binding.part == part) {
                lines.push(vec![
                    (left(binding.shown, 12), pen.theme.utilization),
                    (binding.help.to_owned(), pen.theme.plain),
                ]);
            }
        }
        lines.push(Line::new());
        let mouse = "Mouse: click a GPU, a tab, a heading or a process; again for details; the wheel scrolls.";
        lines.extend(crate::top::text::wrap(mouse, 60).into_iter().map(|line| vec![(line, pen.theme.dim)]));
        draw_box(pen, screen, "Keys", 62, &lines, &mut self.scroll);
    }
}
