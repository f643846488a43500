//! The inputs of the screen: keys, mouse and background of the terminal, signals, readings, and
//! facts about a process.

mod bytes;
mod keyboard;
mod signals;

use std::sync::Arc;

use gpumon_fleet::model::Fleet;
use ratatui::crossterm::event::Event;

pub(super) use self::{
    keyboard::watch_terminal,
    signals::{die, watch_signals},
};
use super::{background::Background, inspect::Inspection, model::Update};
use crate::exit::Failure;

pub(super) enum Input {
    /// A key or mouse event.
    Terminal(Event),
    /// The terminal's answer to [`background::QUERY`](super::background::QUERY).
    Background(Background),
    Signal(Signal),
    Update(Update),
    Inspected(Box<Inspection>),
    /// The state of the fleet.
    Fleet(Arc<Fleet>),
    /// An input for the screen of a fleet's node, and the number of that screen.
    Node(u64, Box<Input>),
    Failed(Failure),
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// A request to end, or a closed terminal. Neither is a failure, so the exit code is 0.
    End,
    /// A signal that ends the program as by default, after the terminal has been restored.
    Die(i32),
    Stop,
    Continue,
    Resize,
}
