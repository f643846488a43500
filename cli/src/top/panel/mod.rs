//! The parts of the screen, one file each.

mod activity;
mod charts;
mod events;
mod footer;
mod gpus;
mod host;
mod host_line;
pub(super) mod last_line;
mod links;
mod mig;
mod processes;
mod scroll_view;
mod tabs;
mod title;

use ratatui::layout::Rect;

pub(super) use self::{
    footer::{footer, notice},
    gpus::draw_gpus,
    host_line::host_line,
    processes::processes,
    tabs::tabs,
    title::{banner, silence, title},
};
use super::{
    model::Model,
    painter::{Hit, Painter},
    state::State,
    view::View,
};

/// Draws the selected view, and returns how many of its last lines are empty.
pub(super) fn view(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) -> u16 {
    if area.height == 0 {
        return 0;
    }
    painter.hit(area, Hit::Middle);
    match state.view {
        View::Activity => return activity::activity(painter, area, model, state),
        View::Links => return links::links(painter, area, model, state),
        View::Events => return events::events(painter, area, model, state),
        View::Charts => charts::charts(painter, area, model, state),
        View::Mig => mig::mig(painter, area, model, state),
        View::Host => host::host(painter, area, model, state),
    }
    0
}
