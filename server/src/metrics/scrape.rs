//! Each GPU's data that is valid for metrics.

use gpumon_probe::model::{Gpu, GpuDetails, GpuSample, Health, MigSample, Reading, Sample};

use serde::Serialize;

use super::text::{Labels, Page, SeriesKind};
use crate::hub::HubData;

/// The age in milliseconds above which details are not reported. They are read every ten seconds.
const DETAILS_AGE_MS: u64 = 60_000;

pub(super) struct Scrape<'a> {
    pub(super) known: &'a HubData,
    pub(super) now_ms: u64,
    /// The newest sample, unless it is too old or the collector is not running.
    pub(super) sample: Option<&'a Sample>,
    pub(super) gpus: Vec<GpuScrape<'a>>,
}

/// A GPU of the inventory and its current data.
pub(super) struct GpuScrape<'a> {
    /// The labels that identify the GPU: NVML index and UUID.
    pub(super) labels: Labels,
    pub(super) gpu: &'a Gpu,
    /// The GPU's newest sample, whatever its health; `None` if the sample is too old.
    pub(super) sample: Option<&'a GpuSample>,
    /// The newest sample, if the GPU responds.
    pub(super) readings: Option<&'a GpuSample>,
    pub(super) details: Option<&'a GpuDetails>,
}

impl<'a> Scrape<'a> {
    pub(super) fn new(known: &'a HubData, now_ms: u64) -> Self {
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
                GpuScrape {
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

    /// Returns the GPUs that have a recent sample, each with the sample.
    pub(super) fn gpus_with_samples(
        &self,
    ) -> impl Iterator<Item = (&GpuScrape<'a>, &'a GpuSample)> {
        let gpus = self.gpus.iter();
        gpus.filter_map(|reported| Some((reported, reported.sample?)))
    }

    /// Returns the GPUs that have recent details, each with the details.
    pub(super) fn gpus_with_details(
        &self,
    ) -> impl Iterator<Item = (&GpuScrape<'a>, &'a GpuDetails)> {
        let gpus = self.gpus.iter();
        gpus.filter_map(|reported| Some((reported, reported.details?)))
    }

    pub(super) fn add_series_per_gpu(
        &self,
        page: &mut Page,
        name: &str,
        kind: SeriesKind,
        help: &str,
        read: impl Fn(&GpuScrape<'_>) -> Option<f64>,
    ) {
        let mut family = page.start_family(name, kind, help);
        for reported in &self.gpus {
            family.add_series(&reported.labels, &[], read(reported));
        }
    }
}

impl GpuScrape<'_> {
    /// Returns a MIG device's profile, or an empty string if the profile is unknown.
    pub(super) fn find_profile(&self, mig: &MigSample) -> &str {
        let known = self
            .gpu
            .mig_devices
            .iter()
            .find(|known| known.uuid == mig.uuid);
        known.map_or("", |known| reading_text(&known.profile))
    }
}

pub(super) fn reading_text(reading: &Reading<String>) -> &str {
    reading.value().map_or("", String::as_str)
}

/// Converts a count to a float. Very large counts lose precision, which does not matter here.
pub(super) fn to_float(reading: &Reading<u64>) -> Option<f64> {
    reading.value().map(|value| *value as f64)
}

/// Converts a percentage to a ratio.
pub(super) fn to_ratio(reading: &Reading<f64>) -> Option<f64> {
    reading.value().map(|percent| percent / 100.0)
}

pub(super) fn to_flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Returns the JSON name of a state or reason.
pub(super) fn json_name(state: &impl Serialize) -> String {
    serde_json::to_value(state)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}
