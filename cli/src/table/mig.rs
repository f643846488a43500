//! The parts of a GPU that is divided, as rows of their own.

use gpumon_probe::model::{GpuSample, MigDevice, MigSample};

use super::{
    View,
    row::{EXTRAS, Row},
};

use crate::describe::{self, Loads};
use crate::terminal::{Layout, line::printable, units::ABSENT};

pub(super) fn rows(gpu: &GpuSample, view: &View<'_>, layout: Layout) -> Vec<Row> {
    let known = view
        .inventory
        .gpus
        .iter()
        .find(|known| known.index == gpu.index);
    let parts = gpu.mig_devices.value().into_iter().flatten();
    parts
        .map(|part| {
            row(
                part,
                known.and_then(|gpu| describe::device_of(gpu, part.instance)),
                gpu,
                view,
                layout,
            )
        })
        .collect()
}

fn row(
    part: &MigSample,
    device: Option<&MigDevice>,
    gpu: &GpuSample,
    view: &View<'_>,
    layout: Layout,
) -> Row {
    let profile = device
        .and_then(|device| device.profile.value())
        .map_or("MIG", String::as_str);
    let name = device.map_or_else(
        || profile.to_owned(),
        |device| format!("{} {profile}", describe::label(gpu.index, device)),
    );
    let (used, total) = (
        part.memory.used_bytes.value(),
        part.memory.total_bytes.value(),
    );
    Row {
        index: String::new(),
        name: printable(&name, layout),
        busy: describe::of_part(&part.activity),
        used: used.map_or_else(|| ABSENT.to_owned(), |bytes| describe::used(*bytes)),
        total: total.map_or_else(String::new, |bytes| describe::total(*bytes)),
        memory_share: describe::share(used, total),
        temperature: String::new(),
        draw: String::new(),
        limit: String::new(),
        loads: Loads::of_part(part, &view.thresholds),
        extras: [const { String::new() }; EXTRAS],
        past: Vec::new(),
        words: Vec::new(),
        is_stale: gpu.health != gpumon_probe::model::Health::Ok,
        is_part: true,
    }
}
