//! The summary, which consists of tables for GPUs, MIG devices (if any), and processes.

mod gpus;
mod mig;
mod processes;
#[cfg(test)]
mod tests;
mod text;

use std::fmt::Write;

use gpumon_probe::vendor::nvml::query::SystemQuery;

use self::gpus::Row;
use super::{Context, list::tool_version, release::VERSIONS_RENAMED};

const WIDTH: usize = 89;

/// Returns the complete text of one summary.
pub(crate) fn render_summary(context: &Context<'_>) -> String {
    let rows = context.map_gpus(|gpu| Row::read(context, gpu));
    let mut out = render_head(context);
    for row in &rows {
        out.push_str(&row.text);
    }
    out.push_str(&mig::render_mig_table(&rows));
    out.push_str(&processes::render_process_table(context, &rows));
    for row in rows.iter().filter(|row| row.inforom_is_corrupt) {
        let _ = writeln!(
            out,
            "WARNING: infoROM is corrupted at gpu {}",
            text::shorten_bus_id(&row.bus_id)
        );
    }
    out
}

fn render_head(context: &Context<'_>) -> String {
    let text = |query| {
        context
            .run_system_query(query)
            .ok()
            .and_then(|value| value.text().map(str::to_owned))
    };
    let driver = text(SystemQuery::DriverVersion).unwrap_or_else(|| "N/A".to_owned());
    let tool = tool_version(context).unwrap_or_else(|| driver.clone());
    let cuda = context.cuda_version().unwrap_or_else(|_| "N/A".to_owned());
    let date = context.now.strftime("%a %b %e %H:%M:%S %Y");
    let line = "-".repeat(WIDTH);
    let versions = if context.release() < VERSIONS_RENAMED {
        format!("{tool:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8}")
    } else {
        format!("{tool:<22} KMD Version: {driver:<13} CUDA UMD Version: {cuda:<8}")
    };
    format!(
        "{date}       \n+{line}+\n| NVIDIA-SMI {versions} |\n{border}| GPU  Name                 \
         Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n| Fan  Temp   \
         Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. \
         |\n|                                         |                        |               MIG \
         M. \
         |\n|=========================================+========================+======================|\n",
        border = gpus::border_line(),
    )
}
