//! The title line with the program, the source of the readings, and the time. If needed, a banner
//! follows below.

use gpumon_probe::model::{Playback, now_ms};
use gpumon_recording::Player;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::{
    describe,
    terminal::units::format_compact_duration,
    top::{
        model::{Model, Origin},
        painter::Painter,
        state::State,
        text::{format_date_and_time, format_time, make_printable},
    },
};

pub(in crate::top) fn draw_title(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) {
    let (strong, plain, dim) = (painter.theme.strong, painter.theme.plain, painter.theme.dim);
    let now = format_time(model.now_ms());
    let age = model
        .sample
        .as_ref()
        .map(|sample| format_compact_duration(now_ms().saturating_sub(sample.at_ms)));
    let no_data = age.map_or_else(|| "no data".to_owned(), |age| format!("no data for {age}"));
    let (lamp, state_word, style) = match (model.origin, model.is_stale()) {
        _ if model.is_recorded() && !model.is_stale() => ("", "replay", painter.theme.notice),
        _ if model.paused => ("", "paused", painter.theme.notice),
        (_, true) => ("● ", no_data.as_str(), painter.theme.alarm),
        (Origin::Server, _) if model.direct.is_some() => {
            ("● ", "live from driver", painter.theme.notice)
        }
        (Origin::Server, _) => ("● ", "live from server", painter.theme.well),
        (Origin::Node, _) => ("● ", "live from node", painter.theme.well),
        (Origin::Driver | Origin::Recording, _) => ("● ", "live", painter.theme.well),
    };
    let interval = match (model.origin, state.interval_ms) {
        _ if model.is_recorded() => String::new(),
        (_, ms) if ms % 1000 == 0 => format!("{} s  ", ms / 1000),
        (_, ms) => format!("{ms} ms  "),
    };
    let right = [
        (format!("{lamp}{state_word}  "), style),
        (interval, dim),
        (now, strong),
    ];
    let right_columns = right
        .iter()
        .map(|(text, _)| text.width() as u16)
        .sum::<u16>();
    let mut parts = vec![("gpumon".to_owned(), strong)];
    if model.is_simulated() {
        parts.push(("simulated".to_owned(), painter.theme.simulated));
    }
    if let Some(known) = &model.inventory {
        if !model.is_simulated() {
            let versions = known.platform.driver_and_cuda_versions();
            parts.extend(
                versions
                    .iter()
                    .map(|version| (make_printable(version), plain)),
            );
        }
        parts.push((describe::format_models(known), plain));
        parts.push((make_printable(&known.hostname), dim));
    }
    // The parts are in order of importance. The first part that does not fit and all later parts
    // are omitted.
    let room = area.width.saturating_sub(right_columns + 2);
    let mut x = area.x;
    for (text, style) in parts {
        let width = text.width() as u16;
        if x + width > area.x + room {
            break;
        }
        x += painter.draw_text(x, area.y, width, &text, style) + 2;
    }
    painter.draw_pieces(
        area.right().saturating_sub(right_columns),
        area.y,
        right_columns,
        &right,
    );
}

/// Draws the position of a replay, or the reason why no data arrives.
pub(in crate::top) fn draw_banner(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    player: Option<&Player>,
) {
    if area.height == 0 {
        return;
    }
    let Some(player) = player else {
        if let Some(why) = find_silence_reason(model) {
            let theme = painter.theme;
            let style = if model.is_stale() {
                theme.alarm
            } else {
                theme.notice
            };
            painter.draw_text(area.x, area.y, area.width, &make_printable(&why), style);
        }
        return;
    };
    if let Some(why) = &model.silent {
        painter.draw_text(area.x, area.y, area.width, why, painter.theme.alarm);
        return;
    }
    let (now, first, last) = player.current_first_and_last_ms();
    let state = match () {
        () if player.is_over() => "ended",
        () if player.is_paused() => "paused",
        () => "playing",
    };
    let what = format!("{state}, speed {}x  ", player.playback_speed());
    let mut x = area.x + painter.draw_text(area.x, area.y, area.width, &what, painter.theme.notice);
    let from = format!("{} ", format_time(first));
    x += painter.draw_text(
        x,
        area.y,
        area.right().saturating_sub(x),
        &from,
        painter.theme.dim,
    );
    let to = format!(" {}  {}", format_time(last), format_date_and_time(now));
    let bar = area.right().saturating_sub(x + to.width() as u16);
    if bar >= 8 {
        let share = if last > first {
            (now - first.min(now)) as f64 / (last - first) as f64
        } else {
            1.0
        };
        painter.draw_bar(x, area.y, bar, Some(share), painter.theme.plain);
    }
    painter.draw_text_right(area.x, area.y, area.width, &to, painter.theme.dim);
}

/// Describes the state of a server's replay.
fn describe_playback(playback: &Playback, at_ms: u64) -> String {
    let how = match playback {
        Playback { ended: true, .. } => "ended".to_owned(),
        Playback { paused: true, .. } => "paused".to_owned(),
        Playback { speed, .. } => format!("speed {speed}x"),
    };
    format!(
        "the server replays a recording of {}, {how}",
        format_date_and_time(at_ms)
    )
}

pub(in crate::top) fn find_silence_reason(model: &Model) -> Option<String> {
    let late = || {
        model
            .overdue_age_ms()
            .map(|late| format!("no new readings for {}", format_compact_duration(late)))
    };
    let waiting = || {
        model
            .sample
            .is_none()
            .then(|| "waiting for the first readings".to_owned())
    };
    model
        .silent
        .clone()
        .or_else(|| {
            model
                .playback()
                .map(|playback| describe_playback(playback, model.now_ms()))
        })
        .or_else(late)
        .or_else(|| model.direct.clone())
        .or_else(|| waiting().filter(|_| model.origin != Origin::Recording))
}
