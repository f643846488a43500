//! The fields of a GPU, in display order.

use super::{
    Color, Field, Kind, Limit, MAX_FAN_PERCENT, Unit, Unwatched,
    access::{at, field},
};
use crate::model::{GpuSample, LimitClass};

/// Creates a catalog entry for a number that MIG devices also have.
macro_rules! with_mig {
    ($outer:ident?.$part:ident, $($rest:tt)+) => { gpu!($outer?.$part, $($rest)+).mig(at!($outer?.$part)) };
    ($($part:ident).+, $($rest:tt)+) => { gpu!($($part).+, $($rest)+).mig(at!($($part).+)) };
}

/// Creates a catalog entry for a percentage that the hardware counters of GPM measure, averaged
/// between two readings.
macro_rules! counted {
    ($part:ident, $label:literal, $short:literal, $help:literal) => {
        with_mig!(activity?.$part, $label, $short, Unit::Percent)
            .unwatched(Unwatched::Averaged)
            .help(concat!(
                $help,
                "; needs GPM (GPU Performance Monitoring, on Hopper and newer)."
            ))
    };
}

/// Creates the limit of a clock: the highest clock of the board.
macro_rules! max_clock {
    ($clock:ident) => {
        Limit::Board(|gpu| {
            let mhz = gpu.board.max_clocks.$clock.value();
            mhz.map(|mhz| f64::from(*mhz))
        })
    };
}

/// Creates a catalog entry for the share of a cause that limits the GPU.
macro_rules! limit {
    ($part:ident, $class:ident, $short:literal) => {
        gpu!(
            limits?.$part,
            LimitClass::$class.label(),
            $short,
            Unit::Percent
        )
        .unwatched(Unwatched::Averaged)
        .help(LimitClass::$class.meaning())
        .chart(
            "limits",
            "limits",
            LimitClass::$class.label(),
            Color::Line(LimitClass::$class as u8),
        )
    };
}

macro_rules! gpu {
    ($($entry:tt)+) => { field!(GpuSample, "", $($entry)+) };
}

/// All fields of a GPU.
pub const GPU_FIELDS: &[Field] = &[
    gpu!(
        utilization.gpu_percent,
        "GPU utilization",
        "Util",
        Unit::Percent
    )
    .help(
        "Share of time in which at least one kernel ran, regardless of how much of the GPU it \
     used.",
    )
    .prometheus_name("gpumon_gpu_utilization_ratio")
    .dcgm_names("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO")
    .otel_name("hw.gpu.utilization")
    .chart(
        "utilization",
        "activity",
        "GPU utilization",
        Color::Utilization,
    )
    .load_thresholds(10, 75)
    .include_in_csv(),
    gpu!(
        utilization.memory_percent,
        "Memory controller utilization",
        "MemCtl",
        Unit::Percent
    )
    .help("Share of time in which device memory was read or written.")
    .prometheus_name("gpumon_gpu_memory_utilization_ratio")
    .dcgm_names("DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO")
    .chart(
        "memory-busy",
        "engines",
        "Memory controller utilization",
        Color::Line(0),
    ),
    gpu!(utilization.encoder_percent, "Encoder", "Enc", Unit::Percent)
        .help("Utilization of the video encoder.")
        .prometheus_name("gpumon_gpu_encoder_utilization_ratio")
        .dcgm_names("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_ENC_UTIL_RATIO")
        .otel_name("hw.gpu.utilization{hw.gpu.task=\"encoder\"}")
        .chart("encoder", "engines", "Encoder", Color::Line(1)),
    gpu!(utilization.decoder_percent, "Decoder", "Dec", Unit::Percent)
        .help("Utilization of the video decoder.")
        .prometheus_name("gpumon_gpu_decoder_utilization_ratio")
        .dcgm_names("DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL_RATIO")
        .otel_name("hw.gpu.utilization{hw.gpu.task=\"decoder\"}")
        .chart("decoder", "engines", "Decoder", Color::Line(2)),
    gpu!(
        utilization.jpeg_percent,
        "JPEG decoder",
        "JPEG",
        Unit::Percent
    )
    .help("Utilization of the JPEG decoder.")
    .prometheus_name("gpumon_gpu_jpeg_utilization_ratio")
    .chart("jpeg", "engines", "JPEG", Color::Line(3)),
    gpu!(
        utilization.ofa_percent,
        "Optical flow",
        "OFA",
        Unit::Percent
    )
    .help("Utilization of the optical flow accelerator.")
    .prometheus_name("gpumon_gpu_ofa_utilization_ratio")
    .chart("ofa", "engines", "Optical flow", Color::Line(4)),
    gpu!(
        utilization.media_percent,
        "Media engines",
        "Media",
        Unit::Percent
    )
    .help("Utilization of the video and JPEG engines together.")
    .prometheus_name("gpumon_gpu_media_utilization_ratio")
    .chart("media", "engines", "Media", Color::Line(1)),
    counted!(
        graphics_percent,
        "Engine active",
        "Busy",
        "Share of time in which the graphics or compute engine was busy"
    )
    .prometheus_name("gpumon_gpu_engine_active_ratio")
    .prometheus_mig_name("gpumon_mig_engine_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
    ),
    counted!(
        sm_percent,
        "SM active",
        "SM",
        "Share of time in which a multiprocessor had at least one warp, averaged over all \
         multiprocessors"
    )
    .prometheus_name("gpumon_gpu_sm_active_ratio")
    .prometheus_mig_name("gpumon_mig_sm_active_ratio")
    .dcgm_names("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO")
    .chart("sm", "activity", "SM active", Color::Line(2)),
    counted!(
        tensor_percent,
        "Tensor active",
        "Tensor",
        "Share of time in which the tensor cores were active"
    )
    .prometheus_name("gpumon_gpu_tensor_active_ratio")
    .prometheus_mig_name("gpumon_mig_tensor_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DCGM_FI_PROF_TENSOR_UTIL_RATIO",
    )
    .chart("tensor", "activity", "Tensor active", Color::Line(4)),
    counted!(
        dram_bandwidth_percent,
        "DRAM bandwidth utilization",
        "DRAM",
        "Used share of the peak bandwidth of device memory"
    )
    .prometheus_name("gpumon_gpu_dram_bandwidth_ratio")
    .prometheus_mig_name("gpumon_mig_dram_bandwidth_ratio")
    .dcgm_names("DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO")
    .chart(
        "dram",
        "activity",
        "DRAM bandwidth utilization",
        Color::Line(3),
    ),
    counted!(
        occupancy_percent,
        "Occupancy",
        "Occup",
        "Resident warps as a share of the maximum"
    )
    .prometheus_name("gpumon_gpu_sm_occupancy_ratio")
    .prometheus_mig_name("gpumon_mig_sm_occupancy_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_SM_OCCUPANCY",
        "DCGM_FI_PROF_SM_OCCUPANCY_RATIO",
    )
    .chart("occupancy", "units", "Occupancy", Color::Line(0)),
    counted!(
        fp64_percent,
        "FP64 units",
        "FP64",
        "Share of time in which the double-precision units were active"
    )
    .prometheus_name("gpumon_gpu_fp64_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
        "DCGM_FI_PROF_FP64_UTIL_RATIO",
    )
    .chart("fp64", "units", "FP64", Color::Line(1)),
    counted!(
        fp32_percent,
        "FP32 units",
        "FP32",
        "Share of time in which the single-precision units were active"
    )
    .prometheus_name("gpumon_gpu_fp32_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
        "DCGM_FI_PROF_FP32_UTIL_RATIO",
    )
    .chart("fp32", "units", "FP32", Color::Line(2)),
    counted!(
        fp16_percent,
        "FP16 units",
        "FP16",
        "Share of time in which the half-precision units were active"
    )
    .prometheus_name("gpumon_gpu_fp16_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
        "DCGM_FI_PROF_FP16_UTIL_RATIO",
    )
    .chart("fp16", "units", "FP16", Color::Line(3)),
    counted!(
        integer_percent,
        "Integer units",
        "Int",
        "Share of time in which the integer units were active"
    )
    .prometheus_name("gpumon_gpu_integer_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_INT_ACTIVE",
        "DCGM_FI_PROF_INT_UTIL_RATIO",
    )
    .chart("integer", "units", "Integer", Color::Line(4)),
    counted!(
        tensor_half_percent,
        "Tensor half precision",
        "Half",
        "Share of time in which the tensor cores were active with half-precision or \
         narrower numbers"
    )
    .prometheus_name("gpumon_gpu_tensor_half_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE",
        "DCGM_FI_PROF_HMMA_UTIL_RATIO",
    ),
    counted!(
        tensor_integer_percent,
        "Tensor integer",
        "TInt",
        "Share of time in which the tensor cores were active with integers"
    )
    .prometheus_name("gpumon_gpu_tensor_integer_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE",
        "DCGM_FI_PROF_IMMA_UTIL_RATIO",
    ),
    counted!(
        tensor_double_percent,
        "Tensor double precision",
        "Double",
        "Share of time in which the tensor cores were active with double precision"
    )
    .prometheus_name("gpumon_gpu_tensor_double_active_ratio")
    .dcgm_names(
        "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE",
        "DCGM_FI_PROF_DFMA_UTIL_RATIO",
    ),
    with_mig!(memory.used_bytes, "Memory", "Mem", Unit::Bytes)
        .help("Device memory used by processes.")
        .prometheus_name("gpumon_gpu_memory_used_bytes")
        .prometheus_mig_name("gpumon_mig_memory_used_bytes")
        .dcgm_names("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES")
        .otel_name("hw.gpu.memory.usage")
        .chart("memory", "memory", "In use", Color::Memory)
        .limit(Limit::Field("memory.total_bytes"))
        .load_thresholds(10, 80)
        .include_in_csv(),
    with_mig!(memory.free_bytes, "Free memory", "Free", Unit::Bytes)
        .help("Device memory that can be allocated.")
        .prometheus_name("gpumon_gpu_memory_free_bytes")
        .prometheus_mig_name("gpumon_mig_memory_free_bytes")
        .dcgm_names("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES"),
    with_mig!(
        memory.reserved_bytes,
        "Reserved memory",
        "Resv",
        Unit::Bytes
    )
    .help("Device memory reserved by driver and firmware.")
    .prometheus_name("gpumon_gpu_memory_reserved_bytes")
    .dcgm_names("DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_RESERVED_BYTES"),
    with_mig!(memory.total_bytes, "Total memory", "Total", Unit::Bytes)
        .help("Total device memory.")
        .prometheus_name("gpumon_gpu_memory_total_bytes")
        .prometheus_mig_name("gpumon_mig_memory_total_bytes")
        .dcgm_names("DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_CAPACITY_BYTES")
        .otel_name("hw.gpu.memory.limit")
        .include_in_csv(),
    gpu!(memory.gtt_used_bytes, "GTT memory", "GTT", Unit::Bytes)
        .help("Host memory that the GPU has mapped (GTT).")
        .prometheus_name("gpumon_gpu_gtt_used_bytes")
        .chart("gtt", "memory", "GTT", Color::Line(3))
        .limit(Limit::Field("memory.gtt_total_bytes")),
    gpu!(
        memory.gtt_total_bytes,
        "Total GTT memory",
        "GTTTot",
        Unit::Bytes
    )
    .help("Host memory that the GPU may map (GTT).")
    .prometheus_name("gpumon_gpu_gtt_total_bytes"),
    gpu!(
        temperature.gpu_celsius,
        "Temperature",
        "Temp",
        Unit::Celsius
    )
    .help("Temperature of the GPU.")
    .prometheus_name("gpumon_gpu_temperature_celsius")
    .dcgm_names("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS")
    .otel_name("hw.temperature")
    .chart("temperature", "temperature", "GPU", Color::Temperature)
    .load_thresholds(70, 90)
    .include_in_csv(),
    gpu!(
        temperature.junction_celsius,
        "Junction temperature",
        "Junct",
        Unit::Celsius
    )
    .help("Temperature of the hottest point of the chip.")
    .prometheus_name("gpumon_gpu_junction_temperature_celsius")
    .chart(
        "junction-temperature",
        "temperature",
        "Junction",
        Color::Line(3),
    ),
    gpu!(
        temperature.memory_celsius,
        "Memory temperature",
        "MemTemp",
        Unit::Celsius
    )
    .help("Temperature of device memory.")
    .prometheus_name("gpumon_gpu_memory_temperature_celsius")
    .dcgm_names("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS")
    .chart(
        "memory-temperature",
        "temperature",
        "Memory",
        Color::Line(4),
    ),
    gpu!(
        temperature.margin_celsius,
        "Thermal margin",
        "Margin",
        Unit::CelsiusDifference
    )
    .unwatched(Unwatched::Rarely)
    .help("How much warmer the GPU can get before its clocks are reduced.")
    .prometheus_name("gpumon_gpu_temperature_margin_celsius")
    .dcgm_names(
        "DCGM_FI_DEV_GPU_TEMP_LIMIT",
        "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS",
    ),
    // The causes that limited the GPU, in the order of `LimitClass::ALL`.
    limit!(idle_percent, Idle, "Idle"),
    limit!(host_percent, Host, "Host"),
    limit!(input_percent, Input, "Input"),
    limit!(transfer_percent, Transfer, "Copies"),
    limit!(communication_percent, Communication, "Comm"),
    limit!(memory_percent, Memory, "MemBW"),
    limit!(tensor_percent, Tensor, "TensorB"),
    limit!(compute_percent, Compute, "Compute"),
    limit!(latency_percent, Latency, "Latency"),
    limit!(power_percent, Power, "PowerLm"),
    limit!(shared_percent, Shared, "Shared"),
    limit!(unknown_percent, Unknown, "Unclear"),
    gpu!(power.draw_watts, "Power", "Power", Unit::Watts)
        .help("Power draw of the board, averaged over one second on most boards.")
        .prometheus_name("gpumon_gpu_power_watts")
        .dcgm_names("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS")
        .otel_name("hw.power")
        .chart("power", "power", "Average", Color::Power)
        .limit(Limit::Field("power.limit_watts"))
        .load_thresholds(50, 90)
        .include_in_csv(),
    gpu!(power.instant_watts, "Instant power", "Instant", Unit::Watts)
        .help("Power draw of the board at the driver's last measurement.")
        .prometheus_name("gpumon_gpu_power_instant_watts")
        .dcgm_names(
            "DCGM_FI_DEV_POWER_USAGE_INSTANT",
            "DCGM_FI_DEV_BOARD_POWER_RAW_WATTS",
        )
        .chart("instant-power", "power", "Instant", Color::Line(4))
        .limit(Limit::Field("power.limit_watts")),
    gpu!(power.average_watts, "Average power", "Average", Unit::Watts)
        .help("Power draw of the board, averaged over one second.")
        .prometheus_name("gpumon_gpu_power_average_watts"),
    gpu!(power.limit_watts, "Power limit", "Limit", Unit::Watts)
        .help("The power limit in force.")
        .prometheus_name("gpumon_gpu_power_limit_watts")
        .dcgm_names(
            "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
            "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS",
        )
        .include_in_csv(),
    gpu!(power.energy_joules_total, "Energy", "Energy", Unit::Joules)
        .unwatched(Unwatched::Rarely)
        .help("Energy consumed since the driver was loaded.")
        .kind(Kind::Counter)
        .range(0.0, 1e15)
        .prometheus_name("gpumon_gpu_energy_joules_total")
        .dcgm_names(
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",
        )
        .otel_name("hw.energy"),
    gpu!(clocks.sm_mhz, "SM clock", "SMClk", Unit::Megahertz)
        .help("Clock of the multiprocessors.")
        .prometheus_name("gpumon_gpu_sm_clock_hertz")
        .dcgm_names("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ")
        .chart("sm-clock", "clocks", "SM", Color::Line(1))
        .limit(max_clock!(sm_mhz)),
    gpu!(
        clocks.graphics_mhz,
        "Graphics clock",
        "GfxClk",
        Unit::Megahertz
    )
    .help("Clock of the graphics engine.")
    .prometheus_name("gpumon_gpu_graphics_clock_hertz"),
    gpu!(clocks.memory_mhz, "Memory clock", "MemClk", Unit::Megahertz)
        .help("Clock of device memory.")
        .prometheus_name("gpumon_gpu_memory_clock_hertz")
        .dcgm_names("DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ")
        .chart("memory-clock", "clocks", "Memory", Color::Memory)
        .limit(max_clock!(memory_mhz)),
    gpu!(clocks.video_mhz, "Video clock", "VidClk", Unit::Megahertz)
        .help("Clock of the video encoder and decoder.")
        .prometheus_name("gpumon_gpu_video_clock_hertz")
        .dcgm_names("DCGM_FI_DEV_VIDEO_CLOCK", "DCGM_FI_DEV_VIDEO_CLOCK_HERTZ")
        .chart("video-clock", "clocks", "Video", Color::Line(2))
        .limit(max_clock!(video_mhz)),
    gpu!(clocks.soc_mhz, "SoC clock", "SoCClk", Unit::Megahertz)
        .help("Clock of the parts of the chip around the graphics engine.")
        .prometheus_name("gpumon_gpu_soc_clock_hertz")
        .chart("soc-clock", "clocks", "SoC", Color::Line(3)),
    gpu!(clocks.fabric_mhz, "Fabric clock", "FabClk", Unit::Megahertz)
        .help("Clock of the fabric between the parts of the chip.")
        .prometheus_name("gpumon_gpu_fabric_clock_hertz")
        .chart("fabric-clock", "clocks", "Fabric", Color::Line(4)),
    gpu!(
        performance_state,
        "Performance state",
        "PState",
        Unit::Count
    )
    .help("P-state, from 0 (fastest) to 15.")
    .kind(Kind::State)
    .range(0.0, 15.0)
    .prometheus_name("gpumon_gpu_performance_state")
    .dcgm_names("DCGM_FI_DEV_PSTATE", "DCGM_FI_DEV_GPU_PSTATE"),
    gpu!(fan_percent, "Fan", "Fan", Unit::Percent)
        .help("Speed of the fastest fan, as a share of its full speed.")
        .range(0.0, MAX_FAN_PERCENT)
        .prometheus_name("gpumon_gpu_fan_speed_ratio")
        .dcgm_names("DCGM_FI_DEV_FAN_SPEED", "DCGM_FI_DEV_FAN_SPEED_RATIO")
        .chart("fan", "fan", "Fan", Color::Line(1)),
    gpu!(pcie.generation, "PCIe generation", "PCIeGen", Unit::Count)
        .help("Current PCIe generation of the link.")
        .kind(Kind::State)
        .range(0.0, 16.0)
        .prometheus_name("gpumon_gpu_pcie_generation")
        .dcgm_names("DCGM_FI_DEV_PCIE_LINK_GEN", "DCGM_FI_DEV_PCIE_LINK_GEN"),
    gpu!(pcie.width, "PCIe lanes", "Lanes", Unit::Count)
        .help("Number of PCIe lanes in use.")
        .kind(Kind::State)
        .range(0.0, 32.0)
        .prometheus_name("gpumon_gpu_pcie_lanes")
        .dcgm_names("DCGM_FI_DEV_PCIE_LINK_WIDTH", "DCGM_FI_DEV_PCIE_LINK_WIDTH"),
    gpu!(
        pcie.rx_bytes_per_second,
        "PCIe RX",
        "PCIeRX",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("PCIe traffic received by the GPU.")
    .prometheus_name("gpumon_gpu_pcie_receive_bytes_per_second")
    .dcgm_names("DCGM_FI_PROF_PCIE_RX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES")
    .otel_name("hw.gpu.io{network.io.direction=\"receive\"}")
    .chart("pcie-rx", "pcie", "RX", Color::Line(1)),
    gpu!(
        pcie.tx_bytes_per_second,
        "PCIe TX",
        "PCIeTX",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("PCIe traffic sent by the GPU.")
    .prometheus_name("gpumon_gpu_pcie_transmit_bytes_per_second")
    .dcgm_names("DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES")
    .otel_name("hw.gpu.io{network.io.direction=\"transmit\"}")
    .chart("pcie-tx", "pcie", "TX", Color::Line(3)),
    gpu!(
        nvlink.rx_bytes_per_second,
        "NVLink RX",
        "NVLRX",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("Traffic received by the GPU over all NVLinks.")
    .prometheus_name("gpumon_gpu_nvlink_receive_bytes_per_second")
    .dcgm_names(
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
    )
    .chart("nvlink-rx", "nvlink", "RX", Color::Line(1)),
    gpu!(
        nvlink.tx_bytes_per_second,
        "NVLink TX",
        "NVLTX",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("Traffic sent by the GPU over all NVLinks.")
    .prometheus_name("gpumon_gpu_nvlink_transmit_bytes_per_second")
    .dcgm_names(
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
    )
    .chart("nvlink-tx", "nvlink", "TX", Color::Line(3)),
];
