//! The output of `-q`: all readings of a GPU, as text or XML.
//!
//! Readings are defined in tables, with one file per subject. [`item`] defines the entries of a
//! table, [`value`] reads and formats their values, and [`LOG_ITEMS`] contains the order of the
//! tables. [`text`] and [`xml`] use the same tables, so a new line needs only one entry. Each GPU's
//! block is written on its own thread. For each GPU, a query runs at most once, and only if its
//! answer is shown.

mod board;
mod interconnect;
mod item;
mod memory_errors;
mod performance;
mod power_and_temperature;
mod power_profiles;
mod processes;
mod text;
mod usage;
mod value;
mod virtualization;
mod xml;

use std::thread;

use gpumon_probe::vendor::nvml::query::{Query, Subject, SystemQuery};

use self::{
    item::Item,
    text::{VALUE_COLUMN, remove_control_characters, write_line},
    value::{ABSENT, Cursor, Device, OutputFormat, format_code, format_supported},
    virtualization::is_vgpu_host,
    xml::{Dtd, write_branch, write_leaf},
};
use crate::{
    Context, error_messages, formats,
    release::{Release, VERSIONS_RENAMED},
};

pub(crate) use self::item::{Section, list_section_words, parse_sections};

const DTD_FILE_NAME: &str = "nvsmi_device_v13.dtd";

/// Returns the output of `-q`. If sections are given, returns the output of `-q -d`.
pub(crate) fn render_text_log(context: &Context<'_>, sections: Option<&[Section]>) -> String {
    let blocks = context.map_gpus(|gpu| {
        let shown = |item: &Item| {
            sections.map_or(item.full, |asked| {
                item.section.is_some_and(|own| asked.contains(&own))
            })
        };
        let GpuBlock { bus_id, items } =
            render_block(context, gpu, OutputFormat::Text, shown, text::write_item);
        format!("GPU {bus_id}\n{items}\n")
    });
    render_text_header(context) + &blocks.concat()
}

/// Returns the output of `-q -x`. If `with_dtd` is `true`, returns the output of `-q -x --dtd`.
pub(crate) fn render_xml_log(context: &Context<'_>, with_dtd: bool) -> String {
    let blocks = context.map_gpus(|gpu| {
        let GpuBlock { bus_id, items } = render_block(
            context,
            gpu,
            OutputFormat::Xml,
            |_| true,
            |out, item, at| xml::write_item(out, item, at, 2),
        );
        format!(
            "\t<gpu id=\"{}\">\n{items}\t</gpu>\n\n",
            xml::escape(&bus_id)
        )
    });
    let dtd = if with_dtd {
        format!("[\n{}]", render_dtd(context.release()))
    } else {
        format!("SYSTEM \"{DTD_FILE_NAME}\"")
    };
    let mut out = format!("<?xml version=\"1.0\" ?>\n<!DOCTYPE {ROOT_ELEMENT} {dtd}>\n");
    // The root element's tags are on separate lines, so that programs reading the output of `-l`
    // can detect the end of each document.
    write_branch(&mut out, 0, ROOT_ELEMENT, |out| {
        write_header_elements(out, context);
        out.push_str(&blocks.concat());
    });
    out
}

/// Returns the output of `--dtd`.
pub(crate) fn render_dtd(release: Release) -> String {
    build_gpu_dtd(release).render(DTD_FILE_NAME, "gpu")
}

/// XML elements that NVIDIA's DTD declares but nvidia-smi never writes.
const UNUSED_ELEMENTS: &[&str] = &[
    "error_string",
    "reset_required",
    "drain_and_reset_recommended",
    "power_management",
    "graphics_volt",
];

fn build_gpu_dtd(release: Release) -> Dtd {
    let mut dtd = Dtd::new(release);
    let mut root: Vec<String> = list_header_lines(release)
        .map(|line| line.tag.to_owned())
        .collect();
    root.extend([
        format!("{}?", HOST_CAPABILITY_TITLES[0].1),
        ATTACHED_GPUS.tag.to_owned(),
    ]);
    root.extend(["error_string?".to_owned(), "gpu*".to_owned()]);
    dtd.add_sequence(ROOT_ELEMENT, &root);
    dtd.add_sequence(
        HOST_CAPABILITY_TITLES[0].1,
        &[HOST_CAPABILITY_TITLES[1].1.to_owned()],
    );
    let lines = list_header_lines(release)
        .chain([&ATTACHED_GPUS])
        .map(|line| line.tag);
    for tag in lines
        .chain([HOST_CAPABILITY_TITLES[1].1])
        .chain(UNUSED_ELEMENTS.iter().copied())
    {
        dtd.add_leaf(tag);
    }
    dtd.add_sequence(
        "gpu",
        &LOG_ITEMS
            .iter()
            .flat_map(|items| dtd.list_children(items))
            .collect::<Vec<_>>(),
    );
    for item in LOG_ITEMS.iter().copied().flatten() {
        dtd.add_item(item);
    }
    dtd
}

// A GPU's block, which contains all items in order.

static LOG_ITEMS: &[&[Item]] = &[
    board::NAME_ITEMS,
    virtualization::VGPU_CAPABILITY_ITEMS,
    virtualization::MIG_ITEMS,
    board::MODE_ITEMS,
    board::NUMBER_ITEMS,
    interconnect::PCI_ITEMS,
    performance::PERFORMANCE_ITEMS,
    usage::MEMORY_ITEMS,
    usage::UTILIZATION_ITEMS,
    memory_errors::ECC_ITEMS,
    memory_errors::REPAIR_ITEMS,
    power_and_temperature::TEMPERATURE_ITEMS,
    power_and_temperature::POWER_ITEMS,
    power_profiles::POWER_PROFILE_ITEMS,
    performance::CLOCK_ITEMS,
    interconnect::FABRIC_ITEMS,
    performance::SUPPORTED_CLOCK_ITEMS,
    processes::RUNNING_PROCESS_ITEMS,
    processes::ACCOUNTED_PROCESS_ITEMS,
    interconnect::CAPABILITY_ITEMS,
];

struct GpuBlock {
    /// The GPU's PCI bus ID, or the text to show instead.
    bus_id: String,
    /// The text of all items.
    items: String,
}

/// Writes the selected items of a GPU. Slow queries start first, on another thread, and the items
/// that need them are written last. A block therefore takes little longer than its slowest query.
fn render_block(
    context: &Context<'_>,
    gpu: u32,
    form: OutputFormat,
    wanted: impl Fn(&Item) -> bool,
    write: impl Fn(&mut String, &Item, &Cursor<'_>),
) -> GpuBlock {
    let device = &Device::new(context, gpu);
    let at = Cursor::new(device, form);
    let items: Vec<_> = LOG_ITEMS
        .iter()
        .copied()
        .flatten()
        .filter(|item| wanted(item))
        .collect();
    let mut written = vec![String::new(); items.len()];
    thread::scope(|scope| {
        // If slow queries ran at the same time, each would measure the traffic that the others
        // cause. They therefore run one after another.
        let ahead: Vec<_> = items.iter().flat_map(|item| item.ahead).collect();
        // If the answers are in memory, running the queries takes less time than starting a thread.
        if !context.driver.answers_from_memory() {
            scope.spawn(move || {
                for query in ahead {
                    drop(device.run_query(Subject::from_gpu(gpu), *query));
                }
            });
        }
        for waits in [false, true] {
            for (item, out) in items.iter().zip(&mut written) {
                if item.ahead.is_empty() != waits {
                    write(out, item, &at);
                }
            }
        }
    });
    GpuBlock {
        bus_id: remove_control_characters(&at.read_text(Query::BusId)),
        items: written.concat(),
    }
}

// The lines before the first GPU's block.

const ROOT_ELEMENT: &str = "nvidia_smi_log";

/// A line before the first GPU's block.
struct HeaderLine {
    title: &'static str,
    tag: &'static str,
    value: fn(&Context<'_>) -> String,
    /// The first release whose log contains the line.
    since: Release,
    /// The note after the value in text output, shown since release [`VERSIONS_RENAMED`].
    deprecated: &'static str,
}

const fn define_header_line(
    title: &'static str,
    tag: &'static str,
    value: fn(&Context<'_>) -> String,
) -> HeaderLine {
    HeaderLine {
        title,
        tag,
        value,
        since: Release(0, 0),
        deprecated: "",
    }
}

/// The lines that show the time and the driver's versions.
static HEADER_LINES: &[HeaderLine] = &[
    define_header_line("Timestamp", "timestamp", |context| {
        context.now.strftime(formats::DATE_AND_TIME).to_string()
    }),
    HeaderLine {
        deprecated: " [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]",
        ..define_header_line("Driver Version", "driver_version", format_driver_version)
    },
    HeaderLine {
        deprecated: " [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]",
        ..define_header_line("CUDA Version", "cuda_version", format_cuda_version)
    },
    HeaderLine {
        since: VERSIONS_RENAMED,
        ..define_header_line("KMD Version", "kmd_version", format_driver_version)
    },
    HeaderLine {
        since: VERSIONS_RENAMED,
        ..define_header_line("CUDA UMD Version", "cuda_umd_version", format_cuda_version)
    },
];

/// The titles and XML elements for a vGPU host's driver capabilities: first the group, then the
/// item in it.
const HOST_CAPABILITY_TITLES: [(&str, &str); 2] = [
    ("vGPU Driver Capability", "vgpu_driver_capability"),
    ("Heterogenous Multi-vGPU", "heterogenous_multivGPU"),
];

static ATTACHED_GPUS: HeaderLine =
    define_header_line("Attached GPUs", "attached_gpus", |context| {
        context.count.to_string()
    });

/// Returns the lines that `release` shows.
fn list_header_lines(release: Release) -> impl Iterator<Item = &'static HeaderLine> {
    HEADER_LINES
        .iter()
        .filter(move |line| line.since <= release)
}

fn format_driver_version(context: &Context<'_>) -> String {
    error_messages::format_text_answer(&context.run_system_query(SystemQuery::DriverVersion))
}

fn format_cuda_version(context: &Context<'_>) -> String {
    context.cuda_version().unwrap_or_else(format_code)
}

/// Returns the text output before the first GPU's block.
fn render_text_header(context: &Context<'_>) -> String {
    let mut out = "\n==============NVSMI LOG==============\n\n".to_owned();
    let release = context.release();
    for own in list_header_lines(release) {
        let is_renamed = release >= VERSIONS_RENAMED;
        let note = if is_renamed { own.deprecated } else { "" };
        let value = (own.value)(context) + note;
        write_line(&mut out, 0, VALUE_COLUMN, own.title, &value);
    }
    if let Some(capability) = format_host_capability(context) {
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
        ATTACHED_GPUS.title,
        &(ATTACHED_GPUS.value)(context),
    );
    out
}

/// Writes the XML elements before the first GPU's element.
fn write_header_elements(out: &mut String, context: &Context<'_>) {
    for own in list_header_lines(context.release()) {
        write_leaf(out, 1, own.tag, &(own.value)(context));
    }
    if let Some(capability) = format_host_capability(context) {
        write_branch(out, 1, HOST_CAPABILITY_TITLES[0].1, |out| {
            write_leaf(out, 2, HOST_CAPABILITY_TITLES[1].1, &capability);
        });
    }
    write_leaf(out, 1, ATTACHED_GPUS.tag, &(ATTACHED_GPUS.value)(context));
}

/// Returns the driver's vGPU capability, or `None` if the machine is not a vGPU host.
fn format_host_capability(context: &Context<'_>) -> Option<String> {
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

#[cfg(test)]
pub(crate) mod tests;
