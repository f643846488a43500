//! Tests of keys and mouse events, and of their effects on the screen.

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
use crate::{
    terminal::screen::Glyphs,
    top::{
        draw::draw_screen,
        layout::{ScreenSplit, View},
        model::{Origin, ProcessUsage, Usage},
        processes::Column,
        testing,
        theme::ThemeName,
    },
};

/// Returns a live screen and the receiver of its inputs. Its GPUs are simulated, but the screen
/// presents them as real ones.
pub(in crate::top) fn build_app(gpus: u32) -> (App, mpsc::Receiver<Input>) {
    let mut model = testing::simulated_model(gpus);
    if let Some(known) = &mut model.inventory {
        known.platform.is_simulated = false;
    }
    build_app_with(model, Feed::Server(mpsc::channel().0))
}

fn build_app_with(model: Model, feed: Feed) -> (App, mpsc::Receiver<Input>) {
    let settings = Settings::default();
    let state = State::new(&settings, ThemeName::Dark, Glyphs::Braille);
    let (inputs, waiting) = mpsc::sync_channel(16);
    (
        App::new(model, state, feed, settings, None, inputs),
        waiting,
    )
}

/// Draws the screen in this size, and returns its lines of text.
pub(in crate::top) fn draw_lines(app: &mut App, width: u16, height: u16) -> Vec<String> {
    let mut buffer = Buffer::empty(Rect {
        x: 0,
        y: 0,
        width,
        height,
    });
    app.hits = draw_screen(app, &mut buffer);
    let lines = buffer.content.chunks(usize::from(width));
    lines
        .map(|cells| cells.iter().map(ratatui::buffer::Cell::symbol).collect())
        .collect()
}

fn press_keys(app: &mut App, keys: &str) -> NextStep {
    let mut next = NextStep::Wait;
    for letter in keys.chars() {
        next = press_key(app, KeyCode::Char(letter));
    }
    next
}

fn press_key(app: &mut App, code: KeyCode) -> NextStep {
    app.handle_terminal_event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn click(app: &mut App, text: &str) -> NextStep {
    let drawn = draw_lines(app, 120, 40);
    let (row, line) = drawn
        .iter()
        .enumerate()
        .find(|(_, line)| line.contains(text))
        .unwrap();
    let column = line[..line.find(text).unwrap()].chars().count() as u16;
    let kind = MouseEventKind::Down(MouseButton::Left);
    app.handle_terminal_event(&Event::Mouse(MouseEvent {
        kind,
        column,
        row: row as u16,
        modifiers: KeyModifiers::NONE,
    }))
}

fn last_line(app: &mut App) -> String {
    draw_lines(app, 120, 40).pop().unwrap()
}

#[test]
fn quit_keys_work_in_dialogs() {
    let (mut app, _waiting) = build_app(1);
    assert_eq!(press_keys(&mut app, "q"), NextStep::Quit);
    press_keys(&mut app, "?");
    assert!(app.dialog.is_some());
    assert_ne!(
        press_keys(&mut app, "q"),
        NextStep::Quit,
        "it leaves the dialog"
    );
    assert!(app.dialog.is_none());
    press_keys(&mut app, "?");
    assert_eq!(
        app.handle_terminal_event(&Event::Key(KeyEvent::new(
            KeyCode::Char('c'),
            KeyModifiers::CONTROL
        ))),
        NextStep::Quit
    );
    assert_eq!(
        app.handle_terminal_event(&Event::Key(KeyEvent::new(
            KeyCode::Char('z'),
            KeyModifiers::CONTROL
        ))),
        NextStep::Suspend
    );
    assert_eq!(press_keys(&mut app, "x"), NextStep::Draw);
    assert!(
        last_line(&mut app).starts_with("x has no function: press ? for the list of keys"),
        "{}",
        last_line(&mut app)
    );
}

#[test]
fn help_lists_every_key() {
    let (mut app, _waiting) = build_app(1);
    press_keys(&mut app, "?");
    let all = draw_lines(&mut app, 120, 80).join("\n");
    for binding in keys::BINDINGS
        .iter()
        .filter(|binding| binding.part != keys::HelpSection::Replay)
    {
        assert!(all.contains(binding.help), "{}", binding.help);
    }
}

#[test]
fn keys_and_mouse_switch_views_and_gpus() {
    let (mut app, _waiting) = build_app(4);
    press_key(&mut app, KeyCode::Tab);
    assert_eq!(app.state.view, View::Activity);
    click(&mut app, " Host ");
    assert_eq!(app.state.view, View::Host);
    press_key(&mut app, KeyCode::Right);
    assert_eq!(app.state.gpu, Some(0));
    click(&mut app, " 2 H200");
    assert_eq!(app.state.gpu, Some(2));
    click(&mut app, " 2 H200");
    assert_eq!(app.state.gpu, None);
    press_keys(&mut app, "z");
    assert_eq!(app.state.room, ScreenSplit::View);
    assert!(!draw_lines(&mut app, 120, 40).join("\n").contains("PID"));
    click(&mut app, "tab view");
    assert_eq!(
        app.state.view,
        View::Events,
        "what stands at the bottom can be clicked, too"
    );
}

#[test]
fn processes_are_sorted_filtered_and_found() {
    let (mut app, _waiting) = build_app(4);
    click(&mut app, "SM");
    assert_eq!(
        (app.state.processes.sort, app.state.processes.descending),
        (Column::Sm, true)
    );
    click(&mut app, "SM");
    assert!(!app.state.processes.descending);
    press_keys(&mut app, "s");
    assert_eq!(app.state.processes.sort, Column::MemoryBusy);
    press_keys(&mut app, "fuser:bob");
    assert!(last_line(&mut app).starts_with("filter: user:bob"));
    press_key(&mut app, KeyCode::Enter);
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("bob") && !drawn.contains("chen"), "{drawn}");
    press_key(&mut app, KeyCode::Esc);
    assert!(draw_lines(&mut app, 120, 40).join("\n").contains("chen"));
    press_keys(&mut app, "/vllm");
    assert!(
        app.selected_process()
            .unwrap()
            .1
            .command
            .value()
            .unwrap()
            .contains("vllm"),
        "it is found while one types"
    );
    press_key(&mut app, KeyCode::Esc);
    press_keys(&mut app, "/nobody");
    press_key(&mut app, KeyCode::Enter);
    assert!(last_line(&mut app).contains("'nobody' was not found"));
}

#[test]
fn first_navigation_key_selects_first_or_last_process() {
    let (mut app, _waiting) = build_app(4);
    let selected = |app: &App| {
        let rows = app.state.processes.list_rows(&app.model, None);
        app.state.processes.selected_position(&rows)
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
        press_key(&mut app, key);
        assert_eq!(selected(&app), Some(place), "{key:?}");
    }
}

#[test]
fn pause_freezes_screen_without_gap_in_history() {
    let (mut app, _waiting) = build_app(1);
    let mut sample = app.model.sample.clone().unwrap();
    press_keys(&mut app, " ");
    let before = draw_lines(&mut app, 120, 40);
    assert!(before[0].contains("paused"), "{}", before[0]);
    for _ in 0..3 {
        sample.at_ms += 1000;
        sample.gpus[0].at_ms = sample.at_ms;
        sample.gpus[0].power.draw_watts = Reading::Now(123.0);
        assert_eq!(
            app.apply_update(Update::Record(Box::new(Record::Sample(sample.clone())))),
            NextStep::Wait
        );
    }
    assert_eq!(draw_lines(&mut app, 120, 40), before);
    app.model.sample.as_mut().unwrap().at_ms -= 3_600_000;
    assert_eq!(
        app.model.overdue_age_ms(),
        None,
        "what is paused is not late"
    );
    press_keys(&mut app, " ");
    let after = draw_lines(&mut app, 120, 40);
    assert!(
        after[2].contains("123/700 W") && !after[0].contains("paused"),
        "{after:#?}"
    );
    let window = crate::top::history::Window {
        end_ms: sample.at_ms,
        span_ms: 3000,
        columns: 3,
    };
    let power = crate::top::metrics::find_metric_position("power").unwrap();
    let past = app
        .model
        .history
        .read_line_values(crate::top::history::ChartLine::Gpu(0, power), window);
    assert!(past.iter().all(|watts| *watts == Some(123.0)), "{past:?}");
}

#[test]
fn settings_are_saved_only_on_request() {
    let path = std::env::temp_dir().join(format!("gpumon-app-{}.toml", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let (mut app, _waiting) = build_app(1);
    press_keys(&mut app, "W");
    assert!(last_line(&mut app).contains("settings cannot be saved: set HOME"));
    app.file = Some(path.clone());
    press_keys(&mut app, "tC");
    assert!(!path.exists());
    press_keys(&mut app, "W");
    assert!(
        last_line(&mut app).contains("saved in"),
        "{}",
        last_line(&mut app)
    );
    let saved = std::fs::read_to_string(&path).unwrap();
    assert!(
        saved.starts_with("[top]\ntheme = \"light\"\n") && saved.contains("\ntree = true\n"),
        "{saved}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn interval_keys_change_feed_interval() {
    let (ask, asked) = mpsc::channel();
    let (mut app, _waiting) = build_app_with(testing::simulated_model(1), Feed::Server(ask));
    press_keys(&mut app, "++");
    assert_eq!(asked.try_iter().last(), Some(Duration::from_millis(250)));
    assert!(last_line(&mut app).contains("every 250 ms"));
}

#[test]
fn server_history_extends_charts_beyond_one_hour() {
    let (mut alone, _waiting) =
        build_app_with(testing::simulated_model(1), Feed::Server(mpsc::channel().0));
    press_keys(&mut alone, "]]]]]]]]");
    assert_eq!(alone.state.chart_span_ms(), 3_600_000);
    assert!(
        last_line(&mut alone).contains("need a server"),
        "{}",
        last_line(&mut alone)
    );

    let model = Model {
        origin: Origin::Server,
        ..testing::simulated_model(1)
    };
    let now_ms = model.now_ms();
    let (mut app, _waiting) = build_app_with(model, Feed::Server(mpsc::channel().0));
    press_keys(&mut app, "]]]]]]]]");
    assert_eq!(app.state.chart_span_ms(), 30 * 86_400_000);
    assert!(draw_lines(&mut app, 120, 40).join("\n").contains("30 d"));
    let (oldest_ms, to_ms) = (now_ms - 3_600_000, now_ms);
    let past = gpumon_history::span::HistorySpan {
        oldest_ms,
        to_ms,
        ..Default::default()
    };
    app.apply_update(Update::Past(Box::new(past.clone())));
    let reported = last_line(&mut app);
    assert!(
        reported.contains("history begins at") && reported.contains("--data-dir"),
        "{reported}"
    );
    app.state.notice = None;
    app.apply_update(Update::Past(Box::new(past)));
    assert!(app.state.notice.is_none(), "once");
    app.apply_update(Update::NoPast("too old\u{1b}".to_owned()));
    assert!(last_line(&mut app).contains("the server sent no history: too old"));
}

#[test]
fn replay_keys_change_playback_position() {
    let path: PathBuf =
        std::env::temp_dir().join(format!("gpumon-app-{}.ndjson", std::process::id()));
    let moment = testing::sample_simulated_gpus(1);
    let mut text = serde_json::to_string(&Record::Inventory(moment.inventory)).unwrap() + "\n";
    for second in 0..100 {
        let mut sample = moment.sample.clone();
        (sample.at_ms, sample.seq) = (1_700_000_000_000 + second * 1000, second);
        text += &(serde_json::to_string(&Record::Sample(sample)).unwrap() + "\n");
    }
    std::fs::write(&path, text).unwrap();
    let player = Player::open(&path).unwrap();
    let (mut app, _waiting) = build_app_with(
        Model::new(Origin::Recording),
        Feed::Recording(Box::new(player)),
    );
    app.tick(Instant::now());
    let shown = |app: &App| app.model.sample.as_ref().unwrap().seq;
    assert_eq!(shown(&app), 0);
    press_keys(&mut app, " )..,");
    assert_eq!(shown(&app), 31);
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("paused, speed 1x") && drawn.contains("space pause"),
        "{drawn}"
    );
    press_keys(&mut app, "+");
    assert!(last_line(&mut app).contains("the interval of a replay cannot be changed"));
    press_keys(&mut app, ":x");
    press_key(&mut app, KeyCode::Enter);
    assert!(last_line(&mut app).contains("'x' is not a time"));
    let time = crate::top::text::format_time(1_700_000_000_000 + 77_000);
    press_keys(&mut app, &format!(":{time}"));
    press_key(&mut app, KeyCode::Enter);
    assert_eq!(shown(&app), 77);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn filter_prompt_stays_open_after_unknown_column() {
    let (mut app, _waiting) = build_app(2);
    press_keys(&mut app, "f");
    press_keys(&mut app, "usr:x");
    assert!(
        last_line(&mut app).contains("unknown column 'usr': did you mean 'user'?"),
        "{}",
        last_line(&mut app)
    );
    press_key(&mut app, KeyCode::Enter);
    assert!(app.prompt.is_some(), "it waits to be mended");
    for _ in 0..5 {
        press_key(&mut app, KeyCode::Backspace);
    }
    press_keys(&mut app, "user:ana");
    assert!(!last_line(&mut app).contains("unknown"));
    press_key(&mut app, KeyCode::Enter);
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

fn spawn_sleeper(environment: &[(&str, &str)]) -> Sleeper {
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
fn htop_and_vim_keys_have_same_effect() {
    let (mut app, _waiting) = build_app(4);
    let place = |app: &App| {
        app.state
            .processes
            .selected_position(&app.state.processes.list_rows(&app.model, None))
    };
    for (keys, selected) in [("j", 0), ("jj", 2), ("k", 1), ("G", 7), ("g", 0)] {
        press_keys(&mut app, keys);
        assert_eq!(place(&app), Some(selected), "{keys}");
    }
    let control = |letter| Event::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    app.handle_terminal_event(&control('d'));
    assert_eq!(place(&app), Some(5));
    app.handle_terminal_event(&control('u'));
    assert_eq!(place(&app), Some(0));
    for (key, shows) in [(1, "Keys"), (6, "Sort by")] {
        press_key(&mut app, KeyCode::F(key));
        assert!(
            draw_lines(&mut app, 120, 40).join("\n").contains(shows),
            "F{key}"
        );
        press_key(&mut app, KeyCode::Esc);
    }
    for (key, asks) in [(3, "search: "), (4, "filter: ")] {
        press_key(&mut app, KeyCode::F(key));
        assert!(last_line(&mut app).starts_with(asks), "F{key}");
        press_key(&mut app, KeyCode::Esc);
    }
    press_key(&mut app, KeyCode::F(5));
    assert!(app.state.processes.tree);
    app.is_readonly = true;
    press_key(&mut app, KeyCode::F(9));
    assert!(last_line(&mut app).contains("--readonly"));
    assert_eq!(press_key(&mut app, KeyCode::F(10)), NextStep::Quit);
}

#[test]
fn menus_set_sort_column_and_user_filter() {
    let (mut app, _waiting) = build_app(4);
    press_key(&mut app, KeyCode::F(6));
    press_key(&mut app, KeyCode::Home);
    press_key(&mut app, KeyCode::Down);
    press_key(&mut app, KeyCode::Enter);
    assert_eq!(
        (app.state.processes.sort, app.state.processes.descending),
        (Column::Pid, false)
    );
    assert!(app.dialog.is_none());
    press_keys(&mut app, "om");
    press_key(&mut app, KeyCode::Enter);
    assert_eq!(app.state.processes.sort, Column::Memory);
    press_keys(&mut app, "u");
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("all users               8") && drawn.contains("chen"),
        "{drawn}"
    );
    press_key(&mut app, KeyCode::Down);
    press_key(&mut app, KeyCode::Enter);
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("user ana") && !drawn.contains("chen"),
        "{drawn}"
    );
    press_keys(&mut app, "u");
    click(&mut app, "all users");
    assert_eq!(
        (app.state.processes.user.as_deref(), app.dialog.is_none()),
        (None, true)
    );
}

#[test]
fn wheel_scrolls_without_selecting() {
    let (mut app, _waiting) = build_app(4);
    let drawn = draw_lines(&mut app, 80, 16);
    let row = drawn.iter().position(|line| line.contains("PID")).unwrap() as u16 + 1;
    let wheel = MouseEvent {
        kind: MouseEventKind::ScrollDown,
        column: 5,
        row,
        modifiers: KeyModifiers::NONE,
    };
    app.handle_terminal_event(&Event::Mouse(wheel));
    draw_lines(&mut app, 80, 16);
    assert!(app.state.processes.scroll > 0 && app.state.processes.selected.is_none());
}

#[test]
fn setup_dialog_applies_immediately_and_saves_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(
        &path,
        "# mine\n[top]\ncolumns = [\"pid\", \"what\"] # two\nodd = 1\n",
    )
    .unwrap();
    let (mut app, _waiting) = build_app(4);
    app.file = Some(path.clone());
    press_key(&mut app, KeyCode::F(2));
    let drawn = draw_lines(&mut app, 80, 24);
    let cut = |line: &String| line.chars().skip(10).take(60).collect::<String>();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("setup", drawn[1..15].iter().map(cut).collect::<Vec<_>>().join("\n"));
    });
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let drawn = draw_lines(&mut app, width, height).join("\n");
        assert!(
            drawn.contains("[x] gpu") && drawn.contains("MEMORY"),
            "box and list at {width}x{height}: {drawn}"
        );
    }
    press_keys(&mut app, " ");
    let drawn = draw_lines(&mut app, 80, 24).join("\n");
    assert!(
        drawn.contains("[ ] gpu") && !drawn.contains("GPU      PID"),
        "{drawn}"
    );
    click(&mut app, " Display ");
    let theme = app.state.theme_name;
    press_key(&mut app, KeyCode::Right);
    assert_ne!(app.state.theme_name, theme);
    press_key(&mut app, KeyCode::Down);
    press_key(&mut app, KeyCode::Right);
    assert_eq!(app.state.interval_ms, 2000);
    assert!(
        last_line(&mut app).contains("a sample every 2000 ms"),
        "{}",
        last_line(&mut app)
    );
    click(&mut app, "refresh interval");
    assert_eq!(app.state.interval_ms, 5000);
    assert!(
        std::fs::read_to_string(&path).unwrap().contains("two"),
        "not yet"
    );
    press_keys(&mut app, "W");
    assert!(
        last_line(&mut app).contains("saved in"),
        "{}",
        last_line(&mut app)
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("# mine\n[top]\ncolumns = [\"pid\", \"user\"")
            && text.contains("] # two\nodd = 1\n"),
        "{text}"
    );
    assert!(text.contains("interval-ms = 5000"), "{text}");
    press_key(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none());
    // If the settings cannot be saved, the message suggests a remedy.
    app.file = Some("/proc/gpumon/config.toml".into());
    press_keys(&mut app, "W");
    assert!(
        last_line(&mut app).contains("settings not saved in /proc/gpumon/config.toml"),
        "{}",
        last_line(&mut app)
    );
    assert!(
        last_line(&mut app).contains("use another file with --config"),
        "{}",
        last_line(&mut app)
    );
}
