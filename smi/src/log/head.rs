//! The lines before the first GPU's block.

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use super::{
    format::{ABSENT, format_code, format_supported},
    text::{VALUE_COLUMN, write_line},
    vgpu::is_vgpu_host,
    xml::{write_branch, write_leaf},
};
use crate::{
    Context,
    release::{Release, VERSIONS_RENAMED},
};

pub(super) const ROOT_ELEMENT: &str = "nvidia_smi_log";

/// A line before the first GPU's block.
pub(super) struct Line {
    title: &'static str,
    pub(super) tag: &'static str,
    value: fn(&Context<'_>) -> String,
    /// The first release whose log contains the line.
    since: Release,
    /// In text output from [`VERSIONS_RENAMED`] on, the note after the value.
    deprecated: &'static str,
}

const fn define_line(
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

/// The lines that show the time and the driver's versions.
static LINES: &[Line] = &[
    define_line("Timestamp", "timestamp", |context| {
        context.now.strftime("%a %b %e %H:%M:%S %Y").to_string()
    }),
    Line {
        deprecated: " [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]",
        ..define_line("Driver Version", "driver_version", driver_version)
    },
    Line {
        deprecated: " [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]",
        ..define_line("CUDA Version", "cuda_version", cuda_version)
    },
    Line {
        since: VERSIONS_RENAMED,
        ..define_line("KMD Version", "kmd_version", driver_version)
    },
    Line {
        since: VERSIONS_RENAMED,
        ..define_line("CUDA UMD Version", "cuda_umd_version", cuda_version)
    },
];

/// Returns the lines that `release` shows.
pub(super) fn list_header_lines(release: Release) -> impl Iterator<Item = &'static Line> {
    LINES.iter().filter(move |line| line.since <= release)
}

fn driver_version(context: &Context<'_>) -> String {
    match context.run_system_query(SystemQuery::DriverVersion) {
        Ok(version) => version.text().unwrap_or(ABSENT).to_owned(),
        Err(code) => format_code(code),
    }
}

fn cuda_version(context: &Context<'_>) -> String {
    context.cuda_version().unwrap_or_else(format_code)
}

/// The titles and XML elements for a vGPU host's driver capabilities: first the group, then the
/// item in it.
pub(super) const HOST_CAPABILITY_TITLES: [(&str, &str); 2] = [
    ("vGPU Driver Capability", "vgpu_driver_capability"),
    ("Heterogenous Multi-vGPU", "heterogenous_multivGPU"),
];

pub(super) static ATTACHED: Line = define_line("Attached GPUs", "attached_gpus", |context| {
    context.count.to_string()
});

/// Returns the text output before the first GPU's block.
pub(super) fn render_text(context: &Context<'_>) -> String {
    let mut out = "\n==============NVSMI LOG==============\n\n".to_owned();
    let release = context.release();
    for own in list_header_lines(release) {
        let is_renamed = release >= VERSIONS_RENAMED;
        let note = if is_renamed { own.deprecated } else { "" };
        let value = (own.value)(context) + note;
        write_line(&mut out, 0, VALUE_COLUMN, own.title, &value);
    }
    if let Some(capability) = host_capability(context) {
        out.push_str(HOST_CAPABILITY_TITLES[0].0);
        out.push('\n');
        write_line(
            &mut out,
            8,
            VALUE_COLUMN,
            HOST_CAPABILITY_TITLES[1].0,
            &capability,
        );
    }
    out.push('\n');
    write_line(
        &mut out,
        0,
        VALUE_COLUMN,
        ATTACHED.title,
        &(ATTACHED.value)(context),
    );
    out
}

/// Writes the XML elements before the first GPU's element.
pub(super) fn write_elements(out: &mut String, context: &Context<'_>) {
    for own in list_header_lines(context.release()) {
        write_leaf(out, 1, own.tag, &(own.value)(context));
    }
    if let Some(capability) = host_capability(context) {
        write_branch(out, 1, HOST_CAPABILITY_TITLES[0].1, |out| {
            write_leaf(out, 2, HOST_CAPABILITY_TITLES[1].1, &capability);
        });
    }
    write_leaf(out, 1, ATTACHED.tag, &(ATTACHED.value)(context));
}

/// Returns the driver's vGPU capability, or `None` if the machine is not a vGPU host.
fn host_capability(context: &Context<'_>) -> Option<String> {
    let first = *context.gpus.first()?;
    is_vgpu_host(&context.run_query(first, Query::VirtualizationMode)).then(|| {
        match context.run_system_query(SystemQuery::VgpuDriverCapability(0)) {
            Ok(capability) => capability
                .number_at(0)
                .map_or(ABSENT.to_owned(), format_supported),
            Err(code) => format_code(code),
        }
    })
}
