//! Tests of whole fleet screens, in several sizes.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    time::Duration,
};

use gpumon_fleet::model::{Fleet, FleetState, GpuHealth};
use gpumon_server::listen::Listener;
use ratatui::{
    buffer::Buffer,
    crossterm::event::{
        Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
    },
    layout::Rect,
};

use super::{app::FleetApp, live_node::Opener};
use crate::{
    fleet::testing::{ExampleGpu, build_fleet, make_busy_gpu},
    terminal::screen::Glyphs,
    top::{
        input::Input,
        main_loop::{LiveScreen, NextStep},
        model::Update,
        settings::Settings,
        theme::{Background, Theme, ThemeName},
    },
};

fn example_fleet() -> Fleet {
    let lost = ExampleGpu {
        health: GpuHealth::NotResponding,
        busy: None,
        ..ExampleGpu::default()
    };
    let free = ExampleGpu {
        processes: Some(0),
        ..ExampleGpu::default()
    };
    let idle = ExampleGpu {
        idle_s: Some(7200.0),
        ..make_busy_gpu("bob", 0.0)
    };
    let hot = ExampleGpu {
        condition: Some(("power_capped", 2)),
        celsius: Some(88.0),
        ..make_busy_gpu("eve", 100.0)
    };
    build_fleet(&[
        ("node1", &vec![make_busy_gpu("ana", 97.0); 8]),
        (
            "node2",
            &[
                vec![free.clone(); 6],
                vec![idle, make_busy_gpu("bob", 30.0)],
            ]
            .concat(),
        ),
        (
            "node10",
            &[vec![lost], vec![make_busy_gpu("ana", 60.0); 7]].concat(),
        ),
        ("node11\u{1b}[2J<b>", &[hot, free]),
        ("node12", &[]),
    ])
}

/// Returns a fleet screen whose nodes cannot be reached, and the receiver of the screen's inputs.
fn build_screen(theme: ThemeName, glyphs: Glyphs) -> (FleetApp, Receiver<Input>) {
    let (inputs, waiting) = mpsc::sync_channel(16);
    let connector = Listener::open_in_process().1;
    let opener = Opener {
        connector,
        settings: Settings::default(),
        file: None,
        theme,
        glyphs,
        inputs,
        opened: 0,
    };
    (FleetApp::new(opener), waiting)
}

fn build_app() -> FleetApp {
    let mut app = build_screen(ThemeName::Dark, Glyphs::Braille).0;
    app.handle_input(Input::Fleet(Arc::new(example_fleet())))
        .unwrap();
    app
}

fn render(app: &mut FleetApp, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect {
        x: 0,
        y: 0,
        width,
        height,
    });
    app.draw(&mut buffer);
    buffer
}

fn draw_lines(app: &mut FleetApp, width: u16, height: u16) -> Vec<String> {
    let buffer = render(app, width, height);
    let cells: Vec<&str> = buffer
        .content
        .iter()
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    cells
        .chunks(usize::from(width).max(1))
        .map(|line| line.concat().trim_end().to_owned())
        .collect()
}

fn press_key(app: &mut FleetApp, code: KeyCode) -> NextStep {
    app.handle_input(Input::Terminal(Event::Key(KeyEvent::new(
        code,
        KeyModifiers::NONE,
    ))))
    .unwrap()
}

#[test]
fn worst_node_is_first_at_80_by_24() {
    let mut app = build_app();
    let drawn = draw_lines(&mut app, 80, 24);
    assert!(
        drawn[0].starts_with("gpumon fleet  5 nodes (1 without readings)  26 GPUs"),
        "{}",
        drawn[0]
    );
    assert!(
        drawn[1].starts_with("17 busy  1 idle but held  7 free  1 lost"),
        "{}",
        drawn[1]
    );
    let names: Vec<&str> = drawn[4..9]
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        names,
        ["node10", "node12", "node11\\u{1b}[2J<b>", "node2", "node1"]
    );
    assert!(
        drawn[4].contains("xxx ▓▓▓ ▓▓▓") && drawn[4].contains("1 lost"),
        "{}",
        drawn[4]
    );
    assert!(drawn[5].contains("unreachable"), "{}", drawn[5]);
    assert!(
        drawn[6].contains("███ ···") && drawn[6].contains("power-capped  eve"),
        "{}",
        drawn[6]
    );
    assert!(
        drawn[8].contains("97%") && drawn[8].ends_with("ana"),
        "{}",
        drawn[8]
    );
    assert!(drawn[23].starts_with("q quit  ? help"), "{}", drawn[23]);
    assert!(drawn.iter().all(|line| !line.contains('\u{1b}')));
}

#[test]
fn selected_node_shows_numbers_and_can_be_opened() {
    let mut app = build_app();
    draw_lines(&mut app, 200, 50);
    press_key(&mut app, KeyCode::Down);
    let drawn = draw_lines(&mut app, 200, 50);
    assert!(
        drawn[4].contains("  -  60  60") && drawn[4].contains("4.5 kW"),
        "{}",
        drawn[4]
    );
    press_key(&mut app, KeyCode::Char('s'));
    let drawn = draw_lines(&mut app, 200, 50);
    assert!(
        drawn[2].contains("sorted by name") && drawn[6].contains("  -  60  60"),
        "{drawn:#?}"
    );
    press_key(&mut app, KeyCode::Enter);
    let open = draw_lines(&mut app, 80, 24);
    assert!(
        open[3].starts_with("node10  1 lost") && open[5].contains("lost"),
        "{open:#?}"
    );
    assert!(
        open[6].contains("60 %") && open[6].contains("60.0 / 80 GiB") && open[6].contains("650 W"),
        "{}",
        open[6]
    );
    assert!(
        open[22].contains("Opening the node's live stream"),
        "{}",
        open[22]
    );
    press_key(&mut app, KeyCode::Esc);
    assert!(draw_lines(&mut app, 80, 24)[3].starts_with("node "));
    press_key(&mut app, KeyCode::End);
    assert_eq!(app.selected.as_deref(), Some("node12"));
    press_key(&mut app, KeyCode::Home);
    assert_eq!(app.selected.as_deref(), Some("node1"));
}

/// Returns the first update for the node screen with this number.
fn build_update(number: u64) -> Input {
    let update = Update::Silent("no GPU yet".to_owned());
    Input::Node(number, Box::new(Input::Update(update)))
}

#[test]
fn terminal_background_changes_theme_of_fleet_and_node() {
    let (mut app, _waiting) = build_screen(ThemeName::Auto, Glyphs::Braille);
    app.handle_input(Input::Fleet(Arc::new(example_fleet())))
        .unwrap();
    press_key(&mut app, KeyCode::Down);
    let is = |app: &mut FleetApp, background| {
        let dim = Theme::new(ThemeName::Auto.resolve(background)).dim.fg;
        let buffer = render(app, 100, 30);
        assert!(
            buffer.content.iter().any(|cell| Some(cell.fg) == dim),
            "{background:?}"
        );
    };
    for (number, first, second) in [
        (1, Background::Light, Background::Dark),
        (2, Background::Dark, Background::Light),
    ] {
        app.handle_input(Input::Background(first)).unwrap();
        is(&mut app, first);
        press_key(&mut app, KeyCode::Enter);
        app.handle_input(build_update(number)).unwrap();
        is(&mut app, first);
        app.handle_input(Input::Background(second)).unwrap();
        is(&mut app, second);
        press_key(&mut app, KeyCode::Esc);
        is(&mut app, second);
    }
}

#[test]
fn closing_live_node_restores_fleet_screen() {
    let (mut app, _waiting) = build_screen(ThemeName::Dark, Glyphs::Braille);
    app.handle_input(Input::Fleet(Arc::new(example_fleet())))
        .unwrap();
    for code in [KeyCode::Char('s'), KeyCode::Char('i'), KeyCode::Down] {
        press_key(&mut app, code);
    }
    let before = draw_lines(&mut app, 100, 30);
    for (number, leave) in [(1, KeyCode::Char('q')), (2, KeyCode::Esc)] {
        press_key(&mut app, KeyCode::Enter);
        assert_eq!(
            app.handle_input(build_update(number)).unwrap(),
            NextStep::Draw
        );
        let shown = draw_lines(&mut app, 100, 30);
        assert!(
            shown[0].contains("no data") && shown[1].contains("no GPU yet"),
            "{shown:#?}"
        );
        assert!(shown[29].starts_with("q fleet"), "{}", shown[29]);
        // If a dialog is open on the node's screen, the dialog handles the key, and the node stays
        // open.
        press_key(&mut app, KeyCode::Char('?'));
        press_key(&mut app, leave);
        assert!(draw_lines(&mut app, 100, 30)[1].contains("no GPU yet"));
        assert_eq!(
            app.handle_input(Input::Fleet(Arc::new(example_fleet())))
                .unwrap(),
            NextStep::Wait
        );
        assert_eq!(press_key(&mut app, leave), NextStep::Draw);
        assert_eq!(draw_lines(&mut app, 100, 30), before, "{leave:?}");
        assert_eq!(
            app.handle_input(build_update(number)).unwrap(),
            NextStep::Wait,
            "it was left"
        );
    }
    press_key(&mut app, KeyCode::Enter);
    app.handle_input(build_update(2)).unwrap();
    assert!(
        draw_lines(&mut app, 100, 30)[28].contains("Opening"),
        "that was of the one before"
    );
    app.handle_input(build_update(3)).unwrap();
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(
        app.handle_input(Input::Terminal(Event::Key(ctrl_c)))
            .unwrap(),
        NextStep::Quit
    );
}

#[test]
fn failed_node_shows_reason_while_fleet_continues() {
    let (mut app, waiting) = build_screen(ThemeName::Dark, Glyphs::Braille);
    app.handle_input(Input::Fleet(Arc::new(example_fleet())))
        .unwrap();
    press_key(&mut app, KeyCode::Down);
    press_key(&mut app, KeyCode::Enter);
    assert_eq!(
        app.handle_input(waiting.recv_timeout(Duration::from_mins(1)).unwrap())
            .unwrap(),
        NextStep::Draw
    );
    let drawn = draw_lines(&mut app, 80, 24);
    assert!(
        drawn[3].starts_with("node10") && drawn[22] == "node10: the server has ended",
        "{drawn:#?}"
    );
    press_key(&mut app, KeyCode::Esc);
    assert!(draw_lines(&mut app, 80, 24)[4].starts_with("node10"));
}

#[test]
fn filter_applies_and_reports_mistakes_while_typing() {
    let mut app = build_app();
    press_key(&mut app, KeyCode::Char('i'));
    let drawn = draw_lines(&mut app, 80, 24);
    assert!(
        drawn[1].starts_with("1 idle but held") && drawn[2].contains("filter idle"),
        "{drawn:#?}"
    );
    // The node's only GPU is drawn at the position of its index.
    assert!(
        drawn[4].starts_with(&format!("node2 {}···", " ".repeat(6 * 4))) && drawn[5].is_empty(),
        "{drawn:#?}"
    );
    press_key(&mut app, KeyCode::Char('i'));
    press_key(&mut app, KeyCode::Char('/'));
    for letter in "memory>".chars() {
        press_key(&mut app, KeyCode::Char(letter));
    }
    let drawn = draw_lines(&mut app, 80, 24);
    assert!(
        drawn[23].starts_with("filter: memory>") && drawn[23].contains("a number must follow"),
        "{}",
        drawn[23]
    );
    for letter in "50GiB user:ana".chars() {
        press_key(&mut app, KeyCode::Char(letter));
    }
    press_key(&mut app, KeyCode::Enter);
    assert!(draw_lines(&mut app, 80, 24)[0].contains("2 nodes  15 GPUs"));
    press_key(&mut app, KeyCode::Char('x'));
    assert!(draw_lines(&mut app, 80, 24)[3].contains("No GPU matches"));
    press_key(&mut app, KeyCode::Esc);
    assert!(draw_lines(&mut app, 80, 24)[0].contains("5 nodes"));
}

#[test]
fn map_fills_available_space() {
    let nodes: Vec<(String, Vec<ExampleGpu>)> = (0..1000)
        .map(|node| {
            (
                format!("node{node}"),
                vec![make_busy_gpu("ana", f64::from(node % 101)); 8],
            )
        })
        .collect();
    let nodes: Vec<(&str, &[ExampleGpu])> = nodes
        .iter()
        .map(|(name, gpus)| (&**name, &**gpus))
        .collect();
    let mut app = build_screen(ThemeName::Monochrome, Glyphs::Ascii).0;
    app.handle_input(Input::Fleet(Arc::new(build_fleet(&nodes))))
        .unwrap();
    press_key(&mut app, KeyCode::Tab);
    let drawn = draw_lines(&mut app, 200, 50);
    assert!(drawn[3].starts_with(" ######## ######## "), "{}", drawn[3]);
    assert!(drawn.iter().all(|line| line.is_ascii()), "{drawn:#?}");
    press_key(&mut app, KeyCode::Down);
    press_key(&mut app, KeyCode::Down);
    let drawn = draw_lines(&mut app, 200, 50);
    assert!(
        drawn[4].starts_with("[########]") && drawn[47].contains("utilization: "),
        "{drawn:#?}"
    );
    press_key(&mut app, KeyCode::Char('l'));
    assert!(draw_lines(&mut app, 200, 50)[4].starts_with(" ########[########]"));
    press_key(&mut app, KeyCode::End);
    assert!(
        draw_lines(&mut app, 80, 24)
            .iter()
            .any(|line| line.contains(']')),
        "what is selected is in view"
    );
    // A click selects a node, and a click on the selected node opens it.
    let click = Event::Mouse(MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 2,
        row: 3,
        modifiers: KeyModifiers::NONE,
    });
    app.handle_input(Input::Terminal(click.clone())).unwrap();
    assert!(!app.is_open && draw_lines(&mut app, 80, 24)[3].starts_with('['));
    app.handle_input(Input::Terminal(click)).unwrap();
    assert!(app.is_open);
}

#[test]
fn outdated_fleet_shows_age_and_reason() {
    let mut app = build_screen(ThemeName::Dark, Glyphs::Braille).0;
    assert!(draw_lines(&mut app, 80, 24)[2].contains("Reading the fleet"));
    let problem = "Prometheus at http://p cannot be reached. Start it.".to_owned();
    let outdated = Fleet {
        state: FleetState::Outdated,
        problems: vec![problem, "x".to_owned()],
        ..example_fleet()
    };
    app.handle_input(Input::Fleet(Arc::new(outdated))).unwrap();
    let drawn = draw_lines(&mut app, 120, 24);
    assert!(
        drawn[2].contains(" old: Prometheus at http://p cannot")
            && drawn[2].ends_with("(and 1 more)"),
        "{}",
        drawn[2]
    );
    assert!(
        drawn[5].starts_with("node10"),
        "what was known stays: {drawn:#?}"
    );
    assert_eq!(
        app.tick(std::time::Instant::now()),
        NextStep::Draw,
        "it grows older"
    );
}

#[test]
fn screen_survives_any_size_and_key() {
    let mut app = build_app();
    for (width, height) in [
        (0, 0),
        (1, 1),
        (39, 7),
        (40, 8),
        (41, 9),
        (80, 8),
        (300, 9),
        (60, 100),
    ] {
        for view in 0..2 {
            for code in [
                KeyCode::Down,
                KeyCode::PageDown,
                KeyCode::Char('m'),
                KeyCode::Enter,
                KeyCode::Up,
                KeyCode::Esc,
            ] {
                press_key(&mut app, code);
                draw_lines(&mut app, width, height);
            }
            press_key(&mut app, KeyCode::Char('?'));
            draw_lines(&mut app, width, height);
            assert_eq!(
                press_key(&mut app, KeyCode::Char('q')),
                NextStep::Draw,
                "it leaves the help, {view}"
            );
            press_key(&mut app, KeyCode::Tab);
        }
    }
    assert_eq!(press_key(&mut app, KeyCode::Char('q')), NextStep::Quit);
}
