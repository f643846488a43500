//! What the catalogue of fields has a name for: of GPUs, of their MIG devices, and of the machine around them.

use gpumon_probe::model::fields::{GPU_FIELDS, HOST_FIELDS};

use super::{
    scrape::{Scrape, word},
    text::{Kind::Gauge, Page},
};

pub(super) fn gpu(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let Some(name) = field.prometheus else { continue };
        scrape.by_gpu(page, name, field.kind.into(), field.help, |told| {
            told.readings.and_then(|gpu| field.access.value(gpu)).map(|value| field.unit.base(value))
        });
    }
    scrape.by_gpu(page, "gpumon_gpu_processes", Gauge, "Number of processes on the GPU.", |told| {
        let gpu = told.readings?;
        gpu.processes.value().map(|all| all.len() as f64 + f64::from(gpu.processes_omitted))
    });
    let mut throttled = page.family("gpumon_gpu_throttled", Gauge, "1 while the clocks are throttled for this reason.");
    for told in &scrape.gpus {
        let reasons = told.readings.and_then(|gpu| gpu.throttle_reasons.value());
        for reason in reasons.into_iter().flatten() {
            throttled.add(told.labels().into_iter().chain([("reason", word(reason).as_str())]), Some(1.0));
        }
    }
}

pub(super) fn mig(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let (Some(name), Some(access)) = (field.prometheus_mig, field.mig) else { continue };
        let mut family = page.family(name, field.kind.into(), field.help);
        for told in &scrape.gpus {
            let devices = told.readings.and_then(|gpu| gpu.mig_devices.value());
            for mig in devices.into_iter().flatten() {
                let labels = [("mig_uuid", mig.uuid.as_str()), ("profile", told.profile(mig))];
                let value = access.value(mig).map(|value| field.unit.base(value));
                family.add(told.labels().into_iter().chain(labels), value);
            }
        }
    }
}

pub(super) fn host(page: &mut Page, scrape: &Scrape<'_>) {
    for field in HOST_FIELDS {
        let Some(name) = field.prometheus else { continue };
        let value = scrape.sample.and_then(|sample| field.access.value(&sample.host));
        page.family(name, field.kind.into(), field.help).add([], value.map(|value| field.unit.base(value)));
    }
}
