//! `-q`: all readings of a GPU, as text and as XML.
//!
//! The readings are defined in tables, one file per subject. [`item`] defines the entries of a
//! table, and [`gpu`] the order of the tables. [`text`](mod@text), [`xml`](mod@xml) and
//! [`dtd`](mod@dtd) use the same tables, so that a new line needs only one entry. The block of each
//! GPU is written on its own thread, and asks each query at most once, and only if its answer is
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

pub(crate) use self::sections::{Section, parse_sections, section_words};
use self::{cursor::Form, dtd::Dtd, gpu::Block, head::ROOT};
use super::{Context, release::Release};

const NAME: &str = "nvsmi_device_v13.dtd";

/// Returns the output of `-q`, or with sections, of `-q -d`.
pub(crate) fn text(context: &Context<'_>, sections: Option<&[Section]>) -> String {
    let blocks = context.each(|gpu| {
        let shown = |item: &item::Item| {
            sections.map_or(item.full, |asked| {
                item.section.is_some_and(|own| asked.contains(&own))
            })
        };
        let Block { bus_id, items } = gpu::block(context, gpu, Form::Text, shown, text::write);
        format!("GPU {bus_id}\n{items}\n")
    });
    head::text(context) + &blocks.concat()
}

/// Returns the output of `-q -x`, or with the DTD, of `-q -x --dtd`.
pub(crate) fn xml(context: &Context<'_>, with_dtd: bool) -> String {
    let blocks = context.each(|gpu| {
        let Block { bus_id, items } = gpu::block(
            context,
            gpu,
            Form::Xml,
            |_| true,
            |out, item, at| xml::write(out, item, at, 2),
        );
        format!(
            "\t<gpu id=\"{}\">\n{items}\t</gpu>\n\n",
            xml::escape(&bus_id)
        )
    });
    let dtd = if with_dtd {
        format!("[\n{}]", dtd_text(context.release()))
    } else {
        format!("SYSTEM \"{NAME}\"")
    };
    let mut out = format!("<?xml version=\"1.0\" ?>\n<!DOCTYPE {ROOT} {dtd}>\n");
    // The root's tags are on lines of their own, so that a reader of `-l` can find the end of a
    // document.
    xml::branch(&mut out, 0, ROOT, |out| {
        head::elements(out, context);
        out.push_str(&blocks.concat());
    });
    out
}

/// Returns the output of `--dtd`.
pub(crate) fn dtd_text(release: Release) -> String {
    of_gpus(release).text(NAME, "gpu")
}

fn of_gpus(release: Release) -> Dtd {
    let mut dtd = Dtd::new(release);
    let mut root: Vec<String> = head::lines(release)
        .map(|line| line.tag.to_owned())
        .collect();
    root.extend([
        format!("{}?", head::HOST[0].1),
        head::ATTACHED.tag.to_owned(),
    ]);
    root.extend(["error_string?".to_owned(), "gpu*".to_owned()]);
    dtd.add_sequence(ROOT, &root);
    dtd.add_sequence(head::HOST[0].1, &[head::HOST[1].1.to_owned()]);
    let lines = head::lines(release)
        .chain([&head::ATTACHED])
        .map(|line| line.tag);
    for tag in lines.chain([head::HOST[1].1]).chain(UNUSED.iter().copied()) {
        dtd.add_leaf(tag);
    }
    dtd.add_sequence(
        "gpu",
        &gpu::ITEMS
            .iter()
            .flat_map(|items| dtd.children(items))
            .collect::<Vec<_>>(),
    );
    for item in gpu::ITEMS.iter().copied().flatten() {
        dtd.item(item);
    }
    dtd
}

/// Elements that NVIDIA's DTD declares but that are never written.
const UNUSED: &[&str] = &[
    "error_string",
    "reset_required",
    "drain_and_reset_recommended",
    "power_management",
    "graphics_volt",
];
