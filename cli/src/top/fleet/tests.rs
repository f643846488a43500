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
use crate::terminal::glyphs::Glyphs;
use crate::{
    fleet::testing::{Example, busy, fleet},
    top::{
        background::Background,
        input::Input,
        live::{Live, Next},
        model::Update,
        settings::Settings,
        theme::{Theme, ThemeName},
    },
};

fn example() -> Fleet {
    let lost = Example {
        health: GpuHealth::NotResponding,
        busy: None,
        ..Example::default()
    };
    let free = Example {
        processes: Some(0),
        ..Example::default()
    };
    let idle = Example {
        idle_s: Some(7200.0),
        ..busy("bob", 0.0)
    };
    let hot = Example {
        condition: Some(("power_capped", 2)),
        celsius: Some(88.0),
        ..busy("eve", 100.0)
    };
    fleet(&[
        ("node1", &vec![busy("ana", 97.0); 8]),
        (
            "node2",
            &[vec![free.clone(); 6], vec![idle, busy("bob", 30.0)]].concat(),
        ),
        ("node10", &[vec![lost], vec![busy("ana", 60.0); 7]].concat()),
        ("node11\u{1b}[2J<b>", &[hot, free]),
        ("node12", &[]),
    ])
}

/// Returns a fleet screen whose nodes cannot be reached, and the receiver of its inputs.
fn screen(theme: ThemeName, glyphs: Glyphs) -> (FleetApp, Receiver<Input>) {
    let (inputs, waiting) = mpsc::sync_channel(16);
    let connector = Listener::within().1;
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

fn app() -> FleetApp {
    let mut app = screen(ThemeName::Dark, Glyphs::Braille).0;
    app.take(Input::Fleet(Arc::new(example()))).unwrap();
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

fn lines(app: &mut FleetApp, width: u16, height: u16) -> Vec<String> {
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

fn press(app: &mut FleetApp, code: KeyCode) -> Next {
    app.take(Input::Terminal(Event::Key(KeyEvent::new(
        code,
        KeyModifiers::NONE,
    ))))
    .unwrap()
}

#[test]
fn a_line_per_node_the_worst_first_at_80_by_24() {
    let mut app = app();
    let drawn = lines(&mut app, 80, 24);
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
fn the_selected_node_tells_numbers_stays_selected_and_opens() {
    let mut app = app();
    lines(&mut app, 200, 50);
    press(&mut app, KeyCode::Down);
    let drawn = lines(&mut app, 200, 50);
    assert!(
        drawn[4].contains("  -  60  60") && drawn[4].contains("4.5 kW"),
        "{}",
        drawn[4]
    );
    press(&mut app, KeyCode::Char('s'));
    let drawn = lines(&mut app, 200, 50);
    assert!(
        drawn[2].contains("sorted by name") && drawn[6].contains("  -  60  60"),
        "{drawn:#?}"
    );
    press(&mut app, KeyCode::Enter);
    let open = lines(&mut app, 80, 24);
    assert!(
        open[3].starts_with("node10  1 lost") && open[5].contains("lost"),
        "{open:#?}"
    );
    assert!(
        open[6].contains("60 %") && open[6].contains("60.0 / 80 GiB") && open[6].contains("650 W"),
        "{}",
        open[6]
    );
    assert!(open[22].contains("Opening its live stream"), "{}", open[22]);
    press(&mut app, KeyCode::Esc);
    assert!(lines(&mut app, 80, 24)[3].starts_with("node "));
    press(&mut app, KeyCode::End);
    assert_eq!(app.selected.as_deref(), Some("node12"));
    press(&mut app, KeyCode::Home);
    assert_eq!(app.selected.as_deref(), Some("node1"));
}

/// Builds the first update of the node with this number.
fn build_update(number: u64) -> Input {
    let update = Update::Silent("no GPU yet".to_owned());
    Input::Node(number, Box::new(Input::Update(update)))
}

#[test]
fn background_changes_theme_of_fleet_and_node() {
    let (mut app, _waiting) = screen(ThemeName::Auto, Glyphs::Braille);
    app.take(Input::Fleet(Arc::new(example()))).unwrap();
    press(&mut app, KeyCode::Down);
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
        app.take(Input::Background(first)).unwrap();
        is(&mut app, first);
        press(&mut app, KeyCode::Enter);
        app.take(build_update(number)).unwrap();
        is(&mut app, first);
        app.take(Input::Background(second)).unwrap();
        is(&mut app, second);
        press(&mut app, KeyCode::Esc);
        is(&mut app, second);
    }
}

#[test]
fn a_node_is_shown_live_over_the_fleet_which_stays_as_it_was() {
    let (mut app, _waiting) = screen(ThemeName::Dark, Glyphs::Braille);
    app.take(Input::Fleet(Arc::new(example()))).unwrap();
    for code in [KeyCode::Char('s'), KeyCode::Char('i'), KeyCode::Down] {
        press(&mut app, code);
    }
    let before = lines(&mut app, 100, 30);
    for (number, leave) in [(1, KeyCode::Char('q')), (2, KeyCode::Esc)] {
        press(&mut app, KeyCode::Enter);
        assert_eq!(app.take(build_update(number)).unwrap(), Next::Draw);
        let shown = lines(&mut app, 100, 30);
        assert!(
            shown[0].contains("no data") && shown[1].contains("no GPU yet"),
            "{shown:#?}"
        );
        assert!(shown[29].starts_with("q fleet"), "{}", shown[29]);
        // A dialog of the node's screen handles both keys itself.
        press(&mut app, KeyCode::Char('?'));
        press(&mut app, leave);
        assert!(lines(&mut app, 100, 30)[1].contains("no GPU yet"));
        assert_eq!(
            app.take(Input::Fleet(Arc::new(example()))).unwrap(),
            Next::Wait
        );
        assert_eq!(press(&mut app, leave), Next::Draw);
        assert_eq!(lines(&mut app, 100, 30), before, "{leave:?}");
        assert_eq!(
            app.take(build_update(number)).unwrap(),
            Next::Wait,
            "it was left"
        );
    }
    press(&mut app, KeyCode::Enter);
    app.take(build_update(2)).unwrap();
    assert!(
        lines(&mut app, 100, 30)[28].contains("Opening"),
        "that was of the one before"
    );
    app.take(build_update(3)).unwrap();
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(
        app.take(Input::Terminal(Event::Key(ctrl_c))).unwrap(),
        Next::Quit
    );
}

#[test]
fn a_node_that_does_not_open_says_why_and_the_fleet_goes_on() {
    let (mut app, waiting) = screen(ThemeName::Dark, Glyphs::Braille);
    app.take(Input::Fleet(Arc::new(example()))).unwrap();
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Enter);
    assert_eq!(
        app.take(waiting.recv_timeout(Duration::from_mins(1)).unwrap())
            .unwrap(),
        Next::Draw
    );
    let drawn = lines(&mut app, 80, 24);
    assert!(
        drawn[3].starts_with("node10") && drawn[22] == "node10: it has ended",
        "{drawn:#?}"
    );
    press(&mut app, KeyCode::Esc);
    assert!(lines(&mut app, 80, 24)[4].starts_with("node10"));
}

#[test]
fn words_choose_and_what_is_wrong_with_them_is_told_while_typing() {
    let mut app = app();
    press(&mut app, KeyCode::Char('i'));
    let drawn = lines(&mut app, 80, 24);
    assert!(
        drawn[1].starts_with("1 idle but held") && drawn[2].contains("filter idle"),
        "{drawn:#?}"
    );
    // The GPU is drawn at the position of its index.
    assert!(
        drawn[4].starts_with(&format!("node2 {}···", " ".repeat(6 * 4))) && drawn[5].is_empty(),
        "{drawn:#?}"
    );
    press(&mut app, KeyCode::Char('i'));
    press(&mut app, KeyCode::Char('/'));
    for letter in "memory>".chars() {
        press(&mut app, KeyCode::Char(letter));
    }
    let drawn = lines(&mut app, 80, 24);
    assert!(
        drawn[23].starts_with("filter: memory>") && drawn[23].contains("a number has to follow"),
        "{}",
        drawn[23]
    );
    for letter in "50GiB user:ana".chars() {
        press(&mut app, KeyCode::Char(letter));
    }
    press(&mut app, KeyCode::Enter);
    assert!(lines(&mut app, 80, 24)[0].contains("2 nodes  15 GPUs"));
    press(&mut app, KeyCode::Char('x'));
    assert!(lines(&mut app, 80, 24)[3].contains("No GPU matches"));
    press(&mut app, KeyCode::Esc);
    assert!(lines(&mut app, 80, 24)[0].contains("5 nodes"));
}

#[test]
fn a_map_has_as_many_nodes_as_there_is_room_for() {
    let nodes: Vec<(String, Vec<Example>)> = (0..1000)
        .map(|node| {
            (
                format!("node{node}"),
                vec![busy("ana", f64::from(node % 101)); 8],
            )
        })
        .collect();
    let nodes: Vec<(&str, &[Example])> = nodes
        .iter()
        .map(|(name, gpus)| (&**name, &**gpus))
        .collect();
    let mut app = screen(ThemeName::Monochrome, Glyphs::Ascii).0;
    app.take(Input::Fleet(Arc::new(fleet(&nodes)))).unwrap();
    press(&mut app, KeyCode::Tab);
    let drawn = lines(&mut app, 200, 50);
    assert!(drawn[3].starts_with(" ######## ######## "), "{}", drawn[3]);
    assert!(drawn.iter().all(|line| line.is_ascii()), "{drawn:#?}");
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Down);
    let drawn = lines(&mut app, 200, 50);
    assert!(
        drawn[4].starts_with("[########]") && drawn[47].contains("utilization: "),
        "{drawn:#?}"
    );
    press(&mut app, KeyCode::Char('l'));
    assert!(lines(&mut app, 200, 50)[4].starts_with(" ########[########]"));
    press(&mut app, KeyCode::End);
    assert!(
        lines(&mut app, 80, 24)
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
    app.take(Input::Terminal(click.clone())).unwrap();
    assert!(!app.is_open && lines(&mut app, 80, 24)[3].starts_with('['));
    app.take(Input::Terminal(click)).unwrap();
    assert!(app.is_open);
}

#[test]
fn what_is_not_of_now_says_how_old_it_is_and_why() {
    let mut app = screen(ThemeName::Dark, Glyphs::Braille).0;
    assert!(lines(&mut app, 80, 24)[2].contains("Reading the fleet"));
    let problem = "Prometheus at http://p cannot be reached. Start it.".to_owned();
    let outdated = Fleet {
        state: FleetState::Outdated,
        problems: vec![problem, "x".to_owned()],
        ..example()
    };
    app.take(Input::Fleet(Arc::new(outdated))).unwrap();
    let drawn = lines(&mut app, 120, 24);
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
        Next::Draw,
        "it grows older"
    );
}

#[test]
fn no_size_and_no_key_breaks_the_screen() {
    let mut app = app();
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
                press(&mut app, code);
                lines(&mut app, width, height);
            }
            press(&mut app, KeyCode::Char('?'));
            lines(&mut app, width, height);
            assert_eq!(
                press(&mut app, KeyCode::Char('q')),
                Next::Draw,
                "it leaves the help, {view}"
            );
            press(&mut app, KeyCode::Tab);
        }
    }
    assert_eq!(press(&mut app, KeyCode::Char('q')), Next::Quit);
}
