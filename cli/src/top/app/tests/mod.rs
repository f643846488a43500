//! Tests of keys and mouse, and their effects on the screen.

mod process_screen;
mod signals;

use std::{path::PathBuf, sync::mpsc};

use gpumon_probe::model::{Process, Reading, Record};
use gpumon_recording::Player;
use ratatui::{
    buffer::Buffer,
    crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
};

use super::*;
use crate::terminal::glyphs::Glyphs;
use crate::top::{
    draw::draw,
    model::{Origin, ProcessUsage, Usage},
    processes::Column,
    testing,
    theme::ThemeName,
    view::{Room, View},
};

/// Returns the screen with simulated GPUs that are presented as real ones, and the receiver of its
/// inputs.
pub(in crate::top) fn app(gpus: u32) -> (App, mpsc::Receiver<Input>) {
    let mut model = testing::model(gpus);
    if let Some(known) = &mut model.inventory {
        known.platform.is_simulated = false;
    }
    over(model, Feed::Server(mpsc::channel().0))
}

fn over(model: Model, feed: Feed) -> (App, mpsc::Receiver<Input>) {
    let settings = Settings::default();
    let state = State::new(&settings, ThemeName::Dark, Glyphs::Braille);
    let (inputs, waiting) = mpsc::sync_channel(16);
    (
        App::new(model, state, feed, settings, None, inputs),
        waiting,
    )
}

/// Draws the screen in this size, and returns its lines.
pub(in crate::top) fn lines(app: &mut App, width: u16, height: u16) -> Vec<String> {
    let mut buffer = Buffer::empty(Rect {
        x: 0,
        y: 0,
        width,
        height,
    });
    app.hits = draw(app, &mut buffer);
    let lines = buffer.content.chunks(usize::from(width));
    lines
        .map(|cells| cells.iter().map(ratatui::buffer::Cell::symbol).collect())
        .collect()
}

fn press(app: &mut App, keys: &str) -> Next {
    let mut next = Next::Wait;
    for letter in keys.chars() {
        next = code(app, KeyCode::Char(letter));
    }
    next
}

fn code(app: &mut App, code: KeyCode) -> Next {
    app.terminal(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn click(app: &mut App, text: &str) -> Next {
    let drawn = lines(app, 120, 40);
    let (row, line) = drawn
        .iter()
        .enumerate()
        .find(|(_, line)| line.contains(text))
        .unwrap();
    let column = line[..line.find(text).unwrap()].chars().count() as u16;
    let kind = MouseEventKind::Down(MouseButton::Left);
    app.terminal(&Event::Mouse(MouseEvent {
        kind,
        column,
        row: row as u16,
        modifiers: KeyModifiers::NONE,
    }))
}

fn last(app: &mut App) -> String {
    lines(app, 120, 40).pop().unwrap()
}

#[test]
fn q_and_ctrl_c_quit_also_from_a_dialog() {
    let (mut app, _waiting) = app(1);
    assert_eq!(press(&mut app, "q"), Next::Quit);
    press(&mut app, "?");
    assert!(app.dialog.is_some());
    assert_ne!(press(&mut app, "q"), Next::Quit, "it leaves the dialog");
    assert!(app.dialog.is_none());
    press(&mut app, "?");
    assert_eq!(
        app.terminal(&Event::Key(KeyEvent::new(
            KeyCode::Char('c'),
            KeyModifiers::CONTROL
        ))),
        Next::Quit
    );
    assert_eq!(
        app.terminal(&Event::Key(KeyEvent::new(
            KeyCode::Char('z'),
            KeyModifiers::CONTROL
        ))),
        Next::Suspend
    );
    assert_eq!(press(&mut app, "x"), Next::Draw);
    assert!(
        last(&mut app).starts_with("x is not assigned: ? lists the keys"),
        "{}",
        last(&mut app)
    );
}

#[test]
fn help_lists_every_key() {
    let (mut app, _waiting) = app(1);
    press(&mut app, "?");
    let all = lines(&mut app, 120, 80).join("\n");
    for binding in keys::BINDINGS
        .iter()
        .filter(|binding| binding.part != keys::Part::Replay)
    {
        assert!(all.contains(binding.help), "{}", binding.help);
    }
}

#[test]
fn views_gpus_and_room_are_chosen_by_key_and_mouse() {
    let (mut app, _waiting) = app(4);
    code(&mut app, KeyCode::Tab);
    assert_eq!(app.state.view, View::Activity);
    click(&mut app, " Host ");
    assert_eq!(app.state.view, View::Host);
    code(&mut app, KeyCode::Right);
    assert_eq!(app.state.gpu, Some(0));
    click(&mut app, " 2 H200");
    assert_eq!(app.state.gpu, Some(2));
    click(&mut app, " 2 H200");
    assert_eq!(app.state.gpu, None);
    press(&mut app, "z");
    assert_eq!(app.state.room, Room::View);
    assert!(!lines(&mut app, 120, 40).join("\n").contains("PID"));
    click(&mut app, "tab view");
    assert_eq!(
        app.state.view,
        View::Events,
        "what stands at the bottom can be clicked, too"
    );
}

#[test]
fn processes_are_sorted_filtered_and_found() {
    let (mut app, _waiting) = app(4);
    click(&mut app, "SM");
    assert_eq!(
        (app.state.processes.sort, app.state.processes.descending),
        (Column::Sm, true)
    );
    click(&mut app, "SM");
    assert!(!app.state.processes.descending);
    press(&mut app, "s");
    assert_eq!(app.state.processes.sort, Column::MemoryBusy);
    press(&mut app, "fuser:bob");
    assert!(last(&mut app).starts_with("filter: user:bob"));
    code(&mut app, KeyCode::Enter);
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("bob") && !drawn.contains("chen"), "{drawn}");
    code(&mut app, KeyCode::Esc);
    assert!(lines(&mut app, 120, 40).join("\n").contains("chen"));
    press(&mut app, "/vllm");
    assert!(
        app.selected()
            .unwrap()
            .1
            .command
            .value()
            .unwrap()
            .contains("vllm"),
        "it is found while one types"
    );
    code(&mut app, KeyCode::Esc);
    press(&mut app, "/nobody");
    code(&mut app, KeyCode::Enter);
    assert!(last(&mut app).contains("'nobody' was not found"));
}

#[test]
fn with_nothing_selected_every_key_but_end_begins_at_the_top() {
    let (mut app, _waiting) = app(4);
    let selected = |app: &App| {
        let rows = app.state.processes.rows(&app.model, None);
        app.state.processes.position(&rows)
    };
    for (key, place) in [
        (KeyCode::Home, 0),
        (KeyCode::PageUp, 0),
        (KeyCode::Up, 0),
        (KeyCode::Down, 0),
        (KeyCode::PageDown, 7),
        (KeyCode::End, 7),
    ] {
        app.state.processes.selected = None;
        code(&mut app, key);
        assert_eq!(selected(&app), Some(place), "{key:?}");
    }
}

#[test]
fn a_paused_screen_stays_and_nothing_of_the_past_is_missing_afterwards() {
    let (mut app, _waiting) = app(1);
    let mut sample = app.model.sample.clone().unwrap();
    press(&mut app, " ");
    let before = lines(&mut app, 120, 40);
    assert!(before[0].contains("paused"), "{}", before[0]);
    for _ in 0..3 {
        sample.at_ms += 1000;
        sample.gpus[0].at_ms = sample.at_ms;
        sample.gpus[0].power.draw_watts = Reading::Now(123.0);
        assert_eq!(
            app.update(Update::Record(Box::new(Record::Sample(sample.clone())))),
            Next::Wait
        );
    }
    assert_eq!(lines(&mut app, 120, 40), before);
    app.model.sample.as_mut().unwrap().at_ms -= 3_600_000;
    assert_eq!(app.model.late_ms(), None, "what is paused is not late");
    press(&mut app, " ");
    let after = lines(&mut app, 120, 40);
    assert!(
        after[2].contains("123/700 W") && !after[0].contains("paused"),
        "{after:#?}"
    );
    let window = crate::top::history::Window {
        end_ms: sample.at_ms,
        span_ms: 3000,
        columns: 3,
    };
    let power = crate::top::metrics::position("power").unwrap();
    let past = app
        .model
        .history
        .values(crate::top::history::Line::Gpu(0, power), window);
    assert!(past.iter().all(|watts| *watts == Some(123.0)), "{past:?}");
}

#[test]
fn settings_are_saved_on_request_alone() {
    let path = std::env::temp_dir().join(format!("gpumon-app-{}.toml", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let (mut app, _waiting) = app(1);
    press(&mut app, "W");
    assert!(last(&mut app).contains("no place for settings"));
    app.file = Some(path.clone());
    press(&mut app, "tC");
    assert!(!path.exists());
    press(&mut app, "W");
    assert!(last(&mut app).contains("saved in"), "{}", last(&mut app));
    let saved = std::fs::read_to_string(&path).unwrap();
    assert!(
        saved.starts_with("[top]\ntheme = \"light\"\n") && saved.contains("\ntree = true\n"),
        "{saved}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn intervals_are_asked_of_the_feed() {
    let (ask, asked) = mpsc::channel();
    let (mut app, _waiting) = over(testing::model(1), Feed::Server(ask));
    press(&mut app, "++");
    assert_eq!(asked.try_iter().last(), Some(Duration::from_millis(250)));
    assert!(last(&mut app).contains("every 250 ms"));
}

#[test]
fn charts_reach_further_back_than_an_hour_where_a_server_remembers_it() {
    let (mut alone, _waiting) = over(testing::model(1), Feed::Server(mpsc::channel().0));
    press(&mut alone, "]]]]]]]]");
    assert_eq!(alone.state.span_ms(), 3_600_000);
    assert!(
        last(&mut alone).contains("need a server"),
        "{}",
        last(&mut alone)
    );

    let model = Model {
        origin: Origin::Server,
        ..testing::model(1)
    };
    let now_ms = model.now_ms();
    let (mut app, _waiting) = over(model, Feed::Server(mpsc::channel().0));
    press(&mut app, "]]]]]]]]");
    assert_eq!(app.state.span_ms(), 30 * 86_400_000);
    assert!(lines(&mut app, 120, 40).join("\n").contains("30 d"));
    let (oldest_ms, to_ms) = (now_ms - 3_600_000, now_ms);
    let past = gpumon_history::span::HistorySpan {
        oldest_ms,
        to_ms,
        ..Default::default()
    };
    app.update(Update::Past(Box::new(past.clone())));
    let told = last(&mut app);
    assert!(
        told.contains("history begins at") && told.contains("--data-dir"),
        "{told}"
    );
    app.state.notice = None;
    app.update(Update::Past(Box::new(past)));
    assert!(app.state.notice.is_none(), "once");
    app.update(Update::NoPast("too old\u{1b}".to_owned()));
    assert!(last(&mut app).contains("tells no history: too old"));
}

#[test]
fn a_replay_is_moved_in_by_keys() {
    let path: PathBuf =
        std::env::temp_dir().join(format!("gpumon-app-{}.ndjson", std::process::id()));
    let moment = testing::moment(1);
    let mut text = serde_json::to_string(&Record::Inventory(moment.inventory)).unwrap() + "\n";
    for second in 0..100 {
        let mut sample = moment.sample.clone();
        (sample.at_ms, sample.seq) = (1_700_000_000_000 + second * 1000, second);
        text += &(serde_json::to_string(&Record::Sample(sample)).unwrap() + "\n");
    }
    std::fs::write(&path, text).unwrap();
    let player = Player::open(&path).unwrap();
    let (mut app, _waiting) = over(
        Model::new(Origin::Recording),
        Feed::Recording(Box::new(player)),
    );
    app.tick(Instant::now());
    let shown = |app: &App| app.model.sample.as_ref().unwrap().seq;
    assert_eq!(shown(&app), 0);
    press(&mut app, " )..,");
    assert_eq!(shown(&app), 31);
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("paused, 1 times as fast") && drawn.contains("space pause"),
        "{drawn}"
    );
    press(&mut app, "+");
    assert!(last(&mut app).contains("keeps the interval"));
    press(&mut app, ":x");
    code(&mut app, KeyCode::Enter);
    assert!(last(&mut app).contains("'x' is not a time"));
    let time = crate::top::text::clock(1_700_000_000_000 + 77_000);
    press(&mut app, &format!(":{time}"));
    code(&mut app, KeyCode::Enter);
    assert_eq!(shown(&app), 77);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_filter_by_a_column_that_does_not_exist_is_named_and_can_be_mended() {
    let (mut app, _waiting) = app(2);
    press(&mut app, "f");
    press(&mut app, "usr:x");
    assert!(
        last(&mut app).contains("unknown column 'usr': did you mean 'user'?"),
        "{}",
        last(&mut app)
    );
    code(&mut app, KeyCode::Enter);
    assert!(app.prompt.is_some(), "it waits to be mended");
    for _ in 0..5 {
        code(&mut app, KeyCode::Backspace);
    }
    press(&mut app, "user:ana");
    assert!(!last(&mut app).contains("unknown"));
    code(&mut app, KeyCode::Enter);
    assert!(app.prompt.is_none());
}

/// A child process that is killed at the end of the test.
struct Sleeper(std::process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleeper(environment: &[(&str, &str)]) -> Sleeper {
    let mut command = std::process::Command::new("sleep");
    Sleeper(
        command
            .arg("600")
            .env_clear()
            .envs(environment.iter().copied())
            .spawn()
            .unwrap(),
    )
}

#[test]
fn the_keys_of_htop_and_vim_do_what_they_do_there() {
    let (mut app, _waiting) = app(4);
    let place = |app: &App| {
        app.state
            .processes
            .position(&app.state.processes.rows(&app.model, None))
    };
    for (keys, selected) in [("j", 0), ("jj", 2), ("k", 1), ("G", 7), ("g", 0)] {
        press(&mut app, keys);
        assert_eq!(place(&app), Some(selected), "{keys}");
    }
    let control = |letter| Event::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    app.terminal(&control('d'));
    assert_eq!(place(&app), Some(5));
    app.terminal(&control('u'));
    assert_eq!(place(&app), Some(0));
    for (key, shows) in [(1, "Keys"), (6, "Sort by")] {
        code(&mut app, KeyCode::F(key));
        assert!(
            lines(&mut app, 120, 40).join("\n").contains(shows),
            "F{key}"
        );
        code(&mut app, KeyCode::Esc);
    }
    for (key, asks) in [(3, "search: "), (4, "filter: ")] {
        code(&mut app, KeyCode::F(key));
        assert!(last(&mut app).starts_with(asks), "F{key}");
        code(&mut app, KeyCode::Esc);
    }
    code(&mut app, KeyCode::F(5));
    assert!(app.state.processes.tree);
    app.is_readonly = true;
    code(&mut app, KeyCode::F(9));
    assert!(last(&mut app).contains("--readonly"));
    assert_eq!(code(&mut app, KeyCode::F(10)), Next::Quit);
}

#[test]
fn a_column_and_a_user_are_chosen_from_lists() {
    let (mut app, _waiting) = app(4);
    code(&mut app, KeyCode::F(6));
    code(&mut app, KeyCode::Home);
    code(&mut app, KeyCode::Down);
    code(&mut app, KeyCode::Enter);
    assert_eq!(
        (app.state.processes.sort, app.state.processes.descending),
        (Column::Pid, false)
    );
    assert!(app.dialog.is_none());
    press(&mut app, "om");
    code(&mut app, KeyCode::Enter);
    assert_eq!(app.state.processes.sort, Column::Memory);
    press(&mut app, "u");
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("all users               8") && drawn.contains("chen"),
        "{drawn}"
    );
    code(&mut app, KeyCode::Down);
    code(&mut app, KeyCode::Enter);
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("user ana") && !drawn.contains("chen"),
        "{drawn}"
    );
    press(&mut app, "u");
    click(&mut app, "all users");
    assert_eq!(
        (app.state.processes.user.as_deref(), app.dialog.is_none()),
        (None, true)
    );
}

#[test]
fn the_wheel_scrolls_without_selecting() {
    let (mut app, _waiting) = app(4);
    let drawn = lines(&mut app, 80, 16);
    let row = drawn.iter().position(|line| line.contains("PID")).unwrap() as u16 + 1;
    let wheel = MouseEvent {
        kind: MouseEventKind::ScrollDown,
        column: 5,
        row,
        modifiers: KeyModifiers::NONE,
    };
    app.terminal(&Event::Mouse(wheel));
    lines(&mut app, 80, 16);
    assert!(app.state.processes.scroll > 0 && app.state.processes.selected.is_none());
}

#[test]
fn setup_shows_its_effect_at_once_and_saves_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(
        &path,
        "# mine\n[top]\ncolumns = [\"pid\", \"what\"] # two\nodd = 1\n",
    )
    .unwrap();
    let (mut app, _waiting) = app(4);
    app.file = Some(path.clone());
    code(&mut app, KeyCode::F(2));
    let drawn = lines(&mut app, 80, 24);
    let cut = |line: &String| line.chars().skip(10).take(60).collect::<String>();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("setup", drawn[1..15].iter().map(cut).collect::<Vec<_>>().join("\n"));
    });
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let drawn = lines(&mut app, width, height).join("\n");
        assert!(
            drawn.contains("[x] gpu") && drawn.contains("MEMORY"),
            "box and list at {width}x{height}: {drawn}"
        );
    }
    press(&mut app, " ");
    let drawn = lines(&mut app, 80, 24).join("\n");
    assert!(
        drawn.contains("[ ] gpu") && !drawn.contains("GPU      PID"),
        "{drawn}"
    );
    click(&mut app, " Display ");
    let theme = app.state.theme_name;
    code(&mut app, KeyCode::Right);
    assert_ne!(app.state.theme_name, theme);
    code(&mut app, KeyCode::Down);
    code(&mut app, KeyCode::Right);
    assert_eq!(app.state.interval_ms, 2000);
    assert!(
        last(&mut app).contains("a sample every 2000 ms"),
        "{}",
        last(&mut app)
    );
    click(&mut app, "refresh interval");
    assert_eq!(app.state.interval_ms, 5000);
    assert!(
        std::fs::read_to_string(&path).unwrap().contains("two"),
        "not yet"
    );
    press(&mut app, "W");
    assert!(last(&mut app).contains("saved in"), "{}", last(&mut app));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("# mine\n[top]\ncolumns = [\"pid\", \"user\"")
            && text.contains("] # two\nodd = 1\n"),
        "{text}"
    );
    assert!(text.contains("interval-ms = 5000"), "{text}");
    code(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none());
    // If the file cannot be written, the message names a remedy.
    app.file = Some("/proc/gpumon/config.toml".into());
    press(&mut app, "W");
    assert!(
        last(&mut app).contains("not saved in /proc/gpumon/config.toml"),
        "{}",
        last(&mut app)
    );
    assert!(
        last(&mut app).contains("choose another file with --config"),
        "{}",
        last(&mut app)
    );
}
