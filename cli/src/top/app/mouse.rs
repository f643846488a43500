//! Handling of mouse events.

use std::time::{Duration, Instant};

use ratatui::{
    crossterm::event::{MouseButton, MouseEvent, MouseEventKind},
    layout::Position,
};

use super::{App, NextStep, move_scroll_position};
use crate::top::{
    dialog::{Dialog, KeyEffect},
    painter::Hit,
};

/// The maximum time between the two clicks of a double click.
const DOUBLE_CLICK_TIME: Duration = Duration::from_millis(400);
const WHEEL_LINES: isize = 3;

/// The clicked area and time of the last click.
pub(super) struct Click {
    hit: Hit,
    at: Instant,
}

impl App {
    pub(super) fn handle_mouse(&mut self, event: MouseEvent) -> NextStep {
        let place = Position {
            x: event.column,
            y: event.row,
        };
        // Areas that were drawn later are on top of earlier areas, so they are checked first.
        let hit = self
            .hits
            .iter()
            .rev()
            .find(|(area, _)| area.contains(place))
            .map(|(_, hit)| *hit);
        let Some(hit) = hit else {
            return NextStep::Wait;
        };
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.handle_click(hit),
            MouseEventKind::ScrollDown => self.handle_wheel(hit, WHEEL_LINES),
            MouseEventKind::ScrollUp => self.handle_wheel(hit, -WHEEL_LINES),
            _ => NextStep::Wait,
        }
    }

    fn handle_click(&mut self, hit: Hit) -> NextStep {
        let before = self.last_click.replace(Click {
            hit,
            at: Instant::now(),
        });
        let is_double = before
            .is_some_and(|before| before.hit == hit && before.at.elapsed() < DOUBLE_CLICK_TIME);
        match hit {
            Hit::Dialog(line) => match &mut self.dialog {
                Some(Dialog::Setup(setup)) if line != usize::MAX => {
                    if let KeyEffect::Act(action) = setup.handle_click(line, &mut self.state) {
                        return self.apply_action(action);
                    }
                }
                Some(Dialog::Menu(menu)) if line != usize::MAX => {
                    menu.apply_choice(line, &mut self.state);
                    self.dialog = None;
                }
                // The signal dialog and the process screen close only on a click outside of them.
                // Confirming a signal requires a key.
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
            Hit::Tab(view) => self.show_view(view),
            Hit::Heading(column) => self.sort_by(column),
            Hit::Process(key) => {
                self.state.processes.selected = Some(key);
                if is_double {
                    self.open_process_screen(false);
                }
            }
            Hit::Page(page) => {
                if let Some(Dialog::Setup(setup)) = &mut self.dialog {
                    setup.show_page(page);
                }
            }
            Hit::Do(action) => return self.apply_action(action),
            Hit::Gpus | Hit::Middle | Hit::Processes => return NextStep::Wait,
        }
        NextStep::Draw
    }

    fn handle_wheel(&mut self, hit: Hit, by: isize) -> NextStep {
        let state = &mut self.state;
        match hit {
            Hit::Dialog(_) => {
                if let Some(dialog) = &mut self.dialog {
                    dialog.scroll_by(by);
                }
            }
            Hit::Gpus | Hit::Gpu(_) => {
                state.gpu_scroll =
                    move_scroll_position(state.gpu_scroll, by).min(self.model.gpus().len());
            }
            Hit::Middle => state.view_scroll = move_scroll_position(state.view_scroll, by),
            Hit::Process(_) | Hit::Processes | Hit::Heading(_)
                if state.processes.selected.is_none() =>
            {
                state.processes.scroll = move_scroll_position(state.processes.scroll, by);
            }
            Hit::Process(_) | Hit::Processes | Hit::Heading(_) => self.move_selection(by),
            Hit::Tab(_) | Hit::Do(_) | Hit::Page(_) => return NextStep::Wait,
        }
        NextStep::Draw
    }
}
