//! The log of units: boxes that held several boards, of which the last was made for Fermi. No driver that this program
//! runs with knows one, so their number is all that there is to tell.

use gpumon_probe::vendor::nvml::query::SystemQuery;

use super::{
    dtd::Dtd,
    format::{ABSENT, count, word},
    head::{self, Line, ROOT},
    xml::branch,
};
use crate::Context;

pub(super) const NAME: &str = "nvsmi_unit_v13.dtd";

const ATTACHED: Line = ("Attached Units", "attached_units", |context| match context.system(SystemQuery::UnitCount) {
    Ok(units) => units.at(0).map_or(ABSENT.to_owned(), count),
    Err(code) => word(code),
});

/// The host interface cards, which lead to units.
const CARDS: Line = ("HIC Info", "hic_info", |_| ABSENT.to_owned());

pub(super) fn text(context: &Context<'_>) -> String {
    let mut out = head::opening(context);
    out.push('\n');
    for line in [CARDS, ATTACHED] {
        head::write_line(&mut out, &line, context);
    }
    out.push('\n');
    out
}

pub(super) fn elements(out: &mut String, context: &Context<'_>) {
    head::write_elements(out, head::LINES, context);
    branch(out, 1, CARDS.1, |_| {});
    head::write_elements(out, &[ATTACHED], context);
}

pub(super) fn dtd() -> Dtd {
    let mut dtd = Dtd::default();
    let lines: Vec<&'static str> = head::LINES.iter().map(|line| line.1).collect();
    let mut root = lines.clone();
    root.extend([CARDS.1, ATTACHED.1, "error_string?", "unit*"]);
    for (tag, children) in
        [(ROOT, root.as_slice()), (CARDS.1, &["hic*"])].into_iter().chain(UNIT.iter().map(|(tag, held)| (*tag, *held)))
    {
        dtd.sequence(tag, &children.iter().map(|child| (*child).to_owned()).collect::<Vec<_>>());
    }
    for tag in lines.into_iter().chain([ATTACHED.1]).chain(LEAVES.iter().copied()) {
        dtd.leaf(tag);
    }
    dtd
}

const UNIT: &[(&str, &[&str])] = &[
    ("hic", &["firmware"]),
    (
        "unit",
        &["product_name", "id", "serial", "firmware", "led_state", "temperature", "psu", "fan_info", "attached_gpus"],
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
