//! The live screen of a fleet, `gpumon top --fleet`.
//!
//! [`app`] is the state of the screen, [`keys`] lists the key bindings, and [`draw`] draws the
//! screen: [`list`] has a line per node, [`map`] as many nodes as fit, and [`node`] all GPUs of one
//! node. [`cell`] draws a GPU in them. [`reader`] reads the fleet on its own thread, where a fleet
//! server runs as well. [`live_node`] is the ordinary screen for one node, fed through this server.

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

/// How often the age of outdated data is updated on the screen.
const TICK: Duration = Duration::from_secs(1);

/// Runs the screen until the user quits.
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
            // These inputs belong to the screen of one machine.
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
