//! The lines above a table: where it was read, and what all GPUs come to.

use gpumon_fleet::{
    Rows,
    model::{FleetSourceKind, FleetState},
};
use gpumon_probe::untrusted::escaped;
use unicode_width::UnicodeWidthStr;

use crate::{
    fleet::nodes::Totals,
    terminal::{
        columns::Columns,
        style::{ALARM, DIM, NOTICE, PLAIN, STRONG, paint},
        units::clock,
    },
};

/// Two lines and one that is empty.
pub(super) fn lines(rows: &Rows<'_>, shown: Option<&[bool]>, terminal: Option<usize>) -> String {
    let totals = Totals::new(rows, shown);
    let fleet = rows.fleet;
    let time = clock(fleet.at_ms, gpumon_probe::model::now_ms());
    let source = match fleet.source.kind {
        FleetSourceKind::Prometheus => escaped(&fleet.source.name),
        FleetSourceKind::Hosts => format!("{} over ssh", escaped(&fleet.source.name)),
    };
    let state = match fleet.state {
        FleetState::Partial => format!("  {}", paint(NOTICE, "incomplete")),
        _ => String::new(),
    };
    let sizes = totals.sizes();
    let place = format!("{source}  {time}");
    let begin = format!("{}  {sizes}", paint(STRONG, "fleet"));
    let first = Columns::empty(terminal).append_or_wrap(&(begin + &state), 0, &paint(DIM, &place));
    let mut second = String::new();
    for part in totals.parts() {
        let style = if part.ends_with(" lost") {
            ALARM
        } else {
            PLAIN
        };
        let is_room = terminal.is_none_or(|room| last_width(&second) + 2 + part.width() <= room);
        let gap = if second.is_empty() {
            ""
        } else if is_room {
            "  "
        } else {
            "\n"
        };
        second = second + gap + &paint(style, &part);
    }
    format!("{first}\n{second}\n\n")
}

fn last_width(text: &str) -> usize {
    crate::terminal::style::plain(text.rsplit('\n').next().unwrap_or_default()).width()
}
