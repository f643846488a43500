//! The view of MIG devices: identity, memory, and load, followed by charts of their GPUs.

use gpumon_probe::model::{GpuSample, MigSample, Reading};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use super::{StyledLine, charts::draw_charts, draw_scroll_view, format_table};
use crate::{
    describe::{self, LoadLevels, Thresholds},
    terminal::{
        columns::{Column, Columns},
        line,
        units::format_optional,
    },
    top::{
        model::Model,
        painter::Painter,
        state::State,
        text::{align_left, align_right, format_or_dash, format_percent},
    },
};

const MIN_BAR_WIDTH: usize = 5;
const MAX_BAR_WIDTH: usize = 40;

type Cell = line::Line<Style>;

const COLUMNS: [Column; 9] = [
    Column::new_right_aligned("GPU", 0),
    Column::new_left_aligned("INSTANCE", 0),
    Column::new_left_aligned("PROFILE", 0).with_min_width(12),
    Column::new_right_aligned("MEMORY", 0).with_min_width(15),
    Column::new_left_aligned("", 0),
    Column::new_right_aligned("SM", 0).with_min_width(6),
    Column::new_right_aligned("TENSOR", 0).with_min_width(7),
    Column::new_right_aligned("DRAM", 0).with_min_width(6),
    Column::new_right_aligned("PROCESSES", 0),
];

pub(super) fn draw_mig(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let dim = painter.theme.dim;
    let others = Columns::with_headings(&COLUMNS, None).width();
    let bars = usize::from(area.width)
        .saturating_sub(others)
        .min(MAX_BAR_WIDTH);
    let bars = if bars < MIN_BAR_WIDTH { 0 } else { bars };
    let mut rows = Vec::new();
    let mut without = Vec::new();
    for gpu in model
        .gpus()
        .iter()
        .filter(|gpu| state.gpu.is_none_or(|index| gpu.index == index))
    {
        match &gpu.mig_devices {
            Reading::Absent(reason) => without.push((gpu.index, reason.to_string())),
            Reading::Now(devices) | Reading::Earlier { value: devices, .. } => {
                if devices.is_empty() {
                    without.push((gpu.index, "not divided".to_owned()));
                }
                let row =
                    |device| format_device(painter, gpu, device, model, bars, &state.thresholds);
                rows.extend(devices.iter().map(row));
            }
        }
    }
    if rows.is_empty() {
        let lines: Vec<StyledLine> = without
            .iter()
            .map(|(gpu, why)| {
                let name = model.find_vendor(*gpu).partition_name();
                vec![(format!("GPU {gpu}: no {name}, {why}"), dim)]
            })
            .collect();
        draw_scroll_view(painter, area, None, &lines, state.view_scroll);
        return draw_charts_below(painter, area, lines.len(), model, state);
    }
    let (heading, mut lines) = format_table(painter, area, &COLUMNS, &rows);
    lines.extend(without.iter().map(|(gpu, why)| {
        vec![(
            format!("{} {why}", align_left(&align_right(&gpu.to_string(), 3), 4)),
            dim,
        )]
    }));
    draw_scroll_view(painter, area, Some(&heading), &lines, state.view_scroll);
    draw_charts_below(painter, area, 1 + lines.len(), model, state);
}

/// Draws charts of the GPUs in the space below `lines` lines and an empty line.
fn draw_charts_below(
    painter: &mut Painter<'_>,
    area: Rect,
    lines: usize,
    model: &Model,
    state: &State,
) {
    let taken = area.height.min(lines as u16 + 1);
    draw_charts(
        painter,
        Rect {
            y: area.y + taken,
            height: area.height - taken,
            ..area
        },
        model,
        state,
    );
}

fn format_device(
    painter: &Painter<'_>,
    gpu: &GpuSample,
    device: &MigSample,
    model: &Model,
    bars: usize,
    thresholds: &Thresholds,
) -> Vec<Cell> {
    let (plain, busy) = (painter.theme.plain, painter.theme.utilization);
    let loads = LoadLevels::from_mig_device(device, thresholds);
    let (memory_load, sm_load) = (
        painter.theme.choose_load_style(loads.memory),
        painter.theme.choose_load_style(loads.utilization),
    );
    let known = model.find_board(gpu.index).and_then(|gpu| {
        gpu.mig_devices
            .iter()
            .find(|known| known.uuid == device.uuid)
    });
    let place = describe::format_device_label(gpu.index, known);
    let profile = format_optional(known, |known| format_or_dash(&known.profile, Clone::clone));
    let (used, total) = (
        device.memory.used_bytes.value(),
        device.memory.total_bytes.value(),
    );
    let memory = format_optional(used, |used| {
        describe::format_used_of_total(*used, total.copied())
    });
    let share = describe::used_memory_fraction(used, total);
    let (full, empty) = share.filter(|_| bars > 0).map_or_else(
        || (String::new(), " ".repeat(bars)),
        |share| painter.glyphs.draw_bar(share, bars),
    );
    let part = |read: fn(&gpumon_probe::model::Activity) -> &Reading<f64>| {
        format_optional(device.activity.value(), |parts| format_percent(read(parts)))
    };
    let processes = gpu.processes.value().map(|all| {
        all.iter()
            .filter(|process| process.mig == Some(device.instance))
            .count()
    });
    let mut bar = Cell::new(memory_load.remove_modifier(Modifier::UNDERLINED), full);
    bar.push(painter.theme.dim, empty);
    let instance = device.instance;
    vec![
        Cell::new(plain, place),
        Cell::new(
            plain,
            format!("{}/{}", instance.gpu_instance, instance.compute_instance),
        ),
        Cell::new(painter.theme.strong, profile),
        Cell::new(memory_load, memory),
        bar,
        Cell::new(sm_load, part(|parts| &parts.sm_percent)),
        Cell::new(busy, part(|parts| &parts.tensor_percent)),
        Cell::new(
            painter.theme.memory,
            part(|parts| &parts.dram_bandwidth_percent),
        ),
        Cell::new(plain, format_optional(processes, |count| count.to_string())),
    ]
}
