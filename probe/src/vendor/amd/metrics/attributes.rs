//! Decoding of `gpu_metrics` v1.9, a list of attributes that each have a type and a unit.

use std::collections::BTreeMap;

use super::{Field, HEADER, Metrics, MetricsError, Values, Version};
// The tables below use almost all variants.
#[allow(clippy::enum_glob_use)]
use Field::*;

pub(super) const VERSION: Version = Version {
    format: 1,
    content: 9,
};

/// The attribute numbers of fields that describe the whole package. Numbers 40 to 47 describe
/// partitions, and numbers above 48 differ between drivers.
const FIELDS: [(u64, Field); 34] = [
    (0, HotspotTemperature),
    (1, MemoryTemperature),
    (2, SocRegulatorTemperature),
    (3, SocketPower),
    (4, GfxActivity),
    (5, MemoryActivity),
    (6, MaxMemoryBandwidth),
    (7, Energy),
    (8, SystemClock),
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
    (21, MemoryActivitySum),
    (22, PcieBandwidthSum),
    (23, PcieBandwidth),
    (25, PcieReplays),
    (29, XgmiRead),
    (30, XgmiWritten),
    (31, XgmiLinkStatus),
    (32, FirmwareClock),
    (33, GfxClock),
    (34, SocClock),
    (35, VideoClock),
    (37, MemoryClock),
    (38, Partitions),
    (48, HbmTemperature),
];

/// The attribute numbers of fields that describe partitions. Each attribute lists the values of all
/// dies in the package.
const PARTITION_FIELDS: [(u64, Field); 4] = [
    (40, DieActivity),
    (41, JpegActivity),
    (42, VcnActivity),
    (43, DieActivitySum),
];

/// The size of each attribute type in bytes: `u8`, `s8`, `u16`, `s16` and so on.
const WIDTHS: [usize; 8] = [1, 1, 2, 2, 4, 4, 8, 8];

/// Decodes a table. Attributes with unknown numbers are skipped.
///
/// # Errors
/// Returns an error if an attribute has an unknown type, or if the list ends early.
pub(super) fn decode(table: &[u8]) -> Result<Metrics, MetricsError> {
    let mut rest = RemainingBytes(table.get(HEADER..).ok_or(MetricsError::Invalid)?);
    let count = rest.take(4)?;
    let count = u32::from_le_bytes(count.try_into().map_err(|_| MetricsError::Invalid)?);
    let (mut values, mut dies) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..count {
        let encoding = rest.take(8)?;
        let encoding = u64::from_le_bytes(encoding.try_into().map_err(|_| MetricsError::Invalid)?);
        let instances = usize::try_from(encoding & 0x3ff).map_err(|_| MetricsError::Invalid)?;
        let number = encoding >> 10 & 0x3ff;
        let kind = usize::try_from(encoding >> 20 & 0xf).map_err(|_| MetricsError::Invalid)?;
        let width = *WIDTHS.get(kind).ok_or(MetricsError::Invalid)?;
        let bytes = rest.take(instances.checked_mul(width).ok_or(MetricsError::Invalid)?)?;
        let find = |fields: &[(u64, Field)]| {
            fields
                .iter()
                .find_map(|(own, field)| (*own == number).then_some(*field))
        };
        for (known, decoded) in [
            (find(&FIELDS), &mut values),
            (find(&PARTITION_FIELDS), &mut dies),
        ] {
            if let Some(field) = known
                && let Some(read) = Values::new(bytes, width, field.scale())
            {
                decoded.insert(field, read);
            }
        }
    }
    Ok(Metrics {
        version: VERSION,
        values,
        partitions: vec![dies],
    })
}

/// The bytes of a table that have not been decoded yet.
struct RemainingBytes<'a>(&'a [u8]);

impl<'a> RemainingBytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], MetricsError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(MetricsError::Invalid)?;
        self.0 = rest;
        Ok(taken)
    }
}
