//! The tables that show the peer-to-peer capabilities between GPUs.

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use crate::Refusal;

/// The letters for the capabilities, in the order of `nvmlGpuP2PCapsIndex_t`.
pub(super) const CAPABILITIES: &[&str] = &["r", "w", "n", "a", "p"];

/// Returns the table for one capability: `r` read, `w` write, `n` NVLink, `a` atomics, `p` PCIe.
pub(super) fn render_table(
    driver: &dyn QueryBackend,
    gpus: &[u32],
    letter: &str,
) -> Result<String, Refusal> {
    let capability = CAPABILITIES
        .iter()
        .position(|known| *known == letter)
        .ok_or_else(|| {
            Refusal::new(
                2,
                "Invalid p2p capability index specified at the command-line\n",
            )
        })?;
    let names: Vec<String> = gpus.iter().map(|gpu| format!("GPU{gpu}\t")).collect();
    let rows = gpus.iter().map(|row| {
        let words: Vec<String> = gpus
            .iter()
            .map(|column| {
                if row == column {
                    "X"
                } else {
                    format_status(driver, *row, *column, capability as u32)
                }
            })
            .map(|word| format!("{word}\t"))
            .collect();
        format!(" GPU{row}\t{}\n", words.concat())
    });
    Ok(format!(
        " \t\u{1b}[4m{}\u{1b}[0m\n{}{CAPABILITY_LEGEND}",
        names.concat(),
        rows.collect::<Vec<_>>().concat()
    ))
}

/// Returns nvidia-smi's word for an `nvmlGpuP2PStatus_t`.
fn format_status(driver: &dyn QueryBackend, gpu: u32, other: u32, capability: u32) -> &'static str {
    let answer = driver
        .answer_query(Subject::from_gpu(gpu), Query::P2pStatus(other, capability))
        .ok();
    match answer.and_then(|answer| answer.number_at(0)) {
        Some(0) => "OK",
        Some(1) => "CNS",
        Some(2) => "GNS",
        Some(3) => "TNS",
        Some(4 | 5) => "NS",
        _ => "U",
    }
}

const CAPABILITY_LEGEND: &str = "
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
";
