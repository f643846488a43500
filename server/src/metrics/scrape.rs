//! The data of each GPU that is valid for metrics.

use gpumon_probe::model::{Gpu, GpuDetails, GpuSample, Health, MigSample, Reading, Sample};

use serde::Serialize;

use super::text::{Kind, Labels, Page};
use crate::hub::Known;

/// The age at which details are no longer reported, in milliseconds. They are read every ten
/// seconds.
const DETAILS_AGE_MS: u64 = 60_000;

pub(super) struct Scrape<'a> {
    pub(super) known: &'a Known,
    pub(super) now_ms: u64,
    /// The newest sample, unless it is too old or nothing is being sampled.
    pub(super) sample: Option<&'a Sample>,
    pub(super) gpus: Vec<Told<'a>>,
}

/// A GPU of the inventory with its current data.
pub(super) struct Told<'a> {
    /// The labels with the NVML index and the UUID.
    pub(super) labels: Labels,
    pub(super) gpu: &'a Gpu,
    /// The newest sample for any health of the GPU; `None` if it is too old.
    pub(super) sample: Option<&'a GpuSample>,
    /// The newest sample, if the GPU responds.
    pub(super) readings: Option<&'a GpuSample>,
    pub(super) details: Option<&'a GpuDetails>,
}

impl<'a> Scrape<'a> {
    pub(super) fn new(known: &'a Known, now_ms: u64) -> Self {
        let sample = known.fresh_sample(now_ms);
        let gpus = known
            .inventory
            .iter()
            .flat_map(|inventory| &inventory.gpus)
            .map(|gpu| {
                let sample = sample
                    .and_then(|sample| sample.gpus.iter().find(|sample| sample.index == gpu.index));
                let readings = sample.filter(|sample| sample.health == Health::Ok);
                let is_of_now = |details: &&GpuDetails| {
                    details.index == gpu.index
                        && now_ms.saturating_sub(details.at_ms) <= DETAILS_AGE_MS
                };
                let details = known.details.iter().map(AsRef::as_ref).find(is_of_now);
                let index = gpu.index.to_string();
                let labels = Labels::new([
                    ("gpu", index.as_str()),
                    ("uuid", gpu.uuid.as_deref().unwrap_or_default()),
                ]);
                Told {
                    labels,
                    gpu,
                    sample,
                    readings,
                    details: readings.and(details),
                }
            });
        Self {
            known,
            now_ms,
            sample,
            gpus: gpus.collect(),
        }
    }

    /// Returns the GPUs that have a fresh sample.
    pub(super) fn with_samples(&self) -> impl Iterator<Item = (&Told<'a>, &'a GpuSample)> {
        let gpus = self.gpus.iter();
        gpus.filter_map(|told| Some((told, told.sample?)))
    }

    /// Returns the GPUs that have fresh details.
    pub(super) fn with_details(&self) -> impl Iterator<Item = (&Told<'a>, &'a GpuDetails)> {
        let gpus = self.gpus.iter();
        gpus.filter_map(|told| Some((told, told.details?)))
    }

    pub(super) fn by_gpu(
        &self,
        page: &mut Page,
        name: &str,
        kind: Kind,
        help: &str,
        read: impl Fn(&Told<'_>) -> Option<f64>,
    ) {
        let mut family = page.family(name, kind, help);
        for told in &self.gpus {
            family.add(&told.labels, &[], read(told));
        }
    }
}

impl Told<'_> {
    /// Returns the profile of a MIG device, or an empty text if it is unknown.
    pub(super) fn profile(&self, mig: &MigSample) -> &str {
        let known = self
            .gpu
            .mig_devices
            .iter()
            .find(|known| known.uuid == mig.uuid);
        known.map_or("", |known| text(&known.profile))
    }
}

pub(super) fn text(reading: &Reading<String>) -> &str {
    reading.value().map_or("", String::as_str)
}

/// Converts a count to a float. The loss of precision of very large counts does not matter.
pub(super) fn count(reading: &Reading<u64>) -> Option<f64> {
    reading.value().map(|value| *value as f64)
}

/// Converts percent to a ratio.
pub(super) fn ratio(reading: &Reading<f64>) -> Option<f64> {
    reading.value().map(|percent| percent / 100.0)
}

pub(super) fn yes(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Returns the JSON name of a state or reason.
pub(super) fn word(state: &impl Serialize) -> String {
    serde_json::to_value(state)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}
