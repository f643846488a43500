//! The columns of `gpumon export`: those of GPUs, and beside them those of MIG devices and of the host, which have rows of
//! their own. A number of theirs has a column of its own, so that the sum of a column counts no memory twice.

use std::{borrow::Cow, sync::LazyLock};

use gpumon_history::wanted::DeviceKind;
use gpumon_probe::model::{
    HostSample, Inventory, MigDevice, MigSample, Sample,
    fields::{Field, GPU_FIELDS, HOST_FIELDS},
};

use super::{
    Column, Made, Read,
    field::{plain, rounded, time},
    gpus,
};

/// What tells rows of other devices than GPUs apart, behind what tells those of GPUs apart.
pub(crate) const DEVICE_KEYS: [&str; 2] = ["kind", "parent"];

pub(super) enum Row {
    Gpu(Box<gpus::Row>),
    Mig {
        sample_ms: u64,
        mig: Box<MigSample>,
        known: Option<MigDevice>,
        parent: Option<String>,
    },
    Host {
        sample_ms: u64,
        host: Box<HostSample>,
    },
}

/// Of these kinds: GPUs, MIG devices, the host.
pub(super) fn rows(inventory: &Inventory, sample: &Sample, kinds: &[DeviceKind]) -> Vec<Row> {
    let sample_ms = sample.at_ms;
    let known = |uuid: &str| {
        inventory
            .gpus
            .iter()
            .flat_map(|gpu| &gpu.mig_devices)
            .find(|mig| mig.uuid == uuid)
    };
    let of_kind = |kind: &DeviceKind| -> Vec<Row> {
        match kind {
            DeviceKind::Gpu => gpus::rows(inventory, sample)
                .into_iter()
                .map(|row| Row::Gpu(Box::new(row)))
                .collect(),
            DeviceKind::Mig => {
                let of_gpus = sample.gpus.iter().flat_map(|gpu| {
                    let devices = gpu.mig_devices.value().into_iter().flatten();
                    devices.map(|mig| (gpu.uuid.clone(), mig))
                });
                let row = |(parent, mig): (Option<String>, &MigSample)| {
                    let known = known(&mig.uuid).cloned();
                    Row::Mig {
                        sample_ms,
                        mig: Box::new(mig.clone()),
                        known,
                        parent,
                    }
                };
                of_gpus.map(row).collect()
            }
            DeviceKind::Host => vec![Row::Host {
                sample_ms,
                host: Box::new(sample.host.clone()),
            }],
        }
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// In the order in which they are shown.
pub(super) static COLUMNS: LazyLock<Vec<Column<Row>>> = LazyLock::new(|| {
    let of_gpus = gpus::COLUMNS.iter().map(of_gpu);
    let keys = [
        (
            "kind",
            "Whose the row is: gpu, mig or host.",
            (|row| Some(row.kind())) as fn(&Row) -> Option<String>,
        ),
        ("parent", "UUID of the GPU of a MIG device.", Row::parent),
    ];
    let keys = keys.map(|(name, help, read)| Column {
        beside: Some(DeviceKind::Gpu),
        ..super::column(name, help, read)
    });
    let of_mig = DeviceKind::Mig.metrics().iter().map(|metric| {
        let field = &GPU_FIELDS[metric.place];
        let read = move |row: &Row| match row {
            Row::Mig { mig, .. } => field.mig?.value(mig).map(rounded),
            _ => None,
        };
        beside(&metric.id, field, DeviceKind::Mig, Box::new(read))
    });
    let of_host = HOST_FIELDS.iter().map(|field| {
        let read = move |row: &Row| match row {
            Row::Host { host, .. } => field.access.value(host).map(rounded),
            _ => None,
        };
        beside(field.id, field, DeviceKind::Host, Box::new(read))
    });
    of_gpus.chain(keys).chain(of_mig).chain(of_host).collect()
});

fn beside<S>(id: &str, field: &'static Field<S>, kind: DeviceKind, read: Made<Row>) -> Column<Row> {
    let (name, beside) = (Cow::Owned(id.replace('.', "_")), Some(kind));
    Column {
        name,
        help: field.help,
        usual: false,
        is_literal: true,
        beside,
        read: Read::Made(read),
    }
}

/// A column of GPUs. What tells them apart tells of all rows.
fn of_gpu(column: &'static Column<gpus::Row>) -> Column<Row> {
    let read = move |row: &Row| match row {
        Row::Gpu(gpu) => column.read.text(gpu),
        other => other.key(&column.name),
    };
    let Column {
        name,
        help,
        usual,
        is_literal,
        beside,
        ..
    } = column;
    let (name, read) = (Cow::Borrowed(&**name), Read::Made(Box::new(read)));
    Column {
        name,
        help,
        usual: *usual,
        is_literal: *is_literal,
        beside: *beside,
        read,
    }
}

impl Row {
    fn kind(&self) -> String {
        let kind = match self {
            Self::Gpu(_) => DeviceKind::Gpu,
            Self::Mig { .. } => DeviceKind::Mig,
            Self::Host { .. } => DeviceKind::Host,
        };
        kind.word().to_owned()
    }

    fn parent(&self) -> Option<String> {
        match self {
            Self::Mig { parent, .. } => parent.clone(),
            _ => None,
        }
    }

    fn key(&self, name: &str) -> Option<String> {
        match (self, name) {
            (Self::Mig { sample_ms, .. } | Self::Host { sample_ms, .. }, "time") => {
                Some(time(*sample_ms))
            }
            (Self::Mig { sample_ms, .. } | Self::Host { sample_ms, .. }, "time_ms") => {
                Some(sample_ms.to_string())
            }
            (Self::Mig { known, .. }, "index") => Some(known.as_ref()?.index.to_string()),
            (Self::Mig { mig, .. }, "uuid") => Some(mig.uuid.clone()),
            (Self::Mig { known, .. }, "name") => plain(&known.as_ref()?.profile),
            _ => None,
        }
    }
}
