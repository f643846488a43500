//! `gpumon top`, on a terminal.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::Duration,
};

use crate::support::{
    Fake, Server, Tty, complains_of_nothing, eventually, gpumon, set_variables_of, signal, stderr, stdout,
};

const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";

/// `top` over fake GPUs, with nothing of this machine's settings.
fn top(fake: &Fake, arguments: &[&str]) -> Command {
    let mut command = fake.gpumon(&[&["top"], arguments].concat());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env("XDG_CONFIG_HOME", fake.path("config"))
        .env_remove("NO_COLOR");
    command
}

/// Ends it by these keys.
#[track_caller]
fn quit(terminal: &mut Tty, keys: &str) {
    terminal.press(keys);
    assert!(terminal.ended().success());
}

/// A shell that runs this, with the command as its arguments.
fn in_shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    set_variables_of(&mut shell, command);
    shell
}

/// Writes the settings that it reads.
fn configure(fake: &Fake, settings: &str) {
    std::fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    std::fs::write(fake.path("config/gpumon/top.toml"), settings).unwrap();
}

#[test]
fn it_shows_gpus_takes_keys_and_gives_the_terminal_back() {
    let fake = Fake::new("gpus = 3");
    let mut terminal = Tty::start(&top(&fake, &[]), 100, 30);
    terminal.wait_for_sequence(ENTERS);
    for text in ["Charts", "H200", "GiB", "WHAT"] {
        terminal.wait_for(text);
    }
    assert!(!terminal.is_as_before(), "keys are read one by one");
    terminal.press("?");
    terminal.wait_for("everything anew");
    terminal.press("\u{1b}");
    terminal.forget();
    // Another size is drawn anew.
    terminal.resize(140, 40);
    terminal.wait_for("Charts");
    quit(&mut terminal, "q");
    terminal.wait_for_sequence(LEAVES);
    terminal.wait_for_sequence("\u{1b}[?25h");
    assert!(terminal.is_as_before());
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_before() {
    for name in ["-TERM", "-INT", "-HUP"] {
        let fake = Fake::new("gpus = 1");
        let mut terminal = Tty::start(&top(&fake, &[]), 80, 24);
        terminal.wait_for("WHAT");
        signal(name, terminal.pid());
        assert!(terminal.ended().success(), "{name}");
        terminal.wait_for_sequence(LEAVES);
        assert!(terminal.is_as_before(), "{name}");
    }
}

#[test]
fn it_stops_as_other_programs_do_and_goes_on() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = Tty::start(&top(&fake, &[]), 80, 24);
    terminal.wait_for("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for_sequence(LEAVES);
    eventually("it is stopped", || state_of(&terminal.pid().to_string()) == Some('T'));
    assert!(terminal.is_as_before());
    terminal.forget();
    signal("-CONT", terminal.pid());
    terminal.wait_for_sequence(ENTERS);
    terminal.wait_for("WHAT");
    quit(&mut terminal, "q");
}

#[test]
fn a_hung_gpu_is_shown_as_hung_and_keys_still_work() {
    let fake = Fake::new("gpus = 2\n[[fault]]\nkind = \"hang\"\ngpu = 1\nfrom_s = 2\n");
    let mut terminal = Tty::start(&top(&fake, &["--interval-ms", "200"]), 140, 30);
    terminal.wait_for("hung for");
    terminal.press("?");
    terminal.wait_for("everything anew");
    quit(&mut terminal, "qq");
}

#[test]
fn a_server_that_runs_is_asked_and_found_again_after_a_restart() {
    let fake = Fake::new("gpus = 2");
    let control = fake.control();
    let serve = || Server::over(&fake, &["--control", control.to_str().unwrap()]);
    let mut server = serve();
    eventually("the server has its local socket", || control.exists());
    let mut terminal = Tty::start(&top(&fake, &[]), 140, 30);
    terminal.wait_for("live from server");
    terminal.wait_for("WHAT");
    server.terminate();
    terminal.wait_for("no connection to the server");
    terminal.wait_for("reading the driver directly: no connection to the server");
    terminal.wait_for("live from driver");
    terminal.forget();
    let _again = serve();
    terminal.wait_for("live from server");
    quit(&mut terminal, "q");
}

#[test]
fn charts_begin_with_all_that_a_server_remembers() {
    let fake = Fake::new("gpus = 1");
    let control = fake.control();
    let _server = Server::over(&fake, &["--control", control.to_str().unwrap()]);
    configure(&fake, "metrics = [\"sm-clock\"]\nrange_s = 60\n");
    // The clock is none of those that a server tells without being asked.
    eventually("a frame has a line of several seconds", || {
        let frame = stdout(&top(&fake, &["--once"]).output().unwrap());
        let chart = frame.lines().skip_while(|line| !line.starts_with("SM clock")).skip(1);
        let bottom =
            chart.take_while(|line| !line.starts_with("GPU ")).filter(|line| line.trim_start().starts_with("0 MHz"));
        bottom.flat_map(str::chars).filter(|symbol| *symbol == '⣿').count() >= 3
    });
}

#[test]
fn a_server_that_says_nothing_is_replaced_by_the_driver() {
    let fake = Fake::new("gpus = 2");
    let control = fake.control();
    let server = Server::over(&fake, &["--control", control.to_str().unwrap()]);
    eventually("the server has its local socket", || control.exists());
    let mut terminal = Tty::start(&top(&fake, &[]), 140, 30);
    terminal.wait_for("live from server");
    signal("-STOP", server.child.id());
    terminal.wait_for("reading the driver directly: no connection to the server");
    terminal.wait_for("live from driver");
    terminal.forget();
    signal("-CONT", server.child.id());
    terminal.wait_for("live from server");
    quit(&mut terminal, "q");
}

#[test]
fn a_process_gets_a_signal_after_a_question() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id();
    let fake = Fake::new(&format!("gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for(&pid.to_string());
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for("Send SIGTERM to process");
    assert!(sleeper.try_wait().unwrap().is_none(), "a question is not an answer");
    terminal.press("y");
    let ended = sleeper.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(15));
    terminal.wait_for("has ended");
    quit(&mut terminal, "q");
}

#[test]
fn tagged_processes_get_a_signal_after_one_question() {
    let mut sleepers: Vec<_> = (0..3).map(|_| Command::new("sleep").arg("600").spawn().unwrap()).collect();
    let processes = sleepers
        .iter()
        .enumerate()
        .map(|(gpu, sleeper)| format!("[[process]]\ngpu = {gpu}\npid = {}\nmemory = \"12 GiB\"\n", sleeper.id()));
    let fake = Fake::new(&format!("gpus = 3\n{}", processes.collect::<String>()));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for(&sleepers[2].id().to_string());
    // The first two of the list, which tagging goes down.
    terminal.press("\u{1b}[B");
    terminal.press("  K");
    terminal.wait_for("to 2 processes?");
    terminal.press("y");
    terminal.wait_for("2 processes have ended");
    assert!(sleepers[2].try_wait().unwrap().is_none());
    quit(&mut terminal, "q");
    for sleeper in &mut sleepers {
        let _ = sleeper.kill();
        sleeper.wait().unwrap();
    }
}

#[test]
fn the_screen_of_a_process_shows_its_environment_without_its_secrets() {
    let mut sleeper = Command::new("sleep").arg("600").env_clear().env("API_KEY", "hidden").spawn().unwrap();
    let pid = sleeper.id();
    let fake = Fake::new(&format!("gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 40);
    terminal.wait_for(&pid.to_string());
    terminal.press("\u{1b}[B\r");
    terminal.wait_for("API_KEY=********");
    for chart in ["Host memory", "Disk I/O", "GPU memory", "Power share"] {
        terminal.wait_for(chart);
    }
    assert!(!terminal.written().contains("hidden"));
    terminal.press("s");
    terminal.wait_for("API_KEY=hidden");
    quit(&mut terminal, "qq");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn one_frame_is_printed_where_it_is() {
    let fake = Fake::new("gpus = 3\n[[process]]\ngpu = 1\npid = 1\nmemory = \"12 GiB\"\n");
    let once = |arguments: &[&str]| top(&fake, &[&["--once"], arguments].concat()).output().unwrap();
    let output = once(&["-i", "1,2"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(text.lines().count(), 40, "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains("q quit"), "{text}");
    assert!(text.contains("\n 1 H200") && text.contains("\n 2 H200") && !text.contains("\n 0 H200"), "{text}");
    assert!(text.contains("2 x H200") && text.contains("12.0 GiB"), "{text}");
    assert!(stdout(&once(&["-u", "nobody-at-all"])).contains("no processes of this user"));
    let missing = once(&["-i", "9"]);
    assert_eq!(missing.status.code(), Some(6));
    assert!(stderr(&missing).contains("no GPU '9': there are 0 to 2"), "{}", stderr(&missing));
    // On a terminal it is as large as that, in colors, and nothing is taken over.
    let mut terminal = Tty::start(&top(&fake, &["--once"]), 100, 30);
    terminal.wait_for("WHAT");
    assert!(terminal.ended().success());
    assert!(!terminal.written().contains(ENTERS) && terminal.written().contains("\u{1b}["));
}

#[test]
fn without_signals_none_is_asked_for() {
    let fake = Fake::new("gpus = 1\n[[process]]\ngpu = 0\npid = 1\nmemory = \"12 GiB\"\n");
    let mut terminal = Tty::start(&top(&fake, &["--readonly"]), 120, 30);
    terminal.wait_for("12.0 GiB");
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for("no signal can be sent: this was started with --readonly");
    quit(&mut terminal, "q");
}

#[test]
fn a_process_that_this_pid_namespace_does_not_have_is_not_said_to_have_ended() {
    let fake = Fake::new("gpus = 1\n[[process]]\ngpu = 0\npid = 4194305\nmemory = \"12 GiB\"\n");
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for("4194305");
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for("runs in another PID namespace");
    quit(&mut terminal, "q");
}

#[test]
fn what_processes_take_of_the_host_is_shown_of_any_user_and_a_dash_has_its_reason() {
    use std::os::unix::process::CommandExt;
    let mut busy = Command::new("sh");
    // It ends by itself, whatever becomes of this test.
    busy.args(["-c", "ulimit -t 20; while :; do :; done"]);
    // Only root can be another user.
    if rustix::process::geteuid().is_root() {
        busy.uid(65534);
    }
    let mut busy = busy.spawn().unwrap();
    let pid = busy.id();
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n[[process]]\ngpu = 0\npid = 4194305\nmemory = \"1 GiB\"\n"
    ));
    let row = |pid: u32| {
        let screen = stdout(&top(&fake, &["--once"]).output().unwrap());
        screen.lines().find(|line| line.contains(&format!(" {pid} "))).unwrap_or_default().to_owned()
    };
    eventually("its CPU time is compared", || {
        let row = row(pid);
        let words: Vec<_> = row.split_whitespace().collect();
        // GPU, PID, USER, MEMORY in GiB, what it takes of GPU, its SM, ..., CPU, HOST MEM, TIME, WHAT.
        let host = words.iter().rposition(|word| *word == "GiB").filter(|at| *at > 6);
        host.is_some_and(|at| words[at - 2] == "%" && words[at - 3].parse::<f64>().is_ok_and(|percent| percent > 0.0))
    });
    assert!(row(4_194_305).contains("-          -"), "{}", row(4_194_305));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for("HOST MEM");
    terminal.press("\u{1b}[B\u{1b}[B\r");
    terminal.wait_for("the process runs in another PID namespace (a container or the host), or has ended");
    quit(&mut terminal, "qq");
    busy.kill().unwrap();
    busy.wait().unwrap();
}

#[test]
fn a_tree_has_the_shell_above_the_process() {
    // It ends by itself, whatever becomes of this test.
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid = line.trim();
    let fake = Fake::new(&format!("gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"));
    configure(&fake, "tree = true\n");
    let screen = stdout(&top(&fake, &["--once"]).output().unwrap());
    let rows: Vec<_> = screen.lines().skip_while(|line| !line.starts_with("GPU      PID")).collect();
    let at = rows.iter().position(|row| row.contains("12.0 GiB")).unwrap();
    assert!(rows[at].contains(pid) && rows[at].contains("└ sleep 60"), "{screen}");
    let above = rows[at - 1];
    assert!(above.contains(&format!(" {} ", shell.id())) && above.trim_end().ends_with("─ sh"), "{screen}");
    assert!(rows[0].ends_with("tree  1 process"), "{screen}");
    signal("-KILL", pid.parse().unwrap());
    shell.wait().unwrap();
}

#[test]
fn a_recording_of_collect_is_played() {
    let fake = Fake::new("gpus = 2");
    let recording = fake.path("recording.ndjson");
    let recorded = fake.gpumon(&["collect", "--count", "5", "--interval-ms", "100"]).output().unwrap();
    std::fs::write(&recording, &recorded.stdout).unwrap();
    let path = recording.to_str().unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    terminal.wait_for("replay");
    terminal.wait_for("at its end");
    quit(&mut terminal, "q");
    // What is no recording is refused before the screen is taken over.
    let mut file = std::fs::OpenOptions::new().append(true).open(&recording).unwrap();
    file.write_all(b"{\"type\":\"sample\"}\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    assert_eq!(terminal.ended().code(), Some(2));
    let line = stdout(&recorded).lines().count() + 1;
    terminal.wait_for(&format!("line {line} is not a record"));
    assert!(!terminal.written().contains(ENTERS));
}

#[test]
fn where_there_is_no_terminal_it_says_what_to_use() {
    let output = gpumon(&["--source", "sim:1", "top"]).env("TERM", "xterm").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("--watch") && message.contains("gpumon collect") && message.lines().count() == 1,
        "{message}"
    );
    let fake = Fake::new("gpus = 1");
    let mut dumb = top(&fake, &[]);
    dumb.env("TERM", "dumb");
    let mut terminal = Tty::start(&dumb, 80, 24);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("TERM is dumb");
    assert!(!terminal.written().contains('\u{1b}'), "{}", terminal.written());
}

#[test]
fn without_a_library_the_reason_is_told_as_by_any_other_command() {
    let fake = Fake::new("gpus = 1");
    let mut command = top(&fake, &[]);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let mut terminal = Tty::start(&command, 80, 24);
    assert_eq!(terminal.ended().code(), Some(12));
    terminal.wait_for("/nowhere/libnvidia-ml.so.1");
    assert!(!terminal.written().contains(ENTERS));
}

#[test]
fn settings_are_read_and_a_mistake_is_named_and_left_out() {
    let fake = Fake::new("gpus = 1");
    configure(&fake, "view = \"host\"\ntheme = \"monochrome\"\n");
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for("Network TX");
    quit(&mut terminal, "q");
    assert!(!terminal.written().contains("\u{1b}[38;5;"), "no colours");
    configure(&fake, "view = \"host\"\nthem = \"light\"\n");
    let mut terminal = Tty::start(&top(&fake, &[]), 160, 30);
    terminal.wait_for("line 2: unknown setting 'them': did you mean 'theme'?");
    terminal.wait_for("Network TX");
    quit(&mut terminal, "q");
}

#[test]
fn setup_changes_the_settings_file_and_keeps_the_rest_of_it() {
    let fake = Fake::new("gpus = 1");
    let file = fake.path("top.toml");
    std::fs::write(&file, "# mine\ntheme = \"light\" # at day\n\n[other]\nkey = 1\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--config", file.to_str().unwrap()]), 100, 30);
    terminal.wait_for("WHAT");
    // F2, and to the third page.
    terminal.press("\u{1b}OQ");
    terminal.wait_for("[x] memory");
    terminal.press("\t\t");
    terminal.wait_for("refresh interval");
    terminal.press("\u{1b}[C");
    terminal.wait_for("color-blind ▸");
    terminal.press("W");
    terminal.wait_for("saved in");
    quit(&mut terminal, "qq");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# mine\ntheme = \"color-blind\" # at day\n"), "{text}");
    assert!(text.ends_with("\n[other]\nkey = 1\n"), "{text}");
}

#[test]
fn the_table_takes_its_thresholds_from_the_settings() {
    let fake = Fake::new("gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 50\n");
    let table = |settings: &str| {
        configure(&fake, settings);
        let mut command = fake.gpumon(&["--color", "always"]);
        command.env("XDG_CONFIG_HOME", fake.path("config")).output().unwrap()
    };
    let (moderate, heavy) = ("\u{1b}[1m\u{1b}[33m50 %", "\u{1b}[1m\u{1b}[4m\u{1b}[31m50 %");
    assert!(stdout(&table("")).contains(moderate), "{:?}", stdout(&table("")));
    assert!(stdout(&table("utilization_thresholds = [20, 50]\n")).contains(heavy));
    let mistaken = table("utilization_thresholds = 20\n");
    assert!(mistaken.status.success() && stdout(&mistaken).contains(moderate));
    assert!(stderr(&mistaken).contains("line 1: utilization_thresholds cannot be 20: use two percentages"));
}

#[test]
fn nothing_is_drawn_while_nothing_changes() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = Tty::start(&top(&fake, &["--interval-ms", "60000"]), 80, 24);
    terminal.wait_for("WHAT");
    complains_of_nothing(|| {
        terminal.forget();
        std::thread::sleep(Duration::from_secs(2));
        if terminal.written().is_empty() { Vec::new() } else { vec!["something is drawn".to_owned()] }
    });
    quit(&mut terminal, "q");
}

/// An interactive bash on a terminal, as a person has it, and `top` as it is typed there.
fn shell(fake: &Fake) -> Tty {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-i"]).env("PS1", "$ ").env("HISTFILE", "/dev/null");
    let top = top(fake, &[]);
    set_variables_of(&mut bash, &top);
    let mut terminal = Tty::start(&bash, 100, 30);
    let words: Vec<_> = [top.get_program()].into_iter().chain(top.get_args()).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
    terminal.press(&format!("alias top='{}'\r", words.join(" ")));
    terminal
}

/// The one letter for what a process does; `None` where there is no such process.
fn state_of(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ").unwrap().1.chars().next()
}

/// Whether the shell's job has come so far that a request to end does not kill it.
fn handles_requests_to_end(pid: &str) -> bool {
    // SIGTERM is the 15th signal.
    const SIGTERM: u64 = 1 << 14;
    let is_top = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program.ends_with("gpumon"));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let handled = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    is_top && handled.is_some_and(|signals| signals & SIGTERM != 0)
}

/// Has the shell end its job, of which it is told that all went well.
fn end_job(terminal: &mut Tty) {
    let pid = terminal.pid().to_string();
    eventually("the job handles signals", || handles_requests_to_end(&pid));
    terminal.forget();
    terminal.press("kill %1\r");
    eventually("the job ends", || state_of(&pid).is_none());
    // The shell tells it before the next prompt.
    terminal.press("\r");
    terminal.wait_for("Done");
}

#[test]
fn a_terminal_that_is_closed_ends_it_quietly() {
    let fake = Fake::new("gpus = 1");
    let complaints = fake.path("complaints");
    // With the signal, without it and something to draw, and without it and nothing to draw.
    for (in_session, interval_ms) in [(true, "60000"), (false, "100"), (false, "60000")] {
        for into_file in [false, true] {
            let mut command = top(&fake, &["--interval-ms", interval_ms]);
            if into_file {
                command = in_shell(&format!("exec \"$@\" 2>{}", complaints.display()), &command);
            }
            let start = if in_session { Tty::start } else { Tty::of_no_session };
            let mut terminal = start(&command, 100, 30);
            terminal.wait_for("WHAT");
            terminal.hang_up();
            let status = terminal.ended();
            assert!(status.success(), "{status}, in session: {in_session}, {interval_ms} ms");
            if into_file {
                assert_eq!(std::fs::read_to_string(&complaints).unwrap(), "");
            }
        }
    }
}

#[test]
fn a_stopped_job_can_be_ended_and_brought_back() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = shell(&fake);
    // What is typed is echoed, so that what is waited for is put together by the shell.
    terminal.press("top\r");
    terminal.wait_for("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for("Stopped");
    end_job(&mut terminal);
    // Behind, it touches nothing; in front again, it goes on.
    terminal.press("top\r");
    terminal.wait_for("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for("Stopped");
    terminal.forget();
    terminal.press("bg\r");
    terminal.press("sleep 1; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for("running: 1");
    assert!(!terminal.written().contains(ENTERS), "{}", terminal.written());
    terminal.press("fg\r");
    terminal.wait_for_sequence(ENTERS);
    terminal.wait_for("WHAT");
    terminal.press("q");
    terminal.wait_for_sequence(LEAVES);
    terminal.press("echo \"left with \"$?\r");
    terminal.wait_for("left with 0");
}

#[test]
fn a_job_that_was_stopped_or_started_behind_can_be_ended() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = shell(&fake);
    terminal.press("top &\r");
    terminal.press("sleep 2; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for("running: 1");
    end_job(&mut terminal);
    // Stopped by somebody else, it had no chance to give the terminal back.
    terminal.press("top\r");
    terminal.wait_for("WHAT");
    signal("-STOP", terminal.pid());
    terminal.wait_for("Stopped");
    end_job(&mut terminal);
    terminal.wait_for_sequence(LEAVES);
}

#[test]
fn a_job_that_nobody_can_bring_back_ends() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = shell(&fake);
    let pid_file = fake.path("pid");
    // The inner shell leaves while its job waits behind; the outer one never had that job.
    let inner =
        format!("set -m; eval \"$TOP &\"; echo $! > {}; sleep 2; kill -0 $!; echo \"waits: \"$?", pid_file.display());
    terminal.press("export TOP=\"${BASH_ALIASES[top]}\"\r");
    terminal.press(&format!("bash --norc --noprofile -c '{inner}'\r"));
    terminal.wait_for("waits: 0");
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    eventually("it has ended", || !matches!(state_of(pid.trim()), Some(state) if state != 'Z'));
}

#[test]
fn a_deadly_signal_is_died_of_after_the_terminal_is_given_back() {
    for (name, number) in [("-QUIT", 3), ("-USR1", 10), ("-USR2", 12), ("-ALRM", 14), ("-XCPU", 24)] {
        let fake = Fake::new("gpus = 1");
        // No file of the memory is wanted of those that leave one.
        let command = in_shell("ulimit -c 0; exec \"$@\"", &top(&fake, &[]));
        let mut terminal = Tty::start(&command, 80, 24);
        terminal.wait_for("WHAT");
        signal(name, terminal.pid());
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&terminal.ended()), Some(number), "{name}");
        terminal.wait_for_sequence(LEAVES);
        assert!(terminal.is_as_before(), "{name}");
    }
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = Tty::start(&top(&fake, &[]), u16::MAX, u16::MAX);
    terminal.wait_for_sequence(ENTERS);
    terminal.wait_for_sequence("WHAT");
    terminal.resize(0, 0);
    terminal.resize(80, 24);
    terminal.forget();
    terminal.wait_for("WHAT");
    terminal.forget();
    terminal.resize(u16::MAX, u16::MAX);
    terminal.wait_for_sequence("WHAT");
    let memory = std::fs::read_to_string(format!("/proc/{}/status", terminal.pid())).unwrap();
    let most = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most_kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most_kib < 500_000, "{most_kib} KiB");
    quit(&mut terminal, "q");
}

#[test]
fn settings_that_cannot_be_read_stop_it_only_where_somebody_named_them() {
    let fake = Fake::new("gpus = 1");
    let mut command = top(&fake, &[]);
    command.env("XDG_CONFIG_HOME", "/dev/null");
    let mut terminal = Tty::start(&command, 140, 30);
    terminal.wait_for("nothing is set: cannot read /dev/null/gpumon/top.toml");
    quit(&mut terminal, "q");
    // One that is named and not there yet is where W writes.
    let new = fake.path("new.toml");
    let mut terminal = Tty::start(&top(&fake, &["--config", new.to_str().unwrap()]), 140, 30);
    terminal.wait_for("new.toml is not there yet: W writes it");
    terminal.press("C");
    terminal.press("W");
    terminal.wait_for("saved in");
    quit(&mut terminal, "q");
    assert!(std::fs::read_to_string(&new).unwrap().contains("theme = \"light\""));
    let mut terminal = Tty::start(&top(&fake, &["--config", "/nowhere/new.toml"]), 80, 24);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("cannot read /nowhere/new.toml");
}

#[test]
fn a_recording_of_impossible_times_and_evil_words_does_no_harm() {
    let fake = Fake::new("gpus = 2");
    let recording = fake.path("recording.ndjson");
    let recorded = fake.gpumon(&["collect", "--count", "3", "--interval-ms", "100"]).output().unwrap();
    let lines = stdout(&recorded);
    let mut late = Vec::new();
    for line in lines.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["at_ms"] = u64::MAX.into();
        writeln!(late, "{line}").unwrap();
    }
    std::fs::write(&recording, late).unwrap();
    let path = recording.to_str().unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    terminal.wait_for("at its end");
    quit(&mut terminal, "123456q");
    std::fs::write(&recording, "{\"type\":\"\\u001b]0;pwn\\u0007x\"}\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("pwn");
    assert!(!terminal.written().contains(['\u{1b}', '\u{7}']), "{:?}", terminal.written());
}
