//! The live screen of a fleet, `gpumon top --fleet`.
//!
//! [`app`] is what is shown and what keys do, [`keys`] which, [`draw`] draws it: [`list`] is a line
//! per node, [`map`] as many nodes as there is room for, [`node`] all GPUs of one; [`cell`] is a
//! GPU in them. [`reader`] reads on a thread of its own, where a server of the fleet is, too:
//! [`live_node`] is the ordinary screen, of one node, fed through it.

mod app;
mod cell;
mod draw;
mod keys;
mod list;
mod live_node;
mod map;
mod node;
mod reader;
#[cfg(test)]
mod tests;

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use gpumon_server::fleet::FleetSettings;
use ratatui::buffer::Buffer;

use self::{
    app::FleetApp,
    draw::draw,
    live_node::{LiveNode, Opener},
};
use super::{
    Request, WAITING,
    background::Background,
    input::Input,
    live::{self, Live, Next},
    screen,
    theme::ThemeName,
    theme_of,
};
use crate::exit::Failure;
use crate::terminal::glyphs::Glyphs;

/// How often it is told how old a fleet is that is not what there is now.
const TICK: Duration = Duration::from_secs(1);

/// Shows it until somebody leaves.
pub(crate) fn run(request: Request, fleet: FleetSettings) -> Result<(), Failure> {
    screen::check("gpumon top --fleet", "use `gpumon fleet --table`")?;
    let (inputs, waiting) = mpsc::sync_channel(WAITING);
    let connector = reader::start(fleet, inputs.clone())?;
    let opener = Opener {
        connector,
        theme: theme_of(&request),
        glyphs: request.settings.glyphs.unwrap_or_else(Glyphs::of_terminal),
        settings: request.settings.without_repetitions(),
        file: request.file,
        inputs: inputs.clone(),
        opened: 0,
    };
    let mut app = FleetApp::new(opener);
    app.set_background(Background::from_environment());
    live::show(app, request.mouse, inputs, &waiting)
}

impl Live for FleetApp {
    fn take(&mut self, input: Input) -> Result<Next, Failure> {
        Ok(match input {
            Input::Terminal(event) => self.terminal(&event),
            Input::Background(background) => {
                self.set_background(background);
                Next::Draw
            }
            Input::Fleet(fleet) => {
                self.fleet = Some(fleet);
                if self.live_node().is_some() {
                    Next::Wait
                } else {
                    Next::Draw
                }
            }
            Input::Node(number, input) => self.of_node(number, *input),
            Input::Signal(signal) => signal.into(),
            Input::Gone => Next::Quit,
            Input::Failed(failure) => return Err(failure),
            // Of the other screen.
            Input::Update(_) | Input::Inspected(_) => Next::Wait,
        })
    }

    fn idle(&self, now: Instant) -> Duration {
        self.node
            .as_ref()
            .map_or(TICK, |node| node.idle(now).min(TICK))
    }

    fn tick(&mut self, now: Instant) -> Next {
        if let Some(node) = self.live_node() {
            return node.tick(now);
        }
        if self.is_outdated() {
            Next::Draw
        } else {
            Next::Wait
        }
    }

    fn theme(&self) -> ThemeName {
        let node = self.node.as_ref().filter(|node| node.is_shown);
        node.map_or(self.theme_name, LiveNode::theme)
    }

    fn draw(&mut self, buffer: &mut Buffer) {
        match self.live_node() {
            Some(node) => node.draw(buffer),
            None => draw(self, buffer),
        }
    }
}
