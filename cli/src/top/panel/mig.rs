//! MIG devices: the identity, memory, and load of each, with charts of their GPUs below.

use gpumon_probe::model::{GpuSample, MigSample, Reading};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use super::{
    charts::charts,
    scroll_view::{Line, draw_table, scroll_view},
};
use crate::{
    describe::{self, Loads, Thresholds},
    terminal::{
        columns::{Column, Columns},
        line,
    },
    top::{
        model::Model,
        painter::Painter,
        state::State,
        text::{ABSENT, align_left, align_right, percent, shown},
    },
};

const SHORTEST_BAR: usize = 5;
const LONGEST_BAR: usize = 40;

type Cell = line::Line<Style>;

const COLUMNS: [Column; 9] = [
    Column::align_right("GPU", 0),
    Column::align_left("INSTANCE", 0),
    Column::align_left("PROFILE", 0).at_least(12),
    Column::align_right("MEMORY", 0).at_least(15),
    Column::align_left("", 0),
    Column::align_right("SM", 0).at_least(6),
    Column::align_right("TENSOR", 0).at_least(7),
    Column::align_right("DRAM", 0).at_least(6),
    Column::align_right("PROCESSES", 0),
];

pub(super) fn mig(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let dim = painter.theme.dim;
    let others = Columns::with_headings(&COLUMNS, None).width();
    let bars = usize::from(area.width)
        .saturating_sub(others)
        .min(LONGEST_BAR);
    let bars = if bars < SHORTEST_BAR { 0 } else { bars };
    let mut rows = Vec::new();
    let mut without = Vec::new();
    for gpu in model
        .gpus()
        .iter()
        .filter(|gpu| state.gpu.is_none_or(|index| gpu.index == index))
    {
        match (gpu.mig_devices.value(), gpu.mig_devices.absence()) {
            (Some(devices), _) if !devices.is_empty() => {
                let row = |device| of_device(painter, gpu, device, model, bars, &state.thresholds);
                rows.extend(devices.iter().map(row));
            }
            (Some(_), _) => without.push((gpu.index, "not divided".to_owned())),
            (None, reason) => without.push((
                gpu.index,
                reason.map_or_else(String::new, ToString::to_string),
            )),
        }
    }
    if rows.is_empty() {
        let lines: Vec<Line> = without
            .iter()
            .map(|(gpu, why)| {
                let name = model.find_vendor(*gpu).partition_name();
                vec![(format!("GPU {gpu}: no {name}, {why}"), dim)]
            })
            .collect();
        scroll_view(painter, area, None, &lines, state.view_scroll);
        return charts_below(painter, area, lines.len(), model, state);
    }
    let (heading, mut lines) = draw_table(painter, area, &COLUMNS, &rows);
    lines.extend(without.iter().map(|(gpu, why)| {
        vec![(
            format!("{} {why}", align_left(&align_right(&gpu.to_string(), 3), 4)),
            dim,
        )]
    }));
    scroll_view(painter, area, Some(&heading), &lines, state.view_scroll);
    charts_below(painter, area, 1 + lines.len(), model, state);
}

/// Draws charts of the GPUs in the area that remains below these lines and an empty one.
fn charts_below(painter: &mut Painter<'_>, area: Rect, lines: usize, model: &Model, state: &State) {
    let taken = area.height.min(lines as u16 + 1);
    charts(
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

fn of_device(
    painter: &Painter<'_>,
    gpu: &GpuSample,
    device: &MigSample,
    model: &Model,
    bars: usize,
    thresholds: &Thresholds,
) -> Vec<Cell> {
    let (plain, busy) = (painter.theme.plain, painter.theme.utilization);
    let loads = Loads::of_part(device, thresholds);
    let (memory_load, sm_load) = (
        painter.theme.of_load(loads.memory),
        painter.theme.of_load(loads.utilization),
    );
    let known = model.board(gpu.index).and_then(|gpu| {
        gpu.mig_devices
            .iter()
            .find(|known| known.uuid == device.uuid)
    });
    let place = known.map_or_else(
        || gpu.index.to_string(),
        |known| describe::label(gpu.index, known),
    );
    let profile = known.map_or_else(
        || ABSENT.to_owned(),
        |known| shown(&known.profile, Clone::clone),
    );
    let (used, total) = (
        device.memory.used_bytes.value(),
        device.memory.total_bytes.value(),
    );
    let memory = match (used, total) {
        (Some(used), total) => describe::used_of(*used, total.copied()),
        _ => ABSENT.to_owned(),
    };
    let share = describe::share(used, total);
    let (full, empty) = share.filter(|_| bars > 0).map_or_else(
        || (String::new(), " ".repeat(bars)),
        |share| painter.glyphs.draw_bar(share, bars),
    );
    let part = |read: fn(&gpumon_probe::model::Activity) -> &Reading<f64>| {
        device
            .activity
            .value()
            .map_or_else(|| ABSENT.to_owned(), |parts| percent(read(parts)))
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
        Cell::new(
            plain,
            processes.map_or_else(|| ABSENT.to_owned(), |count| count.to_string()),
        ),
    ]
}
