//! What MIG devices do.

use gpumon_probe::model::fields::GPU_FIELDS;

use super::{scrape::Scrape, text::Page};

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let (Some(name), Some(access)) = (field.prometheus_mig, field.mig) else { continue };
        let mut family = page.family(name, field.kind.into(), field.help);
        for told in &scrape.gpus {
            let devices = told.readings.and_then(|gpu| gpu.mig_devices.value());
            for mig in devices.into_iter().flatten() {
                let known = told.gpu.mig_devices.iter().find(|known| known.uuid == mig.uuid);
                let profile = known.and_then(|known| known.profile.value()).map_or("", String::as_str);
                let labels = [("mig_uuid", mig.uuid.as_str()), ("profile", profile)];
                let value = access.value(mig).map(|value| field.unit.base(value));
                family.add(told.labels().into_iter().chain(labels), value);
            }
        }
    }
}
