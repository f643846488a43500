//! The layout of the screen: how much room each part gets.

use ratatui::layout::Rect;

use super::view::Room;

/// The smallest screen, in columns and rows, that can show anything readable.
pub(super) const SMALLEST: (u16, u16) = (40, 10);

/// The minimum width in columns of a GPU's line.
const GPU_COLUMNS: u16 = 80;
/// The minimum height, in lines, of the screen below the host's line for a line of totals.
const WITH_TOTALS: u16 = 16;
/// The minimum height of a view and of the list of processes, in lines.
const LEAST_VIEW: u16 = 4;
const LEAST_PROCESSES: u16 = 4;

/// The areas of all parts of the screen. A part of height 0 is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) title: Rect,
    /// The replay controls, or the reason why no data arrives.
    pub(super) banner: Rect,
    pub(super) host: Rect,
    pub(super) gpus: Rect,
    pub(super) gpu_columns: u16,
    /// The totals of all GPUs.
    pub(super) totals: Rect,
    pub(super) tabs: Rect,
    pub(super) view: Rect,
    pub(super) processes: Rect,
    /// The number of lines that the list of processes has too few.
    lacking: u16,
    pub(super) footer: Rect,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Wishes {
    pub(super) banner: bool,
    pub(super) gpus: usize,
    pub(super) processes: usize,
    pub(super) room: Room,
}

/// Divides the screen among its parts, or returns `None` if it is too small.
pub(super) fn areas(screen: Rect, wishes: Wishes) -> Option<Areas> {
    if screen.width < SMALLEST.0 || screen.height < SMALLEST.1 {
        return None;
    }
    let mut left = screen;
    let title = take(&mut left, 1);
    let banner = take(&mut left, u16::from(wishes.banner));
    let host = take(&mut left, 1);
    let footer = Rect {
        y: screen.bottom() - 1,
        height: 1,
        ..screen
    };
    left.height -= 1;
    let gpus = wishes.gpus.max(1) as u16;
    let most = (left.height * 2 / 5).max(1);
    let beside = gpus.div_ceil(most).min(screen.width / GPU_COLUMNS).max(1);
    let gpu_lines = gpus.div_ceil(beside).min(most);
    let has_totals = wishes.gpus > 1 && left.height >= WITH_TOTALS;
    let gpu_area = take(&mut left, gpu_lines);
    let totals = take(&mut left, u16::from(has_totals));
    let tabs = take(&mut left, 1);
    let wanted = u16::try_from(wishes.processes + 1).unwrap_or(u16::MAX);
    let processes = match wishes.room {
        Room::View => 0,
        Room::Processes => left.height,
        Room::Both if left.height < LEAST_VIEW + LEAST_PROCESSES + 1 => left.height,
        // The height changes in steps of four lines, so that the other parts do not move whenever a
        // process starts or ends.
        Room::Both => wanted
            .div_ceil(4)
            .saturating_mul(4)
            .clamp(LEAST_PROCESSES, left.height / 2),
    };
    let view_lines = left.height - processes;
    let view = take(&mut left, view_lines);
    let gpu_columns = beside;
    let lacking = wanted.saturating_sub(left.height);
    let processes = left;
    Some(Areas {
        title,
        banner,
        host,
        gpus: gpu_area,
        gpu_columns,
        totals,
        tabs,
        view,
        processes,
        lacking,
        footer,
    })
}

impl Areas {
    /// Returns the area of the list of processes, extended over the view's `empty` last lines as
    /// far as needed. One empty line stays to separate the two.
    pub(super) fn processes_over(&self, empty: u16) -> Rect {
        let more = if self.processes.height > 0 {
            empty.saturating_sub(1).min(self.lacking)
        } else {
            0
        };
        Rect {
            y: self.processes.y - more,
            height: self.processes.height + more,
            ..self.processes
        }
    }
}

fn take(left: &mut Rect, lines: u16) -> Rect {
    let lines = lines.min(left.height);
    let taken = Rect {
        height: lines,
        ..*left
    };
    left.y += lines;
    left.height -= lines;
    taken
}

/// Returns the number of columns and rows in which to arrange the charts, or `None` if not even one
/// chart fits. If there are too few rows, the last charts are not shown.
pub(super) fn grid(area: Rect, charts: usize) -> Option<(u16, u16)> {
    const LEAST: (u16, u16) = (16, 3);
    if area.width < LEAST.0 || area.height < LEAST.1 || charts == 0 {
        return None;
    }
    let fitting = (1..=charts as u16).map(|columns| (columns, (charts as u16).div_ceil(columns)));
    let fitting = fitting
        .filter(|(columns, rows)| area.width / columns >= LEAST.0 && area.height / rows >= LEAST.1);
    // A chart is best about five times as wide as high, in character cells.
    let worth = |(columns, rows): &(u16, u16)| (area.width / columns).min(5 * (area.height / rows));
    let best = fitting.max_by_key(|size| (worth(size), std::cmp::Reverse(size.0 * size.1)));
    Some(best.unwrap_or((
        (area.width / LEAST.0).min(charts as u16),
        area.height / LEAST.1,
    )))
}

/// Returns one field of a grid. The last column and row take the remaining space.
pub(super) fn field(area: Rect, (columns, rows): (u16, u16), place: u16) -> Rect {
    let (column, row) = (place % columns, place / columns);
    let (width, height) = (area.width / columns, area.height / rows);
    let last = |at: u16, of: u16, size: u16, all: u16| {
        if at + 1 == of {
            all - size * (of - 1)
        } else {
            size
        }
    };
    Rect {
        x: area.x + column * width,
        y: area.y + row * height,
        width: last(column, columns, width, area.width),
        height: last(row, rows, height, area.height),
    }
}

/// Returns one field of a grid that its charts fill completely: if they would leave the last row
/// incomplete, the first row has fewer and wider fields instead.
pub(super) fn filled(area: Rect, shape: (u16, u16), place: u16, charts: u16) -> Rect {
    let (columns, rows) = shape;
    match charts % columns {
        leading if leading == 0 || charts > columns * rows => field(area, shape, place),
        leading if place < leading => field(field(area, (1, rows), 0), (leading, 1), place),
        leading => field(area, shape, place - leading + columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: u16, height: u16) -> Rect {
        Rect {
            x: 0,
            y: 0,
            width,
            height,
        }
    }

    #[test]
    fn every_line_belongs_to_exactly_one_part_at_any_size() {
        for (width, height) in [
            (40, 10),
            (60, 12),
            (80, 24),
            (120, 40),
            (200, 50),
            (300, 60),
            (500, 200),
        ] {
            for gpus in [0, 1, 2, 8, 64] {
                for (banner, processes) in [(false, 0), (true, 3), (false, 2000)] {
                    for room in [Room::Both, Room::View, Room::Processes] {
                        let wishes = Wishes {
                            banner,
                            gpus,
                            processes,
                            room,
                        };
                        let areas = areas(screen(width, height), wishes).unwrap();
                        let parts = [
                            areas.title,
                            areas.banner,
                            areas.host,
                            areas.gpus,
                            areas.totals,
                            areas.tabs,
                            areas.view,
                            areas.processes,
                            areas.footer,
                        ];
                        let mut next = 0;
                        for part in parts.into_iter().filter(|part| part.height > 0) {
                            assert_eq!(part.y, next, "{width}x{height} {wishes:?} {areas:?}");
                            next = part.bottom();
                        }
                        assert_eq!(next, height, "{wishes:?}");
                        assert!(
                            areas.gpus.height > 0 && areas.view.height + areas.processes.height > 0
                        );
                    }
                }
            }
        }
        assert_eq!(
            areas(
                screen(39, 10),
                Wishes {
                    banner: false,
                    gpus: 1,
                    processes: 0,
                    room: Room::Both
                }
            ),
            None
        );
        assert_eq!(
            areas(
                screen(40, 9),
                Wishes {
                    banner: false,
                    gpus: 1,
                    processes: 0,
                    room: Room::Both
                }
            ),
            None
        );
    }

    #[test]
    fn eight_gpus_charts_and_processes_all_have_room_at_80_by_24() {
        let wishes = Wishes {
            banner: false,
            gpus: 8,
            processes: 8,
            room: Room::Both,
        };
        let areas = areas(screen(80, 24), wishes).unwrap();
        assert_eq!((areas.gpus.height, areas.gpu_columns), (8, 1));
        assert!(
            areas.totals.height == 1 && areas.view.height >= 6 && areas.processes.height >= 5,
            "{areas:?}"
        );
    }

    #[test]
    fn many_gpus_stand_beside_each_other_where_it_is_wide() {
        let wishes = Wishes {
            banner: false,
            gpus: 64,
            processes: 8,
            room: Room::Both,
        };
        assert_eq!(areas(screen(300, 60), wishes).unwrap().gpu_columns, 3);
        assert_eq!(areas(screen(80, 24), wishes).unwrap().gpu_columns, 1);
    }

    #[test]
    fn charts_fill_their_area_without_overlap() {
        for (width, height, charts) in [
            (80, 6, 8),
            (80, 6, 4),
            (300, 30, 8),
            (40, 3, 1),
            (120, 20, 2),
            (60, 4, 64),
        ] {
            let area = screen(width, height);
            let (columns, rows) = grid(area, charts).unwrap();
            let fields: Vec<_> = (0..columns * rows)
                .map(|place| field(area, (columns, rows), place))
                .collect();
            assert_eq!(
                fields.iter().map(|field| field.area()).sum::<u32>(),
                area.area(),
                "{width}x{height} {charts}"
            );
            assert!(
                fields
                    .iter()
                    .all(|field| field.height >= 3 && field.width >= 16)
            );
        }
        let three: Vec<_> = (0..3)
            .map(|place| filled(screen(120, 20), (2, 2), place, 3))
            .collect();
        assert_eq!(
            three
                .iter()
                .map(|field| (field.x, field.y, field.width))
                .collect::<Vec<_>>(),
            [(0, 0, 120), (0, 10, 60), (60, 10, 60)]
        );
        assert_eq!(grid(screen(300, 30), 8), Some((4, 2)));
        assert_eq!(grid(screen(80, 2), 1), None);
    }
}
