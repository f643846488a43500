//! The columns of the two tables: one table for GPUs, MIG devices and the host, and one for
//! processes.

use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

use gpumon_history::span::DeviceKind;
use gpumon_probe::model::{
    Gpu, GpuSample, HostSample, Inventory, MigSample, Process, Sample,
    fields::{Field, GPU_FIELDS, HOST_FIELDS},
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Additional columns that identify the rows of MIG devices and the host.
pub(crate) const DEVICE_KEYS: [&str; 2] = ["kind", "parent"];

/// A row of a table.
pub(super) struct Row<'a> {
    /// An object with the row's values for all columns that are not fields of the catalog.
    keys: Value,
    readings: RowReadings<'a>,
}

enum RowReadings<'a> {
    Gpu(&'a GpuSample),
    Mig(&'a MigSample),
    Host(&'a HostSample),
    None,
}

/// A column of a table.
pub(super) struct Column {
    pub(super) name: Cow<'static, str>,
    pub(super) help: &'static str,
    /// Whether the column is printed by default.
    pub(super) usual: bool,
    /// For a column that is printed only when the user names it, the kind of device whose rows have
    /// this column. `None` for all other columns.
    pub(super) only_if_named: Option<DeviceKind>,
    read: ValueSource,
}

/// The source of a column's value.
#[derive(Clone, Copy)]
enum ValueSource {
    /// The path of a value in [`Row::keys`].
    Key(&'static str),
    Gpu(&'static Field),
    Mig(&'static Field),
    Host(&'static Field<HostSample>),
}

/// Returns the rows of a sample for the device kinds `kinds`.
pub(super) fn make_device_rows<'a>(
    inventory: &Inventory,
    sample: &'a Sample,
    kinds: &[DeviceKind],
) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for kind in kinds {
        let mut add = |keys: Value, readings| {
            let mut row = make_row(sample, keys, readings);
            row.keys[DEVICE_KEYS[0]] = kind.export_name().into();
            rows.push(row);
        };
        match kind {
            DeviceKind::Gpu => {
                for gpu in &sample.gpus {
                    let known = inventory.gpus.iter().find(|known| known.index == gpu.index);
                    add(make_gpu_keys(gpu, known), RowReadings::Gpu(gpu));
                }
            }
            DeviceKind::Mig => {
                for gpu in &sample.gpus {
                    for mig in gpu.mig_devices.value().into_iter().flatten() {
                        let mut all = inventory.gpus.iter().flat_map(|gpu| &gpu.mig_devices);
                        let known = all.find(|known| known.uuid == mig.uuid);
                        let keys = json!({
                            "index": known.map(|known| known.index),
                            "uuid": mig.uuid,
                            "name": known.map(|known| &known.profile),
                            "parent": gpu.uuid,
                        });
                        add(keys, RowReadings::Mig(mig));
                    }
                }
            }
            DeviceKind::Host => add(json!({}), RowReadings::Host(&sample.host)),
        }
    }
    rows
}

/// Returns one row per process, in the order of the GPUs.
pub(super) fn make_process_rows(sample: &Sample) -> Vec<Row<'_>> {
    let rows = sample.gpus.iter().flat_map(|gpu| {
        let processes = gpu.processes.value().into_iter().flatten();
        processes.map(move |process| {
            let mut keys = json!(process);
            (keys["gpu_index"], keys["gpu_uuid"]) = (json!(gpu.index), json!(gpu.uuid));
            if let Some(started_ms) = process.started_ms.value() {
                let running_ms = sample.at_ms.saturating_sub(*started_ms);
                keys["started"] = format_timestamp(*started_ms).into();
                keys["running_seconds"] = (running_ms as f64 / 1000.0).into();
            }
            make_row(sample, keys, RowReadings::None)
        })
    });
    rows.collect()
}

fn make_row<'a>(sample: &Sample, mut keys: Value, readings: RowReadings<'a>) -> Row<'a> {
    (keys["time"], keys["time_ms"]) = (format_timestamp(sample.at_ms).into(), sample.at_ms.into());
    Row { keys, readings }
}

fn make_gpu_keys(gpu: &GpuSample, known: Option<&Gpu>) -> Value {
    let reasons = json!(gpu.throttle_reasons.value());
    let reasons = reasons
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_str));
    let conditions = gpu.conditions.iter().map(|condition| &*condition.text);
    // If the sample omits some processes, values derived from the remaining processes would be
    // wrong, so these values are left absent.
    let processes = gpu.processes.value().filter(|_| gpu.processes_omitted == 0);
    let users = processes.map(|processes| {
        let users = processes.iter().filter_map(|process| process.user.value());
        let users: BTreeSet<&str> = users.map(String::as_str).collect();
        join_words(users.into_iter())
    });
    let bytes_of = |process: &Process| process.memory_bytes.value().copied();
    json!({
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": known.map(|known| &known.name),
        "pci_bus_id": known.map(|known| &known.pci_bus_id),
        "state": gpu.health.json_name(),
        "throttle_reasons": reasons.map(join_words),
        "conditions": join_words(conditions),
        "process_count": gpu.process_count(),
        "process_users": users,
        "unlisted_memory_bytes": gpu.unlisted_memory_bytes,
        "process_memory_bytes": processes.map(|all| all.iter().filter_map(bytes_of).sum::<u64>()),
    })
}

fn join_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

/// The columns of the device table, in output order.
pub(super) static ALL_DEVICE_COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let field = |id: &str, help, usual, only_if_named, read| Column {
        name: id.replace('.', "_").into(),
        help,
        usual,
        only_if_named,
        read,
    };
    let of_gpus = GPU_FIELDS
        .iter()
        .map(|of| field(of.id, of.help, of.in_csv, None, ValueSource::Gpu(of)));
    let of_mig = DeviceKind::Mig.metrics().iter().map(|metric| {
        let read = ValueSource::Mig(&GPU_FIELDS[metric.place]);
        field(&metric.id, metric.help, false, Some(DeviceKind::Mig), read)
    });
    let of_host = HOST_FIELDS.iter().map(|of| {
        let kind = Some(DeviceKind::Host);
        field(of.id, of.help, false, kind, ValueSource::Host(of))
    });
    let kinds = KIND_COLUMNS.iter().map(|key| Column {
        only_if_named: Some(DeviceKind::Gpu),
        ..make_column(key)
    });
    let of_gpus = NAME_COLUMNS
        .iter()
        .map(make_column)
        .chain(of_gpus)
        .chain(STATE_COLUMNS.iter().map(make_column));
    of_gpus.chain(kinds).chain(of_mig).chain(of_host).collect()
});

/// The columns of the process table, in output order.
pub(super) static ALL_PROCESS_COLUMNS: LazyLock<Vec<Column>> =
    LazyLock::new(|| PROCESS_COLUMNS.iter().map(make_column).collect());

/// A column from [`Row::keys`]: definition and help. A star before the name means that the column
/// is printed by default. If the path differs from the name, it follows after an equals sign.
type KeyColumn = (&'static str, &'static str);

fn make_column(&(definition, help): &KeyColumn) -> Column {
    let usual = definition.strip_prefix('*');
    let definition = usual.unwrap_or(definition);
    let (name, path) = definition
        .split_once('=')
        .unwrap_or((definition, definition));
    Column {
        name: name.into(),
        help,
        usual: usual.is_some(),
        only_if_named: None,
        read: ValueSource::Key(path),
    }
}

const TIME: KeyColumn = ("*time", "Time of the sample, UTC.");
const TIME_MS: KeyColumn = (
    "time_ms",
    "Time of the sample, in milliseconds since 1970-01-01 UTC.",
);

const NAME_COLUMNS: [KeyColumn; 7] = [
    TIME,
    TIME_MS,
    ("*index", "NVML index of the GPU."),
    ("*uuid", "UUID of the GPU."),
    ("*name", "Product name of the GPU."),
    ("pci_bus_id", "PCI bus ID."),
    ("*state", "State: ok, asleep, hung, lost or failed."),
];

const STATE_COLUMNS: [KeyColumn; 6] = [
    ("*throttle_reasons", "Throttle reasons, space-separated."),
    (
        "conditions",
        "Conditions as sentences; needs a server or --watch.",
    ),
    ("*process_count", "Number of processes on the GPU."),
    (
        "process_users",
        "Users of the processes on the GPU, space-separated.",
    ),
    (
        "unlisted_memory_bytes",
        "Device memory in use by processes in other PID namespaces. These processes are not \
         visible.",
    ),
    (
        "process_memory_bytes",
        "Device memory in use by the processes on the GPU, if the driver reports it.",
    ),
];

const KIND_COLUMNS: [KeyColumn; 2] = [
    (DEVICE_KEYS[0], "Kind of the row: gpu, mig or host."),
    (
        DEVICE_KEYS[1],
        "UUID of the GPU that contains the MIG device.",
    ),
];

const PROCESS_COLUMNS: [KeyColumn; 27] = [
    TIME,
    TIME_MS,
    ("*gpu_index", "NVML index of the GPU."),
    ("gpu_uuid", "UUID of the GPU."),
    (
        "mig_gpu_instance=mig.gpu_instance",
        "GPU instance (MIG); empty without MIG.",
    ),
    (
        "mig_compute_instance=mig.compute_instance",
        "Compute instance (MIG); empty without MIG.",
    ),
    ("*pid", "PID."),
    ("*user", "User."),
    ("kind", "Kind: compute, graphics or compute_and_graphics."),
    (
        "mps",
        "Whether the process uses the Multi-Process Service (MPS).",
    ),
    ("*memory_bytes", "Device memory in use."),
    (
        "*sm_percent",
        "GPU utilization: share of time in which kernels of the process ran.",
    ),
    (
        "memory_percent",
        "Memory controller utilization: share of time in which the process read or wrote device \
         memory.",
    ),
    ("encoder_percent", "Utilization of the video encoder."),
    ("decoder_percent", "Utilization of the video decoder."),
    ("host_memory_bytes", "Host memory in use (resident set)."),
    ("started", "Start time, UTC."),
    ("*running_seconds", "Time since the start of the process."),
    ("*name", "Name of the script or program."),
    (
        "*notebook=owner.notebook.path",
        "Notebook of the process, if the process is a Jupyter kernel or was started by one.",
    ),
    ("*slurm_job=owner.slurm.job_id", "Slurm job ID."),
    ("pbs_job=owner.pbs.job_id", "PBS job ID."),
    ("lsf_job=owner.lsf.job_id", "LSF job ID."),
    ("pod=owner.pod.uid", "UID of the Kubernetes pod."),
    ("*container=owner.container.id", "Container ID."),
    ("unit=owner.unit", "Systemd service or scope."),
    ("*command", "Command line."),
];

impl Column {
    /// Returns the column's value in a row, or `null` if the value is absent.
    pub(super) fn value(&self, row: &Row<'_>) -> Value {
        let number = match (self.read, &row.readings) {
            (ValueSource::Key(path), _) => {
                let found = find_value(&row.keys, path);
                match found.filter(|found| found.is_f64()) {
                    Some(number) => number.as_f64(),
                    None => return found.cloned().unwrap_or_default(),
                }
            }
            (ValueSource::Gpu(field), RowReadings::Gpu(gpu)) => field.access.value(gpu),
            (ValueSource::Mig(field), RowReadings::Mig(mig)) => {
                field.mig.and_then(|access| access.value(mig))
            }
            (ValueSource::Host(field), RowReadings::Host(host)) => field.access.value(host),
            _ => None,
        };
        number.map_or(Value::Null, round_to_value)
    }
}

/// Returns the value at a path. If a reading contains its value together with a time, returns only
/// the value.
fn find_value<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path.split('.').try_fold(object, |object, key| {
        let reading = object.get(key)?;
        Some(reading.get("value").unwrap_or(reading))
    })?;
    found.get("absent").is_none().then_some(found)
}

/// Returns a number with at most three decimals and no trailing zeros.
fn round_to_value(value: f64) -> Value {
    serde_json::from_str(&format_rounded(value)).unwrap_or_default()
}

/// Formats a number with at most three decimals and no trailing zeros.
pub(crate) fn format_rounded(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

/// Formats a time as `2025-11-20T09:13:20.250Z`.
pub(crate) fn format_timestamp(at_ms: u64) -> String {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).unwrap_or(i64::MAX))
        .unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_three_decimals() {
        assert_eq!(round_to_value(64.0).to_string(), "64");
        assert_eq!(format_rounded(0.123_456), "0.123");
        assert_eq!(
            format_timestamp(1_763_630_000_250),
            "2025-11-20T09:13:20.250Z"
        );
    }
}
