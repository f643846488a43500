//! The output for `-L` and `--version`.

use std::fmt::Write;

use gpumon_probe::vendor::nvml::query::{Answer, Query, Subject, SystemQuery};

use super::{Context, error_messages, gpu_selection::is_divided, release::VERSIONS_RENAMED};

/// Returns the output for `-L`, which lists the GPUs and their MIG devices.
pub(crate) fn render_list(context: &Context<'_>) -> String {
    context.map_gpus(|gpu| render_gpu(context, gpu)).concat()
}

fn render_gpu(context: &Context<'_>, gpu: u32) -> String {
    let ask = |query| context.run_query(gpu, query);
    let mut out = format!(
        "GPU {gpu}: {} (UUID: {})\n",
        format_text(&ask(Query::Name)),
        format_text(&ask(Query::Uuid))
    );
    if !is_divided(context.driver, gpu) {
        return out;
    }
    let devices =
        ask(Query::MigDevices).map_or_else(|_| Vec::new(), |list| list.numbers().to_vec());
    for device in devices {
        let about = |query| {
            context
                .driver
                .answer_query(Subject::from_mig(gpu, device as u32), query)
        };
        let name = format_text(&about(Query::Name));
        let profile = name
            .rsplit_once("MIG ")
            .map_or(name.as_str(), |(_, profile)| profile);
        let uuid = format_text(&about(Query::Uuid));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  MIG {profile:<12}Device {device:>2}: (UUID: {uuid})");
    }
    out
}

/// Returns the version of nvidia-smi that belongs to the library. NVML's version is the same,
/// preceded by CUDA's major version. Under WSL, the version of the Windows driver is different.
pub(crate) fn tool_version(context: &Context<'_>) -> Option<String> {
    let library = context.run_system_query(SystemQuery::NvmlVersion).ok()?;
    let (_, version) = library.text()?.split_once('.')?;
    Some(version.to_owned())
}

/// Returns the output for `--version`.
pub(crate) fn render_version(context: &Context<'_>) -> String {
    let driver = format_text(&context.run_system_query(SystemQuery::DriverVersion));
    let tool = tool_version(context).unwrap_or_else(|| driver.clone());
    // This line shows only the first two components of the version.
    let mut parts = tool.split('.');
    let nvml = match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => format_text(&context.run_system_query(SystemQuery::NvmlVersion)),
    };
    let cuda = context.cuda_version().unwrap_or_else(|_| "N/A".to_owned());
    let head = format!("NVIDIA-SMI version  : {tool}\nNVML version        : {nvml}\n");
    let versions = if context.release() < VERSIONS_RENAMED {
        format!("DRIVER version      : {driver}\nCUDA Version        : {cuda}\n")
    } else {
        format!(
            "DRIVER version      : Deprecated, see \"KMD version\" instead\n\
             CUDA version        : Deprecated, see \"CUDA UMD version\" instead\n\
             KMD version         : {driver}\nCUDA UMD version    : {cuda}\n"
        )
    };
    head + &versions
}

fn format_text(answer: &Answer) -> String {
    match answer {
        Ok(value) => value.text().unwrap_or("N/A").to_owned(),
        Err(code) => error_messages::format_plain(*code).to_owned(),
    }
}
