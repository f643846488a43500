//! What a GPU does, from its newest sample.

use gpumon_probe::model::fields::GPU_FIELDS;

use super::{
    scrape::{Scrape, word},
    text::{Kind::Gauge, Page},
};

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let Some(name) = field.prometheus else { continue };
        let mut family = page.family(name, field.kind.into(), field.help);
        for told in &scrape.gpus {
            let value = told.readings.and_then(|gpu| field.access.value(gpu));
            family.add(told.labels(), value.map(|value| field.unit.base(value)));
        }
    }
    let mut processes = page.family("gpumon_gpu_processes", Gauge, "Number of processes on the GPU.");
    for told in &scrape.gpus {
        let count = told
            .readings
            .and_then(|gpu| gpu.processes.value().map(|all| all.len() as f64 + f64::from(gpu.processes_omitted)));
        processes.add(told.labels(), count);
    }
    let mut throttled = page.family("gpumon_gpu_throttled", Gauge, "1 while the clocks are throttled for this reason.");
    for told in &scrape.gpus {
        let reasons = told.readings.and_then(|gpu| gpu.throttle_reasons.value());
        for reason in reasons.into_iter().flatten() {
            throttled.add(told.labels().into_iter().chain([("reason", word(reason).as_str())]), Some(1.0));
        }
    }
}
