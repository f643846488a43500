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

use std::sync::mpsc;

use gpumon_fleet::SharedFleet;

use self::app::FleetApp;
use super::{Request, WAITING, glyphs::Glyphs, live, screen, theme_of};
use crate::exit::Failure;

/// Shows it until somebody leaves.
pub(crate) fn run(request: &Request, reader: SharedFleet) -> Result<(), Failure> {
    screen::check()?;
    let (inputs, waiting) = mpsc::sync_channel(WAITING);
    reader::start(reader, inputs.clone())?;
    let glyphs = request.settings.glyphs.unwrap_or_else(Glyphs::of_terminal);
    live::show(FleetApp::new(theme_of(request), glyphs), request.mouse, inputs, &waiting)
}
