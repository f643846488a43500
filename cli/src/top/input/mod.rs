//! The inputs of the screen: keys, mouse events, the terminal's background, signals, readings, and
//! details of a process.

mod bytes;
mod keyboard;
mod signals;

use std::sync::Arc;

use gpumon_fleet::model::Fleet;
use ratatui::crossterm::event::Event;

pub(super) use self::{
    keyboard::watch_terminal,
    signals::{end_by_signal, watch_signals},
};
use super::{background::Background, inspect::Inspection, model::Update};
use crate::exit::Failure;

pub(super) enum Input {
    /// A key or mouse event.
    Terminal(Event),
    /// The terminal's response to [`background::QUERY`](super::background::QUERY).
    Background(Background),
    Signal(Signal),
    Update(Update),
    Inspected(Box<Inspection>),
    /// A new state of the fleet.
    Fleet(Arc<Fleet>),
    /// An input for the screen of a fleet's node. The number identifies this screen.
    Node(u64, Box<Input>),
    Failed(Failure),
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// A request to end the program, or a closed terminal. In both cases, the exit code is 0.
    End,
    /// A signal whose default action ends the program. The terminal is restored first.
    Die(i32),
    Stop,
    Continue,
    Resize,
}
