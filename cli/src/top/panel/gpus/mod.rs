//! One line per GPU: utilization with its last minute, memory, temperature, power, where it is wide
//! further readings, and what is the matter, in words; below, what all of them come to.

mod further;
mod row;
mod totals;
mod widths;

use ratatui::layout::Rect;

use self::widths::Widths;
use crate::top::{
    model::Model,
    painter::{Hit, Painter},
    state::State,
};

/// As many GPUs as fit, `beside` of them beside each other.
pub(in crate::top) fn gpus(
    painter: &mut Painter<'_>,
    area: Rect,
    beside: u16,
    totals: Rect,
    model: &Model,
    state: &State,
) {
    painter.hit(area, Hit::Gpus);
    let all = model.gpus();
    let width = area.width / beside;
    let is_named_above = all
        .iter()
        .all(|gpu| model.name(gpu.index) == model.name(all[0].index));
    let widths = Widths::new(
        usize::from(width),
        Widths::widest(all, model),
        is_named_above,
    );
    let room = usize::from(area.height) * usize::from(beside);
    let first = state.gpu_scroll.min(all.len().saturating_sub(room));
    for (place, gpu) in all.iter().skip(first).take(room).enumerate() {
        let (column, line) = (place as u16 / area.height, place as u16 % area.height);
        let line = Rect {
            x: area.x + column * width,
            y: area.y + line,
            width,
            height: 1,
        };
        row::draw(painter, line, gpu, &widths, model, &state.thresholds);
        if state.gpu == Some(gpu.index) {
            painter.highlight(
                Rect {
                    width: (4 + widths.name as u16).min(width),
                    ..line
                },
                painter.theme.selected,
            );
        }
        painter.hit(line, Hit::Gpu(gpu.index));
    }
    if all.len() > room {
        let (above, below) = (first, all.len() - first - room);
        let more = format!(" {above} ▲ {below} ▼");
        painter.text_right(
            area.x,
            area.bottom() - 1,
            area.width,
            &more,
            painter.theme.notice,
        );
    }
    totals::draw(
        painter,
        Rect { width, ..totals },
        &widths,
        model,
        &state.thresholds,
    );
}
