//! The output of `-q`: all readings of a GPU, as text or XML.
//!
//! Readings are defined in tables, with one file per subject. [`item`] defines the entries of a
//! table, and [`gpu`] contains the order of the tables. [`text`](mod@text), [`xml`](mod@xml) and
//! [`dtd`](mod@dtd) use the same tables, so a new line needs only one entry. Each GPU's block is
//! written on its own thread. For each GPU, a query runs at most once, and only if its answer is
//! shown.

mod board;
mod clocks;
mod cursor;
mod device;
mod dtd;
mod ecc;
mod fabric;
mod fields;
mod format;
mod gpu;
mod head;
mod item;
mod memory;
mod mig;
mod pci;
mod performance;
mod power;
mod processes;
mod profiles;
mod repairs;
mod samples;
mod sections;
mod temperature;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod utilization;
mod vgpu;
mod xml;

pub(crate) use self::sections::{Section, list_section_words, parse_sections};
use self::{cursor::OutputFormat, dtd::Dtd, gpu::GpuBlock, head::ROOT_ELEMENT};
use super::{Context, release::Release};

const DTD_FILE_NAME: &str = "nvsmi_device_v13.dtd";

/// Returns the output of `-q`. If sections are given, returns the output of `-q -d`.
pub(crate) fn text(context: &Context<'_>, sections: Option<&[Section]>) -> String {
    let blocks = context.map_gpus(|gpu| {
        let shown = |item: &item::Item| {
            sections.map_or(item.full, |asked| {
                item.section.is_some_and(|own| asked.contains(&own))
            })
        };
        let GpuBlock { bus_id, items } =
            gpu::render_block(context, gpu, OutputFormat::Text, shown, text::write_item);
        format!("GPU {bus_id}\n{items}\n")
    });
    head::render_text(context) + &blocks.concat()
}

/// Returns the output of `-q -x`. If `with_dtd` is `true`, returns the output of `-q -x --dtd`.
pub(crate) fn xml(context: &Context<'_>, with_dtd: bool) -> String {
    let blocks = context.map_gpus(|gpu| {
        let GpuBlock { bus_id, items } = gpu::render_block(
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
    xml::write_branch(&mut out, 0, ROOT_ELEMENT, |out| {
        head::write_elements(out, context);
        out.push_str(&blocks.concat());
    });
    out
}

/// Returns the output of `--dtd`.
pub(crate) fn render_dtd(release: Release) -> String {
    build_gpu_dtd(release).render(DTD_FILE_NAME, "gpu")
}

fn build_gpu_dtd(release: Release) -> Dtd {
    let mut dtd = Dtd::new(release);
    let mut root: Vec<String> = head::list_header_lines(release)
        .map(|line| line.tag.to_owned())
        .collect();
    root.extend([
        format!("{}?", head::HOST_CAPABILITY_TITLES[0].1),
        head::ATTACHED.tag.to_owned(),
    ]);
    root.extend(["error_string?".to_owned(), "gpu*".to_owned()]);
    dtd.add_sequence(ROOT_ELEMENT, &root);
    dtd.add_sequence(
        head::HOST_CAPABILITY_TITLES[0].1,
        &[head::HOST_CAPABILITY_TITLES[1].1.to_owned()],
    );
    let lines = head::list_header_lines(release)
        .chain([&head::ATTACHED])
        .map(|line| line.tag);
    for tag in lines
        .chain([head::HOST_CAPABILITY_TITLES[1].1])
        .chain(UNUSED_ELEMENTS.iter().copied())
    {
        dtd.add_leaf(tag);
    }
    dtd.add_sequence(
        "gpu",
        &gpu::ITEMS
            .iter()
            .flat_map(|items| dtd.list_children(items))
            .collect::<Vec<_>>(),
    );
    for item in gpu::ITEMS.iter().copied().flatten() {
        dtd.add_item(item);
    }
    dtd
}

/// XML elements that NVIDIA's DTD declares but nvidia-smi never writes.
const UNUSED_ELEMENTS: &[&str] = &[
    "error_string",
    "reset_required",
    "drain_and_reset_recommended",
    "power_management",
    "graphics_volt",
];
