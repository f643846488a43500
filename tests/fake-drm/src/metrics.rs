//! An encoder for `gpu_metrics`, the table that the firmware of AMD GPUs provides.
//!
//! Source: `struct gpu_metrics_v*` in the kernel's `kgd_pp_interface.h`. The fields have the names
//! in that file, and the offsets are those of a 64-bit compiler.

/// A table of metrics. All bits of a field are 1 until the field is set, which means that its value
/// is missing.
#[derive(Debug, Clone)]
pub struct MetricsTable {
    layout: &'static Layout,
    bytes: Vec<u8>,
}

/// A field: its name, its offset, the size of one element in bytes, and the number of elements. In
/// a list of attributes, the second value is the number of the attribute instead of the offset.
type Field = (&'static str, usize, usize, usize);

#[derive(Debug)]
struct Layout {
    format: u8,
    content: u8,
    /// The size of the table in bytes. If the table has a list of attributes, this is the size
    /// without the attributes.
    size: usize,
    fields: &'static [&'static [Field]],
    /// The blocks of the partitions: the offset of the first block, the size of a block, and the
    /// fields in a block.
    partitions: Option<(usize, usize, &'static [Field])>,
}

impl MetricsTable {
    /// Creates an empty table of version 1.3, 1.6, 1.8, 1.9, 2.1 or 3.0.
    pub fn new(format: u8, content: u8) -> Self {
        let mut layouts = LAYOUTS.iter();
        let layout = layouts.find(|own| (own.format, own.content) == (format, content));
        let layout = layout.expect("the encoder must support this version");
        let mut bytes = vec![0xff; layout.size];
        bytes[2..4].copy_from_slice(&[format, content]);
        let mut table = Self { layout, bytes };
        if table.is_list() {
            table.bytes[4..8].fill(0);
        }
        table.update_size_field();
        table
    }

    /// Sets the first elements of a field.
    #[must_use]
    pub fn with_field(mut self, name: &str, values: &[u64]) -> Self {
        let mut fields = self.layout.fields.iter().copied().flatten();
        let field = *fields.find(|field| field.0 == name).expect(name);
        if self.is_list() {
            self.push_attribute(field, values);
        } else {
            self.write_values(0, field, values);
        }
        self
    }

    /// Sets the first elements of a field in a partition's block.
    #[must_use]
    pub fn with_partition(mut self, number: usize, name: &str, values: &[u64]) -> Self {
        let (offset, size, fields) = self
            .layout
            .partitions
            .expect("this version must have partitions");
        let field = *fields.iter().find(|field| field.0 == name).expect(name);
        self.write_values(offset + number * size, field, values);
        self
    }

    /// Returns the content of the file.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn is_list(&self) -> bool {
        self.layout.content == 9
    }

    fn write_values(&mut self, start: usize, field: Field, values: &[u64]) {
        let (name, offset, width, count) = field;
        assert!(values.len() <= count, "{name} has only {count} elements");
        for (number, value) in values.iter().enumerate() {
            let at = start + offset + number * width;
            self.bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }

    fn push_attribute(&mut self, (_, id, width, _): Field, values: &[u64]) {
        let kind = match width {
            2 => 2,
            4 => 4,
            _ => 6_u64,
        };
        let encoding = values.len() as u64 | (id as u64) << 10 | kind << 20;
        self.bytes.extend(encoding.to_le_bytes());
        for value in values {
            self.bytes.extend(&value.to_le_bytes()[..width]);
        }
        self.bytes[4] += 1;
        self.update_size_field();
    }

    fn update_size_field(&mut self) {
        let size = self.bytes.len() as u16;
        self.bytes[..2].copy_from_slice(&size.to_le_bytes());
    }
}

/// The fields for Radeon, MI100 and MI200.
const V1_3: &[Field] = &[
    ("temperature_edge", 4, 2, 1),
    ("temperature_hotspot", 6, 2, 1),
    ("temperature_mem", 8, 2, 1),
    ("average_gfx_activity", 16, 2, 1),
    ("average_umc_activity", 18, 2, 1),
    ("average_mm_activity", 20, 2, 1),
    ("average_socket_power", 22, 2, 1),
    ("energy_accumulator", 24, 8, 1),
    ("system_clock_counter", 32, 8, 1),
    ("average_gfxclk_frequency", 40, 2, 1),
    ("average_socclk_frequency", 42, 2, 1),
    ("average_uclk_frequency", 44, 2, 1),
    ("current_gfxclk", 54, 2, 1),
    ("current_socclk", 56, 2, 1),
    ("current_uclk", 58, 2, 1),
    ("current_vclk0", 60, 2, 1),
    ("throttle_status", 68, 4, 1),
    ("current_fan_speed", 72, 2, 1),
    ("pcie_link_width", 74, 2, 1),
    ("pcie_link_speed", 76, 2, 1),
    ("gfx_activity_acc", 80, 4, 1),
    ("mem_activity_acc", 84, 4, 1),
    ("temperature_hbm", 88, 2, 4),
    ("firmware_timestamp", 96, 8, 1),
    ("indep_throttle_status", 112, 8, 1),
];

/// The first fields in all tables for MI300.
const MI300: &[Field] = &[
    ("temperature_hotspot", 4, 2, 1),
    ("temperature_mem", 6, 2, 1),
    ("temperature_vrsoc", 8, 2, 1),
    ("curr_socket_power", 10, 2, 1),
    ("average_gfx_activity", 12, 2, 1),
    ("average_umc_activity", 14, 2, 1),
];

const V1_6: &[Field] = &[
    ("energy_accumulator", 16, 8, 1),
    ("system_clock_counter", 24, 8, 1),
    ("accumulation_counter", 32, 4, 1),
    ("prochot_residency_acc", 36, 4, 1),
    ("ppt_residency_acc", 40, 4, 1),
    ("socket_thm_residency_acc", 44, 4, 1),
    ("vr_thm_residency_acc", 48, 4, 1),
    ("hbm_thm_residency_acc", 52, 4, 1),
    ("pcie_link_width", 60, 2, 1),
    ("pcie_link_speed", 62, 2, 1),
    ("xgmi_link_width", 64, 2, 1),
    ("xgmi_link_speed", 66, 2, 1),
    ("gfx_activity_acc", 68, 4, 1),
    ("pcie_replay_count_acc", 104, 8, 1),
    ("xgmi_read_data_acc", 128, 8, 8),
    ("xgmi_write_data_acc", 192, 8, 8),
    ("current_gfxclk", 264, 2, 8),
    ("current_socclk", 280, 2, 4),
    ("current_vclk0", 288, 2, 4),
    ("current_uclk", 304, 2, 1),
    ("num_partition", 306, 2, 1),
];

const V1_8: &[Field] = &[
    ("energy_accumulator", 24, 8, 1),
    ("system_clock_counter", 32, 8, 1),
    ("accumulation_counter", 40, 4, 1),
    ("prochot_residency_acc", 44, 4, 1),
    ("ppt_residency_acc", 48, 4, 1),
    ("socket_thm_residency_acc", 52, 4, 1),
    ("vr_thm_residency_acc", 56, 4, 1),
    ("hbm_thm_residency_acc", 60, 4, 1),
    ("pcie_link_width", 68, 2, 1),
    ("pcie_link_speed", 70, 2, 1),
    ("xgmi_link_width", 72, 2, 1),
    ("xgmi_link_speed", 74, 2, 1),
    ("gfx_activity_acc", 76, 4, 1),
    ("pcie_replay_count_acc", 112, 8, 1),
    ("xgmi_read_data_acc", 136, 8, 8),
    ("xgmi_write_data_acc", 200, 8, 8),
    ("xgmi_link_status", 264, 2, 8),
    ("current_gfxclk", 296, 2, 8),
    ("current_socclk", 312, 2, 4),
    ("current_vclk0", 320, 2, 4),
    ("current_uclk", 336, 2, 1),
    ("num_partition", 338, 2, 1),
];

const PARTITION_V1_6: &[Field] = &[
    ("gfx_busy_inst", 0, 4, 8),
    ("jpeg_busy", 32, 2, 32),
    ("vcn_busy", 96, 2, 4),
];

const PARTITION_V1_8: &[Field] = &[
    ("gfx_busy_inst", 0, 4, 8),
    ("jpeg_busy", 32, 2, 40),
    ("vcn_busy", 112, 2, 4),
];

/// The attributes for MI300 with newer kernels. They list the values of all dies in the package.
const V1_9: &[Field] = &[
    ("temperature_hotspot", 0, 2, 1),
    ("temperature_mem", 1, 2, 1),
    ("curr_socket_power", 3, 2, 1),
    ("average_gfx_activity", 4, 2, 1),
    ("average_umc_activity", 5, 2, 1),
    ("energy_accumulator", 7, 8, 1),
    ("accumulation_counter", 9, 4, 1),
    ("prochot_residency_acc", 10, 4, 1),
    ("ppt_residency_acc", 11, 4, 1),
    ("socket_thm_residency_acc", 12, 4, 1),
    ("vr_thm_residency_acc", 13, 4, 1),
    ("hbm_thm_residency_acc", 14, 4, 1),
    ("pcie_link_width", 16, 2, 1),
    ("pcie_link_speed", 17, 2, 1),
    ("gfx_activity_acc", 20, 8, 1),
    ("xgmi_read_data_acc", 29, 8, 8),
    ("xgmi_write_data_acc", 30, 8, 8),
    ("current_gfxclk", 33, 2, 8),
    ("current_uclk", 37, 2, 1),
    ("num_partition", 38, 2, 1),
    ("gfx_busy_inst", 40, 4, 8),
];

/// The fields for APUs from Rembrandt to Hawk Point. Their units are hundredths of a degree or
/// percent, and milliwatts.
const V2_1: &[Field] = &[
    ("temperature_gfx", 4, 2, 1),
    ("temperature_soc", 6, 2, 1),
    ("average_gfx_activity", 28, 2, 1),
    ("average_mm_activity", 30, 2, 1),
    ("system_clock_counter", 32, 8, 1),
    ("average_socket_power", 40, 2, 1),
    ("average_gfxclk_frequency", 64, 2, 1),
    ("average_socclk_frequency", 66, 2, 1),
    ("average_uclk_frequency", 68, 2, 1),
    ("average_fclk_frequency", 70, 2, 1),
];

/// The fields for APUs since Strix. The activity is in percent, and the units of temperature and
/// power are those of version 2.1.
const V3_0: &[Field] = &[
    ("temperature_gfx", 4, 2, 1),
    ("temperature_soc", 6, 2, 1),
    ("average_gfx_activity", 42, 2, 1),
    ("average_vcn_activity", 44, 2, 1),
    ("system_clock_counter", 104, 8, 1),
    ("average_socket_power", 112, 4, 1),
    ("average_gfxclk_frequency", 174, 2, 1),
    ("average_socclk_frequency", 176, 2, 1),
    ("average_fclk_frequency", 182, 2, 1),
    ("average_uclk_frequency", 186, 2, 1),
];

const fn make_layout(
    format: u8,
    content: u8,
    size: usize,
    fields: &'static [&'static [Field]],
    partitions: Option<(usize, usize, &'static [Field])>,
) -> Layout {
    Layout {
        format,
        content,
        size,
        fields,
        partitions,
    }
}

static LAYOUTS: [Layout; 6] = [
    make_layout(1, 3, 120, &[V1_3], None),
    make_layout(1, 6, 1664, &[MI300, V1_6], Some((312, 168, PARTITION_V1_6))),
    make_layout(1, 8, 3872, &[MI300, V1_8], Some((344, 440, PARTITION_V1_8))),
    make_layout(1, 9, 8, &[V1_9], None),
    make_layout(2, 1, 120, &[V2_1], None),
    make_layout(3, 0, 264, &[V3_0], None),
];
