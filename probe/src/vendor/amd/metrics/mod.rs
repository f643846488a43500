//! A decoder for `gpu_metrics`, the binary table that an AMD GPU's power management firmware fills
//! in.
//!
//! Source: `struct gpu_metrics_v*` in the kernel's `kgd_pp_interface.h`. If the hardware lacks a
//! field, the driver sets all bits of the field.

mod layout;

use std::collections::BTreeMap;

#[allow(
    clippy::enum_glob_use,
    reason = "the attribute tables use almost all variants"
)]
use Field::*;
use layout::{LAYOUTS, Layout, Row};

pub(super) use layout::Field;

/// The size of the header in bytes: `u16` size, `u8` format and `u8` content.
const HEADER: usize = 4;

/// The maximum number of partitions per GPU.
const MAX_PARTITIONS: usize = 8;

/// A table's version, which consists of a format revision and a content revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) format: u8,
    pub(super) content: u8,
}

/// A decoded `gpu_metrics` table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metrics {
    pub(super) version: Version,
    values: BTreeMap<Field, Values>,
    /// The values of each partition.
    partitions: Vec<BTreeMap<Field, Values>>,
}

/// A field's raw elements, and the factor that converts them.
#[derive(Debug, Clone, PartialEq)]
struct Values {
    raw: Vec<Option<u64>>,
    scale: f64,
}

/// The reason why a table cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum MetricsError {
    /// The file is empty because the driver provides no table for this GPU.
    #[error("the driver has no metrics for this GPU")]
    Empty,
    /// The file is shorter than the size in the table's header.
    #[error("gpu_metrics has only {length} of {size} bytes")]
    Truncated { length: usize, size: usize },
    /// The table has a layout that gpumon does not know.
    #[error(
        "gpu_metrics v{}.{} with {size} bytes is unknown to this version of gpumon",
        version.format, version.content
    )]
    Unknown { version: Version, size: usize },
    /// The table's list of attributes is inconsistent.
    #[error("gpu_metrics has an invalid list of attributes")]
    Invalid,
}

impl Metrics {
    /// Returns `true` if the table belongs to a GPU that is integrated into the processor.
    pub(super) fn is_apu_table(&self) -> bool {
        matches!(self.version.format, 2 | 3)
    }

    /// Decodes the content of a `gpu_metrics` file. The file may be longer than the table it
    /// contains.
    ///
    /// # Errors
    /// Returns an error if the table is incomplete or its layout is unknown.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, MetricsError> {
        if bytes.is_empty() {
            return Err(MetricsError::Empty);
        }
        let &[low, high, format, content, ..] = bytes else {
            let length = bytes.len();
            return Err(MetricsError::Truncated {
                length,
                size: HEADER,
            });
        };
        let (size, version) = (
            usize::from(u16::from_le_bytes([low, high])),
            Version { format, content },
        );
        let length = bytes.len();
        let table = bytes
            .get(..size)
            .ok_or(MetricsError::Truncated { length, size })?;
        if version == ATTRIBUTE_VERSION {
            return decode_attributes(table);
        }
        let known = LAYOUTS
            .iter()
            .find(|layout| (layout.format, layout.content, layout.size) == (format, content, size));
        let layout = known.ok_or(MetricsError::Unknown { version, size })?;
        Ok(Self::from_layout(table, version, layout))
    }

    fn from_layout(table: &[u8], version: Version, layout: &Layout) -> Self {
        let read_all = |rows: &[Row], start: usize| {
            let read = |row: &Row| Some((row.field, row.read(table, start)?));
            rows.iter().filter_map(read).collect::<BTreeMap<_, _>>()
        };
        let rows = layout.rows.iter();
        let values = rows.flat_map(|rows| read_all(rows, 0)).collect();
        let partitions = layout.partitions.as_ref().map_or(Vec::new(), |block| {
            let starts = (0..MAX_PARTITIONS).map(|number| {
                block
                    .offset
                    .saturating_add(block.stride.saturating_mul(number))
            });
            starts.map(|start| read_all(block.rows, start)).collect()
        });
        Self {
            version,
            values,
            partitions,
        }
    }

    /// Returns a field's value in the unit documented at [`Field`], or `None` if the GPU lacks the
    /// field. If the field is an array, returns the first element that is present.
    pub(super) fn get(&self, field: Field) -> Option<f64> {
        self.get_all(field).into_iter().flatten().next()
    }

    /// Returns all elements of a field, or an empty vector if the table lacks the field.
    pub(super) fn get_all(&self, field: Field) -> Vec<Option<f64>> {
        self.values
            .get(&field)
            .map_or(Vec::new(), Values::scale_all)
    }

    /// Returns a field's raw number. Unlike the scaled value, it is exact for large counters.
    pub(super) fn get_raw(&self, field: Field) -> Option<u64> {
        self.values
            .get(&field)?
            .raw
            .iter()
            .flatten()
            .copied()
            .next()
    }

    /// Returns the number of partition blocks in the table.
    pub(super) fn partition_block_count(&self) -> usize {
        self.partitions.len()
    }

    /// Returns the elements of `field` for one partition.
    pub(super) fn get_partition(&self, partition: usize, field: Field) -> Vec<Option<f64>> {
        let values = self.partitions.get(partition);
        values
            .and_then(|values| values.get(&field))
            .map_or(Vec::new(), Values::scale_all)
    }
}

impl Values {
    // Converting a 64-bit counter to `f64` rounds it to 53 bits.
    fn scale_all(&self) -> Vec<Option<f64>> {
        let scale = |raw: u64| {
            if self.scale < 1.0 {
                // Dividing is more precise than multiplying: 3401 / 1000 is 3.401, but 3401 * 0.001
                // is slightly more.
                raw as f64 / (1.0 / self.scale).round()
            } else {
                raw as f64 * self.scale
            }
        };
        self.raw.iter().map(|raw| raw.map(scale)).collect()
    }
}

impl Row {
    /// Returns the row's elements in `table`, or `None` if no element is present or the table is
    /// too short.
    fn read(&self, table: &[u8], start: usize) -> Option<Values> {
        let at = start.checked_add(self.offset)?;
        let length = self.width.checked_mul(self.count)?;
        let bytes = table.get(at..at.checked_add(length)?)?;
        Values::new(bytes, self.width, self.field.scale() * self.factor)
    }
}

impl Values {
    /// Decodes numbers of `width` bytes each. Returns `None` if no number is present.
    fn new(bytes: &[u8], width: usize, scale: f64) -> Option<Self> {
        let raw: Vec<_> = bytes
            .chunks_exact(width)
            .map(decode_unless_missing)
            .collect();
        raw.iter()
            .any(Option::is_some)
            .then_some(Self { raw, scale })
    }
}

/// Decodes a number of up to eight bytes. Returns `None` if all bits are set, which means that the
/// value is missing.
fn decode_unless_missing(bytes: &[u8]) -> Option<u64> {
    if bytes.iter().all(|byte| *byte == u8::MAX) {
        return None;
    }
    let mut number = [0; 8];
    number.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(number))
}

// Tables of version 1.9 are lists of attributes. Each attribute has a type and a unit.

const ATTRIBUTE_VERSION: Version = Version {
    format: 1,
    content: 9,
};

/// The attribute numbers of fields that describe the whole package. Numbers 40 to 47 describe
/// partitions, and numbers above 48 differ between drivers.
const ATTRIBUTE_FIELDS: [(u64, Field); 27] = [
    (0, HotspotTemperature),
    (1, MemoryTemperature),
    (3, SocketPower),
    (4, GfxActivity),
    (5, MemoryActivity),
    (7, Energy),
    (9, Samples),
    (10, ProchotSamples),
    (11, PowerSamples),
    (12, SocketThermalSamples),
    (13, RegulatorThermalSamples),
    (14, MemoryThermalSamples),
    (16, PcieWidth),
    (17, PcieSpeed),
    (18, XgmiWidth),
    (19, XgmiSpeed),
    (20, GfxActivitySum),
    (25, PcieReplays),
    (29, XgmiRead),
    (30, XgmiWritten),
    (31, XgmiLinkStatus),
    (33, GfxClock),
    (34, SocClock),
    (35, VideoClock),
    (37, MemoryClock),
    (38, Partitions),
    (48, HbmTemperature),
];

/// The attribute numbers of fields that describe partitions. Each such attribute is a list with the
/// values of all dies in the package.
const PARTITION_ATTRIBUTE_FIELDS: [(u64, Field); 3] =
    [(40, DieActivity), (41, JpegActivity), (42, VcnActivity)];

/// The size of each attribute type in bytes: `u8`, `s8`, `u16`, `s16` and so on.
const ATTRIBUTE_WIDTHS: [usize; 8] = [1, 1, 2, 2, 4, 4, 8, 8];

/// Decodes a list of attributes. Attributes with unknown numbers are skipped.
///
/// # Errors
/// Returns an error if an attribute has an unknown type, or if the list ends early.
fn decode_attributes(table: &[u8]) -> Result<Metrics, MetricsError> {
    let mut rest = table.get(HEADER..).ok_or(MetricsError::Invalid)?;
    let mut take = |length: usize| rest.split_off(..length).ok_or(MetricsError::Invalid);
    let count = take(4)?;
    let count = u32::from_le_bytes(count.try_into().map_err(|_| MetricsError::Invalid)?);
    let (mut values, mut dies) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..count {
        let encoding = take(8)?;
        let encoding = u64::from_le_bytes(encoding.try_into().map_err(|_| MetricsError::Invalid)?);
        let instances = usize::try_from(encoding & 0x3ff).map_err(|_| MetricsError::Invalid)?;
        let number = encoding >> 10 & 0x3ff;
        let kind = usize::try_from(encoding >> 20 & 0xf).map_err(|_| MetricsError::Invalid)?;
        let width = *ATTRIBUTE_WIDTHS.get(kind).ok_or(MetricsError::Invalid)?;
        let bytes = take(instances.checked_mul(width).ok_or(MetricsError::Invalid)?)?;
        let find = |fields: &[(u64, Field)]| {
            fields
                .iter()
                .find_map(|(own, field)| (*own == number).then_some(*field))
        };
        for (known, decoded) in [
            (find(&ATTRIBUTE_FIELDS), &mut values),
            (find(&PARTITION_ATTRIBUTE_FIELDS), &mut dies),
        ] {
            if let Some(field) = known
                && let Some(read) = Values::new(bytes, width, field.scale())
            {
                decoded.insert(field, read);
            }
        }
    }
    Ok(Metrics {
        version: ATTRIBUTE_VERSION,
        values,
        partitions: vec![dies],
    })
}

#[cfg(test)]
mod tests;
