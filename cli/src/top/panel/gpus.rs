//! The lines of the GPUs, one per GPU, followed by a line of totals.

use gpumon_probe::{model::GpuSample, stat::Window};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use crate::{
    describe,
    gpu_lines::{Arrangement, CellWidths, GpuCells, GpuLines, LineContext, LineOptions, Role},
    terminal::Layout,
    top::{
        history::{ChartLine, MINUTE_MS},
        layout::Areas,
        metrics::find_metric_position,
        model::Model,
        painter::{Hit, Painter},
        state::State,
        theme::Theme,
    },
};

/// Draws the lines of as many GPUs as fit, arranged in columns, and the line of totals.
pub(in crate::top) fn draw_gpus(
    painter: &mut Painter<'_>,
    areas: &Areas,
    model: &Model,
    state: &mut State,
) {
    let (area, columns, totals) = (areas.gpus, areas.gpu_columns, areas.totals);
    let has_second_line = areas.lines_per_gpu > 1;
    painter.add_clickable_area(area, Hit::Gpus);
    let all = model.gpus();
    let width = area.width / columns;
    let layout = Layout {
        width: Some(width.into()),
        height: None,
        glyphs: painter.glyphs,
    };
    let context = LineContext {
        thresholds: state.thresholds,
        layout,
        phrases: model.context(),
    };
    let find_limits = |gpu: &GpuSample| describe::find_limits_phrase(gpu, context.phrases.now_ms);
    let of_gpu = |gpu: &GpuSample| {
        let (board, details) = (model.find_board(gpu.index), model.find_details(gpu.index));
        let mut cells = GpuCells::from_gpu(gpu, board, details, &context);
        cells.limits = find_limits(gpu).filter(|_| !has_second_line);
        cells
    };
    let mut rows: Vec<_> = all.iter().map(of_gpu).collect();
    if totals.height > 0 {
        rows.push(GpuCells::from_total(all, &state.thresholds));
    }
    // The widths never decrease, so that nothing moves when values change.
    state.gpu_widths = CellWidths::new(&rows).merge_max(&state.gpu_widths);
    let widths = state.gpu_widths;
    let options = LineOptions {
        columns: width.into(),
        has_past: true,
        is_steady: true,
        may_break: false,
    };
    let arrangement = Arrangement::new(&rows, &widths, options);
    let draw = |painter: &mut Painter<'_>, line: Rect, cells, past: Vec<Option<f64>>| {
        let lines = GpuLines {
            cells,
            widths: &widths,
            arrangement: &arrangement,
            layout,
        };
        for drawn in lines.draw(&past) {
            let styled = drawn.map(|role| role_style(role, painter.theme));
            painter.draw_pieces(line.x, line.y, line.width, &styled.into_pieces());
        }
    };
    let rows_per_column = area.height / areas.lines_per_gpu;
    let room = usize::from(rows_per_column) * usize::from(columns);
    let first = state.gpu_scroll.min(all.len().saturating_sub(room));
    let shown = all.iter().zip(&rows).skip(first).take(room);
    for (place, (gpu, cells)) in (0..).zip(shown) {
        let line = Rect {
            x: area.x + place / rows_per_column * width,
            y: area.y + place % rows_per_column * areas.lines_per_gpu,
            width,
            height: areas.lines_per_gpu,
        };
        draw(
            painter,
            line,
            cells,
            read_past_utilization(gpu, model, arrangement.sparkline_width()),
        );
        if let Some(limits) = find_limits(gpu).filter(|_| has_second_line) {
            let start = widths.first_column() as u16;
            painter.draw_text(
                line.x + start,
                line.y + 1,
                width.saturating_sub(start),
                &limits.long,
                painter.theme.choose_level_style(limits.level),
            );
        }
        if state.gpu == Some(gpu.index) {
            let name = Rect {
                width: (4 + arrangement.name_width() as u16).min(width),
                height: 1,
                ..line
            };
            painter.highlight(name, painter.theme.selected);
        }
        painter.add_clickable_area(line, Hit::Gpu(gpu.index));
    }
    if all.len() > room {
        let (above, below) = (first, all.len() - first - room);
        let more = format!(" {above} ▲ {below} ▼");
        painter.draw_text_right(
            area.x,
            area.bottom() - 1,
            area.width,
            &more,
            painter.theme.notice,
        );
    }
    if let Some(cells) = rows.get(all.len()) {
        let past = read_mean_past_utilization(model, arrangement.sparkline_width());
        draw(painter, Rect { width, ..totals }, cells, past);
    }
}

fn role_style(role: Role, theme: &Theme) -> Style {
    match role {
        Role::Plain => theme.plain,
        Role::Name => theme.strong,
        Role::Dim => theme.dim,
        Role::Past => theme.utilization,
        Role::Number(load) => theme.choose_load_style(load),
        Role::Bar(load) => theme
            .choose_load_style(load)
            .remove_modifier(Modifier::UNDERLINED),
        Role::Words(level) => theme.choose_level_style(level),
    }
}

/// Returns a GPU's utilization over the last minute as fractions. If the GPU has no utilization,
/// returns its SM activity.
fn read_past_utilization(gpu: &GpuSample, model: &Model, columns: usize) -> Vec<Option<f64>> {
    let metric = if describe::shows_sm_activity(gpu) {
        "sm"
    } else {
        "utilization"
    };
    let values = find_metric_position(metric).map(|metric| {
        model.read_line_values(ChartLine::Gpu(gpu.index, metric), MINUTE_MS, columns)
    });
    let values = values.into_iter().flatten();
    values.map(|percent| Some(percent? / 100.0)).collect()
}

/// Returns the mean utilization of all GPUs over the last minute, as fractions.
fn read_mean_past_utilization(model: &Model, columns: usize) -> Vec<Option<f64>> {
    let lines = model
        .gpus()
        .iter()
        .map(|gpu| read_past_utilization(gpu, model, columns));
    let lines: Vec<_> = lines.collect();
    let mean = |column: usize| {
        let values: Window = lines.iter().filter_map(|line| *line.get(column)?).collect();
        values.mean()
    };
    (0..columns).map(mean).collect()
}
