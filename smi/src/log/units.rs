//! The log of units: boxes that held several boards, of which the last was made for Fermi. No driver that this program
//! runs with knows one, so their number is all that there is to tell.

use gpumon_probe::vendor::nvml::query::SystemQuery;

use super::{
    dtd::Dtd,
    format::{ABSENT, count, word},
    head::{self, Line, ROOT, line_of},
    xml::branch,
};
use crate::{Context, release::Release};

pub(super) const NAME: &str = "nvsmi_unit_v13.dtd";

static ATTACHED: Line = line_of("Attached Units", "attached_units", |context| match context
    .system(SystemQuery::UnitCount)
{
    Ok(units) => units.at(0).map_or(ABSENT.to_owned(), count),
    Err(code) => word(code),
});

/// The host interface cards, which lead to units.
static CARDS: Line = line_of("HIC Info", "hic_info", |_| ABSENT.to_owned());

pub(super) fn text(context: &Context<'_>) -> String {
    let mut out = head::opening(context);
    out.push('\n');
    for line in [&CARDS, &ATTACHED] {
        head::write_line(&mut out, line, context);
    }
    out.push('\n');
    out
}

pub(super) fn elements(out: &mut String, context: &Context<'_>) {
    head::write_elements(out, head::lines(context.release()), context);
    branch(out, 1, CARDS.tag, |_| {});
    head::write_elements(out, [&ATTACHED], context);
}

pub(super) fn dtd(release: Release) -> Dtd {
    let mut dtd = Dtd::new(release);
    let lines: Vec<&'static str> = head::lines(release).map(|line| line.tag).collect();
    let mut root = lines.clone();
    root.extend([CARDS.tag, ATTACHED.tag, "error_string?", "unit*"]);
    for (tag, children) in [(ROOT, root.as_slice()), (CARDS.tag, &["hic*"])]
        .into_iter()
        .chain(UNIT.iter().map(|(tag, held)| (*tag, *held)))
    {
        dtd.sequence(
            tag,
            &children
                .iter()
                .map(|child| (*child).to_owned())
                .collect::<Vec<_>>(),
        );
    }
    for tag in lines
        .into_iter()
        .chain([ATTACHED.tag])
        .chain(LEAVES.iter().copied())
    {
        dtd.leaf(tag);
    }
    dtd
}

const UNIT: &[(&str, &[&str])] = &[
    ("hic", &["firmware"]),
    (
        "unit",
        &[
            "product_name",
            "id",
            "serial",
            "firmware",
            "led_state",
            "temperature",
            "psu",
            "fan_info",
            "attached_gpus",
        ],
    ),
    ("led_state", &["color", "cause"]),
    ("temperature", &["intake", "exhaust", "board"]),
    ("psu", &["psu_state", "voltage", "current"]),
    ("fan_info", &["fan*"]),
    ("fan", &["fan_state", "fan_speed"]),
    ("attached_gpus", &["gpu*"]),
];

const LEAVES: &[&str] = &[
    "error_string",
    "product_name",
    "id",
    "serial",
    "firmware",
    "color",
    "cause",
    "intake",
    "exhaust",
    "board",
    "psu_state",
    "voltage",
    "current",
    "fan_state",
    "fan_speed",
    "gpu",
];
