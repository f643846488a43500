//! What stands above the GPUs, and above the units.

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use super::{
    format::{ABSENT, supported, word},
    text::{COLUMN, line},
    vgpu::is_host,
    xml::{branch, leaf},
};
use crate::Context;

pub(super) const ROOT: &str = "nvidia_smi_log";

/// Title, element and value of a line.
pub(super) type Line = (&'static str, &'static str, fn(&Context<'_>) -> String);

/// When, and with which driver.
pub(super) static LINES: &[Line] = &[
    ("Timestamp", "timestamp", |context| context.now.strftime("%a %b %e %H:%M:%S %Y").to_string()),
    ("Driver Version", "driver_version", |context| match context.system(SystemQuery::DriverVersion) {
        Ok(version) => version.text().unwrap_or(ABSENT).to_owned(),
        Err(code) => word(code),
    }),
    ("CUDA Version", "cuda_version", |context| context.cuda_version().unwrap_or_else(word)),
];

/// Title and element of what a host of virtual GPUs says of its driver, and of the line in it.
pub(super) const HOST: [(&str, &str); 2] =
    [("vGPU Driver Capability", "vgpu_driver_capability"), ("Heterogenous Multi-vGPU", "heterogenous_multivGPU")];

pub(super) const ATTACHED: Line = ("Attached GPUs", "attached_gpus", |context| context.count.to_string());

/// The text, down to the first GPU.
pub(super) fn text(context: &Context<'_>) -> String {
    let mut out = opening(context);
    if let Some(capability) = host_capability(context) {
        out.push_str(HOST[0].0);
        out.push('\n');
        line(&mut out, 8, COLUMN, HOST[1].0, &capability);
    }
    out.push('\n');
    write_line(&mut out, &ATTACHED, context);
    out
}

/// The text that the logs of GPUs and of units begin with.
pub(super) fn opening(context: &Context<'_>) -> String {
    let mut out = "\n==============NVSMI LOG==============\n\n".to_owned();
    for entry in LINES {
        write_line(&mut out, entry, context);
    }
    out
}

pub(super) fn write_line(out: &mut String, (title, _, format): &Line, context: &Context<'_>) {
    line(out, 0, COLUMN, title, &format(context));
}

/// The elements before the first GPU.
pub(super) fn elements(out: &mut String, context: &Context<'_>) {
    write_elements(out, LINES, context);
    if let Some(capability) = host_capability(context) {
        branch(out, 1, HOST[0].1, |out| leaf(out, 2, HOST[1].1, &capability));
    }
    write_elements(out, &[ATTACHED], context);
}

pub(super) fn write_elements(out: &mut String, lines: &[Line], context: &Context<'_>) {
    for (_, tag, format) in lines {
        leaf(out, 1, tag, &format(context));
    }
}

/// What the driver can do for virtual GPUs; `None` where it hosts none.
fn host_capability(context: &Context<'_>) -> Option<String> {
    let first = *context.gpus.first()?;
    is_host(&context.ask(first, Query::VirtualizationMode)).then(|| {
        match context.system(SystemQuery::VgpuDriverCapability(0)) {
            Ok(capability) => capability.at(0).map_or(ABSENT.to_owned(), supported),
            Err(code) => word(code),
        }
    })
}
