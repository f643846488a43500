//! The live screen of a fleet, `gpumon top --fleet`.
//!
//! [`app`] is what is shown and what keys do, [`keys`] which, [`draw`] draws it: [`list`] is a line per node, [`map`] as many
//! nodes as there is room for, [`node`] all GPUs of one; [`cell`] is a GPU in them. [`reader`] reads on a thread of its own.

mod app;
mod cell;
mod draw;
mod keys;
mod list;
mod map;
mod node;
mod reader;
#[cfg(test)]
mod tests;

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use gpumon_fleet::SharedFleet;
use ratatui::buffer::Buffer;

use self::{app::FleetApp, draw::draw};
use super::{
    Request, WAITING,
    glyphs::Glyphs,
    input::Input,
    live::{self, Live, Next},
    screen, theme_of,
};
use crate::exit::Failure;

/// How often it is told how old a fleet is that is not what there is now.
const TICK: Duration = Duration::from_secs(1);

/// Shows it until somebody leaves.
pub(crate) fn run(request: &Request, reader: SharedFleet) -> Result<(), Failure> {
    screen::check()?;
    let (inputs, waiting) = mpsc::sync_channel(WAITING);
    reader::start(reader, inputs.clone())?;
    let glyphs = request.settings.glyphs.unwrap_or_else(Glyphs::of_terminal);
    live::show(FleetApp::new(theme_of(request), glyphs), request.mouse, inputs, &waiting)
}

impl Live for FleetApp {
    fn take(&mut self, input: Input) -> Result<Next, Failure> {
        Ok(match input {
            Input::Terminal(event) => self.terminal(&event),
            Input::Fleet(fleet) => {
                self.fleet = Some(fleet);
                Next::Draw
            }
            Input::Signal(signal) => signal.into(),
            Input::Gone => Next::Quit,
            Input::Failed(failure) => return Err(failure),
            // Of the other screen.
            Input::Update(_) | Input::Inspected(_) => Next::Wait,
        })
    }

    fn idle(&self, _: Instant) -> Duration {
        TICK
    }

    fn tick(&mut self, _: Instant) -> Next {
        if self.is_outdated() { Next::Draw } else { Next::Wait }
    }

    fn draw(&mut self, buffer: &mut Buffer) {
        draw(self, buffer);
    }
}
