//! The panels of the screen, one per file.

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
    footer::{draw_footer, draw_notice},
    gpus::draw_gpus,
    host_line::draw_host_line,
    processes::draw_processes,
    tabs::draw_tabs,
    title::{draw_banner, draw_title, find_silence_reason},
};
use super::{
    model::Model,
    painter::{Hit, Painter},
    state::State,
    view::View,
};

/// Draws the selected view, and returns the number of empty lines at its end.
pub(super) fn draw_view(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) -> u16 {
    if area.height == 0 {
        return 0;
    }
    painter.add_hit(area, Hit::Middle);
    match state.view {
        View::Activity => return activity::draw_activity(painter, area, model, state),
        View::Links => return links::draw_links(painter, area, model, state),
        View::Events => return events::draw_events(painter, area, model, state),
        View::Charts => charts::draw_charts(painter, area, model, state),
        View::Mig => mig::draw_mig(painter, area, model, state),
        View::Host => host::draw_host(painter, area, model, state),
    }
    0
}
