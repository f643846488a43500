//! The columns: those of GPUs, MIG devices and the host, whose rows are in one table, and those of
//! processes.

use std::{borrow::Cow, sync::LazyLock};

use gpumon_history::wanted::DeviceKind;
use gpumon_probe::model::{
    Gpu, GpuSample, HostSample, Inventory, MigDevice, MigSample, Process, Sample,
    fields::{Field, GPU_FIELDS, HOST_FIELDS},
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

/// What tells rows of other devices than GPUs apart, behind what tells those of GPUs apart.
pub(crate) const DEVICE_KEYS: [&str; 2] = ["kind", "parent"];

/// A row, which is of a moment.
pub(super) struct Row<'a> {
    at_ms: u64,
    subject: Subject<'a>,
}

enum Subject<'a> {
    Gpu(&'a GpuSample, Option<&'a Gpu>),
    /// With the GPU that it is a part of.
    Mig(&'a MigSample, Option<&'a MigDevice>, &'a GpuSample),
    Host(&'a HostSample),
    /// The process as JSON, with the GPU that it holds.
    Process(Value, &'a GpuSample),
}

/// One column.
pub(super) struct Column {
    pub(super) name: Cow<'static, str>,
    pub(super) help: &'static str,
    /// Whether it is there when nothing else was asked for.
    pub(super) usual: bool,
    /// Of whose rows it is, where it is there only when it is asked for by name.
    pub(super) beside: Option<DeviceKind>,
    read: Read,
}

/// How a value is taken out of a row.
enum Read {
    Gpu(&'static Field),
    Mig(&'static Field),
    Host(&'static Field<HostSample>),
    /// The path in the JSON of a process.
    Process(&'static str),
    Of(fn(&Row<'_>) -> Option<Value>),
}

/// Returns the rows of a sample for these kinds of devices.
pub(super) fn device_rows<'a>(
    inventory: &'a Inventory,
    sample: &'a Sample,
    kinds: &[DeviceKind],
) -> Vec<Row<'a>> {
    let of_kind = |kind: &DeviceKind| -> Vec<Subject<'a>> {
        match kind {
            DeviceKind::Gpu => {
                let known = |index| inventory.gpus.iter().find(|gpu| gpu.index == index);
                let gpus = sample.gpus.iter();
                gpus.map(|gpu| Subject::Gpu(gpu, known(gpu.index)))
                    .collect()
            }
            DeviceKind::Mig => {
                let all = inventory.gpus.iter().flat_map(|gpu| &gpu.mig_devices);
                let known = |uuid: &str| all.clone().find(|mig| mig.uuid == uuid);
                let mut rows = Vec::new();
                for gpu in &sample.gpus {
                    let devices = gpu.mig_devices.value().into_iter().flatten();
                    rows.extend(devices.map(|mig| Subject::Mig(mig, known(&mig.uuid), gpu)));
                }
                rows
            }
            DeviceKind::Host => vec![Subject::Host(&sample.host)],
        }
    };
    in_rows(sample, kinds.iter().flat_map(of_kind))
}

/// Returns a row for each process, by GPU and PID.
pub(super) fn process_rows(sample: &Sample) -> Vec<Row<'_>> {
    let subjects = sample.gpus.iter().flat_map(|gpu| {
        let processes = gpu.processes.value().into_iter().flatten();
        processes.map(move |process| Subject::Process(json!(process), gpu))
    });
    in_rows(sample, subjects)
}

fn in_rows<'a>(sample: &Sample, subjects: impl Iterator<Item = Subject<'a>>) -> Vec<Row<'a>> {
    let at_ms = sample.at_ms;
    subjects.map(|subject| Row { at_ms, subject }).collect()
}

fn column(name: &'static str, help: &'static str, read: Read) -> Column {
    Column {
        name: Cow::Borrowed(name),
        help,
        usual: false,
        beside: None,
        read,
    }
}

fn usual(name: &'static str, help: &'static str, read: Read) -> Column {
    Column {
        usual: true,
        ..column(name, help, read)
    }
}

fn list_time_columns() -> [Column; 2] {
    [
        usual(
            "time",
            "Time of the sample, UTC.",
            Read::Of(|row| value(time(row.at_ms))),
        ),
        column(
            "time_ms",
            "The same in milliseconds since 1970-01-01 UTC.",
            Read::Of(|row| value(row.at_ms)),
        ),
    ]
}

/// The columns of devices, in the order in which they are shown.
pub(super) static DEVICES: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let field = |id: &str, help, usual, beside, read| Column {
        name: id.replace('.', "_").into(),
        help,
        usual,
        beside,
        read,
    };
    let of_gpus = GPU_FIELDS
        .iter()
        .map(|of| field(of.id, of.help, of.in_csv, None, Read::Gpu(of)));
    let of_mig = DeviceKind::Mig.metrics().iter().map(|metric| {
        let read = Read::Mig(&GPU_FIELDS[metric.place]);
        field(&metric.id, metric.help, false, Some(DeviceKind::Mig), read)
    });
    let of_host = HOST_FIELDS.iter().map(|of| {
        field(
            of.id,
            of.help,
            false,
            Some(DeviceKind::Host),
            Read::Host(of),
        )
    });
    let of_all = list_time_columns()
        .into_iter()
        .chain(list_names())
        .chain(of_gpus)
        .chain(list_states());
    of_all
        .chain(list_keys())
        .chain(of_mig)
        .chain(of_host)
        .collect()
});

fn list_names() -> [Column; 5] {
    [
        usual(
            "index",
            "NVML index of the GPU.",
            Read::Of(|row| match row.subject {
                Subject::Gpu(gpu, _) => value(gpu.index),
                Subject::Mig(_, known, _) => value(known?.index),
                _ => None,
            }),
        ),
        usual(
            "uuid",
            "UUID of the GPU.",
            Read::Of(|row| match row.subject {
                Subject::Gpu(gpu, _) => value(&gpu.uuid),
                Subject::Mig(mig, ..) => value(&mig.uuid),
                _ => None,
            }),
        ),
        usual(
            "name",
            "Product name of the GPU.",
            Read::Of(|row| match row.subject {
                Subject::Gpu(_, known) => value(known?.name.value()),
                Subject::Mig(_, known, _) => value(known?.profile.value()),
                _ => None,
            }),
        ),
        column(
            "pci_bus_id",
            "PCI bus ID.",
            Read::Of(|row| match row.subject {
                Subject::Gpu(_, known) => value(known?.pci_bus_id.value()),
                _ => None,
            }),
        ),
        usual(
            "state",
            "State: ok, asleep, hung, lost or failed.",
            Read::Of(|row| value(row.gpu()?.health.word())),
        ),
    ]
}

fn list_states() -> [Column; 6] {
    [
        usual(
            "throttle_reasons",
            "Throttle reasons, space-separated.",
            Read::Of(|row| {
                let reasons = json!(row.gpu()?.throttle_reasons.value()?);
                let words = reasons.as_array()?.iter().filter_map(Value::as_str);
                value(words.collect::<Vec<_>>().join(" "))
            }),
        ),
        column(
            "conditions",
            "Conditions as sentences; needs a server or --watch.",
            Read::Of(|row| {
                let texts = row
                    .gpu()?
                    .conditions
                    .iter()
                    .map(|condition| &*condition.text);
                value(texts.collect::<Vec<_>>().join(" "))
            }),
        ),
        usual(
            "process_count",
            "Number of processes on the GPU.",
            Read::Of(|row| value(row.gpu()?.process_count())),
        ),
        column(
            "process_users",
            "Users of these processes, space-separated.",
            Read::Of(|row| {
                let processes = row.processes()?.iter();
                let mut users: Vec<&str> = processes
                    .filter_map(|process| Some(process.user.value()?.as_str()))
                    .collect();
                users.sort_unstable();
                users.dedup();
                value(users.join(" "))
            }),
        ),
        column(
            "unlisted_memory_bytes",
            "Device memory in use by processes of other PID namespaces, which are not visible.",
            Read::Of(|row| value(row.gpu()?.unlisted_memory_bytes)),
        ),
        column(
            "process_memory_bytes",
            "Device memory of these processes, as far as the driver reports it.",
            Read::Of(|row| {
                let processes = row.processes()?.iter();
                let bytes = processes.filter_map(|process| process.memory_bytes.value());
                value(bytes.sum::<u64>())
            }),
        ),
    ]
}

fn list_keys() -> [Column; 2] {
    let kind = column(
        DEVICE_KEYS[0],
        "Whose the row is: gpu, mig or host.",
        Read::Of(|row| {
            let kind = match row.subject {
                Subject::Mig(..) => DeviceKind::Mig,
                Subject::Host(_) => DeviceKind::Host,
                _ => DeviceKind::Gpu,
            };
            value(kind.word())
        }),
    );
    let parent = column(
        DEVICE_KEYS[1],
        "UUID of the GPU of a MIG device.",
        Read::Of(|row| match row.subject {
            Subject::Mig(_, _, gpu) => value(&gpu.uuid),
            _ => None,
        }),
    );
    [kind, parent].map(|column| Column {
        beside: Some(DeviceKind::Gpu),
        ..column
    })
}

/// The columns of processes, in the order in which they are shown.
pub(super) static PROCESSES: LazyLock<Vec<Column>> = LazyLock::new(|| {
    list_time_columns()
        .into_iter()
        .chain(list_process_columns())
        .collect()
});

fn list_process_columns() -> [Column; 25] {
    [
        usual(
            "gpu_index",
            "NVML index of the GPU.",
            Read::Of(|row| value(row.holder()?.index)),
        ),
        column(
            "gpu_uuid",
            "UUID of the GPU.",
            Read::Of(|row| value(&row.holder()?.uuid)),
        ),
        column(
            "mig_gpu_instance",
            "GPU instance (MIG); empty without MIG.",
            Read::Process("mig.gpu_instance"),
        ),
        column(
            "mig_compute_instance",
            "Compute instance (MIG); empty without MIG.",
            Read::Process("mig.compute_instance"),
        ),
        usual("pid", "PID.", Read::Process("pid")),
        usual("user", "User.", Read::Process("user")),
        column(
            "kind",
            "Kind: compute, graphics or compute_and_graphics.",
            Read::Process("kind"),
        ),
        column(
            "mps",
            "Whether it uses the Multi-Process Service (MPS).",
            Read::Process("mps"),
        ),
        usual(
            "memory_bytes",
            "Device memory in use.",
            Read::Process("memory_bytes"),
        ),
        usual(
            "sm_percent",
            "GPU utilization: time in which its kernels ran.",
            Read::Process("sm_percent"),
        ),
        column(
            "memory_percent",
            "Memory controller utilization: time in which it read or wrote device memory.",
            Read::Process("memory_percent"),
        ),
        column(
            "encoder_percent",
            "Utilization of the video encoder.",
            Read::Process("encoder_percent"),
        ),
        column(
            "decoder_percent",
            "Utilization of the video decoder.",
            Read::Process("decoder_percent"),
        ),
        column(
            "host_memory_bytes",
            "Host memory in use (resident set).",
            Read::Process("host_memory_bytes"),
        ),
        column(
            "started",
            "Start time, UTC.",
            Read::Of(|row| value(time(row.started_ms()?))),
        ),
        usual(
            "running_seconds",
            "Time since its start.",
            Read::Of(|row| value(row.at_ms.saturating_sub(row.started_ms()?) as f64 / 1000.0)),
        ),
        usual(
            "name",
            "Name of the script or program.",
            Read::Process("name"),
        ),
        usual(
            "notebook",
            "Notebook of the kernel that it is, or was started by.",
            Read::Process("owner.notebook.path"),
        ),
        usual(
            "slurm_job",
            "Slurm job ID.",
            Read::Process("owner.slurm.job_id"),
        ),
        column("pbs_job", "PBS job ID.", Read::Process("owner.pbs.job_id")),
        column("lsf_job", "LSF job ID.", Read::Process("owner.lsf.job_id")),
        column(
            "pod",
            "UID of the Kubernetes pod.",
            Read::Process("owner.pod.uid"),
        ),
        usual(
            "container",
            "Container ID.",
            Read::Process("owner.container.id"),
        ),
        column(
            "unit",
            "Systemd service or scope.",
            Read::Process("owner.unit"),
        ),
        usual("command", "Command line.", Read::Process("command")),
    ]
}

impl Column {
    /// Returns the value in a row; `null` if it is absent.
    pub(super) fn value(&self, row: &Row<'_>) -> Value {
        let found = match (&self.read, &row.subject) {
            (Read::Gpu(field), Subject::Gpu(gpu, _)) => value(field.access.value(gpu)),
            (Read::Mig(field), Subject::Mig(mig, ..)) => {
                value(field.mig.and_then(|access| access.value(mig)))
            }
            (Read::Host(field), Subject::Host(host)) => value(field.access.value(host)),
            (Read::Process(path), Subject::Process(process, _)) => find(process, path).cloned(),
            (Read::Of(read), _) => read(row),
            _ => None,
        };
        match found {
            Some(Value::Number(number)) if number.is_f64() => {
                number.as_f64().map_or(Value::Null, in_digits)
            }
            found => found.unwrap_or_default(),
        }
    }
}

impl Row<'_> {
    fn gpu(&self) -> Option<&GpuSample> {
        match self.subject {
            Subject::Gpu(gpu, _) => Some(gpu),
            _ => None,
        }
    }

    /// Returns the processes of a GPU; `None` where some are left out of the sample, since what
    /// they are together is not what they all are.
    fn processes(&self) -> Option<&[Process]> {
        let gpu = self.gpu().filter(|gpu| gpu.processes_omitted == 0)?;
        gpu.processes.value().map(Vec::as_slice)
    }

    /// Returns the GPU that a process holds.
    fn holder(&self) -> Option<&GpuSample> {
        match self.subject {
            Subject::Process(_, gpu) => Some(gpu),
            _ => None,
        }
    }

    fn started_ms(&self) -> Option<u64> {
        match &self.subject {
            Subject::Process(process, _) => find(process, "started_ms")?.as_u64(),
            _ => None,
        }
    }
}

fn value(value: impl Serialize) -> Option<Value> {
    serde_json::to_value(value).ok()
}

/// Returns the value at a path, also where it was read earlier.
fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path.split('.').try_fold(object, |object, key| {
        let reading = object.get(key)?;
        Some(reading.get("value").unwrap_or(reading))
    })?;
    found.get("absent").is_none().then_some(found)
}

/// Returns a number with three digits after the point at most, and none that are 0.
pub(super) fn in_digits(value: f64) -> Value {
    serde_json::from_str(&rounded(value)).unwrap_or_default()
}

pub(crate) fn rounded(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

/// `2025-11-20T09:13:20.250Z`
pub(crate) fn time(at_ms: u64) -> String {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).unwrap_or(i64::MAX))
        .unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_have_no_more_digits_than_they_need() {
        assert_eq!(in_digits(64.0).to_string(), "64");
        assert_eq!(rounded(0.123_456), "0.123");
        assert_eq!(time(1_763_630_000_250), "2025-11-20T09:13:20.250Z");
    }
}
