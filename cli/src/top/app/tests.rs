//! Keys and mouse, and what comes of them on the screen.

use std::{path::PathBuf, sync::mpsc};

use gpumon_probe::model::{Reading, Record};
use ratatui::{
    buffer::Buffer,
    crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
};

use super::*;
use crate::top::{
    draw::draw,
    glyphs::Glyphs,
    model::Origin,
    processes::Column,
    testing,
    theme::ThemeName,
    view::{Room, View},
};

/// The program over simulated GPUs that say they are real, and what it sends to itself.
pub(in crate::top) fn app(gpus: u32) -> (App, mpsc::Receiver<Input>) {
    let mut model = testing::model(gpus);
    if let Some(known) = &mut model.inventory {
        known.platform.source = gpumon_probe::model::SourceKind::Nvml;
    }
    over(model, Feed::Server(mpsc::channel().0))
}

fn over(model: Model, feed: Feed) -> (App, mpsc::Receiver<Input>) {
    let settings = Settings::default();
    let state = State::new(&settings, ThemeName::Dark, Glyphs::Braille);
    let (inputs, waiting) = mpsc::sync_channel(16);
    (App::new(model, state, feed, settings, None, inputs), waiting)
}

/// Draws it in this size, and gives its lines.
pub(in crate::top) fn lines(app: &mut App, width: u16, height: u16) -> Vec<String> {
    let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width, height });
    app.hits = draw(app, &mut buffer);
    let lines = buffer.content.chunks(usize::from(width));
    lines.map(|cells| cells.iter().map(ratatui::buffer::Cell::symbol).collect()).collect()
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
    let (row, line) = drawn.iter().enumerate().find(|(_, line)| line.contains(text)).unwrap();
    let column = line[..line.find(text).unwrap()].chars().count() as u16;
    let kind = MouseEventKind::Down(MouseButton::Left);
    app.terminal(&Event::Mouse(MouseEvent { kind, column, row: row as u16, modifiers: KeyModifiers::NONE }))
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
    assert_eq!(app.terminal(&Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL))), Next::Quit);
    assert_eq!(app.terminal(&Event::Key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL))), Next::Suspend);
    assert_eq!(press(&mut app, "u"), Next::Draw);
    assert!(last(&mut app).starts_with("u is not assigned: ? lists the keys"), "{}", last(&mut app));
}

#[test]
fn help_lists_every_key() {
    let (mut app, _waiting) = app(1);
    press(&mut app, "?");
    let all = lines(&mut app, 120, 80).join("\n");
    for binding in keys::BINDINGS.iter().filter(|binding| binding.part != keys::Part::Replay) {
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
    assert_eq!(app.state.view, View::Events, "what stands at the bottom can be clicked, too");
}

#[test]
fn processes_are_sorted_filtered_and_found() {
    let (mut app, _waiting) = app(4);
    click(&mut app, "SM");
    assert_eq!((app.state.processes.sort, app.state.processes.descending), (Column::Sm, true));
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
    assert!(app.selected().unwrap().1.command.value().unwrap().contains("vllm"), "it is found while one types");
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
fn a_signal_is_asked_for_and_sent_to_the_selected_process_alone() {
    // Whoever started the tests in the background may have had SIGINT ignored, which is inherited.
    let mut child = std::process::Command::new("env").args(["--default-signal=INT", "sleep", "600"]).spawn().unwrap();
    let facts = crate::top::process_stat::ProcessStat::read(std::path::Path::new("/proc"), child.id()).unwrap();
    let (mut app, _waiting) = app(1);
    let sample = app.model.sample.as_mut().unwrap();
    let mut process = testing::processes(1).remove(0);
    (process.pid, process.started_ms) = (child.id(), Reading::Now(facts.started_ms.unwrap()));
    sample.gpus[0].processes = Reading::Now(vec![process]);
    press(&mut app, "k");
    assert!(last(&mut app).contains("select a process first"));
    code(&mut app, KeyCode::Down);
    press(&mut app, "k");
    let asked = lines(&mut app, 120, 40).join("\n");
    assert!(
        asked.contains(&format!("Send SIGTERM to process {}, ", child.id())) && asked.contains("of ana?"),
        "{asked}"
    );
    code(&mut app, KeyCode::Enter);
    code(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none() && child.try_wait().unwrap().is_none(), "only y sends");
    press(&mut app, "ki");
    assert!(lines(&mut app, 120, 40).join("\n").contains("Send SIGINT"));
    press(&mut app, "y");
    assert!(last(&mut app).contains("SIGINT was sent to"));
    child.wait().unwrap();
    assert_eq!(app.tick(Instant::now()), Next::Draw);
    assert!(last(&mut app).contains("has ended"));
    press(&mut app, "k");
    assert!(app.dialog.is_none() && last(&mut app).contains("has ended: no signal is sent"));
}

#[test]
fn what_another_pid_namespace_hides_is_not_said_to_have_ended() {
    for (origin, started_ms, says) in [
        (Origin::Driver, None, "runs in another PID namespace"),
        (Origin::Server, Some(1), "has ended, or runs in another PID namespace"),
        (Origin::Driver, Some(1), "has ended: no signal"),
    ] {
        let (mut app, waiting) = app(1);
        app.model.origin = origin;
        let mut process = testing::processes(1).remove(0);
        process.pid = (1 << 22) + 1;
        process.started_ms = started_ms.map_or(Reading::Absent(gpumon_probe::model::Absence::Unknown), Reading::Now);
        app.model.sample.as_mut().unwrap().gpus[0].processes = Reading::Now(vec![process]);
        code(&mut app, KeyCode::Down);
        press(&mut app, "k");
        assert!(app.dialog.is_none() && last(&mut app).contains(says), "{}", last(&mut app));
        code(&mut app, KeyCode::Enter);
        let Input::Inspected(inspection) = waiting.recv_timeout(Duration::from_secs(30)).unwrap() else { panic!() };
        let said = inspection.found.unwrap_err();
        assert!(said.contains(says.trim_end_matches(": no signal")), "{said}");
    }
}

#[test]
fn each_signal_has_its_key_and_waits_for_confirmation() {
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let facts = crate::top::process_stat::ProcessStat::read(std::path::Path::new("/proc"), child.id()).unwrap();
    let (mut app, _waiting) = app(1);
    let mut process = testing::processes(1).remove(0);
    (process.pid, process.started_ms) = (child.id(), Reading::Now(facts.started_ms.unwrap()));
    app.model.sample.as_mut().unwrap().gpus[0].processes = Reading::Now(vec![process]);
    code(&mut app, KeyCode::Down);
    for (key, signal) in [("T", "SIGTERM"), ("I", "SIGINT"), ("K", "SIGKILL")] {
        press(&mut app, key);
        assert!(lines(&mut app, 120, 40).join("\n").contains(&format!("Send {signal} to process")), "{key}");
        press(&mut app, "n");
        assert!(app.dialog.is_none() && child.try_wait().unwrap().is_none());
    }
    press(&mut app, "Ky");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
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
        assert_eq!(app.update(Update::Record(Box::new(Record::Sample(sample.clone())))), Next::Wait);
    }
    assert_eq!(lines(&mut app, 120, 40), before);
    app.model.sample.as_mut().unwrap().at_ms -= 3_600_000;
    assert_eq!(app.model.late_ms(), None, "what is paused is not late");
    press(&mut app, " ");
    let after = lines(&mut app, 120, 40);
    assert!(after[2].contains("123/700 W") && !after[0].contains("paused"), "{after:#?}");
    let window = crate::top::history::Window { end_ms: sample.at_ms, span_ms: 3000, columns: 3 };
    let power = crate::top::metrics::position("power").unwrap();
    let past = app.model.history.values(crate::top::history::Line::Gpu(0, power), window);
    assert!(past.iter().all(|watts| *watts == Some(123.0)), "{past:?}");
}

#[test]
fn simulated_and_recorded_processes_get_no_signals() {
    for (origin, simulated, why) in [(Origin::Driver, true, "simulated"), (Origin::Recording, false, "recording")] {
        let (mut app, _waiting) = app(2);
        app.model.origin = origin;
        if simulated {
            app.model.inventory.as_mut().unwrap().platform.source = gpumon_probe::model::SourceKind::Simulated;
        }
        code(&mut app, KeyCode::Down);
        press(&mut app, "k");
        assert!(app.dialog.is_none() && last(&mut app).contains(why), "{}", last(&mut app));
    }
}

#[test]
fn details_come_from_the_sample_at_once_and_from_proc_later() {
    let own = std::process::id();
    let (mut app, waiting) = app(1);
    let sample = app.model.sample.as_mut().unwrap();
    let mut process = testing::processes(1).remove(0);
    (process.pid, process.started_ms) = (own, Reading::Absent(gpumon_probe::model::Absence::Unknown));
    sample.gpus[0].processes = Reading::Now(vec![process]);
    code(&mut app, KeyCode::Down);
    code(&mut app, KeyCode::Enter);
    let first = lines(&mut app, 120, 40).join("\n");
    assert!(first.contains(&format!("Process {own}: --bf16")) && first.contains("reading /proc"), "{first}");
    let Input::Inspected(inspection) = waiting.recv_timeout(Duration::from_secs(30)).unwrap() else { panic!() };
    assert_eq!(app.inspected(*inspection), Next::Draw);
    let then = lines(&mut app, 120, 60).join("\n");
    for fact in ["main memory", "threads", "folder", "environment"] {
        assert!(then.contains(fact), "{fact}: {then}");
    }
    // The process leaves the GPU: what was known of it stays to be read.
    app.model.sample.as_mut().unwrap().gpus[0].processes = Reading::Now(Vec::new());
    assert!(lines(&mut app, 120, 60).join("\n").contains("no longer on this GPU"));
    code(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none());
}

#[test]
fn settings_are_saved_on_request_alone() {
    let path = std::env::temp_dir().join(format!("gpumon-app-{}.toml", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let (mut app, _waiting) = app(1);
    press(&mut app, "W");
    assert!(last(&mut app).contains("no place for settings"));
    app.file = Some(File::usual(&path).0);
    press(&mut app, "tC");
    assert!(!path.exists());
    press(&mut app, "W");
    assert!(last(&mut app).contains("saved in"), "{}", last(&mut app));
    let saved = Settings::of(&File::named(&path).unwrap()).0;
    assert_eq!((saved.tree, saved.theme), (true, ThemeName::Light));
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
fn a_replay_is_moved_in_by_keys() {
    let path: PathBuf = std::env::temp_dir().join(format!("gpumon-app-{}.ndjson", std::process::id()));
    let moment = testing::moment(1);
    let mut text = serde_json::to_string(&Record::Inventory(moment.inventory)).unwrap() + "\n";
    for second in 0..100 {
        let mut sample = moment.sample.clone();
        (sample.at_ms, sample.seq) = (1_700_000_000_000 + second * 1000, second);
        text += &(serde_json::to_string(&Record::Sample(sample)).unwrap() + "\n");
    }
    std::fs::write(&path, text).unwrap();
    let player = Player::open(&path).unwrap();
    let (mut app, _waiting) = over(Model::new(Origin::Recording), Feed::Recording(Box::new(player)));
    app.tick(Instant::now());
    let shown = |app: &App| app.model.sample.as_ref().unwrap().seq;
    assert_eq!(shown(&app), 0);
    press(&mut app, " )..,");
    assert_eq!(shown(&app), 31);
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("paused, 1 times as fast") && drawn.contains("space pause"), "{drawn}");
    press(&mut app, "+");
    assert!(last(&mut app).contains("keeps the interval"));
    press(&mut app, "gx");
    code(&mut app, KeyCode::Enter);
    assert!(last(&mut app).contains("'x' is not a time"));
    let time = crate::top::text::clock(1_700_000_000_000 + 77_000);
    press(&mut app, &format!("g{time}"));
    code(&mut app, KeyCode::Enter);
    assert_eq!(shown(&app), 77);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_filter_by_a_column_that_does_not_exist_is_named_and_can_be_mended() {
    let (mut app, _waiting) = app(2);
    press(&mut app, "f");
    press(&mut app, "usr:x");
    assert!(last(&mut app).contains("unknown column 'usr': did you mean 'user'?"), "{}", last(&mut app));
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
