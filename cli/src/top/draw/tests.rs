//! Tests of whole screens, in several sizes.

use clap::ValueEnum as _;
use gpumon_probe::model::{
    Absence, Condition, ConditionKind, GpuSample, Health, LimitClass, Reading, Record, Severity,
};
use unicode_width::UnicodeWidthStr;

use crate::{
    describe,
    table::examples::example_limits,
    terminal::screen::Glyphs,
    top::{
        app::{
            App,
            tests::{build_app, draw_lines},
        },
        layout::{ScreenSplit, View},
        processes::Column,
        theme::{Theme, ThemeName},
    },
};

fn find_line<'a>(lines: &'a [String], start: &str) -> &'a str {
    lines
        .iter()
        .find(|line| line.starts_with(start))
        .unwrap_or_else(|| panic!("no line begins with {start:?}: {lines:#?}"))
}

#[test]
fn eight_gpus_fit_80_by_24() {
    let (mut app, _waiting) = build_app(8);
    let drawn = draw_lines(&mut app, 80, 24);
    assert!(
        drawn[0].starts_with("gpumon  driver") || drawn[0].starts_with("gpumon  8 x H"),
        "{}",
        drawn[0]
    );
    for gpu in 0..8 {
        let line = &drawn[2 + gpu];
        assert!(line.starts_with(&format!(" {gpu} H200")), "{line}");
        assert!(
            line.contains(" % ")
                && line.contains(" GiB ")
                && line.contains("°C")
                && line.contains(" W"),
            "{line}"
        );
    }
    assert!(
        drawn[1].starts_with("CPU ") && drawn[1].contains("  net "),
        "{}",
        drawn[1]
    );
    assert!(
        drawn[10].starts_with("Total") && drawn[10].matches(['%', 'G', 'W']).count() == 3,
        "{}",
        drawn[10]
    );
    assert!(
        drawn[11].starts_with(" Charts  Activity  Links  MIG  Host  Events "),
        "{}",
        drawn[11]
    );
    assert!(
        drawn[11]
            .trim_end()
            .ends_with("all GPUs · GPU utilization · 2 min")
    );
    assert!(
        drawn[12].starts_with("0 H200")
            && drawn[12].contains("1 H200")
            && drawn[12].contains("3 H200")
    );
    assert!(drawn[13..18].join("").contains('⣿'), "charts have lines");
    let heading = find_line(&drawn, "GPU      PID  USER");
    for column in ["MEMORY▼", "SM", "TIME", "WHAT"] {
        assert!(heading.contains(column), "{heading}");
    }
    assert!(!heading.contains("ENC"), "nothing encodes: {heading}");
    assert!(drawn[23].starts_with("q quit  ? help"), "{}", drawn[23]);
}

#[test]
fn all_columns_and_charts_fit_300_by_60() {
    let (mut app, _waiting) = build_app(8);
    let drawn = draw_lines(&mut app, 300, 60);
    let heading = find_line(&drawn, "GPU      PID  USER");
    for column in ["TYPE", "OF GPU", "MEM ", "ENC", "DEC", "16 processes"] {
        assert!(heading.contains(column), "{heading}");
    }
    let axes = drawn
        .iter()
        .filter(|line| line.starts_with("    100 %"))
        .count();
    assert_eq!(axes, 2, "a value axis at the left of each row of charts");
    let times = drawn
        .iter()
        .filter(|line| line.matches(':').count() >= 8 * 3)
        .count();
    assert_eq!(times, 2, "a time axis below each row of charts");
    assert!(drawn[59].contains("T signal") && drawn[59].contains("z zoom"));
    // A single simulated GPU may use no memory for a while, but it is practically impossible that
    // all eight use none. At least one bar must therefore be visible.
    let gpus = drawn[2..10].concat();
    assert!(
        gpus.contains('━') && gpus.contains(['▁', '▅', '█']),
        "{gpus}"
    );
}

#[test]
fn every_view_fits_every_size_and_charset() {
    let (mut app, _waiting) = build_app(4);
    for glyphs in Glyphs::ALL {
        app.state.glyphs = glyphs;
        for (width, height) in [
            (1, 1),
            (10, 50),
            (39, 10),
            (40, 10),
            (60, 20),
            (80, 24),
            (200, 60),
        ] {
            for view in View::value_variants().iter().copied() {
                for (room, gpu) in [
                    (ScreenSplit::Both, None),
                    (ScreenSplit::View, Some(1)),
                    (ScreenSplit::Processes, Some(3)),
                ] {
                    (app.state.view, app.state.room, app.state.gpu) = (view, room, gpu);
                    for line in draw_lines(&mut app, width, height) {
                        assert!(
                            line.width() <= usize::from(width) && !line.contains(char::is_control),
                            "{line:?}"
                        );
                        assert!(
                            glyphs != Glyphs::Ascii || line.is_ascii(),
                            "{view:?} at {width}x{height}: {line}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn host_line_and_totals_fit_every_width() {
    let (mut app, _waiting) = build_app(2);
    let sample = app.model.sample.as_mut().unwrap();
    let host = &mut sample.host;
    (host.cpu.busy_percent, host.cpu.load_1m) = (Reading::Now(34.0), Reading::Now(3.214));
    (host.memory.used_bytes, host.memory.total_bytes) =
        (Reading::Now(41 << 30), Reading::Now(128 << 30));
    host.disk.read_bytes_per_second = Reading::Now(1.0e9);
    host.disk.written_bytes_per_second = Reading::Now(2.4e8);
    host.network.sent_bytes_per_second = Reading::Absent(Absence::WarmingUp);
    for (gpu, (busy, used, watts)) in sample
        .gpus
        .iter_mut()
        .zip([(40.0, 20, 100.0), (60.0, 80, 650.0)])
    {
        gpu.utilization.gpu_percent = Reading::Now(busy);
        (gpu.memory.used_bytes, gpu.memory.total_bytes) =
            (Reading::Now(used << 30), Reading::Now(140 << 30));
        (gpu.power.draw_watts, gpu.power.limit_watts) = (Reading::Now(watts), Reading::Now(700.0));
    }
    let line = |app: &mut crate::top::app::App, width, at: usize| {
        draw_lines(app, width, 24)[at]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line(&mut app, 40, 1), "CPU 34 % RAM 41.0/128 GiB load 3.21");
    assert_eq!(
        line(&mut app, 80, 1),
        "CPU 34 % RAM 41.0/128 GiB load 3.21 disk 1.24 GB/s net -"
    );
    let wide = line(&mut app, 112, 1);
    assert_eq!(
        wide,
        "CPU 34 % RAM 41.0/128 GiB load 3.21 disk R 1.00 GB/s W 240 MB/s net RX - TX -"
    );
    assert!(line(&mut app, 160, 1).contains("GiB ━━━━━━━━━───"));
    let totals = line(&mut app, 80, 4);
    assert!(
        totals.starts_with("Total 50 % 100.0/280 GiB ") && totals.ends_with(" 750/1400 W"),
        "{totals}"
    );
    app.model.sample.as_mut().unwrap().gpus[0].power.draw_watts =
        Reading::Absent(Absence::NotSupported);
    assert!(line(&mut app, 80, 4).ends_with(" 650/700 W 1 of 2 GPUs"));
    app.model.sample.as_mut().unwrap().gpus[0].health = Health::Hung { since_ms: 0 };
    let totals = line(&mut app, 80, 4);
    let other = &app.model.gpus()[1];
    let busy = describe::format_utilization(other);
    assert!(
        totals.starts_with(&format!("Total {busy} ")) && totals.contains("/140 GiB"),
        "{totals}"
    );
    assert!(totals.ends_with(" 1 of 2 GPUs"), "{totals}");
    let (mut one, _waiting) = crate::top::app::tests::build_app(1);
    assert!(!draw_lines(&mut one, 80, 24).join("\n").contains("Total"));
}

#[test]
fn memory_is_drawn_as_line_over_utilization() {
    let (mut app, _waiting) = build_app(1);
    let lines = draw_lines(&mut app, 120, 40);
    let begin = lines
        .iter()
        .position(|line| line.starts_with("GPU utilization, memory  "))
        .unwrap();
    assert!(
        lines[begin].contains(" %  memory ") && lines[begin].trim_end().ends_with('%'),
        "{}",
        lines[begin]
    );
    let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 120, 40));
    super::draw_screen(&mut app, &mut buffer);
    let theme = &app.state.theme;
    let drawn = |meaning: ratatui::style::Style, y: u16| {
        let cells = (10..119)
            .map(|x| &buffer[(x, y)])
            .filter(|cell| Some(cell.fg) == meaning.fg && cell.symbol() != " ");
        cells.count()
    };
    let rows = begin as u16 + 1..(begin + 14) as u16;
    for meaning in [theme.memory, theme.utilization] {
        assert!(
            rows.clone().map(|y| drawn(meaning, y)).sum::<usize>() > 20,
            "{lines:#?}"
        );
    }
    for (label, is_guide) in [
        ("    100 % ", true),
        ("     50 % ", true),
        ("      0 % ", false),
    ] {
        let y = begin
            + lines[begin..]
                .iter()
                .position(|line| line.starts_with(label))
                .unwrap();
        assert_eq!(
            drawn(theme.dim, y as u16) > 20,
            is_guide,
            "{label}: {}",
            lines[y]
        );
    }
    let others = lines
        .iter()
        .find(|line| line.starts_with("Power  "))
        .unwrap();
    assert!(
        others.contains("Temperature") && !lines.join("").contains("Memory  "),
        "each has one chart: {others}"
    );
}

#[test]
fn memory_overlay_requires_known_total_and_selected_metric() {
    let (mut app, _waiting) = build_app(1);
    let has = |app: &mut crate::top::app::App, title: &str| {
        draw_lines(app, 120, 40).join("\n").contains(title)
    };
    app.model.sample.as_mut().unwrap().gpus[0]
        .memory
        .total_bytes = Reading::Absent(Absence::NotSupported);
    assert!(has(&mut app, "Memory  ") && !has(&mut app, "GPU utilization, memory"));
    let (mut app, _waiting) = crate::top::app::tests::build_app(1);
    let memory = crate::top::metrics::find_metric_position("memory");
    app.state.metrics.retain(|metric| Some(*metric) != memory);
    assert!(has(&mut app, "GPU utilization  ") && !has(&mut app, "GPU utilization, memory"));
}

#[test]
fn charts_of_several_gpus_share_their_axis() {
    use gpumon_probe::model::Record;
    let (mut app, _waiting) = build_app(2);
    app.state.metrics = vec![crate::top::metrics::find_metric_position("pcie-tx").unwrap()];
    let mut sample = app.model.sample.clone().unwrap();
    sample.at_ms += 1000;
    for (gpu, speed) in sample.gpus.iter_mut().zip([1.5e7, 1.2e10]) {
        gpu.at_ms = sample.at_ms;
        gpu.pcie.tx_bytes_per_second = Reading::Now(speed);
    }
    app.model
        .ingest(crate::top::model::Update::Record(Box::new(Record::Sample(
            sample,
        ))));
    let screen = draw_lines(&mut app, 120, 40).join("\n");
    assert_eq!(
        (
            screen.matches("20.0 GB/s").count(),
            screen.matches("20.0 MB/s").count()
        ),
        (2, 0),
        "{screen}"
    );
}

#[test]
fn short_chart_has_no_overlay_line() {
    let (mut app, _waiting) = build_app(8);
    let mut cells_of_memory = |height| {
        let mut buffer =
            ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 120, height));
        super::draw_screen(&mut app, &mut buffer);
        let is_dots =
            |symbol: &str| symbol.starts_with(|dots| ('\u{2801}'..='\u{28ff}').contains(&dots));
        let memory = app.state.theme.memory.fg;
        buffer
            .content
            .iter()
            .filter(|cell| Some(cell.fg) == memory && is_dots(cell.symbol()))
            .count()
    };
    assert_eq!(cells_of_memory(24), 0);
    assert!(cells_of_memory(50) > 20);
}

#[test]
fn wide_terminal_shows_further_readings_or_dash() {
    let (mut app, _waiting) = build_app(2);
    let sample = app.model.sample.as_mut().unwrap();
    for gpu in &mut sample.gpus {
        gpu.clocks.sm_mhz = Reading::Now(1980);
        gpu.performance_state = Reading::Now(0);
        gpu.fan_percent = Reading::Absent(Absence::NotSupported);
        gpu.activity = Reading::Absent(Absence::NotSupported);
        gpu.temperature.memory_celsius = Reading::Now(61.0);
        gpu.power.energy_joules_total = Reading::Now(4.5e8);
    }
    sample.gpus[1].clocks.sm_mhz = Reading::Absent(Absence::Unknown);
    for (details, errors) in app.model.details.iter_mut().zip([3, 0]) {
        details.ecc.volatile.uncorrected_total = Reading::Now(errors);
    }
    let row = |app: &mut crate::top::app::App, width, gpu: usize| {
        draw_lines(app, width, 30)[2 + gpu]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(!row(&mut app, 80, 0).contains("MHz"));
    let some = row(&mut app, 130, 0);
    assert!(
        some.contains(" W 1980 MHz") && !some.contains("memory 61"),
        "{some}"
    );
    let wide = row(&mut app, 200, 0);
    assert!(
        wide.contains(" W 1980 MHz memory 61 °C P0 ECC 3 125 kWh"),
        "{wide}"
    );
    assert!(
        row(&mut app, 200, 1).contains(" W - memory 61 °C P0 ECC 0 125 kWh"),
        "{}",
        row(&mut app, 200, 1)
    );
    app.model.sample.as_mut().unwrap().gpus[1].fan_percent = Reading::Now(45.0);
    assert!(
        row(&mut app, 200, 0).contains(" W 1980 MHz memory 61 °C P0 ")
            && row(&mut app, 200, 1).contains(" fan 45 % P0 ")
    );
}

#[test]
fn process_list_uses_lines_left_by_view() {
    let (mut app, _waiting) = build_app(8);
    let rows = |app: &mut crate::top::app::App, view| {
        app.state.view = view;
        let lines = draw_lines(app, 120, 40);
        let begin = lines
            .iter()
            .position(|line| line.starts_with("GPU      PID"))
            .unwrap();
        assert!(
            view == View::Charts || lines[begin - 1].trim().is_empty(),
            "{lines:#?}"
        );
        lines[begin + 1..39]
            .iter()
            .filter(|line| !line.trim().is_empty())
            .count()
    };
    assert!(rows(&mut app, View::Charts) < 16);
    assert_eq!(
        [View::Events, View::Activity].map(|view| rows(&mut app, view)),
        [16, 16]
    );
}

#[test]
fn host_usage_of_processes_needs_120_columns() {
    use crate::top::model::{ProcessUsage, Usage};
    let (mut app, _waiting) = build_app(2);
    let usage = ProcessUsage {
        cpu_percent: Some(387.2),
        threads: 17,
    };
    app.model.usage = Usage::from([(4000, usage)]);
    let drawn = draw_lines(&mut app, 120, 40);
    let heading = find_line(&drawn, "GPU      PID");
    assert!(
        heading.contains("   CPU   HOST MEM") && !heading.contains("THR"),
        "{heading}"
    );
    assert!(find_line(&drawn, "  0     4000").contains("387 %    5.0 GiB"));
    assert!(find_line(&drawn, "  0     4007").contains("     -    4.5 GiB"));
    assert!(!draw_lines(&mut app, 80, 24).join("").contains("HOST MEM"));
    app.state.processes.columns = Column::value_variants().to_vec();
    let drawn = draw_lines(&mut app, 200, 40);
    assert!(find_line(&drawn, "GPU      PID").contains("HOST MEM   THR"));
    assert!(find_line(&drawn, "  0     4000").contains("5.0 GiB    17"));
}

#[test]
fn too_small_screen_shows_message() {
    let (mut app, _waiting) = build_app(1);
    assert_eq!(
        draw_lines(&mut app, 39, 12)[0].trim_end(),
        "40x10 needed, the terminal has 39x12"
    );
}

#[test]
fn lost_and_hung_gpus_show_words_not_zeros() {
    let (mut app, _waiting) = build_app(4);
    let now = app.model.now_ms();
    let sample = app.model.sample.as_mut().unwrap();
    sample.gpus[1] = GpuSample::new_absent(
        1,
        None,
        now,
        Health::Lost {
            since_ms: now - 61_000,
        },
        &Absence::GpuLost,
    );
    sample.gpus[2].health = Health::Hung {
        since_ms: now - 5_000,
    };
    let drawn = draw_lines(&mut app, 120, 40);
    let lost = find_line(&drawn, " 1 H200");
    assert!(
        lost.contains("GPU lost for 1 min") && !lost.contains("0 %") && !lost.contains("0 W"),
        "{lost}"
    );
    assert!(find_line(&drawn, " 2 H200").contains("hung for 5 s"));
    assert!(find_line(&drawn, " 3 H200").contains(" GiB"));
    assert!(
        drawn
            .iter()
            .any(|line| line.contains("processes of GPU 1: GPU lost")),
        "{drawn:#?}"
    );
}

#[test]
fn activity_view_shows_execution_units_or_reason() {
    let (mut app, _waiting) = build_app(2);
    app.state.view = View::Activity;
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("TENSOR") && drawn.contains("OCCUP"),
        "{drawn}"
    );
    app.state.gpu = Some(0);
    let one = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        one.contains("Tensor active")
            && one.contains("half precision")
            && one.contains("DRAM bandwidth utilization"),
        "{one}"
    );
    app.model.sample.as_mut().unwrap().gpus[0].activity = Reading::Absent(Absence::NotSupported);
    assert!(
        draw_lines(&mut app, 120, 40)
            .join("\n")
            .contains("not supported by this board or driver")
    );
}

#[test]
fn links_view_lists_gpus_or_single_links() {
    let (mut app, _waiting) = build_app(2);
    app.state.view = View::Links;
    let all = draw_lines(&mut app, 120, 40);
    assert!(
        all.iter()
            .any(|line| line.contains("x16 of 5 x16") && line.contains("18 of 18")),
        "{all:#?}"
    );
    let narrow = draw_lines(&mut app, 80, 24);
    let line = narrow
        .iter()
        .find(|line| line.contains("18 of 18"))
        .unwrap();
    assert!(
        line.matches("B/s").count() == 4 && !line.contains('…'),
        "every rate is whole: {line}"
    );
    app.state.gpu = Some(1);
    app.state.room = ScreenSplit::View;
    let one = draw_lines(&mut app, 120, 40).join("\n");
    assert!(one.contains("NVSwitch") && one.contains("LINK"), "{one}");
    assert_eq!(one.matches(" up ").count(), 18, "{one}");
}

#[test]
fn events_view_shows_conditions_and_events_as_sentences() {
    let (mut app, _waiting) = build_app(2);
    app.state.view = View::Events;
    for gpu in &mut app.model.sample.as_mut().unwrap().gpus {
        gpu.conditions.clear();
    }
    assert!(
        draw_lines(&mut app, 120, 40)
            .join("\n")
            .contains("No problems found.")
    );
    let condition = Condition {
        since_ms: app.model.now_ms() - 120_000,
        severity: Severity::Critical,
        text: "Xid 79: the GPU has fallen off the bus. Reboot the machine.".to_owned(),
        kind: ConditionKind::Xid {
            pid: None,
            code: 79,
            count: 1,
            last_ms: 0,
        },
    };
    app.model.sample.as_mut().unwrap().gpus[1]
        .conditions
        .push(condition);
    let drawn = draw_lines(&mut app, 120, 40);
    assert!(
        drawn
            .iter()
            .any(|line| line.contains("for 2m  GPU 1   Xid 79: the GPU has fallen")),
        "{drawn:#?}"
    );
    assert!(find_line(&drawn, " 1 H200").contains("Xid 79"));
    app.state.gpu = Some(0);
    assert!(
        !draw_lines(&mut app, 120, 40)
            .join("\n")
            .contains("fallen off"),
        "it is another GPU's"
    );
}

#[test]
fn lasting_conditions_are_listed_once() {
    use gpumon_probe::model::{Event, EventKind, GpuRef, XidReport};
    let (mut app, _waiting) = build_app(2);
    app.state.view = View::Events;
    app.state.room = ScreenSplit::View;
    let now = app.model.now_ms();
    let since_ms = now - 60_000;
    let xid = |code: u32, since_ms: u64| Condition {
        since_ms,
        severity: Severity::Critical,
        text: format!("Xid {code}: bad address."),
        kind: ConditionKind::Xid {
            pid: None,
            code,
            count: 1,
            last_ms: 0,
        },
    };
    let gpus = &mut app.model.sample.as_mut().unwrap().gpus;
    gpus[0].conditions = vec![xid(31, since_ms)];
    gpus[1].conditions.clear();
    gpus[1].health = Health::Lost { since_ms };
    let gpu = |index| Some(GpuRef { index, uuid: None });
    let report = |code| XidReport {
        code,
        name: None,
        pid: None,
        meaning: "bad address.".into(),
        advice: String::new(),
        message: None,
    };
    app.model.events = [
        // The conditions of these three events have ended, although no events report their ends.
        Event {
            at_ms: since_ms - 50_000,
            gpu: gpu(0),
            what: EventKind::Xid(report(13)),
        },
        Event {
            at_ms: since_ms - 50_000,
            gpu: gpu(0),
            what: EventKind::ConditionBegan(xid(13, since_ms - 50_000)),
        },
        Event {
            at_ms: since_ms - 9000,
            gpu: gpu(1),
            what: EventKind::GpuLost,
        },
        // The conditions of the following events still exist.
        Event {
            at_ms: since_ms,
            gpu: gpu(1),
            what: EventKind::GpuLost,
        },
        Event {
            at_ms: since_ms + 1,
            gpu: gpu(0),
            what: EventKind::Xid(report(31)),
        },
        Event {
            at_ms: since_ms + 1,
            gpu: gpu(0),
            what: EventKind::ConditionBegan(xid(31, since_ms)),
        },
    ]
    .into();
    let drawn = draw_lines(&mut app, 120, 40)[4..].join("\n");
    assert!(
        drawn.contains("for 1m  GPU 1   GPU lost: see gpumon doctor"),
        "{drawn}"
    );
    assert_eq!(drawn.matches("Xid 31").count(), 1, "{drawn}");
    assert_eq!(drawn.matches("Xid 13").count(), 1, "{drawn}");
    assert_eq!(drawn.matches("fallen off").count(), 1, "{drawn}");
    app.state.gpu = Some(1);
    app.model.events.clear();
    assert!(
        draw_lines(&mut app, 120, 40)
            .join("\n")
            .contains("No events since")
    );
}

#[test]
fn views_show_host_charts_and_absence_of_mig() {
    let (mut app, _waiting) = build_app(2);
    app.state.view = View::Host;
    let host = draw_lines(&mut app, 120, 40).join("\n");
    for label in ["CPU, ", "RAM of ", "Disk read", "Network TX"] {
        assert!(host.contains(label), "{label}: {host}");
    }
    app.state.view = View::Mig;
    let mig = draw_lines(&mut app, 120, 40);
    assert!(
        mig.join("\n")
            .contains("GPU 0: no MIG instance, not divided")
    );
    let empty = mig.iter().filter(|line| line.trim().is_empty()).count();
    assert!(
        mig.join("").contains('⣿') && empty < 10,
        "charts fill what its lines leave: {mig:#?}"
    );
}

#[test]
fn monochrome_theme_has_no_colors() {
    let (mut app, _waiting) = build_app(2);
    app.state.theme = Theme::new(ThemeName::Monochrome);
    let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect {
        x: 0,
        y: 0,
        width: 120,
        height: 40,
    });
    super::draw_screen(&mut app, &mut buffer);
    for cell in &buffer.content {
        assert_eq!(
            (cell.fg, cell.bg),
            (ratatui::style::Color::Reset, ratatui::style::Color::Reset)
        );
    }
}

#[test]
fn every_theme_shows_load_by_color_and_weight() {
    use ratatui::style::Modifier;
    for theme in ThemeName::value_variants().iter().copied() {
        let (mut app, _waiting) = build_app(1);
        app.state.theme = Theme::new(theme);
        let mut weights = Vec::new();
        for percent in [5.0, 50.0, 95.0] {
            app.model.sample.as_mut().unwrap().gpus[0]
                .utilization
                .gpu_percent = Reading::Now(percent);
            let mut buffer =
                ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 120, 40));
            super::draw_screen(&mut app, &mut buffer);
            let number = format!("{percent:.0} %");
            let line: String = (0..120).map(|x| buffer[(x, 2)].symbol()).collect();
            let at = line.split(&number).next().unwrap().chars().count() as u16;
            let (before, cell) = (&buffer[(at - 1, 2)], &buffer[(at, 2)]);
            assert!(
                !before.modifier.contains(Modifier::UNDERLINED),
                "blanks are not underlined"
            );
            weights.push((
                cell.modifier.contains(Modifier::BOLD),
                cell.modifier.contains(Modifier::UNDERLINED),
            ));
        }
        assert_eq!(
            weights,
            [(false, false), (true, false), (true, true)],
            "{theme:?}"
        );
    }
}

#[test]
fn stale_values_are_gray_and_show_age() {
    use ratatui::style::Color;
    let (mut app, _waiting) = build_app(2);
    let sample = app.model.sample.as_mut().unwrap();
    sample.at_ms = gpumon_probe::model::now_ms() - 65_000;
    app.model.ingest(crate::top::model::Update::Silent(
        "no connection".to_owned(),
    ));
    let drawn = draw_lines(&mut app, 120, 40);
    assert!(
        drawn[0].contains("no data for 1m") && drawn[1].starts_with("no connection"),
        "{drawn:#?}"
    );
    let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 120, 40));
    super::draw_screen(&mut app, &mut buffer);
    for y in (2..6).chain(7..39) {
        for x in 0..120 {
            let cell = &buffer[(x, y)];
            let is_blank = cell.symbol() == " ";
            assert!(
                is_blank || cell.fg == Color::DarkGray,
                "{:?} at {x}, {y} is {:?}",
                cell.symbol(),
                cell.fg
            );
        }
    }
}

#[test]
fn first_phrase_is_complete_at_80_columns() {
    let (mut app, _waiting) = build_app(2);
    let kind = ConditionKind::Xid {
        pid: None,
        code: 79,
        count: 1,
        last_ms: 0,
    };
    let text = "Xid 79: The GPU fell off the PCIe bus. Check power.".to_owned();
    let gpu = &mut app.model.sample.as_mut().unwrap().gpus[1];
    gpu.conditions = vec![Condition {
        since_ms: 0,
        severity: Severity::Critical,
        text,
        kind,
    }];
    let at_80 = draw_lines(&mut app, 80, 24);
    assert!(
        at_80[3].trim_end().ends_with("  Xid 79: fell off the bus"),
        "{}",
        at_80[3]
    );
    assert!(
        at_80[3].contains("/700 W") && at_80[3].contains("/140 GiB"),
        "{}",
        at_80[3]
    );
    let at_160 = draw_lines(&mut app, 160, 24);
    assert!(
        at_160[3].contains("Xid 79: GPU has fallen off the bus – reboot the machine"),
        "{}",
        at_160[3]
    );
}

#[test]
fn mig_gpu_shows_sm_activity_or_reason() {
    let (mut app, _waiting) = build_app(2);
    let mut sample = app.model.sample.clone().unwrap();
    let parts = sample.gpus[1].activity.clone();
    sample.gpus[1].utilization.gpu_percent = Reading::Absent(Absence::NotSupported);
    let mut show = |activity: Reading<gpumon_probe::model::Activity>| {
        sample.gpus[1].activity = activity;
        for _ in 0..200 {
            sample.at_ms += 1000;
            sample.gpus[1].at_ms = sample.at_ms;
            app.model.ingest(crate::top::model::Update::Record(Box::new(
                gpumon_probe::model::Record::Sample(sample.clone()),
            )));
        }
        draw_lines(&mut app, 120, 40)
    };
    let drawn = show(parts);
    let head = find_line(&drawn, " 1 H200");
    assert!(
        head.contains("SM ") && head.contains(['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']),
        "{head}"
    );
    let title = drawn
        .iter()
        .find(|line| line.contains("1 H200") && !line.starts_with(" 1"))
        .unwrap();
    assert!(title.contains(" SM "), "{title}");
    let drawn = show(Reading::Absent(Absence::NotSupported));
    // The reason for the absence is wrapped in the right chart and drawn over the dots of the grid.
    let (at, start) = drawn
        .iter()
        .enumerate()
        .find_map(|(at, line)| Some((at, line.find("GPU utilization: not")?)))
        .unwrap_or_else(|| panic!("{drawn:#?}"));
    let column = drawn[at][..start].chars().count();
    let reason: Vec<String> = drawn[at..at + 2]
        .iter()
        .map(|line| line.chars().skip(column).collect())
        .collect();
    assert!(
        reason
            .join("")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("GPU utilization: not supported by this board or driver"),
        "{drawn:#?}"
    );
}

#[test]
fn process_names_in_events_have_no_control_characters() {
    let (mut app, _waiting) = build_app(1);
    app.state.view = View::Events;
    let process = gpumon_probe::model::ProcessRef {
        pid: 7,
        name: Reading::Now("a\u{1b}[2J".to_owned()),
        program: None,
        user: Reading::Absent(Absence::Hidden),
        started_ms: Reading::Now(0),
    };
    let what = gpumon_probe::model::EventKind::ProcessStarted(process);
    app.model.events.push_back(gpumon_probe::model::Event {
        at_ms: 0,
        gpu: None,
        what,
    });
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("a [2J (7) started"), "{drawn}");
}

#[test]
fn process_list_shows_number_of_omitted_processes() {
    let (mut app, _waiting) = build_app(2);
    app.model.sample.as_mut().unwrap().gpus[1].processes_omitted = 976;
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("processes, 976 more processes"), "{drawn}");
}

#[test]
fn invisible_processes_are_noted() {
    let (mut app, _waiting) = build_app(1);
    let gpu = &mut app.model.sample.as_mut().unwrap().gpus[0];
    (gpu.processes, gpu.unlisted_memory_bytes) = (Reading::Now(Vec::new()), Some(1_181_116_006));
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    let note = "GPU 0: processes of other namespaces are not visible: 1.10 GiB in use";
    assert!(
        drawn.contains(note) && !drawn.contains("no processes"),
        "{drawn}"
    );
}

#[test]
fn job_of_process_is_visible_at_80_columns() {
    let (mut app, _waiting) = build_app(1);
    if let Some(Reading::Now(processes)) = app
        .model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[0].processes)
    {
        let slurm = Some(gpumon_probe::model::BatchJob {
            job_id: "4194771".to_owned(),
            step: None,
            private: false,
        });
        processes[0].command =
            Reading::Now("/opt/env/bin/python train.py --config gpt2-medium.yaml".to_owned());
        processes[0].name = Reading::Now("python".to_owned());
        processes[0].owner = Reading::Now(gpumon_probe::model::Owner {
            slurm,
            ..gpumon_probe::model::Owner::default()
        });
    }
    let drawn = draw_lines(&mut app, 80, 24);
    assert!(
        drawn
            .iter()
            .any(|line| line.contains("python train.") && line.contains("(slurm 4194771)")),
        "{drawn:#?}"
    );
}

/// The shares of causes, in percent: mostly host-bound, partly tensor-bound.
const HOST_BOUND: [(LimitClass, f64); 3] = [
    (LimitClass::Host, 62.0),
    (LimitClass::Tensor, 30.0),
    (LimitClass::Idle, 8.0),
];

/// Adds a minute of samples with the limits of each GPU.
fn add_limits(app: &mut App, limits: &[&[(LimitClass, f64)]]) {
    let mut sample = app.model.sample.clone().unwrap();
    for (gpu, limits) in sample.gpus.iter_mut().zip(limits) {
        gpu.limits = Reading::Now(example_limits(limits));
    }
    for _ in 0..60 {
        sample.at_ms += 1000;
        sample.gpus.iter_mut().for_each(|gpu| gpu.at_ms += 1000);
        let record = Box::new(Record::Sample(sample.clone()));
        app.model.ingest(crate::top::model::Update::Record(record));
    }
}

#[test]
fn small_screen_shows_limit_in_gpu_line() {
    let (mut app, _waiting) = build_app(2);
    let before = draw_lines(&mut app, 80, 24);
    add_limits(&mut app, &[&HOST_BOUND, &[(LimitClass::Idle, 100.0)]]);
    let drawn = draw_lines(&mut app, 80, 24);
    assert!(
        drawn[2].trim_end().ends_with(" W  Host-bound 62 %"),
        "{}",
        drawn[2]
    );
    assert!(!drawn[3].contains("Idle"), "{}", drawn[3]);
    assert_eq!(drawn[5], before[5], "the tabs have not moved");
}

#[test]
fn tall_screen_shows_evidence_below_gpu() {
    let (mut app, _waiting) = build_app(2);
    add_limits(&mut app, &[&HOST_BOUND, &[(LimitClass::Idle, 100.0)]]);
    let text = "   Host-bound 62 %: A process uses 100 % of a core while the GPU waits.";
    let drawn = draw_lines(&mut app, 120, 40);
    assert!(
        drawn[2].starts_with(" 0 H200") && !drawn[2].contains("Host"),
        "{}",
        drawn[2]
    );
    assert_eq!(drawn[3].trim_end(), text);
    assert!(
        drawn[4].starts_with(" 1 H200") && drawn[5].trim().is_empty(),
        "{drawn:#?}"
    );
    assert!(drawn[6].starts_with("Total"), "{drawn:#?}");
    let narrow = draw_lines(&mut app, 60, 40);
    assert_eq!(narrow[3], text.chars().take(59).collect::<String>() + "…");
    // The lines stay after the GPUs have become idle.
    add_limits(
        &mut app,
        &[&[(LimitClass::Idle, 100.0)], &[(LimitClass::Idle, 100.0)]],
    );
    let drawn = draw_lines(&mut app, 120, 40);
    assert!(
        drawn[3].trim().is_empty() && drawn[4].starts_with(" 1 H200"),
        "{drawn:#?}"
    );
}

#[test]
fn activity_of_gpu_starts_with_limits_and_advice() {
    let (mut app, _waiting) = build_app(1);
    add_limits(&mut app, &[&HOST_BOUND]);
    app.state.view = View::Activity;
    app.model.sample.as_mut().unwrap().gpus[0].activity = Reading::Absent(Absence::NotSupported);
    let drawn = draw_lines(&mut app, 120, 24);
    assert_eq!(
        [4, 5, 6, 7].map(|line| drawn[line].trim_end()),
        [
            "Host-bound 62 %: A process uses 100 % of a core while the GPU waits.",
            "Shares: host-bound 62 %, tensor-bound 30 %, idle 8 %",
            "Prepare data in worker processes or on the GPU, and start the next step before its \
             result is needed.",
            ""
        ]
    );
    assert!(
        drawn[8].starts_with("The activity of GPU 0 is not known"),
        "{drawn:#?}"
    );
}

#[test]
fn chart_of_limits_stacks_causes_by_letter() {
    let (mut app, _waiting) = build_app(1);
    app.state.metrics = vec![crate::top::metrics::find_metric_position("limits").unwrap()];
    add_limits(&mut app, &[&[(LimitClass::Tensor, 100.0)]]);
    add_limits(&mut app, &[&HOST_BOUND]);
    app.state.room = ScreenSplit::View;
    for (theme, glyphs) in [
        (ThemeName::Dark, Glyphs::Braille),
        (ThemeName::Monochrome, Glyphs::Ascii),
    ] {
        app.state.glyphs = glyphs;
        app.state.set_theme(theme);
        let drawn = draw_lines(&mut app, 80, 24);
        let [title, chart @ .., legend, times] = &drawn[4..23] else {
            panic!("the chart has several lines");
        };
        assert!(
            title.starts_with("Limited by  ") && title.trim_end().ends_with("Host-bound 62 %"),
            "{title}"
        );
        let columns = [20, 75].map(|x| {
            let letters = chart.iter().map(|line| line.chars().nth(x).unwrap());
            letters.collect::<String>()
        });
        assert_eq!(
            columns,
            [
                "T".repeat(16),
                "-".to_owned() + &"H".repeat(10) + &"T".repeat(5)
            ]
        );
        assert_eq!(legend.trim(), "T Tensor-bound  H Host-bound  - Idle");
        assert_eq!(times.matches(':').count(), 6, "{times}");
    }
    // The charts of several GPUs may have only a few lines.
    let (mut app, _waiting) = build_app(2);
    app.state.metrics = vec![crate::top::metrics::find_metric_position("limits").unwrap()];
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("all GPUs · Limited by · 2 min"), "{drawn}");
    add_limits(&mut app, &[&HOST_BOUND, &HOST_BOUND]);
    app.state.room = ScreenSplit::View;
    let drawn = draw_lines(&mut app, 60, 10);
    assert!(
        drawn[5].starts_with("0 H200") && drawn[5].contains(" H 62 % 1 H200"),
        "{drawn:#?}"
    );
    assert_eq!(drawn[6].matches("HHHHHHHH").count(), 2, "{drawn:#?}");
    assert_eq!(drawn[8].matches("H Host-bound").count(), 2, "{drawn:#?}");
}
