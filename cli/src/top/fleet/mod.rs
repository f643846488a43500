//! The live screen of a fleet, `gpumon top --fleet`.
//!
//! [`app`] is the state of the screen, [`keys`] lists the key bindings, and [`draw`] draws the
//! screen. [`node_views`] draws the nodes as a list or as a map. A separate thread reads the fleet
//! and runs a fleet server. [`live_node`] is the usual screen of a single node, with data that
//! comes through this fleet server.

mod app;
mod draw;
mod keys;
mod live_node;
mod node_views;

use std::{
    future::pending,
    io,
    sync::{
        Arc,
        mpsc::{self, SyncSender},
    },
    time::{Duration, Instant},
};

use gpumon_fleet::model::FleetState;
use gpumon_server::{
    fleet::FleetSettings,
    listen::{Connector, Listener},
};
use ratatui::buffer::Buffer;

use self::{app::FleetApp, draw::draw_screen, live_node::Opener};
use super::{
    INPUT_CAPACITY, Request, choose_theme,
    input::Input,
    main_loop::{self, LiveScreen, NextStep},
    screen,
    theme::{Background, ThemeName},
};
use crate::{
    background::spawn_detached_thread, exit::Failure, fleet::options, terminal::screen::Glyphs,
};

/// The interval at which the displayed age of outdated data is updated.
const AGE_INTERVAL: Duration = Duration::from_secs(1);

/// The delay before the fleet is read again if there is no current data. It is also the shortest
/// delay that a source can request.
const MIN_READ_DELAY: Duration = Duration::from_secs(1);

/// The maximum delay that a source may request.
const MAX_READ_DELAY: Duration = Duration::from_mins(1);

/// Runs the fleet screen until the user quits.
pub(crate) fn run(request: Request, fleet: FleetSettings) -> Result<(), Failure> {
    screen::check_terminal("gpumon top --fleet", "use `gpumon fleet --table`")?;
    let (inputs, waiting) = mpsc::sync_channel(INPUT_CAPACITY);
    let connector = start_reader(fleet, inputs.clone())?;
    let opener = Opener {
        connector,
        theme: choose_theme(&request),
        glyphs: request
            .settings
            .glyphs
            .unwrap_or_else(Glyphs::from_terminal),
        settings: request.settings.without_repetitions(),
        file: request.file,
        inputs: inputs.clone(),
        opened: 0,
    };
    let mut app = FleetApp::new(opener);
    app.set_background(Background::from_environment());
    main_loop::run_screen(app, request.mouse, inputs, &waiting)
}

impl LiveScreen for FleetApp {
    fn handle_input(&mut self, input: Input) -> Result<NextStep, Failure> {
        Ok(match input {
            Input::Terminal(event) => self.handle_terminal_event(&event),
            Input::Background(background) => {
                self.set_background(background);
                NextStep::Draw
            }
            Input::Fleet(fleet) => {
                self.fleet = Some(fleet);
                if self.live_node().is_some() {
                    NextStep::Wait
                } else {
                    NextStep::Draw
                }
            }
            Input::Node(number, input) => self.handle_node_input(number, *input),
            Input::Signal(signal) => signal.into(),
            Input::Gone => NextStep::Quit,
            Input::Failed(failure) => return Err(failure),
            // Only the screen of a single machine uses these inputs.
            Input::Update(_) | Input::Inspected(_) => NextStep::Wait,
        })
    }

    fn poll_timeout(&self, now: Instant) -> Duration {
        self.node.as_ref().map_or(AGE_INTERVAL, |node| {
            node.app.poll_timeout(now).min(AGE_INTERVAL)
        })
    }

    fn tick(&mut self, now: Instant) -> NextStep {
        if let Some(node) = self.live_node() {
            return node.app.tick(now);
        }
        if self.is_outdated() {
            NextStep::Draw
        } else {
            NextStep::Wait
        }
    }

    fn theme(&self) -> ThemeName {
        let node = self.node.as_ref().filter(|node| node.is_shown);
        node.map_or(self.theme_name, |node| node.app.theme())
    }

    fn draw(&mut self, buffer: &mut Buffer) {
        match self.live_node() {
            Some(node) => node.app.draw(buffer),
            None => draw_screen(self, buffer),
        }
    }
}

/// Starts a thread that sends the state of the fleet whenever it changes. The thread also runs the
/// server through which the screen connects to nodes. The thread runs until the program ends, but
/// the program does not wait for it.
fn start_reader(fleet: FleetSettings, inputs: SyncSender<Input>) -> io::Result<Connector> {
    let (listener, connector) = Listener::open_in_process();
    let reader = Arc::clone(&fleet.reader);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let body = move || {
        runtime.block_on(async {
            // If this server ends, connecting to a node fails with an error that is shown.
            tokio::spawn(gpumon_server::run(
                vec![listener],
                options::build_fleet_server_settings(fleet),
                pending(),
            ));
            loop {
                let fleet = reader.fetch_current_fleet().await;
                let is_well = matches!(fleet.state, FleetState::Current | FleetState::Partial);
                let wait = if is_well {
                    Duration::from_secs(fleet.refresh_s.into())
                        .clamp(MIN_READ_DELAY, MAX_READ_DELAY)
                } else {
                    MIN_READ_DELAY
                };
                if inputs.send(Input::Fleet(fleet)).is_err() {
                    return;
                }
                tokio::time::sleep(wait).await;
            }
        });
    };
    spawn_detached_thread("fleet", body)?;
    Ok(connector)
}

#[cfg(test)]
mod tests;
