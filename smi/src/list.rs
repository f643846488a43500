//! The output of `-L` and `--version`.

use std::fmt::Write;

use gpumon_probe::vendor::nvml::query::{Answer, Query, Subject, SystemQuery};

use super::{Context, release::VERSIONS_RENAMED, return_code, select::is_divided};

/// Returns the output of `-L`: the GPUs with their MIG devices.
pub(crate) fn gpus(context: &Context<'_>) -> String {
    context.each(|gpu| list_one(context, gpu)).concat()
}

fn list_one(context: &Context<'_>, gpu: u32) -> String {
    let ask = |query| context.ask(gpu, query);
    let mut out = format!(
        "GPU {gpu}: {} (UUID: {})\n",
        words(&ask(Query::Name)),
        words(&ask(Query::Uuid))
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
                .about(Subject::mig(gpu, device as u32), query)
        };
        let name = words(&about(Query::Name));
        let profile = name
            .rsplit_once("MIG ")
            .map_or(name.as_str(), |(_, profile)| profile);
        let uuid = words(&about(Query::Uuid));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  MIG {profile:<12}Device {device:>2}: (UUID: {uuid})");
    }
    out
}

/// Returns the version of the tool that belongs to the library. NVML's version has CUDA's major
/// version in front. Under WSL, the driver of Windows has another version.
pub(crate) fn tool_version(context: &Context<'_>) -> Option<String> {
    let library = context.system(SystemQuery::NvmlVersion).ok()?;
    let (_, version) = library.text()?.split_once('.')?;
    Some(version.to_owned())
}

/// Returns the output of `--version`.
pub(crate) fn version(context: &Context<'_>) -> String {
    let driver = words(&context.system(SystemQuery::DriverVersion));
    let tool = tool_version(context).unwrap_or_else(|| driver.clone());
    // This line shows only the first two parts of the version.
    let mut parts = tool.split('.');
    let nvml = match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => words(&context.system(SystemQuery::NvmlVersion)),
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

fn words(answer: &Answer) -> String {
    match answer {
        Ok(value) => value.text().unwrap_or("N/A").to_owned(),
        Err(code) => return_code::plain(*code).to_owned(),
    }
}
