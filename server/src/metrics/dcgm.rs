//! The same under the names, labels and units of dcgm-exporter, so that its dashboards and alerts work.
//!
//! What gpumon does not read is left out: `DCGM_FI_PROF_GR_ENGINE_ACTIVE` and vGPU licenses. So is
//! `DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL`, whose unit is not documented. An Xid is told for as long as it is the matter.

use gpumon_probe::model::{ConditionKind, GpuDetails, GpuSample, MigSample, fields::GPU_FIELDS};

use super::{
    scrape::{Scrape, Told, count, text},
    text::{
        Family,
        Kind::{self, Counter, Gauge},
        Label, Page,
    },
};

type DetailsSeries = (&'static str, Kind, &'static str, fn(&GpuDetails) -> Option<f64>);

const DETAILS: &[DetailsSeries] = &[
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Counter, "PCIe replays.", |it| count(&it.pcie_replays_total)),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Counter, "Rows remapped for uncorrectable errors.", |it| {
        it.remapped_rows.value().map(|rows| rows.uncorrectable.into())
    }),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Counter, "Rows remapped for correctable errors.", |it| {
        it.remapped_rows.value().map(|rows| rows.correctable.into())
    }),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", Gauge, "Whether a row remapping has failed.", |it| {
        it.remapped_rows.value().map(|rows| f64::from(u8::from(rows.failed)))
    }),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let Some(dcgm) = field.dcgm else { continue };
        let mut family = page.family(dcgm.name, field.kind.into(), field.help);
        let told = |value: f64| dcgm.value(field.unit, value);
        match field.mig {
            None => each(scrape, &mut family, |it| it.readings.and_then(|gpu| field.access.value(gpu)).map(told)),
            Some(mig) => {
                by_instance(scrape, &mut family, |gpu| field.access.value(gpu).map(told), |it| mig.value(it).map(told));
            }
        }
    }
    let mut xids = page.family("DCGM_FI_DEV_XID_ERRORS", Gauge, "Xid of the newest error that still lasts.");
    each(scrape, &mut xids, |it| it.readings.and_then(newest_xid));
    for (name, kind, help, read) in DETAILS {
        each(scrape, &mut page.family(name, *kind, help), |it| it.details.and_then(read));
    }
}

fn each(scrape: &Scrape<'_>, family: &mut Family<'_>, read: impl Fn(&Told<'_>) -> Option<f64>) {
    for told in &scrape.gpus {
        family.add(labels(scrape, told, &device(told)), read(told));
    }
}

/// What is told of MIG devices where there are any, and of the whole GPU otherwise, so that sums are right.
fn by_instance(
    scrape: &Scrape<'_>,
    family: &mut Family<'_>,
    of_gpu: impl Fn(&GpuSample) -> Option<f64>,
    of_mig: impl Fn(&MigSample) -> Option<f64>,
) {
    for told in &scrape.gpus {
        let Some(gpu) = told.readings else { continue };
        let device = device(told);
        let devices = gpu.mig_devices.value().map_or(&[][..], Vec::as_slice);
        if devices.is_empty() {
            family.add(labels(scrape, told, &device), of_gpu(gpu));
        }
        for mig in devices {
            let id = mig.instance.gpu_instance.to_string();
            let rest = [("GPU_I_PROFILE", told.profile(mig)), ("GPU_I_ID", id.as_str())];
            family.add(labels(scrape, told, &device).chain(rest), of_mig(mig));
        }
    }
}

/// `nvidia0`: the device file.
fn device(told: &Told<'_>) -> String {
    format!("nvidia{}", told.gpu.board.minor_number.value().unwrap_or(&told.gpu.index))
}

fn labels<'a>(scrape: &Scrape<'a>, told: &'a Told<'a>, device: &'a str) -> impl Iterator<Item = Label<'a>> {
    let inventory = scrape.snapshot.inventory.as_ref();
    [
        ("gpu", told.index.as_str()),
        ("UUID", told.gpu.uuid.as_deref().unwrap_or_default()),
        ("pci_bus_id", text(&told.gpu.pci_bus_id)),
        ("device", device),
        ("modelName", text(&told.gpu.name)),
        ("Hostname", inventory.map_or("", |inventory| inventory.hostname.as_str())),
        ("DCGM_FI_DRIVER_VERSION", inventory.map_or("", |inventory| text(&inventory.platform.driver_version))),
    ]
    .into_iter()
}

fn newest_xid(gpu: &GpuSample) -> Option<f64> {
    let xids = gpu.conditions.iter().filter_map(|condition| match condition.kind {
        ConditionKind::Xid { code, last_ms, .. } => Some((last_ms, code)),
        _ => None,
    });
    xids.max().map(|(_, code)| code.into())
}
