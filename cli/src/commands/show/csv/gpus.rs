//! The columns of GPUs.

use std::sync::LazyLock;

use gpumon_probe::model::{Gpu, GpuSample, Inventory, Process, Sample, fields::GPU_FIELDS};

use super::{
    Column, Read, column,
    field::{plain, rounded, time, word},
    literal, usual,
};

pub(super) struct Row {
    sample_ms: u64,
    gpu: GpuSample,
    known: Option<Gpu>,
}

pub(super) fn rows(inventory: &Inventory, sample: &Sample) -> Vec<Row> {
    let Sample { at_ms, gpus, .. } = sample;
    let known = |index: u32| {
        inventory
            .gpus
            .iter()
            .find(|gpu| gpu.index == index)
            .cloned()
    };
    gpus.iter()
        .map(|gpu| Row {
            sample_ms: *at_ms,
            gpu: gpu.clone(),
            known: known(gpu.index),
        })
        .collect()
}

/// In the order in which they are shown.
pub(super) static COLUMNS: LazyLock<Vec<Column<Row>>> = LazyLock::new(|| {
    let fields = GPU_FIELDS.iter().map(|field| Column {
        name: field.id.replace('.', "_").into(),
        help: field.help,
        usual: field.in_csv,
        is_literal: true,
        beside: None,
        read: Read::Field(field, |row: &Row| &row.gpu),
    });
    WHICH.into_iter().chain(fields).chain(STATE).collect()
});

const WHICH: [Column<Row>; 7] = [
    usual("time", "Time of the sample, UTC.", |row| {
        Some(time(row.sample_ms))
    }),
    literal(column(
        "time_ms",
        "The same in milliseconds since 1970-01-01 UTC.",
        |row| Some(row.sample_ms.to_string()),
    )),
    literal(usual("index", "NVML index of the GPU.", |row| {
        Some(row.gpu.index.to_string())
    })),
    usual("uuid", "UUID of the GPU.", |row| row.gpu.uuid.clone()),
    usual("name", "Product name of the GPU.", |row| {
        plain(&row.known.as_ref()?.name)
    }),
    column("pci_bus_id", "PCI bus ID.", |row| {
        plain(&row.known.as_ref()?.pci_bus_id)
    }),
    usual("state", "State: ok, asleep, hung, lost or failed.", |row| {
        Some(row.gpu.health.word().to_owned())
    }),
];

const STATE: [Column<Row>; 6] = [
    usual(
        "throttle_reasons",
        "Throttle reasons, space-separated.",
        |row| {
            let reasons = row.gpu.throttle_reasons.value()?;
            Some(reasons.iter().map(word).collect::<Vec<_>>().join(" "))
        },
    ),
    column(
        "conditions",
        "Conditions as sentences; needs a server or --watch.",
        |row| {
            Some(
                row.gpu
                    .conditions
                    .iter()
                    .map(|condition| condition.text.as_str())
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        },
    ),
    literal(usual(
        "process_count",
        "Number of processes on the GPU.",
        |row| Some(row.gpu.process_count()?.to_string()),
    )),
    column(
        "process_users",
        "Users of these processes, space-separated.",
        |row| {
            let mut users: Vec<&str> = all_processes(row)?
                .iter()
                .filter_map(|process| Some(process.user.value()?.as_str()))
                .collect();
            users.sort_unstable();
            users.dedup();
            Some(users.join(" "))
        },
    ),
    literal(column(
        "unlisted_memory_bytes",
        "Device memory in use by processes of other PID namespaces, which are not visible.",
        |row| Some(row.gpu.unlisted_memory_bytes?.to_string()),
    )),
    literal(column(
        "process_memory_bytes",
        "Device memory of these processes, as far as the driver reports it.",
        |row| {
            let bytes = all_processes(row)?
                .iter()
                .filter_map(|process| process.memory_bytes.value());
            Some(rounded(bytes.map(|bytes| *bytes as f64).sum()))
        },
    )),
];

/// `None` where some are left out of the sample, since what they are together is not what they all are.
fn all_processes(row: &Row) -> Option<&[Process]> {
    processes(row).filter(|_| row.gpu.processes_omitted == 0)
}

fn processes(row: &Row) -> Option<&[Process]> {
    row.gpu.processes.value().map(Vec::as_slice)
}
