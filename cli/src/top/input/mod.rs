//! What the screen waits for: keys and mouse, signals, readings, and what was read of a process.

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
use super::{inspect::Inspection, model::Update};
use crate::exit::Failure;

pub(super) enum Input {
    /// A key or the mouse.
    Terminal(Event),
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
    /// Somebody wants this program to end, or closes its terminal, which is no failure either: the exit code is 0.
    End,
    /// It is to die of this signal, as by default, but not before the terminal is given back.
    Die(i32),
    Stop,
    Continue,
    Resize,
}
