//! MIG instances: what each is, holds and does; below, the charts of their GPUs.

use gpumon_probe::model::{GpuSample, MigSample, Reading};
use ratatui::{layout::Rect, style::Modifier};
use unicode_width::UnicodeWidthStr;

use super::{
    charts::charts,
    scroll_view::{Line, scroll_view},
};
use crate::{
    describe::{self, Loads, Thresholds},
    top::{
        model::Model,
        painter::Painter,
        state::State,
        text::{ABSENT, align_left, align_right, percent, shown},
    },
};

pub(super) fn mig(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let dim = painter.theme.dim;
    let bars = usize::from(area.width).saturating_sub(92).min(40);
    let heading: Line = vec![(
        format!(
            "{}{}{}{}{}{}{}{}  {}",
            align_left("GPU", 5),
            align_left("INSTANCE", 10),
            align_left("PROFILE", 12),
            align_right("MEMORY", 15),
            align_left("", bars + 2),
            align_right("SM", 7),
            align_right("TENSOR", 8),
            align_right("DRAM", 7),
            "PROCESSES"
        ),
        dim,
    )];
    let mut lines: Vec<Line> = Vec::new();
    let mut without = Vec::new();
    for gpu in model
        .gpus()
        .iter()
        .filter(|gpu| state.gpu.is_none_or(|index| gpu.index == index))
    {
        match (gpu.mig_devices.value(), gpu.mig_devices.absence()) {
            (Some(devices), _) if !devices.is_empty() => {
                lines.extend(
                    devices.iter().map(|device| {
                        of_device(painter, gpu, device, model, bars, &state.thresholds)
                    }),
                );
            }
            (Some(_), _) => without.push((gpu.index, "not divided".to_owned())),
            (None, reason) => without.push((
                gpu.index,
                reason.map_or_else(String::new, ToString::to_string),
            )),
        }
    }
    if lines.is_empty() {
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
    lines.extend(without.iter().map(|(gpu, why)| {
        vec![(
            format!("{} {why}", align_left(&align_right(&gpu.to_string(), 3), 4)),
            dim,
        )]
    }));
    scroll_view(painter, area, Some(&heading), &lines, state.view_scroll);
    charts_below(painter, area, 1 + lines.len(), model, state);
}

/// Charts of the GPUs, as large as these lines and an empty one leave room for.
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
) -> Line {
    let (plain, busy) = (painter.theme.plain, painter.theme.utilization);
    let loads = Loads::of_part(device, thresholds);
    let (memory_load, sm_load) = (
        painter.theme.of_load(loads.memory),
        painter.theme.of_load(loads.utilization),
    );
    let number = |text: &str, columns: usize, style| {
        let blank = align_right("", columns.saturating_sub(text.width()));
        [(blank, plain), (text.to_owned(), style)]
    };
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
    let mut line = vec![
        (align_left(&align_right(&place, 3), 5), plain),
        (
            align_left(
                &format!(
                    "{}/{}",
                    device.instance.gpu_instance, device.instance.compute_instance
                ),
                10,
            ),
            plain,
        ),
        (align_left(&profile, 12), painter.theme.strong),
    ];
    line.extend(number(&memory, 15, memory_load));
    line.extend([
        (" ".to_owned(), plain),
        (full, memory_load.remove_modifier(Modifier::UNDERLINED)),
        (empty + " ", painter.theme.dim),
    ]);
    line.extend(number(&part(|parts| &parts.sm_percent), 7, sm_load));
    line.extend([
        (align_right(&part(|parts| &parts.tensor_percent), 8), busy),
        (
            align_right(&part(|parts| &parts.dram_bandwidth_percent), 7),
            painter.theme.memory,
        ),
        (
            format!(
                "  {}",
                processes.map_or_else(|| ABSENT.to_owned(), |count| count.to_string())
            ),
            plain,
        ),
    ]);
    line
}
