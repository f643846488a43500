//! The views by name, and what they are about.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::top::{
    metrics::METRICS,
    pen::{Hit, Pen},
    state::State,
    view::View,
    world::World,
};

pub(in crate::top) fn tabs(pen: &mut Pen<'_>, area: Rect, world: &World, state: &State) {
    let mut x = area.x;
    for view in View::ALL {
        let title = format!(" {} ", view.title());
        let style = if view == state.view { pen.theme.selected } else { pen.theme.dim };
        let taken = pen.text(x, area.y, area.right().saturating_sub(x), &title, style);
        pen.hit(Rect { x, width: taken, ..area }, Hit::Tab(view));
        x += taken;
    }
    let about = about(world, state);
    if x + 2 + about.width() as u16 <= area.right() {
        pen.text_right(area.x, area.y, area.width, &about, pen.theme.dim);
    }
}

/// `all GPUs · Utilization · 2 min`.
fn about(world: &World, state: &State) -> String {
    let gpu = match state.gpu {
        Some(gpu) => format!("GPU {gpu}"),
        None => "all GPUs".to_owned(),
    };
    let range = match state.span_ms() / 1000 {
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds => format!("{} min", seconds / 60),
    };
    match state.view {
        View::Charts if state.gpu.is_none() && world.gpus().len() > 1 => {
            format!("{gpu} · {} · {range}", METRICS[state.shown_metric()].label)
        }
        View::Charts | View::Activity | View::Links => format!("{gpu} · {range}"),
        View::Host => range,
        View::Mig | View::Events => gpu,
    }
}
