//! Keys and mouse, and what comes of them on the screen.

use std::{path::PathBuf, sync::mpsc};

use gpumon_probe::model::{Process, Reading, Record};
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
    assert_eq!(press(&mut app, "x"), Next::Draw);
    assert!(last(&mut app).starts_with("x is not assigned: ? lists the keys"), "{}", last(&mut app));
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
    press(&mut app, "T");
    assert!(last(&mut app).contains("select a process first"));
    code(&mut app, KeyCode::Down);
    press(&mut app, "T");
    let asked = lines(&mut app, 120, 40).join("\n");
    assert!(
        asked.contains(&format!("Send SIGTERM to process {}, ", child.id())) && asked.contains("of ana?"),
        "{asked}"
    );
    code(&mut app, KeyCode::Enter);
    code(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none() && child.try_wait().unwrap().is_none(), "only y sends");
    press(&mut app, "Ti");
    assert!(lines(&mut app, 120, 40).join("\n").contains("Send SIGINT"));
    press(&mut app, "y");
    assert!(last(&mut app).contains("SIGINT was sent to"));
    child.wait().unwrap();
    assert_eq!(app.tick(Instant::now()), Next::Draw);
    assert!(last(&mut app).contains("has ended"));
    press(&mut app, "T");
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
        press(&mut app, "T");
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
        press(&mut app, "T");
        assert!(app.dialog.is_none() && last(&mut app).contains(why), "{}", last(&mut app));
    }
}

#[test]
fn a_process_screen_comes_from_the_sample_at_once_and_from_proc_later() {
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
    for fact in ["host memory", "threads", "folder", "environment"] {
        assert!(then.contains(fact), "{fact}: {then}");
    }
    // The process leaves the GPU: what was known of it stays to be read.
    let mut sample = app.model.sample.clone().unwrap();
    sample.gpus[0].processes = Reading::Now(Vec::new());
    app.update(Update::Record(Box::new(Record::Sample(sample))));
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

#[test]
fn tagged_processes_get_one_signal_each_after_one_question() {
    let mut children: Vec<_> = (0..3)
        .map(|_| std::process::Command::new("sleep").arg("600").stdout(std::process::Stdio::null()).spawn().unwrap())
        .collect();
    let (mut app, _waiting) = app(2);
    let mut template = testing::processes(3);
    for (process, child) in template.iter_mut().zip(&children) {
        let facts = crate::top::process_stat::ProcessStat::read(std::path::Path::new("/proc"), child.id()).unwrap();
        (process.pid, process.started_ms) = (child.id(), Reading::Now(facts.started_ms.unwrap()));
    }
    let sample = app.model.sample.as_mut().unwrap();
    // The first is on both GPUs.
    sample.gpus[0].processes = Reading::Now(template.clone());
    sample.gpus[1].processes = Reading::Now(template[..1].to_vec());
    app.state.processes.sort = Column::Pid;
    app.state.processes.descending = false;
    code(&mut app, KeyCode::Home);
    press(&mut app, "  ");
    let tagged = |app: &mut App| lines(app, 120, 40).iter().filter(|line| line.starts_with("* ")).count();
    assert_eq!(tagged(&mut app), 0, "the second row is the first process on the other GPU");
    press(&mut app, "  ");
    assert_eq!(tagged(&mut app), 2);
    code(&mut app, KeyCode::Home);
    press(&mut app, " ");
    assert_eq!(tagged(&mut app), 4);
    // What a filter hides stays tagged and is named in the question.
    press(&mut app, "f");
    press(&mut app, "nobody");
    code(&mut app, KeyCode::Enter);
    press(&mut app, "U");
    assert!(app.state.processes.tags.is_empty());
    code(&mut app, KeyCode::Esc);
    code(&mut app, KeyCode::Home);
    press(&mut app, " ");
    code(&mut app, KeyCode::End);
    press(&mut app, " f");
    press(&mut app, "nobody");
    code(&mut app, KeyCode::Enter);
    press(&mut app, "T");
    let asked = lines(&mut app, 120, 40).join("\n");
    assert!(asked.contains("Send SIGTERM to 2 processes?") && asked.contains("GPU 0, 1, since"), "{asked}");
    for (place, child) in children.iter().enumerate() {
        assert_eq!(asked.contains(&format!("({})", child.id())), place != 1, "{asked}");
    }
    press(&mut app, "y");
    assert!(last(&mut app).contains("SIGTERM was sent to 2 processes"), "{}", last(&mut app));
    for child in [0, 2] {
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&children[child].wait().unwrap()), Some(15));
        app.tick(Instant::now());
    }
    assert!(children[1].try_wait().unwrap().is_none(), "what is not tagged gets nothing");
    assert!(last(&mut app).contains("2 processes have ended"), "{}", last(&mut app));
    children[1].kill().unwrap();
    children[1].wait().unwrap();
}

#[test]
fn tags_follow_a_process_and_vanish_with_it() {
    let (mut app, _waiting) = app(1);
    code(&mut app, KeyCode::Home);
    press(&mut app, "  ");
    assert_eq!(app.state.processes.tags.len(), 2);
    let keys = lines(&mut app, 80, 24).pop().unwrap();
    assert!(keys.starts_with("q quit  ? help  space tag  enter details  T signal  "), "{keys}");
    assert!(lines(&mut app, 120, 40).join("\n").contains("2 tagged"));
    let mut sample = app.model.sample.clone().unwrap();
    let Reading::Now(processes) = &mut sample.gpus[0].processes else { panic!() };
    // One ends, and its number becomes another's.
    processes[0].started_ms = Reading::Now(1_800_000_000_000);
    app.update(Update::Record(Box::new(Record::Sample(sample))));
    assert_eq!(app.state.processes.tags.len(), 1);
    code(&mut app, KeyCode::Esc);
    assert!(app.state.processes.tags.is_empty());
    app.state.processes.selected = None;
    press(&mut app, " ");
    assert!(app.model.paused, "with nothing selected");
    press(&mut app, "p");
    assert!(!app.model.paused);
}

/// It ends with the test.
struct Sleeper(std::process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleeper(environment: &[(&str, &str)]) -> Sleeper {
    let mut command = std::process::Command::new("sleep");
    Sleeper(command.arg("600").env_clear().envs(environment.iter().copied()).spawn().unwrap())
}

/// The screen of a process of this machine, which samples say to hold 8 GiB.
fn process_screen(app: &mut App, waiting: &mpsc::Receiver<Input>, pid: u32, key: char) {
    let facts = crate::top::process_stat::ProcessStat::read(std::path::Path::new("/proc"), pid).unwrap();
    let mut process = testing::processes(1).remove(0);
    (process.pid, process.started_ms) = (pid, Reading::Now(facts.started_ms.unwrap()));
    (process.memory_bytes, process.sm_percent) = (Reading::Now(8 << 30), Reading::Now(40.0));
    let mut sample = app.model.sample.clone().unwrap();
    sample.gpus[0].power.draw_watts = Reading::Now(400.0);
    sample.gpus[0].processes =
        Reading::Now(vec![process.clone(), Process { pid: 1, sm_percent: Reading::Now(10.0), ..process }]);
    for second in 1..=3 {
        sample.at_ms += 1000;
        app.update(Update::Record(Box::new(Record::Sample(sample.clone()))));
        if second == 1 {
            app.state.processes.selected = None;
            press(app, "/");
            press(app, &format!("pid:{pid}"));
            code(app, KeyCode::Enter);
            press(app, &key.to_string());
        }
        let Input::Inspected(inspection) = waiting.recv_timeout(Duration::from_secs(30)).unwrap() else { panic!() };
        app.inspected(*inspection);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_screen_of_a_process_charts_it_and_masks_its_secrets() {
    let mut child = sleeper(&[("HF_TOKEN", "hf_secret"), ("PATH", "/bin"), ("ZONE", "a")]);
    let (mut app, waiting) = app(1);
    process_screen(&mut app, &waiting, child.0.id(), 'i');
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let drawn = lines(&mut app, width, height).join("\n");
        for part in ["CPU ", "Host memory", "Disk I/O", "SM ", "40 %", "8.00 GiB", "320 W", "esc back"] {
            assert!(drawn.contains(part), "{part} at {width}x{height}: {drawn}");
        }
    }
    let drawn = lines(&mut app, 120, 60);
    let rates = drawn.iter().find(|line| line.contains("Disk I/O")).unwrap();
    assert!(!rates.contains(" - "), "two looks make a rate: {rates}");
    let drawn = drawn.join("\n");
    assert!(drawn.contains("HF_TOKEN=********") && !drawn.contains("hf_secret"), "{drawn}");
    press(&mut app, "s");
    assert!(lines(&mut app, 120, 60).join("\n").contains("HF_TOKEN=hf_secret"));
    // A signal goes to this process, whatever is tagged, and the screen is there again afterwards.
    press(&mut app, "T");
    let asked = lines(&mut app, 120, 40).join("\n");
    assert!(asked.contains(&format!("Send SIGTERM to process {},", child.0.id())), "{asked}");
    press(&mut app, "n");
    assert!(lines(&mut app, 120, 40).join("\n").contains("Disk I/O"));
    press(&mut app, "Ky");
    child.0.wait().unwrap();
    app.tick(Instant::now());
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("has ended") && drawn.contains("Disk I/O"), "{drawn}");
    code(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none());
}

#[test]
fn e_shows_the_environment_first() {
    let names: Vec<String> = (10..40).map(|number| format!("GPUMON_{number}")).collect();
    let child = sleeper(&names.iter().map(|name| (name.as_str(), "1")).collect::<Vec<_>>());
    let (mut app, waiting) = app(1);
    process_screen(&mut app, &waiting, child.0.id(), 'e');
    let drawn = lines(&mut app, 80, 24);
    let below_charts = &drawn[2 + (24 - 3) * 2 / 5];
    assert!(below_charts.starts_with("environment   "), "{drawn:#?}");
}

#[test]
fn the_keys_of_htop_and_vim_do_what_they_do_there() {
    let (mut app, _waiting) = app(4);
    let place = |app: &App| app.state.processes.position(&app.state.processes.rows(&app.model, None));
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
        assert!(lines(&mut app, 120, 40).join("\n").contains(shows), "F{key}");
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
    assert_eq!((app.state.processes.sort, app.state.processes.descending), (Column::Pid, false));
    assert!(app.dialog.is_none());
    press(&mut app, "om");
    code(&mut app, KeyCode::Enter);
    assert_eq!(app.state.processes.sort, Column::Memory);
    press(&mut app, "u");
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("all users               8") && drawn.contains("chen"), "{drawn}");
    code(&mut app, KeyCode::Down);
    code(&mut app, KeyCode::Enter);
    let drawn = lines(&mut app, 120, 40).join("\n");
    assert!(drawn.contains("user ana") && !drawn.contains("chen"), "{drawn}");
    press(&mut app, "u");
    click(&mut app, "all users");
    assert_eq!((app.state.processes.user.as_deref(), app.dialog.is_none()), (None, true));
}

#[test]
fn the_wheel_scrolls_without_selecting() {
    let (mut app, _waiting) = app(4);
    let drawn = lines(&mut app, 80, 16);
    let row = drawn.iter().position(|line| line.contains("PID")).unwrap() as u16 + 1;
    let wheel = MouseEvent { kind: MouseEventKind::ScrollDown, column: 5, row, modifiers: KeyModifiers::NONE };
    app.terminal(&Event::Mouse(wheel));
    lines(&mut app, 80, 16);
    assert!(app.state.processes.scroll > 0 && app.state.processes.selected.is_none());
}

#[test]
fn setup_shows_its_effect_at_once_and_saves_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("top.toml");
    std::fs::write(&path, "# mine\ncolumns = [\"pid\", \"what\"] # two\nodd = 1\n").unwrap();
    let (mut app, _waiting) = app(4);
    app.file = Some(File::usual(&path).0);
    code(&mut app, KeyCode::F(2));
    let drawn = lines(&mut app, 80, 24);
    let cut = |line: &String| line.chars().skip(10).take(60).collect::<String>();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("setup", drawn[1..15].iter().map(cut).collect::<Vec<_>>().join("\n"));
    });
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let drawn = lines(&mut app, width, height).join("\n");
        assert!(drawn.contains("[x] gpu") && drawn.contains("MEMORY"), "box and list at {width}x{height}: {drawn}");
    }
    press(&mut app, " ");
    let drawn = lines(&mut app, 80, 24).join("\n");
    assert!(drawn.contains("[ ] gpu") && !drawn.contains("GPU      PID"), "{drawn}");
    click(&mut app, " Display ");
    let theme = app.state.theme_name;
    code(&mut app, KeyCode::Right);
    assert_ne!(app.state.theme_name, theme);
    code(&mut app, KeyCode::Down);
    code(&mut app, KeyCode::Right);
    assert_eq!(app.state.interval_ms, 2000);
    assert!(last(&mut app).contains("a sample every 2000 ms"), "{}", last(&mut app));
    click(&mut app, "refresh interval");
    assert_eq!(app.state.interval_ms, 5000);
    assert!(std::fs::read_to_string(&path).unwrap().contains("two"), "not yet");
    press(&mut app, "W");
    assert!(last(&mut app).contains("saved in"), "{}", last(&mut app));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# mine\ncolumns = [\"pid\", \"user\"") && text.contains("] # two\nodd = 1\n"), "{text}");
    assert!(text.contains("interval_ms = 5000"), "{text}");
    code(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none());
    // Where nothing can be written it says what to do.
    app.file = Some(File::usual(std::path::Path::new("/proc/gpumon/top.toml")).0);
    press(&mut app, "W");
    assert!(last(&mut app).contains("not saved in /proc/gpumon/top.toml"), "{}", last(&mut app));
    assert!(last(&mut app).contains("choose another file with --config"), "{}", last(&mut app));
}
