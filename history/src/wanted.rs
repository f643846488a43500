//! Which metrics of the past somebody wants.

use std::collections::BTreeSet;

use gpumon_probe::model::{
    HostSample,
    fields::{Field, GPU_FIELDS, HOST_FIELDS, charted, overview},
};

/// Stands for what each holder has of a GPU's memory, among the metrics that may be asked for.
const HOLDERS: &str = "processes.memory_bytes";

/// Stands before the name of a metric where it is of MIG devices.
const MIG: &str = "mig.";

/// Metrics of the catalogue.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Those of GPUs.
    pub metrics: Vec<&'static Field>,
    /// Those of the machine.
    pub host: Vec<&'static Field<HostSample>>,
    /// Those of MIG devices.
    pub mig: Vec<&'static Field>,
    /// Whether who held the memory is wanted, too.
    pub holders: bool,
}

impl Wanted {
    /// What an overview of all GPUs shows.
    pub fn overview() -> Self {
        Self::metrics(overview().collect())
    }

    /// What is drawn of GPUs without being asked.
    pub fn of_gpus() -> Self {
        Self::metrics(charted(GPU_FIELDS).collect())
    }

    /// All that there is, but who held the memory.
    pub fn all() -> Self {
        Self {
            host: HOST_FIELDS.iter().collect(),
            mig: of_mig().collect(),
            ..Self::metrics(GPU_FIELDS.iter().collect())
        }
    }

    fn metrics(metrics: Vec<&'static Field>) -> Self {
        Self {
            metrics,
            host: Vec::new(),
            mig: Vec::new(),
            holders: false,
        }
    }

    /// Their names, each once and in one order, however they were asked for.
    pub fn ids(&self) -> Vec<String> {
        let of_gpus = self.metrics.iter().map(|field| field.id.to_owned());
        let of_mig = self.mig.iter().map(|field| mig_id(field.id));
        let of_host = self.host.iter().map(|field| field.id.to_owned());
        let holders = self.holders.then(|| HOLDERS.to_owned());
        let ids: BTreeSet<_> = of_gpus
            .chain(of_mig)
            .chain(of_host)
            .chain(holders)
            .collect();
        ids.into_iter().collect()
    }

    /// The metrics of these names, and what is wrong with the others.
    pub fn named<'a>(ids: impl Iterator<Item = &'a str>) -> (Self, Result<(), String>) {
        let (mut wanted, mut unknown) = (Self::metrics(Vec::new()), Vec::new());
        for id in ids {
            if let Some(field) = GPU_FIELDS.iter().find(|field| field.id == id) {
                wanted.metrics.push(field);
            } else if let Some(field) = HOST_FIELDS.iter().find(|field| field.id == id) {
                wanted.host.push(field);
            } else if let Some(field) =
                of_mig().find(|field| id.strip_prefix(MIG) == Some(field.id))
            {
                wanted.mig.push(field);
            } else if id == HOLDERS {
                wanted.holders = true;
            } else {
                unknown.push(id);
            }
        }
        if unknown.is_empty() {
            return (wanted, Ok(()));
        }
        let all = Self {
            holders: true,
            ..Self::all()
        };
        (
            wanted,
            Err(format!(
                "unknown metric '{}'; there are {}",
                unknown.join("', '"),
                all.ids().join(", ")
            )),
        )
    }
}

/// The fields that MIG devices have, too.
pub fn of_mig() -> impl Iterator<Item = &'static Field> {
    GPU_FIELDS.iter().filter(|field| field.mig.is_some())
}

/// What a metric of MIG devices is called.
pub fn mig_id(id: &str) -> String {
    format!("{MIG}{id}")
}

/// Where fields stand in their catalogue.
pub fn places<S>(catalogue: &[Field<S>], fields: &[&Field<S>]) -> Vec<usize> {
    let place = |field: &&Field<S>| catalogue.iter().position(|known| known.id == field.id);
    fields.iter().filter_map(place).collect()
}

/// A gauge with the digits that a chart shows, four. The rest is noise, which would be a third of what a new client gets
/// and of what is stored. Counters and states keep all.
pub fn rounded(value: f64) -> f64 {
    const DIGITS: i32 = 4;
    if !value.is_normal() {
        return value;
    }
    let digits_left = value.abs().log10().floor() as i32 + 1 - DIGITS;
    // Of whole numbers, so that nothing is lost by the way.
    let power = 10_f64.powi(digits_left.abs());
    if digits_left > 0 {
        (value / power).round() * power
    } else {
        (value * power).round() / power
    }
}
