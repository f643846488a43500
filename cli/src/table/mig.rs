//! The parts of a GPU that is divided, as rows of their own.

use gpumon_probe::model::{Gpu, GpuSample, MigDevice, MigInstance, MigSample};

use super::{
    Layout, View,
    line::printable,
    row::{EXTRAS, Row, share},
    units::{ABSENT, gib, gib_of_all},
};

/// How a part is called: `6:0` is the first of GPU 6, as containers are given it.
pub(super) fn label(gpu: u32, device: &MigDevice) -> String {
    format!("{gpu}:{}", device.index)
}

/// The part of a GPU that is this instance.
pub(super) fn device_of(gpu: &Gpu, instance: MigInstance) -> Option<&MigDevice> {
    gpu.mig_devices.iter().find(|device| device.instance == instance)
}

/// One row for each part.
pub(super) fn rows<'a>(gpu: &GpuSample, view: &View<'a>, layout: Layout) -> Vec<Row<'a>> {
    let known = view.inventory.gpus.iter().find(|known| known.index == gpu.index);
    let parts = gpu.mig_devices.value().into_iter().flatten();
    parts.map(|part| row(part, known.and_then(|gpu| device_of(gpu, part.instance)), gpu, layout)).collect()
}

fn row<'a>(part: &MigSample, device: Option<&MigDevice>, gpu: &GpuSample, layout: Layout) -> Row<'a> {
    let profile = device.and_then(|device| device.profile.value()).map_or("MIG", String::as_str);
    let name = device.map_or_else(|| profile.to_owned(), |device| format!("{} {profile}", label(gpu.index, device)));
    let (used, total) = (part.memory.used_bytes.value(), part.memory.total_bytes.value());
    let sm = part.activity.value().and_then(|activity| activity.sm_percent.value());
    Row {
        index: String::new(),
        name: printable(&name, layout),
        busy: sm.map_or_else(|| ABSENT.to_owned(), |percent| format!("SM {percent:.0} %")),
        used: used.map_or_else(|| ABSENT.to_owned(), |bytes| gib(*bytes)),
        total: total.map_or_else(String::new, |bytes| gib_of_all(*bytes)),
        memory_share: share(used, total),
        temperature: String::new(),
        draw: String::new(),
        limit: String::new(),
        extras: [const { String::new() }; EXTRAS],
        past: None,
        words: Vec::new(),
        is_stale: gpu.health != gpumon_probe::model::Health::Ok,
        is_part: true,
    }
}
