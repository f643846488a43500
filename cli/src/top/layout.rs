//! The layout of the screen, which divides the space among its parts, and the views that the user
//! can select for the middle part.

use clap::ValueEnum;
use ratatui::layout::Rect;

/// The minimum size of the screen in columns and rows. Smaller screens cannot show anything
/// readable.
pub(super) const MIN_SIZE: (u16, u16) = (40, 10);

/// The minimum width in columns of a GPU's line.
const MIN_GPU_WIDTH: u16 = 80;
/// A line of totals is shown only if the area below the host's line has at least this height, in
/// lines.
const MIN_HEIGHT_WITH_TOTALS: u16 = 16;
/// Each GPU gets a second line, about what limits it, only if the area below the host's line has at
/// least this height, in lines.
const MIN_HEIGHT_WITH_LIMITS: u16 = 30;
/// The minimum height of a view, in lines. The constant below is the minimum height of the list of
/// processes.
const MIN_VIEW_HEIGHT: u16 = 4;
const MIN_PROCESSES_HEIGHT: u16 = 4;

/// The areas of all parts of the screen. Parts with a height of 0 are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) title: Rect,
    /// The banner with the replay controls, or with the reason why no data arrives.
    pub(super) banner: Rect,
    pub(super) host: Rect,
    pub(super) gpus: Rect,
    pub(super) gpu_columns: u16,
    /// The height of each GPU: one line, or two lines if the second line shows what limits the GPU.
    pub(super) lines_per_gpu: u16,
    /// The line with the totals of all GPUs.
    pub(super) totals: Rect,
    pub(super) tabs: Rect,
    pub(super) view: Rect,
    pub(super) processes: Rect,
    /// How many lines the list of processes lacks to be shown completely.
    lacking: u16,
    pub(super) footer: Rect,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LayoutRequest {
    pub(super) banner: bool,
    pub(super) gpus: usize,
    pub(super) processes: usize,
    /// Whether the GPUs have shown what limits them.
    pub(super) limits: bool,
    pub(super) room: ScreenSplit,
}

/// Divides the screen among its parts. Returns `None` if the screen is too small.
pub(super) fn divide_screen(screen: Rect, wishes: LayoutRequest) -> Option<Areas> {
    if screen.width < MIN_SIZE.0 || screen.height < MIN_SIZE.1 {
        return None;
    }
    let mut left = screen;
    let title = split_off_top_lines(&mut left, 1);
    let banner = split_off_top_lines(&mut left, u16::from(wishes.banner));
    let host = split_off_top_lines(&mut left, 1);
    let footer = Rect {
        y: screen.bottom() - 1,
        height: 1,
        ..screen
    };
    left.height -= 1;
    let gpus = wishes.gpus.max(1) as u16;
    let most = (left.height * 2 / 5).max(1);
    let gpu_columns = gpus.div_ceil(most).min(screen.width / MIN_GPU_WIDTH).max(1);
    let has_limits = wishes.limits && left.height >= MIN_HEIGHT_WITH_LIMITS && gpus <= most / 2;
    let lines_per_gpu = if has_limits { 2 } else { 1 };
    let gpu_lines = (gpus.div_ceil(gpu_columns) * lines_per_gpu).min(most);
    let has_totals = wishes.gpus > 1 && left.height >= MIN_HEIGHT_WITH_TOTALS;
    let gpu_area = split_off_top_lines(&mut left, gpu_lines);
    let totals = split_off_top_lines(&mut left, u16::from(has_totals));
    let tabs = split_off_top_lines(&mut left, 1);
    let wanted = u16::try_from(wishes.processes + 1).unwrap_or(u16::MAX);
    let processes = match wishes.room {
        ScreenSplit::View => 0,
        ScreenSplit::Processes => left.height,
        ScreenSplit::Both if left.height < MIN_VIEW_HEIGHT + MIN_PROCESSES_HEIGHT + 1 => {
            left.height
        }
        // The height changes in steps of four lines, so that other parts do not move each time a
        // process starts or ends.
        ScreenSplit::Both => wanted
            .div_ceil(4)
            .saturating_mul(4)
            .clamp(MIN_PROCESSES_HEIGHT, left.height / 2),
    };
    let view_lines = left.height - processes;
    let view = split_off_top_lines(&mut left, view_lines);
    Some(Areas {
        title,
        banner,
        host,
        gpus: gpu_area,
        gpu_columns,
        lines_per_gpu,
        totals,
        tabs,
        view,
        processes: left,
        lacking: wanted.saturating_sub(left.height),
        footer,
    })
}

impl Areas {
    /// Returns the area of the list of processes. If the list does not fit, the area is extended
    /// over the `empty` lines at the end of the view. One of these lines stays empty to separate
    /// the view from the list.
    pub(super) fn extended_processes_area(&self, empty: u16) -> Rect {
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

fn split_off_top_lines(left: &mut Rect, lines: u16) -> Rect {
    let lines = lines.min(left.height);
    let taken = Rect {
        height: lines,
        ..*left
    };
    left.y += lines;
    left.height -= lines;
    taken
}

/// Returns the number of columns and rows for a grid of charts, or `None` if not even one chart
/// fits. If there are not enough rows, the last charts are not shown.
pub(super) fn choose_grid(area: Rect, charts: usize) -> Option<(u16, u16)> {
    const MIN_CHART_SIZE: (u16, u16) = (16, 3);
    if area.width < MIN_CHART_SIZE.0 || area.height < MIN_CHART_SIZE.1 || charts == 0 {
        return None;
    }
    let fitting = (1..=charts as u16).map(|columns| (columns, (charts as u16).div_ceil(columns)));
    let fitting = fitting.filter(|(columns, rows)| {
        area.width / columns >= MIN_CHART_SIZE.0 && area.height / rows >= MIN_CHART_SIZE.1
    });
    // Charts look best if they are about five times as wide as high, measured in character cells.
    let worth = |(columns, rows): &(u16, u16)| (area.width / columns).min(5 * (area.height / rows));
    let best = fitting.max_by_key(|size| (worth(size), std::cmp::Reverse(size.0 * size.1)));
    Some(best.unwrap_or((
        (area.width / MIN_CHART_SIZE.0).min(charts as u16),
        area.height / MIN_CHART_SIZE.1,
    )))
}

/// Returns the area of one field in a grid. The last column and the last row include the remaining
/// space.
pub(super) fn find_grid_field(area: Rect, (columns, rows): (u16, u16), place: u16) -> Rect {
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

/// Returns the area of one field in a grid without empty fields. If the last row would be
/// incomplete, the first row has fewer and wider fields instead.
pub(super) fn find_filled_grid_field(
    area: Rect,
    shape: (u16, u16),
    place: u16,
    charts: u16,
) -> Rect {
    let (columns, rows) = shape;
    match charts % columns {
        leading if leading == 0 || charts > columns * rows => find_grid_field(area, shape, place),
        leading if place < leading => {
            find_grid_field(find_grid_field(area, (1, rows), 0), (leading, 1), place)
        }
        leading => find_grid_field(area, shape, place - leading + columns),
    }
}

/// A view that can be shown in the middle of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    Charts,
    Activity,
    Links,
    Mig,
    Host,
    Events,
}

impl View {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Charts => "Charts",
            Self::Activity => "Activity",
            Self::Links => "Links",
            Self::Mig => "MIG",
            Self::Host => "Host",
            Self::Events => "Events",
        }
    }
}

/// Returns the item after or before `now`. The first item follows the last one.
pub(super) fn step_in_cycle<T: Copy + PartialEq>(all: &[T], now: T, forward: bool) -> T {
    let at = all.iter().position(|one| *one == now).unwrap_or(0);
    all[(at + if forward { 1 } else { all.len() - 1 }) % all.len()]
}

/// The parts that share the space below the tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ScreenSplit {
    /// The selected view, with the list of processes below it.
    #[default]
    Both,
    View,
    Processes,
}

impl ScreenSplit {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Both => Self::View,
            Self::View => Self::Processes,
            Self::Processes => Self::Both,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen_area(width: u16, height: u16) -> Rect {
        Rect {
            x: 0,
            y: 0,
            width,
            height,
        }
    }

    #[test]
    fn layout_areas_cover_screen_without_overlap() {
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
                    for room in [ScreenSplit::Both, ScreenSplit::View, ScreenSplit::Processes] {
                        let wishes = LayoutRequest {
                            banner,
                            gpus,
                            processes,
                            limits: processes > 0,
                            room,
                        };
                        let areas = divide_screen(screen_area(width, height), wishes).unwrap();
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
            divide_screen(
                screen_area(39, 10),
                LayoutRequest {
                    banner: false,
                    gpus: 1,
                    processes: 0,
                    limits: false,
                    room: ScreenSplit::Both
                }
            ),
            None
        );
        assert_eq!(
            divide_screen(
                screen_area(40, 9),
                LayoutRequest {
                    banner: false,
                    gpus: 1,
                    processes: 0,
                    limits: false,
                    room: ScreenSplit::Both
                }
            ),
            None
        );
    }

    #[test]
    fn gpus_charts_and_processes_fit_80_by_24() {
        let wishes = LayoutRequest {
            banner: false,
            gpus: 8,
            processes: 8,
            limits: false,
            room: ScreenSplit::Both,
        };
        let areas = divide_screen(screen_area(80, 24), wishes).unwrap();
        assert_eq!((areas.gpus.height, areas.gpu_columns), (8, 1));
        assert!(
            areas.totals.height == 1 && areas.view.height >= 6 && areas.processes.height >= 5,
            "{areas:?}"
        );
    }

    #[test]
    fn limits_take_no_line_of_small_screens() {
        let divide = |gpus, height, limits| {
            let wishes = LayoutRequest {
                banner: false,
                gpus,
                processes: 8,
                limits,
                room: ScreenSplit::Both,
            };
            let areas = divide_screen(screen_area(120, height), wishes).unwrap();
            (areas.gpus.height, areas.lines_per_gpu)
        };
        assert_eq!(divide(1, 24, true), (1, 1));
        assert_eq!(divide(7, 40, true), (14, 2));
        assert_eq!(divide(7, 40, false), (7, 1));
        assert_eq!(divide(8, 40, true), (8, 1));
        assert_eq!(divide(8, 60, true), (16, 2));
    }

    #[test]
    fn wide_screen_has_several_gpu_columns() {
        let wishes = LayoutRequest {
            banner: false,
            gpus: 64,
            processes: 8,
            limits: false,
            room: ScreenSplit::Both,
        };
        assert_eq!(
            divide_screen(screen_area(300, 60), wishes)
                .unwrap()
                .gpu_columns,
            3
        );
        assert_eq!(
            divide_screen(screen_area(80, 24), wishes)
                .unwrap()
                .gpu_columns,
            1
        );
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
            let area = screen_area(width, height);
            let (columns, rows) = choose_grid(area, charts).unwrap();
            let fields: Vec<_> = (0..columns * rows)
                .map(|place| find_grid_field(area, (columns, rows), place))
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
            .map(|place| find_filled_grid_field(screen_area(120, 20), (2, 2), place, 3))
            .collect();
        assert_eq!(
            three
                .iter()
                .map(|field| (field.x, field.y, field.width))
                .collect::<Vec<_>>(),
            [(0, 0, 120), (0, 10, 60), (60, 10, 60)]
        );
        assert_eq!(choose_grid(screen_area(300, 30), 8), Some((4, 2)));
        assert_eq!(choose_grid(screen_area(80, 2), 1), None);
    }

    #[test]
    fn views_cycle_in_both_directions() {
        let step = |view, forward| step_in_cycle(View::value_variants(), view, forward);
        assert_eq!(step(View::Events, true), View::Charts);
        assert_eq!(step(View::Charts, false), View::Events);
        assert_eq!(ScreenSplit::Both.next().next().next(), ScreenSplit::Both);
    }
}
