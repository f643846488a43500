//! The tabs with the names of the views, and the subject of the current view.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::top::{
    metrics::METRICS,
    model::Model,
    painter::{Hit, Painter},
    state::State,
    text::format_range,
    view::View,
};

pub(in crate::top) fn draw_tabs(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) {
    let mut x = area.x;
    for view in View::ALL {
        let title = format!(" {} ", view.title());
        let style = if view == state.view {
            painter.theme.selected
        } else {
            painter.theme.dim
        };
        let taken = painter.draw_text(x, area.y, area.right().saturating_sub(x), &title, style);
        painter.add_hit(
            Rect {
                x,
                width: taken,
                ..area
            },
            Hit::Tab(view),
        );
        x += taken;
    }
    let about = describe_view(model, state);
    if x + 2 + about.width() as u16 <= area.right() {
        painter.draw_text_right(area.x, area.y, area.width, &about, painter.theme.dim);
    }
}

/// Describes the subject of the current view, such as `all GPUs · Utilization · 2 min`.
fn describe_view(model: &Model, state: &State) -> String {
    let gpu = match state.gpu {
        Some(gpu) => format!("GPU {gpu}"),
        None => "all GPUs".to_owned(),
    };
    let range = format_range(state.span_ms());
    match state.view {
        View::Charts | View::Mig if state.gpu.is_none() && model.gpus().len() > 1 => {
            format!("{gpu} · {} · {range}", METRICS[state.shown_metric()].label)
        }
        View::Charts | View::Mig | View::Activity | View::Links => format!("{gpu} · {range}"),
        View::Host => range,
        View::Events => gpu,
    }
}
