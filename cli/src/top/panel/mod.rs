//! The parts of the screen, one file each.

mod activity;
mod charts;
mod events;
mod footer;
mod gpus;
mod host;
mod links;
mod mig;
mod processes;
mod said;
mod sheet;
mod tabs;
mod title;

use ratatui::layout::Rect;

pub(super) use self::{
    footer::footer,
    gpus::gpus,
    processes::processes,
    tabs::tabs,
    title::{banner, silence, title},
};
use super::{
    pen::{Hit, Pen},
    state::State,
    view::View,
    world::World,
};

/// What the middle of the screen shows.
pub(super) fn view(pen: &mut Pen<'_>, area: Rect, world: &World, state: &State) {
    if area.height == 0 {
        return;
    }
    pen.hit(area, Hit::Middle);
    match state.view {
        View::Charts => charts::charts(pen, area, world, state),
        View::Activity => activity::activity(pen, area, world, state),
        View::Links => links::links(pen, area, world, state),
        View::Mig => mig::mig(pen, area, world, state),
        View::Host => host::host(pen, area, world, state),
        View::Events => events::events(pen, area, world, state),
    }
}
