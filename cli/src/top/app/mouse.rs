//! Handling of mouse events.

use std::time::{Duration, Instant};

use ratatui::{
    crossterm::event::{MouseButton, MouseEvent, MouseEventKind},
    layout::Position,
};

use super::{App, Next, scrolled};
use crate::top::{
    dialog::{Answer, Dialog},
    painter::Hit,
};

/// The maximum time between the two clicks of a double click.
const DOUBLE: Duration = Duration::from_millis(400);
const WHEEL: isize = 3;

/// The area and time of the last click.
pub(super) struct Click {
    hit: Hit,
    at: Instant,
}

impl App {
    pub(super) fn mouse(&mut self, event: MouseEvent) -> Next {
        let place = Position {
            x: event.column,
            y: event.row,
        };
        // Areas that were drawn later are on top.
        let hit = self
            .hits
            .iter()
            .rev()
            .find(|(area, _)| area.contains(place))
            .map(|(_, hit)| *hit);
        let Some(hit) = hit else { return Next::Wait };
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.click(hit),
            MouseEventKind::ScrollDown => self.wheel(hit, WHEEL),
            MouseEventKind::ScrollUp => self.wheel(hit, -WHEEL),
            _ => Next::Wait,
        }
    }

    fn click(&mut self, hit: Hit) -> Next {
        let before = self.last_click.replace(Click {
            hit,
            at: Instant::now(),
        });
        let is_double =
            before.is_some_and(|before| before.hit == hit && before.at.elapsed() < DOUBLE);
        match hit {
            Hit::Dialog(line) => match &mut self.dialog {
                Some(Dialog::Setup(setup)) if line != usize::MAX => {
                    if let Answer::Act(action) = setup.click(line, &mut self.state) {
                        return self.act(action);
                    }
                }
                Some(Dialog::Menu(menu)) if line != usize::MAX => {
                    menu.choose(line, &mut self.state);
                    self.dialog = None;
                }
                // These dialogs close only on a click outside of them. The confirmation of a signal
                // also requires a key.
                Some(Dialog::Kill(_) | Dialog::Process(_)) => {}
                _ if line == usize::MAX => self.dialog = None,
                _ => {}
            },
            Hit::Gpu(gpu) => {
                self.state.gpu = if self.state.gpu == Some(gpu) {
                    None
                } else {
                    Some(gpu)
                };
                self.state.view_scroll = 0;
            }
            Hit::Tab(view) => self.show(view),
            Hit::Heading(column) => self.sort_by(column),
            Hit::Process(key) => {
                self.state.processes.selected = Some(key);
                if is_double {
                    self.open_process(false);
                }
            }
            Hit::Page(page) => {
                if let Some(Dialog::Setup(setup)) = &mut self.dialog {
                    setup.show(page);
                }
            }
            Hit::Do(action) => return self.act(action),
            Hit::Gpus | Hit::Middle | Hit::Processes => return Next::Wait,
        }
        Next::Draw
    }

    fn wheel(&mut self, hit: Hit, by: isize) -> Next {
        let state = &mut self.state;
        match hit {
            Hit::Dialog(_) => {
                if let Some(dialog) = &mut self.dialog {
                    dialog.wheel(by);
                }
            }
            Hit::Gpus | Hit::Gpu(_) => {
                state.gpu_scroll = scrolled(state.gpu_scroll, by).min(self.model.gpus().len());
            }
            Hit::Middle => state.view_scroll = scrolled(state.view_scroll, by),
            Hit::Process(_) | Hit::Processes | Hit::Heading(_)
                if state.processes.selected.is_none() =>
            {
                state.processes.scroll = scrolled(state.processes.scroll, by);
            }
            Hit::Process(_) | Hit::Processes | Hit::Heading(_) => self.step(by),
            Hit::Tab(_) | Hit::Do(_) | Hit::Page(_) => return Next::Wait,
        }
        Next::Draw
    }
}
