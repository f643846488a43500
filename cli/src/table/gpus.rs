//! The lines of GPUs and MIG devices.

use super::{View, column_widths::ColumnWidths, history::REACH_MS};
use crate::{
    describe,
    gpu_lines::{Arrangement, CellWidths, Context, GpuCells, GpuLines, LineOptions, Role},
    terminal::{
        Layout,
        chart::divide_time,
        line::Line,
        style::{DIM, PLAIN, STRONG, UTILIZATION, of_level, of_load, of_load_bar},
    },
};

pub(super) fn lines(view: &View<'_>, layout: Layout, kept: Option<&mut ColumnWidths>) -> Vec<Line> {
    let context = phrase_context(view, layout);
    let (mut rows, mut pasts) = (Vec::new(), Vec::new());
    for gpu in &view.sample.gpus {
        let board = view.find_board(gpu.index);
        rows.push(GpuCells::of_gpu(gpu, board, None, &context));
        pasts.push(view.past.of_gpu(gpu));
        for part in gpu.mig_devices.value().into_iter().flatten() {
            let device = board.and_then(|board| describe::device_of(board, part.instance));
            rows.push(GpuCells::of_part(part, device, gpu, &context));
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
        has_past: view.past.is_known() || is_steady,
        is_steady,
        may_break: true,
    };
    let arrangement = Arrangement::new(&rows, &widths, options);
    let columns = arrangement.past_columns();
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    let rows = rows.iter().zip(&pasts).flat_map(|(cells, past)| {
        let past = divide_time(past, view.sample.at_ms, REACH_MS, columns);
        let past: Vec<_> = past.into_iter().map(share).collect();
        let lines = GpuLines {
            cells,
            widths: &widths,
            arrangement: &arrangement,
            layout,
        };
        lines.draw(&past)
    });
    rows.map(|line| line.map(style)).collect()
}

pub(super) fn phrase_context(view: &View<'_>, layout: Layout) -> Context {
    Context {
        thresholds: view.thresholds,
        layout,
        phrases: describe::Context {
            now_ms: view.sample.at_ms,
            is_one_shot: view.is_one_shot,
        },
    }
}

fn style(role: Role) -> anstyle::Style {
    match role {
        Role::Plain => PLAIN,
        Role::Name => STRONG,
        Role::Dim => DIM,
        Role::Past => UTILIZATION,
        Role::Number(load) => of_load(load),
        Role::Bar(load) => of_load_bar(load),
        Role::Words(level) => of_level(level),
    }
}
