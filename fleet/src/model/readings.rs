//! The GPU readings that a fleet shows, by field id.

/// The utilization in percent; for several GPUs, the mean.
pub const UTILIZATION: &str = "utilization.gpu_percent";
/// The memory in use, in bytes.
pub const MEMORY_USED: &str = "memory.used_bytes";
/// The total memory, in bytes.
pub const MEMORY_TOTAL: &str = "memory.total_bytes";
/// The power draw, in watts.
pub const POWER: &str = "power.draw_watts";
/// The power limit, in watts.
pub const POWER_LIMIT: &str = "power.limit_watts";
/// The temperature in degrees Celsius; for several GPUs, the highest.
pub const TEMPERATURE: &str = "temperature.gpu_celsius";

pub const READINGS: [&str; 6] = [
    UTILIZATION,
    MEMORY_USED,
    MEMORY_TOTAL,
    POWER,
    POWER_LIMIT,
    TEMPERATURE,
];

/// The amount of memory in use, in bytes, above which a GPU counts as used if its processes are
/// unknown. The driver itself uses less.
pub const HELD_BYTES: f64 = (1_u64 << 30) as f64;

/// Returns `true` if `value` is possible for a GPU or for all GPUs of a node. Exporters can report
/// any number.
pub fn is_plausible(id: &str, value: f64) -> bool {
    match id {
        UTILIZATION => (0.0..=100.0).contains(&value),
        TEMPERATURE => (-50.0..=300.0).contains(&value),
        POWER | POWER_LIMIT => (0.0..=1e7).contains(&value),
        _ if id.starts_with("memory.") => (0.0..=1e16).contains(&value),
        _ => true,
    }
}
