//! The layouts of the `gpu_metrics` versions in which each field has a fixed offset.

// The tables below use almost all variants.
#[allow(clippy::enum_glob_use)]
use Field::*;

/// A field of the `gpu_metrics` table. The comments state the units in which
/// [`super::Metrics::get`] returns values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    /// The temperature at the edge of the chip, in °C.
    EdgeTemperature,
    /// The temperature of the chip's hottest spot, in °C.
    HotspotTemperature,
    /// The memory temperature, in °C.
    MemoryTemperature,
    /// The temperature of each stack of high-bandwidth memory, in °C.
    HbmTemperature,
    /// The temperature of an APU's graphics part, in °C.
    GfxTemperature,
    /// The utilization of the graphics engine, in percent.
    GfxActivity,
    /// The utilization of the memory controllers, in percent.
    MemoryActivity,
    /// The utilization of the media engines, in percent.
    MediaActivity,
    /// The utilization of each video engine, in percent.
    VcnActivity,
    /// The utilization of each JPEG engine, in percent.
    JpegActivity,
    /// The power of the whole package, in watts.
    SocketPower,
    /// The energy counter, in a unit that depends on the product.
    Energy,
    /// The number of samples that the firmware has taken.
    Samples,
    /// The number of samples in which the PROCHOT signal reduced the clocks.
    ProchotSamples,
    /// The number of samples in which the package's power reduced the clocks.
    PowerSamples,
    /// The number of samples in which the package's temperature reduced the clocks.
    SocketThermalSamples,
    /// The number of samples in which a voltage regulator's temperature reduced the clocks.
    RegulatorThermalSamples,
    /// The number of samples in which the memory's temperature reduced the clocks.
    MemoryThermalSamples,
    /// The average graphics clock, in MHz.
    AverageGfxClock,
    /// The average `SoC` clock, in MHz.
    AverageSocClock,
    /// The average memory clock, in MHz.
    AverageMemoryClock,
    /// The average fabric clock, in MHz.
    AverageFabricClock,
    /// The average video clock, in MHz.
    AverageVideoClock,
    /// The graphics clock of each die, in MHz.
    GfxClock,
    /// The `SoC` clock of each die, in MHz.
    SocClock,
    /// The memory clock, in MHz.
    MemoryClock,
    /// The fabric clock, in MHz.
    FabricClock,
    /// The clock of each video engine, in MHz.
    VideoClock,
    /// The reasons for reduced clocks, as a bit mask. The meaning of each bit depends on the
    /// product.
    ThrottleStatus,
    /// The reasons for reduced clocks, as a bit mask with the same meaning on all products.
    IndependentThrottleStatus,
    /// The number of PCIe lanes.
    PcieWidth,
    /// The speed of each PCIe lane, in GT/s.
    PcieSpeed,
    /// The utilization of the graphics engine, summed over the firmware's samples. Each sample adds
    /// at most 1.
    GfxActivitySum,
    /// The number of PCIe packets that were retransmitted.
    PcieReplays,
    /// The number of lanes of an XGMI link.
    XgmiWidth,
    /// The speed of each XGMI lane, in Gb/s.
    XgmiSpeed,
    /// The bytes read over each link since the driver was loaded.
    XgmiRead,
    /// The bytes written over each link since the driver was loaded.
    XgmiWritten,
    /// The state of each link: 1 if it is up, 0 if it is down.
    XgmiLinkStatus,
    /// The number of partitions.
    Partitions,
    /// The utilization of each die in a partition, in percent.
    DieActivity,
}

impl Field {
    /// Returns the factor that converts the unit used in most tables to the unit of
    /// [`super::Metrics::get`].
    pub(super) fn scale(self) -> f64 {
        match self {
            PcieSpeed => 0.1,
            XgmiRead | XgmiWritten => 1024.0,
            _ => 1.0,
        }
    }
}

/// A field and its position in the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) field: Field,
    pub(super) offset: usize,
    /// The size of one element, in bytes.
    pub(super) width: usize,
    pub(super) count: usize,
    /// The factor that converts the unit used in this table to the unit used in most tables.
    pub(super) factor: f64,
}

/// The table layout for one version and size.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) format: u8,
    pub(super) content: u8,
    pub(super) size: usize,
    pub(super) rows: &'static [&'static [Row]],
    pub(super) partitions: Option<PartitionBlock>,
}

/// The block of values that the table repeats for each partition.
#[derive(Debug)]
pub(super) struct PartitionBlock {
    pub(super) offset: usize,
    pub(super) stride: usize,
    pub(super) rows: &'static [Row],
}

/// The element sizes in bytes, named after the kernel's types.
const U8: usize = 1;
const U16: usize = 2;
const U32: usize = 4;
const U64: usize = 8;

/// The factor for values in hundredths of a degree or of a percent.
const CENTI: f64 = 0.01;
/// The factor for values in thousandths of a watt.
const MILLI: f64 = 0.001;

/// Defines rows. Each row states the field, its offset, the element size, the number of elements,
/// and optionally a factor.
macro_rules! rows {
    ($($field:ident $offset:literal $width:ident $count:literal $(* $factor:ident)?;)+) => {
        &[$(Row {
            field: $field,
            offset: $offset,
            width: $width,
            count: $count,
            factor: 1.0 $(* $factor)?,
        }),+]
    };
}

/// The clock fields in tables for discrete GPUs. Their offsets are the same in all versions up to
/// 1.3.
const CLOCKS_V1: &[Row] = rows! {
    AverageGfxClock 40 U16 1;
    AverageSocClock 42 U16 1;
    AverageMemoryClock 44 U16 1;
    AverageVideoClock 46 U16 1;
    GfxClock 54 U16 1;
    SocClock 56 U16 1;
    MemoryClock 58 U16 1;
    VideoClock 60 U16 1;
    ThrottleStatus 68 U32 1;
};

const V1_0: &[Row] = rows! {
    EdgeTemperature 16 U16 1;
    HotspotTemperature 18 U16 1;
    MemoryTemperature 20 U16 1;
    GfxActivity 28 U16 1;
    MemoryActivity 30 U16 1;
    MediaActivity 32 U16 1;
    SocketPower 34 U16 1;
    Energy 36 U32 1;
    PcieWidth 74 U8 1;
    PcieSpeed 75 U8 1;
};

const V1_1: &[Row] = rows! {
    EdgeTemperature 4 U16 1;
    HotspotTemperature 6 U16 1;
    MemoryTemperature 8 U16 1;
    GfxActivity 16 U16 1;
    MemoryActivity 18 U16 1;
    MediaActivity 20 U16 1;
    SocketPower 22 U16 1;
    Energy 24 U64 1;
    PcieWidth 74 U16 1;
    PcieSpeed 76 U16 1;
    GfxActivitySum 80 U32 1;
    HbmTemperature 88 U16 4;
};

const V1_3: &[Row] = rows! { IndependentThrottleStatus 112 U64 1; };

/// The first fields in the tables of MI300 and later GPUs.
const MI300: &[Row] = rows! {
    HotspotTemperature 4 U16 1;
    MemoryTemperature 6 U16 1;
    SocketPower 10 U16 1;
    GfxActivity 12 U16 1;
    MemoryActivity 14 U16 1;
};

const V1_4: &[Row] = rows! {
    VcnActivity 16 U16 4;
    Energy 24 U64 1;
    ThrottleStatus 40 U32 1;
    PcieWidth 48 U16 1;
    PcieSpeed 50 U16 1;
    XgmiWidth 52 U16 1;
    XgmiSpeed 54 U16 1;
    GfxActivitySum 56 U32 1;
    PcieReplays 88 U64 1;
    XgmiRead 104 U64 8;
    XgmiWritten 168 U64 8;
    GfxClock 240 U16 8;
    SocClock 256 U16 4;
    VideoClock 264 U16 4;
    MemoryClock 280 U16 1;
};

const V1_5: &[Row] = rows! {
    VcnActivity 16 U16 4;
    JpegActivity 24 U16 32;
    Energy 88 U64 1;
    ThrottleStatus 104 U32 1;
    PcieWidth 112 U16 1;
    PcieSpeed 114 U16 1;
    XgmiWidth 116 U16 1;
    XgmiSpeed 118 U16 1;
    GfxActivitySum 120 U32 1;
    PcieReplays 152 U64 1;
    XgmiRead 176 U64 8;
    XgmiWritten 240 U64 8;
    GfxClock 312 U16 8;
    SocClock 328 U16 4;
    VideoClock 336 U16 4;
    MemoryClock 352 U16 1;
};

const V1_6: &[Row] = rows! {
    Energy 16 U64 1;
    Samples 32 U32 1;
    ProchotSamples 36 U32 1;
    PowerSamples 40 U32 1;
    SocketThermalSamples 44 U32 1;
    RegulatorThermalSamples 48 U32 1;
    MemoryThermalSamples 52 U32 1;
    PcieWidth 60 U16 1;
    PcieSpeed 62 U16 1;
    XgmiWidth 64 U16 1;
    XgmiSpeed 66 U16 1;
    GfxActivitySum 68 U32 1;
    PcieReplays 104 U64 1;
    XgmiRead 128 U64 8;
    XgmiWritten 192 U64 8;
    GfxClock 264 U16 8;
    SocClock 280 U16 4;
    VideoClock 288 U16 4;
    MemoryClock 304 U16 1;
    Partitions 306 U16 1;
};

const V1_7: &[Row] = rows! {
    Energy 24 U64 1;
    Samples 40 U32 1;
    ProchotSamples 44 U32 1;
    PowerSamples 48 U32 1;
    SocketThermalSamples 52 U32 1;
    RegulatorThermalSamples 56 U32 1;
    MemoryThermalSamples 60 U32 1;
    PcieWidth 68 U16 1;
    PcieSpeed 70 U16 1;
    XgmiWidth 72 U16 1;
    XgmiSpeed 74 U16 1;
    GfxActivitySum 76 U32 1;
    PcieReplays 112 U64 1;
    XgmiRead 136 U64 8;
    XgmiWritten 200 U64 8;
    XgmiLinkStatus 264 U16 8;
    GfxClock 296 U16 8;
    SocClock 312 U16 4;
    VideoClock 320 U16 4;
    MemoryClock 336 U16 1;
    Partitions 338 U16 1;
};

/// The fields of one partition, in versions up to 1.7.
const PARTITION_V1_6: &[Row] = rows! {
    DieActivity 0 U32 8;
    JpegActivity 32 U16 32;
    VcnActivity 96 U16 4;
};

const PARTITION_V1_8: &[Row] = rows! {
    DieActivity 0 U32 8;
    JpegActivity 32 U16 40;
    VcnActivity 112 U16 4;
};

const V2_0: &[Row] = rows! {
    GfxTemperature 16 U16 1 * CENTI;
    GfxActivity 40 U16 1 * CENTI;
    MediaActivity 42 U16 1 * CENTI;
    SocketPower 44 U16 1 * MILLI;
    AverageGfxClock 68 U16 1;
    AverageSocClock 70 U16 1;
    AverageMemoryClock 72 U16 1;
    AverageFabricClock 74 U16 1;
    AverageVideoClock 76 U16 1;
    GfxClock 80 U16 1;
    SocClock 82 U16 1;
    MemoryClock 84 U16 1;
    FabricClock 86 U16 1;
    VideoClock 88 U16 1;
    ThrottleStatus 112 U32 1;
};

const V2_1: &[Row] = rows! {
    GfxTemperature 4 U16 1 * CENTI;
    GfxActivity 28 U16 1 * CENTI;
    MediaActivity 30 U16 1 * CENTI;
    SocketPower 40 U16 1 * MILLI;
    AverageGfxClock 64 U16 1;
    AverageSocClock 66 U16 1;
    AverageMemoryClock 68 U16 1;
    AverageFabricClock 70 U16 1;
    AverageVideoClock 72 U16 1;
    GfxClock 76 U16 1;
    SocClock 78 U16 1;
    MemoryClock 80 U16 1;
    FabricClock 82 U16 1;
    VideoClock 84 U16 1;
    ThrottleStatus 108 U32 1;
};

const V2_2: &[Row] = rows! { IndependentThrottleStatus 120 U64 1; };

const V3_0: &[Row] = rows! {
    GfxTemperature 4 U16 1 * CENTI;
    GfxActivity 42 U16 1;
    MediaActivity 44 U16 1;
    SocketPower 112 U32 1 * MILLI;
    AverageGfxClock 174 U16 1;
    AverageSocClock 176 U16 1;
    AverageFabricClock 182 U16 1;
    AverageVideoClock 184 U16 1;
    AverageMemoryClock 186 U16 1;
};

/// Returns the layout of a table without partitions.
const fn make_layout(
    format: u8,
    content: u8,
    size: usize,
    rows: &'static [&'static [Row]],
) -> Layout {
    Layout {
        format,
        content,
        size,
        rows,
        partitions: None,
    }
}

/// All known layouts. A table with a known version but an unexpected size comes from a preliminary
/// driver with different offsets, so it is rejected.
pub(super) static LAYOUTS: [Layout; 15] = [
    make_layout(1, 0, 80, &[V1_0, CLOCKS_V1]),
    make_layout(1, 1, 96, &[V1_1, CLOCKS_V1]),
    make_layout(1, 2, 104, &[V1_1, CLOCKS_V1]),
    make_layout(1, 3, 120, &[V1_1, CLOCKS_V1, V1_3]),
    make_layout(1, 4, 288, &[MI300, V1_4]),
    make_layout(1, 5, 360, &[MI300, V1_5]),
    Layout {
        partitions: Some(PartitionBlock {
            offset: 312,
            stride: 168,
            rows: PARTITION_V1_6,
        }),
        ..make_layout(1, 6, 1664, &[MI300, V1_6])
    },
    Layout {
        partitions: Some(PartitionBlock {
            offset: 344,
            stride: 232,
            rows: PARTITION_V1_6,
        }),
        ..make_layout(1, 7, 2208, &[MI300, V1_7])
    },
    Layout {
        partitions: Some(PartitionBlock {
            offset: 344,
            stride: 440,
            rows: PARTITION_V1_8,
        }),
        ..make_layout(1, 8, 3872, &[MI300, V1_7])
    },
    make_layout(2, 0, 120, &[V2_0]),
    make_layout(2, 1, 120, &[V2_1]),
    make_layout(2, 2, 128, &[V2_1, V2_2]),
    make_layout(2, 3, 152, &[V2_1, V2_2]),
    make_layout(2, 4, 168, &[V2_1, V2_2]),
    make_layout(3, 0, 264, &[V3_0]),
];
