//! How full a device is, in one line: what is used, what is free, and what of it stays free for others.

use gpumon_workload::protocol::MemoryLevel;

use crate::terminal::{
    glyphs::Glyphs,
    style::{ALARM, DIM, MEMORY, NOTICE, paint},
};

const LONGEST: usize = 40;

/// Returns a line of at most so many columns.
pub(super) fn line(level: &MemoryLevel, columns: usize, glyphs: Glyphs) -> String {
    let short = format!(
        "{:.1}/{:.1} GiB",
        gib(level.used_bytes),
        gib(level.total_bytes)
    );
    let text = [level.to_string(), short]
        .into_iter()
        .find(|text| text.len() + 12 <= columns);
    let text = text.map(|text| format!("  {text}")).unwrap_or_default();
    let length = columns.saturating_sub(text.len()).min(LONGEST);
    let (used, rest) = glyphs.draw_bar(level.share(), length);
    let rest: Vec<char> = rest.chars().collect();
    let reserve = (level.reserve_bytes as f64 / level.total_bytes.max(1) as f64 * length as f64)
        .ceil() as usize;
    let free = rest.len().saturating_sub(reserve);
    let reserved = if glyphs == Glyphs::Ascii { "|" } else { "┄" }.repeat(rest.len() - free);
    let is_theirs = level.total_bytes.saturating_sub(level.used_bytes) < level.reserve_bytes;
    let style = if is_theirs { ALARM } else { MEMORY };
    let free: String = rest[..free].iter().collect();
    format!(
        "{}{}{}{text}",
        paint(style, &used),
        paint(DIM, &free),
        paint(NOTICE, &reserved)
    )
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1_u64 << 30) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::style::plain;

    #[test]
    fn what_is_used_and_what_stays_free_are_told_apart() {
        let plain = |level, columns| plain(&line(&level, columns, Glyphs::Ascii));
        let half = MemoryLevel {
            used_bytes: 4 << 30,
            total_bytes: 8 << 30,
            reserve_bytes: 1 << 29,
        };
        let long = plain(half, 100);
        assert_eq!(
            long,
            format!("{}{}|||  {half}", "#".repeat(20), ".".repeat(17))
        );
        assert_eq!(plain(half, 30), "#########......||  4.0/8.0 GiB");
        for columns in [0, 1, 5, 12, 25, 79] {
            assert!(plain(half, columns).len() <= columns, "{columns}");
        }
        let full = MemoryLevel {
            used_bytes: 8 << 30,
            ..half
        };
        assert_eq!(plain(full, 100), format!("{}  {full}", "#".repeat(40)));
    }
}
