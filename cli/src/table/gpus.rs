//! The lines of the table for GPUs and MIG devices.

use super::{View, column_widths::ColumnWidths, history::MAX_HISTORY_MS};
use crate::{
    describe,
    gpu_lines::{Arrangement, CellWidths, GpuCells, GpuLines, LineContext, LineOptions, Role},
    terminal::{
        Layout,
        chart::average_by_column,
        line::Line,
        style::{
            DIM, PLAIN, STRONG, UTILIZATION, choose_level_style, choose_load_bar_style,
            choose_load_style,
        },
    },
};

pub(super) fn format_lines(
    view: &View<'_>,
    layout: Layout,
    kept: Option<&mut ColumnWidths>,
) -> Vec<Line> {
    let context = build_phrase_context(view, layout);
    let (mut rows, mut pasts) = (Vec::new(), Vec::new());
    for gpu in &view.sample.gpus {
        let board = view.find_board(gpu.index);
        rows.push(GpuCells::from_gpu(gpu, board, None, &context));
        pasts.push(view.past.gpu_values(gpu));
        for part in gpu.mig_devices.value().into_iter().flatten() {
            let device = board.and_then(|board| describe::find_mig_device(board, part.instance));
            rows.push(GpuCells::from_part(part, device, gpu, &context));
            pasts.push(Vec::new());
        }
    }
    let mut widths = CellWidths::new(&rows);
    let is_steady = kept.is_some();
    if let Some(kept) = kept {
        widths = widths.merge_max(&kept.gpus);
        kept.gpus = widths;
    }
    let options = LineOptions {
        columns: layout.columns(),
        has_past: view.past.has_values() || is_steady,
        is_steady,
        may_break: true,
    };
    let arrangement = Arrangement::new(&rows, &widths, options);
    let columns = arrangement.sparkline_width();
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    let rows = rows.iter().zip(&pasts).flat_map(|(cells, past)| {
        let past = average_by_column(past, view.sample.at_ms, MAX_HISTORY_MS, columns);
        let past: Vec<_> = past.into_iter().map(share).collect();
        let lines = GpuLines {
            cells,
            widths: &widths,
            arrangement: &arrangement,
            layout,
        };
        lines.draw(&past)
    });
    rows.map(|line| line.map(role_style)).collect()
}

pub(super) fn build_phrase_context(view: &View<'_>, layout: Layout) -> LineContext {
    LineContext {
        thresholds: view.thresholds,
        layout,
        phrases: describe::Context {
            now_ms: view.sample.at_ms,
            is_one_shot: view.is_one_shot,
        },
    }
}

fn role_style(role: Role) -> anstyle::Style {
    match role {
        Role::Plain => PLAIN,
        Role::Name => STRONG,
        Role::Dim => DIM,
        Role::Past => UTILIZATION,
        Role::Number(load) => choose_load_style(load),
        Role::Bar(load) => choose_load_bar_style(load),
        Role::Words(level) => choose_level_style(level),
    }
}
