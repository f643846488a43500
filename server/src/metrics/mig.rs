//! What MIG devices do.

use gpumon_probe::model::{Activity, MigSample, Reading};

use super::{
    scrape::{Scrape, count, ratio},
    text::{Kind::Gauge, Page},
};

/// One number of a MIG device: its name, what it is, and how it is read.
type Series = (&'static str, &'static str, fn(&MigSample) -> Option<f64>);

const SERIES: &[Series] = &[
    ("gpumon_mig_memory_total_bytes", "Device memory of the MIG device, all of it.", |mig| {
        count(&mig.memory.total_bytes)
    }),
    ("gpumon_mig_memory_used_bytes", "Device memory of the MIG device that processes hold.", |mig| {
        count(&mig.memory.used_bytes)
    }),
    ("gpumon_mig_memory_free_bytes", "Device memory of the MIG device that nobody holds.", |mig| {
        count(&mig.memory.free_bytes)
    }),
    ("gpumon_mig_sm_active_ratio", "Time in which a multiprocessor of the MIG device had work.", |mig| {
        active(mig, |it| &it.sm_percent)
    }),
    ("gpumon_mig_sm_occupancy_ratio", "Warps that were resident, of those that could be.", |mig| {
        active(mig, |it| &it.occupancy_percent)
    }),
    ("gpumon_mig_tensor_active_ratio", "Time in which the tensor cores of the MIG device worked.", |mig| {
        active(mig, |it| &it.tensor_percent)
    }),
    ("gpumon_mig_dram_bandwidth_ratio", "Memory bandwidth in use, of what the MIG device can do.", |mig| {
        active(mig, |it| &it.dram_bandwidth_percent)
    }),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for (name, help, read) in SERIES {
        let mut family = page.family(name, Gauge, help);
        for told in &scrape.gpus {
            let devices = told.readings.and_then(|gpu| gpu.mig_devices.value());
            for mig in devices.into_iter().flatten() {
                let known = told.gpu.mig_devices.iter().find(|known| known.uuid == mig.uuid);
                let profile = known.and_then(|known| known.profile.value()).map_or("", String::as_str);
                let labels = [("mig_uuid", mig.uuid.as_str()), ("profile", profile)];
                family.add(told.labels().into_iter().chain(labels), read(mig));
            }
        }
    }
}

fn active(mig: &MigSample, part: fn(&Activity) -> &Reading<f64>) -> Option<f64> {
    ratio(part(mig.activity.value()?))
}
