//! Whether the GPU has joined the fabric of its NVLinks, and how well it is there.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Absent, Cell, at};
use super::super::field::{Section, computed, untitled};
use super::super::row::Row;
use crate::release;

// `nvmlGpuFabricState_t`.
const NOT_STARTED: i128 = 1;
const IN_PROGRESS: i128 = 2;
const COMPLETED: i128 = 3;

/// The words of a condition of two bits, `NVML_GPU_FABRIC_HEALTH_MASK_*`: 0 unknown, 1 it holds, 2 it does not.
const HOLDS: [&str; 2] = ["True", "False"];

/// `NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*`, from 1.
const CONFIGURATIONS: [&str; 8] = [
    "None",
    "Incorrect SystemGuid",
    "Incorrect Chassis Serial Number",
    "No Partition",
    "Insufficient Nvlink Resources",
    "Incompatible GPU Firmware",
    "Invalid Location",
    "GPU State Invalid",
];

pub(super) const SECTIONS: &[Section] = &[untitled(&[
    computed(
        "fabric.state",
        state,
        "How far the GPU has come in joining the fabric.",
    ),
    computed(
        "fabric.status",
        status,
        "Whether joining it went well; only told once it is Completed.",
    ),
    computed(
        "fabric.cliqueId",
        |row| Ok(joined(row, 2)?.to_string()),
        "The number of the clique to which the GPU belongs, within which NVLink reaches.",
    ),
    computed(
        "fabric.clusterUuid",
        cluster,
        "The UUID of the cluster to which the GPU belongs.",
    ),
    computed(
        "fabric.health.summary",
        summary,
        "How well the GPU is in the fabric, in one word.",
    ),
    computed(
        "fabric.health.bandwidth",
        |row| health(row, 0, 0x3, &["Degraded", "Full"]),
        "Whether the GPU has all of its bandwidth there.",
    ),
    computed(
        "fabric.health.route_recovery_in_progress",
        |row| health(row, 2, 0x3, &HOLDS),
        "Whether a route is being restored.",
    ),
    computed(
        "fabric.health.route_unhealthy",
        |row| health(row, 4, 0x3, &HOLDS),
        "Whether restoring a route has failed.",
    ),
    computed(
        "fabric.health.access_timeout_recovery",
        |row| health(row, 6, 0x3, &HOLDS),
        "Whether it recovers from an access that took too long.",
    ),
    computed(
        "fabric.health.incorrect_configuration",
        |row| health(row, 8, 0xF, &CONFIGURATIONS),
        "What is wrong with the fabric's configuration.",
    ),
    computed(
        "fabric.health.partition_assigned",
        |row| health(row, 12, 0x3, &HOLDS),
        "Whether the GPU has its partition of the fabric.",
    )
    .except(release::BRANCH_590),
])];

/// A missing reading of a fabric stands without brackets, whether the GPU has none or is only about to join it.
fn no_reading() -> Absent {
    Absent::word("N/A")
}

/// One of the numbers of [`Q::FabricInfo`].
fn fabric(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    match row.ask(Q::FabricInfo) {
        Err(Code::NOT_SUPPORTED) => Err(no_reading()),
        answer => at(&answer, place),
    }
}

fn state(row: &Row<'_>) -> Cell {
    match fabric(row, 0)? {
        NOT_STARTED => Ok("Not Started".to_owned()),
        IN_PROGRESS => Ok("In Progress".to_owned()),
        COMPLETED => Ok("Completed".to_owned()),
        _ => Err(no_reading()),
    }
}

/// How the joining ended, an `nvmlReturn_t`.
fn outcome(row: &Row<'_>) -> Result<i128, Absent> {
    if fabric(row, 0)? == COMPLETED {
        fabric(row, 1)
    } else {
        Err(no_reading())
    }
}

fn status(row: &Row<'_>) -> Cell {
    Ok(match outcome(row)? {
        0 => "Success",
        3 => "Not Supported",
        4 => "Insufficient Permissions",
        6 => "Not Found",
        7 => "Insufficient Size",
        10 => "Timeout",
        15 => "GPU is lost",
        16 => "GPU requires reset",
        19 => "In use by another client",
        20 => "Insufficient Memory",
        23 => "Insufficient Resources",
        _ => "Unknown Error",
    }
    .to_owned())
}

/// What only a GPU that has joined tells.
fn joined(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    if outcome(row)? == 0 {
        fabric(row, place)
    } else {
        Err(no_reading())
    }
}

fn cluster(row: &Row<'_>) -> Cell {
    let half = |place| joined(row, place).map(|number| number as u64);
    let digits = format!("{:016x}{:016x}", half(5)?, half(6)?);
    Ok([
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ]
    .join("-"))
}

/// `nvmlGpuFabricHealthSummary`: 0 is unknown, and so is every condition then.
fn summary(row: &Row<'_>) -> Cell {
    named(
        fabric(row, 4)?,
        &["Healthy", "Unhealthy", "Limited Capacity"],
    )
}

fn health(row: &Row<'_>, shift: u32, width: i128, words: &[&str]) -> Cell {
    summary(row)?;
    named((fabric(row, 3)? >> shift) & width, words)
}

/// The word for a number, from 1.
fn named(number: i128, words: &[&str]) -> Cell {
    let place = usize::try_from(number - 1).map_err(|_| no_reading())?;
    words
        .get(place)
        .map(|word| (*word).to_owned())
        .ok_or_else(no_reading)
}
