//! The lines above the first GPU.

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use super::{
    format::{ABSENT, supported, word},
    text::{COLUMN, line},
    vgpu::is_host,
    xml::{branch, leaf},
};
use crate::{
    Context,
    release::{Release, VERSIONS_RENAMED},
};

pub(super) const ROOT: &str = "nvidia_smi_log";

/// A line above the first GPU.
pub(super) struct Line {
    title: &'static str,
    pub(super) tag: &'static str,
    value: fn(&Context<'_>) -> String,
    /// The first release whose log has the line.
    since: Release,
    /// The note after the value in the text, from [`VERSIONS_RENAMED`] on.
    deprecated: &'static str,
}

const fn line_of(
    title: &'static str,
    tag: &'static str,
    value: fn(&Context<'_>) -> String,
) -> Line {
    Line {
        title,
        tag,
        value,
        since: Release(0, 0),
        deprecated: "",
    }
}

/// The lines with the time and the versions of the driver.
static LINES: &[Line] = &[
    line_of("Timestamp", "timestamp", |context| {
        context.now.strftime("%a %b %e %H:%M:%S %Y").to_string()
    }),
    Line {
        deprecated: " [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]",
        ..line_of("Driver Version", "driver_version", driver_version)
    },
    Line {
        deprecated: " [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]",
        ..line_of("CUDA Version", "cuda_version", cuda_version)
    },
    Line {
        since: VERSIONS_RENAMED,
        ..line_of("KMD Version", "kmd_version", driver_version)
    },
    Line {
        since: VERSIONS_RENAMED,
        ..line_of("CUDA UMD Version", "cuda_umd_version", cuda_version)
    },
];

/// Returns the lines of a release.
pub(super) fn lines(release: Release) -> impl Iterator<Item = &'static Line> {
    LINES.iter().filter(move |line| line.since <= release)
}

fn driver_version(context: &Context<'_>) -> String {
    match context.system(SystemQuery::DriverVersion) {
        Ok(version) => version.text().unwrap_or(ABSENT).to_owned(),
        Err(code) => word(code),
    }
}

fn cuda_version(context: &Context<'_>) -> String {
    context.cuda_version().unwrap_or_else(word)
}

/// The titles and elements of a vGPU host's driver capabilities: the group and its line.
pub(super) const HOST: [(&str, &str); 2] = [
    ("vGPU Driver Capability", "vgpu_driver_capability"),
    ("Heterogenous Multi-vGPU", "heterogenous_multivGPU"),
];

pub(super) static ATTACHED: Line = line_of("Attached GPUs", "attached_gpus", |context| {
    context.count.to_string()
});

/// Returns the text before the first GPU.
pub(super) fn text(context: &Context<'_>) -> String {
    let mut out = "\n==============NVSMI LOG==============\n\n".to_owned();
    let release = context.release();
    for own in lines(release) {
        let is_renamed = release >= VERSIONS_RENAMED;
        let note = if is_renamed { own.deprecated } else { "" };
        let value = (own.value)(context) + note;
        line(&mut out, 0, COLUMN, own.title, &value);
    }
    if let Some(capability) = host_capability(context) {
        out.push_str(HOST[0].0);
        out.push('\n');
        line(&mut out, 8, COLUMN, HOST[1].0, &capability);
    }
    out.push('\n');
    line(
        &mut out,
        0,
        COLUMN,
        ATTACHED.title,
        &(ATTACHED.value)(context),
    );
    out
}

/// Writes the elements before the first GPU.
pub(super) fn elements(out: &mut String, context: &Context<'_>) {
    for own in lines(context.release()) {
        leaf(out, 1, own.tag, &(own.value)(context));
    }
    if let Some(capability) = host_capability(context) {
        branch(out, 1, HOST[0].1, |out| {
            leaf(out, 2, HOST[1].1, &capability);
        });
    }
    leaf(out, 1, ATTACHED.tag, &(ATTACHED.value)(context));
}

/// Returns the driver's capability for virtual GPUs; `None` if the machine is no vGPU host.
fn host_capability(context: &Context<'_>) -> Option<String> {
    let first = *context.gpus.first()?;
    is_host(&context.ask(first, Query::VirtualizationMode)).then(|| {
        match context.system(SystemQuery::VgpuDriverCapability(0)) {
            Ok(capability) => capability.at(0).map_or(ABSENT.to_owned(), supported),
            Err(code) => word(code),
        }
    })
}
