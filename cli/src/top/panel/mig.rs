//! MIG instances: what each is, holds and does.

use gpumon_probe::model::{GpuSample, MigSample, Reading};
use ratatui::layout::Rect;

use super::sheet::{Line, sheet};
use crate::{
    table::bar::bar,
    top::{
        pen::Pen,
        state::State,
        text::{ABSENT, left, percent, right, shown},
        world::World,
    },
    words,
};

pub(super) fn mig(pen: &mut Pen<'_>, area: Rect, world: &World, state: &State) {
    let dim = pen.theme.dim;
    let bars = usize::from(area.width).saturating_sub(92).min(40);
    let heading: Line = vec![(
        format!(
            "{}{}{}{}{}{}{}{}  {}",
            left("GPU", 5),
            left("INSTANCE", 10),
            left("PROFILE", 12),
            right("MEMORY", 15),
            left("", bars + 2),
            right("SM", 7),
            right("TENSOR", 8),
            right("DRAM", 7),
            "PROCESSES"
        ),
        dim,
    )];
    let mut lines: Vec<Line> = Vec::new();
    let mut without = Vec::new();
    for gpu in world.gpus().iter().filter(|gpu| state.gpu.is_none_or(|index| gpu.index == index)) {
        match (gpu.mig_devices.value(), gpu.mig_devices.absence()) {
            (Some(devices), _) if !devices.is_empty() => {
                lines.extend(devices.iter().map(|device| of_device(pen, gpu, device, world, bars)));
            }
            (Some(_), _) => without.push((gpu.index, "MIG is off".to_owned())),
            (None, reason) => without.push((gpu.index, reason.map_or_else(String::new, ToString::to_string))),
        }
    }
    if lines.is_empty() {
        let lines: Vec<Line> =
            without.iter().map(|(gpu, why)| vec![(format!("GPU {gpu}: no MIG instances, {why}"), dim)]).collect();
        return sheet(pen, area, None, &lines, state.view_scroll);
    }
    lines.extend(
        without.iter().map(|(gpu, why)| vec![(format!("{} {why}", left(&right(&gpu.to_string(), 3), 4)), dim)]),
    );
    sheet(pen, area, Some(&heading), &lines, state.view_scroll);
}

fn of_device(pen: &Pen<'_>, gpu: &GpuSample, device: &MigSample, world: &World, bars: usize) -> Line {
    let (plain, busy) = (pen.theme.plain, pen.theme.utilization);
    let known = world.board(gpu.index).and_then(|gpu| gpu.mig_devices.iter().find(|known| known.uuid == device.uuid));
    let place = known.map_or_else(|| gpu.index.to_string(), |known| words::label(gpu.index, known));
    let profile = known.map_or_else(|| ABSENT.to_owned(), |known| shown(&known.profile, Clone::clone));
    let (used, total) = (device.memory.used_bytes.value(), device.memory.total_bytes.value());
    let memory = match (used, total) {
        (Some(used), Some(total)) => format!("{}/{} GiB", words::used(*used), words::total(*total)),
        _ => ABSENT.to_owned(),
    };
    let share = words::share(used, total);
    let (full, empty) = share
        .filter(|_| bars > 0)
        .map_or_else(|| (String::new(), " ".repeat(bars)), |share| bar(share, bars, pen.glyphs.has_lines()));
    let part = |read: fn(&gpumon_probe::model::Activity) -> &Reading<f64>| {
        device.activity.value().map_or_else(|| ABSENT.to_owned(), |parts| percent(read(parts)))
    };
    let processes =
        gpu.processes.value().map(|all| all.iter().filter(|process| process.mig == Some(device.instance)).count());
    vec![
        (left(&right(&place, 3), 5), plain),
        (left(&format!("{}/{}", device.instance.gpu_instance, device.instance.compute_instance), 10), plain),
        (left(&profile, 12), pen.theme.strong),
        (right(&memory, 15) + " ", plain),
        (full, pen.theme.memory),
        (empty + " ", pen.theme.dim),
        (right(&part(|parts| &parts.sm_percent), 7), busy),
        (right(&part(|parts| &parts.tensor_percent), 8), busy),
        (right(&part(|parts| &parts.dram_bandwidth_percent), 7), pen.theme.memory),
        (format!("  {}", processes.map_or_else(|| ABSENT.to_owned(), |count| count.to_string())), plain),
    ]
}
