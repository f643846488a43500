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
    /// A key or the mouse.
    Terminal(Event),
    /// The terminal's answer to [`background::QUERY`](super::background::QUERY).
    Background(Background),
    Signal(Signal),
    Update(Update),
    Inspected(Box<Inspection>),
    /// How a fleet is.
    Fleet(Arc<Fleet>),
    /// What has come for the screen of a node of a fleet, of which this is the number.
    Node(u64, Box<Input>),
    Failed(Failure),
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// Somebody wants this program to end, or closes its terminal, which is no failure either: the
    /// exit code is 0.
    End,
    /// It is to die of this signal, as by default, but not before the terminal is given back.
    Die(i32),
    Stop,
    Continue,
    Resize,
}
