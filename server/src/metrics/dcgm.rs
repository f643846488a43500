//! Metrics with the names, labels and units of dcgm-exporter, so that its dashboards and alerts can
//! be used.
//!
//! The catalogue has the names; [`NOT_AVAILABLE`] lists those without a reading. An Xid is reported
//! while its condition lasts, even for a lost GPU. If the kubelet reports who holds a device, its
//! series have these labels, the same as those of dcgm-exporter.

use gpumon_probe::model::{
    Allocation, GpuSample, MigSample,
    fields::{BOARD_METRICS, DETAIL_METRICS, Dcgm, GPU_FIELDS, Metric, SAMPLE_METRICS, Unit},
};

use super::{
    scrape::{Scrape, Told, text},
    text::{Family, Labels, Page},
};

/// The labels of a GPU, and of each of its MIG devices in the order of the sample.
struct DeviceLabels {
    gpu: Labels,
    mig_devices: Vec<Labels>,
}

/// The version of dcgm-exporter. DCGM has renamed fields and changed their units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// dcgm-exporter until version 4.8.
    Old,
    /// dcgm-exporter since version 4.9, with the names of DCGM 4.7.
    Renamed,
}

/// The fields of dcgm-exporter that gpumon does not provide, with the reason.
#[cfg(test)]
pub(super) const NOT_AVAILABLE: &[(&str, &str)] = &[
    (
        "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
        "licenses of virtual GPUs are not read",
    ),
    (
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "both are counted as one: `DCGM_FI_DEV_NVLINK_ERROR_DL_CRC`",
    ),
    (
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0 to L17",
        "series by link are `/metrics?links=true`, under names of their own",
    ),
    (
        "DCGM_FI_DEV_ECC_SBE_VOL_L1 and others by location",
        "they are `gpumon_gpu_ecc_location_errors_total`",
    ),
    (
        "DCGM_FI_DEV_APP_SM_CLOCK",
        "the application clock that is read is that of the graphics engine",
    ),
    (
        "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION, DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION",
        "NVML does not tell them",
    ),
    (
        "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL and others of DCGM 4.7",
        "the `…_VIOLATION` counters have the same, also in `format=dcgm-4.9`",
    ),
    (
        "DCGM_FI_DEV_PCIE_TX_THROUGHPUT, DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
        "deprecated by NVIDIA: `DCGM_FI_PROF_PCIE_TX_BYTES` and `_RX_BYTES` have the same",
    ),
    (
        "DCGM_EXP_XID_ERRORS_COUNT, DCGM_EXP_CLOCK_EVENTS_COUNT, DCGM_EXP_GPU_HEALTH_STATUS",
        "computed by dcgm-exporter or DCGM itself; `gpumon_gpu_xid_errors_total` and `gpumon_condition` have more",
    ),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>, version: Version) {
    let gpus: Vec<_> = scrape
        .gpus
        .iter()
        .map(|told| (told, DeviceLabels::new(scrape, told, version)))
        .collect();
    for field in GPU_FIELDS {
        let Some(dcgm) = field.dcgm else { continue };
        let mut family = page.family(version.name(dcgm), field.kind.into(), field.help);
        let told = |value: f64| version.value(dcgm, field.unit, value);
        let of_gpu = |gpu: &GpuSample| field.access.value(gpu).map(told);
        for (gpu, labels) in &gpus {
            match (gpu.readings, field.mig) {
                (Some(readings), Some(mig)) => {
                    by_instance(&mut family, readings, labels, of_gpu, |it| {
                        mig.value(it).map(told)
                    });
                }
                (readings, _) => family.add(&labels.gpu, &[], readings.and_then(of_gpu)),
            }
        }
    }
    each(page, &gpus, version, SAMPLE_METRICS, |it, metric| {
        let sample = if metric.outlasts_gpu {
            it.sample
        } else {
            it.readings
        };
        (metric.read)(sample?)
    });
    each(page, &gpus, version, DETAIL_METRICS, |it, metric| {
        (metric.read)(it.details?)
    });
    each(page, &gpus, version, BOARD_METRICS, |it, metric| {
        (metric.read)(it.readings.map(|_| &it.gpu.board)?)
    });
}

fn each<S>(
    page: &mut Page,
    gpus: &[(&Told<'_>, DeviceLabels)],
    version: Version,
    metrics: &[Metric<S>],
    read: impl Fn(&Told<'_>, &Metric<S>) -> Option<f64>,
) {
    for metric in metrics {
        let Some(dcgm) = metric.dcgm else { continue };
        let mut family = page.family(version.name(dcgm), metric.kind.into(), metric.help);
        for (told, labels) in gpus {
            family.add(
                &labels.gpu,
                &[],
                read(told, metric).map(|value| version.value(dcgm, metric.unit, value)),
            );
        }
    }
}

/// Adds the series of MIG devices if there are any, and otherwise that of the whole GPU, so that
/// sums are correct.
fn by_instance(
    family: &mut Family<'_>,
    gpu: &GpuSample,
    labels: &DeviceLabels,
    of_gpu: impl Fn(&GpuSample) -> Option<f64>,
    of_mig: impl Fn(&MigSample) -> Option<f64>,
) {
    let devices = gpu.mig_devices.value().map_or(&[][..], Vec::as_slice);
    if devices.is_empty() {
        family.add(&labels.gpu, &[], of_gpu(gpu));
    }
    for (mig, labels) in devices.iter().zip(&labels.mig_devices) {
        family.add(labels, &[], of_mig(mig));
    }
}

impl Version {
    fn name(self, dcgm: Dcgm) -> &'static str {
        match self {
            Self::Old => dcgm.name,
            Self::Renamed => dcgm.renamed,
        }
    }

    fn value(self, dcgm: Dcgm, unit: Unit, value: f64) -> f64 {
        match self {
            Self::Old => dcgm.value(unit, value),
            Self::Renamed => dcgm.renamed_value(unit, value),
        }
    }

    /// Returns the names of the labels for the hostname and the driver version.
    pub(super) fn label_names(self) -> [&'static str; 2] {
        match self {
            Self::Old => ["Hostname", "DCGM_FI_DRIVER_VERSION"],
            Self::Renamed => ["hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION"],
        }
    }
}

impl DeviceLabels {
    fn new(scrape: &Scrape<'_>, told: &Told<'_>, version: Version) -> Self {
        let gpu = labels(scrape, told, version);
        let devices = told
            .readings
            .and_then(|gpu| gpu.mig_devices.value())
            .map_or(&[][..], Vec::as_slice);
        let of_device = |mig: &MigSample| {
            let id = mig.instance.gpu_instance.to_string();
            let place = Labels::new([("GPU_I_PROFILE", told.profile(mig)), ("GPU_I_ID", &id)]);
            gpu.and(&place).and(&holder(&mig.allocated_to))
        };
        let mig_devices = devices.iter().map(of_device).collect();
        let of_gpu = told.sample.map_or(&[][..], |sample| &sample.allocated_to);
        Self {
            gpu: gpu.and(&holder(of_gpu)),
            mig_devices,
        }
    }
}

/// Returns the labels that all holders of a device have in common. The readings of a device that
/// several pods share do not belong to a single pod.
fn holder(allocated_to: &[Allocation]) -> Labels {
    let holders = allocated_to.iter().filter_map(|holder| match holder {
        Allocation::Kubernetes {
            namespace,
            pod,
            container,
        } => Some([pod, namespace, container].map(String::as_str)),
        Allocation::Slurm { .. } => None,
    });
    let common = holders.reduce(|all, one| {
        // Pods with the same name in two namespaces are different, and so are containers of
        // different pods.
        let is_same_namespace = all[1] == one[1];
        let is_same_pod = is_same_namespace && all[0] == one[0];
        let is_same = [
            is_same_pod,
            is_same_namespace,
            is_same_pod && all[2] == one[2],
        ];
        [0, 1, 2].map(|at| if is_same[at] { all[at] } else { "" })
    });
    Labels::new(
        ["pod", "namespace", "container"]
            .into_iter()
            .zip(common.unwrap_or_default()),
    )
}

fn labels(scrape: &Scrape<'_>, told: &Told<'_>, version: Version) -> Labels {
    let inventory = scrape.known.inventory.as_ref();
    let [hostname, driver] = version.label_names();
    // This is the name of the device file.
    let device = format!(
        "nvidia{}",
        told.gpu
            .board
            .minor_number
            .value()
            .unwrap_or(&told.gpu.index)
    );
    Labels::new([
        ("gpu", told.gpu.index.to_string().as_str()),
        ("UUID", told.gpu.uuid.as_deref().unwrap_or_default()),
        ("pci_bus_id", text(&told.gpu.pci_bus_id)),
        ("device", &device),
        ("modelName", text(&told.gpu.name)),
        (
            hostname,
            inventory.map_or("", |inventory| inventory.hostname.as_str()),
        ),
        (
            driver,
            inventory
                .and_then(|inventory| inventory.platform.find_driver(told.gpu.vendor))
                .map_or("", |driver| text(&driver.version)),
        ),
    ])
}
