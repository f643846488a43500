//! The live screen, `gpumon top`.
//!
//! - [`feed`] is where readings come from, [`replay`] one of them; [`model`] holds the newest, [`history`] the past.
//! - [`input`] is all that the program waits for; [`app`] is what comes of it, [`keys`] what each key means.
//! - [`selection`] leaves out GPUs that are not wanted; [`once`] prints one frame.
//! - [`job`] tells whether the terminal may be touched.
//! - [`draw`] draws [`state`] and [`model`]: [`layout`] shares the room, one file in [`panel`] and [`dialog`] draws each
//!   part with a [`painter`]; [`screen`] is the terminal.
//! - [`processes`] is the list, [`inspect`] what a process tells of itself, [`kill`] how it gets a signal.
//! - [`settings`] are read at the start.
//!
//! The thread that draws never calls the driver, and never reads a file of a process that could hang in it.

mod app;
mod dialog;
mod draw;
mod feed;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod glyphs;
mod history;
mod input;
mod inspect;
mod job;
mod keys;
mod kill;
mod layout;
mod metrics;
mod model;
mod once;
mod painter;
mod panel;
mod plot;
mod processes;
mod prompt;
mod replay;
mod screen;
mod selection;
pub(crate) mod settings;
mod state;
#[cfg(test)]
mod testing;
pub(crate) mod text;
pub(crate) mod theme;
mod view;

use std::{
    env, io,
    path::PathBuf,
    sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use gpumon_recording::Player;

pub(crate) use self::selection::Selection;
use self::{
    app::{App, Next},
    feed::{Feed, PastReader},
    glyphs::Glyphs,
    input::{Input, Signal},
    job::Job,
    model::{Model, Origin},
    screen::Screen,
    settings::Settings,
    state::State,
    theme::ThemeName,
};
use crate::{
    describe::Level,
    exit::{Failure, say},
    local::Server,
    options::SourceArgs,
};

/// What may wait to be drawn. A terminal that takes nothing holds up the reading, and memory stays as it is.
const WAITING: usize = 64;

/// An error that comes so soon is told before the screen is taken over.
const FIRST: Duration = Duration::from_millis(1500);

/// The interval of the two samples of [`once`].
const ONCE_MS: u32 = 250;

/// How often it is looked whether the terminal is this program's again.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What is to be shown, and how.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Request {
    pub(crate) source: SourceArgs,
    pub(crate) server: Option<Server>,
    /// A recording to play, in the place of all others.
    pub(crate) player: Option<Player>,
    /// What is to be said first.
    pub(crate) remarks: Vec<String>,
    /// As files, variables and flags have them.
    pub(crate) settings: Settings,
    pub(crate) mouse: bool,
    /// A theme that is typed goes before `NO_COLOR`, which is set for all programs.
    pub(crate) is_theme_typed: bool,
    /// Where W writes them; `None` where there is no place.
    pub(crate) file: Option<PathBuf>,
    pub(crate) is_file_named: bool,
    pub(crate) selection: Selection,
    /// Whose processes alone are listed.
    pub(crate) user: Option<String>,
    pub(crate) readonly: bool,
    pub(crate) once: bool,
}

/// Shows it until somebody leaves.
pub(crate) fn run(mut request: Request) -> Result<(), Failure> {
    if !request.once {
        screen::check()?;
    }
    let mut settings = request.settings.without_repetitions();
    let file = request.file;
    let new = file.as_ref().filter(|path| request.is_file_named && !path.exists());
    let new = new.map(|path| format!("{} does not exist yet; W creates it", path.display()));
    let remark = request.remarks.into_iter().chain(new).collect::<Vec<_>>().join("; ");
    if request.once {
        // Rates need a second sample, and nobody waits for it longer than needed.
        settings.interval_ms = ONCE_MS;
    }
    let (inputs, waiting) = mpsc::sync_channel(WAITING);
    let interval = Duration::from_millis(settings.interval_ms.into());
    let past = request.server.as_ref().filter(|_| request.player.is_none() && !request.once);
    let past = past.map(|server| PastReader::new(server.path.clone(), inputs.clone()));
    let (feed, origin) = match (request.player.take(), request.server) {
        (Some(player), _) => (Feed::Recording(Box::new(player)), Origin::Recording),
        (None, Some(server)) => (Feed::from_server(server, &request.source, interval, inputs.clone()), Origin::Server),
        (None, None) => (Feed::from_driver(&request.source, interval, inputs.clone()), Origin::Driver),
    };
    let mut model = Model { selection: request.selection, ..Model::new(origin) };
    if request.once {
        once::read(&mut model, &waiting)?;
    } else if origin != Origin::Recording {
        wait_for_first_sample(&mut model, &waiting)?;
    }
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let theme = if no_color && !request.is_theme_typed { ThemeName::Monochrome } else { settings.theme };
    let mut state = State::new(&settings, theme, settings.glyphs.unwrap_or_else(Glyphs::of_terminal));
    state.processes.user = request.user;
    match (remark.is_empty(), request.once) {
        (true, _) => {}
        (false, true) => say(&remark),
        (false, false) => state.tell(Level::Warn, remark),
    }
    let mouse = request.mouse;
    let mut app = App::new(model, state, feed, settings, file, inputs.clone());
    app.is_readonly = request.readonly;
    app.past = past;
    if request.once {
        return Ok(once::print(&mut app)?);
    }
    show(app, mouse, inputs, &waiting)
}

/// Waits a little for the first readings, so that what cannot be read at all is told where it stays.
fn wait_for_first_sample(model: &mut Model, waiting: &Receiver<Input>) -> Result<(), Failure> {
    let begun = Instant::now();
    while model.sample.is_none() {
        match waiting.recv_timeout(FIRST.saturating_sub(begun.elapsed())) {
            Ok(Input::Update(update)) => model.ingest(update),
            Ok(Input::Failed(failure)) => return Err(failure),
            Ok(_) | Err(_) => return Ok(()),
        }
        if let Some(refused) = model.refused.take() {
            return Err(refused.into());
        }
    }
    Ok(())
}

fn show(mut app: App, mouse: bool, inputs: SyncSender<Input>, waiting: &Receiver<Input>) -> Result<(), Failure> {
    input::watch_signals(inputs.clone())?;
    let shown = run_in_terminal(&mut app, mouse, inputs, waiting);
    match shown {
        Ok(End::Of(signal)) => input::die(signal),
        Ok(End::Wanted) => Ok(()),
        // The terminal is gone, and nobody is there to be told.
        Err(failure) if failure.is_broken_pipe() => Ok(()),
        Err(failure) => Err(failure),
    }
}

enum End {
    /// Somebody wants it to, or nobody is there any more.
    Wanted,
    /// Of a signal that is none of those that ask for the end.
    Of(i32),
}

/// Shows it, and has given the terminal back when this returns.
fn run_in_terminal(
    app: &mut App,
    mouse: bool,
    inputs: SyncSender<Input>,
    waiting: &Receiver<Input>,
) -> Result<End, Failure> {
    // A job can be started behind.
    if let Some(end) = wait_for_foreground(app, waiting)? {
        return Ok(end);
    }
    let mut screen = Screen::take(mouse).map_err(terminal_error)?;
    input::watch_terminal(inputs)?;
    follow(app, &mut screen, waiting)
}

/// Draws whenever something has changed, and never otherwise.
fn follow(app: &mut App, screen: &mut Screen, waiting: &Receiver<Input>) -> Result<End, Failure> {
    let mut next = Next::DrawAnew;
    loop {
        match next {
            Next::Quit => return Ok(End::Wanted),
            Next::Die(signal) => return Ok(End::Of(signal)),
            Next::Suspend | Next::TakeAgain => {
                if next == Next::Suspend {
                    screen::suspend()?;
                }
                if let Some(end) = wait_for_foreground(app, waiting)? {
                    return Ok(end);
                }
                screen.take_again().map_err(terminal_error)?;
            }
            Next::Wait | Next::Draw | Next::DrawAnew => {}
        }
        if next != Next::Wait {
            app.hits = screen.draw(app, next > Next::Draw).map_err(terminal_error)?;
        }
        next = Next::Wait;
        match waiting.recv_timeout(app.idle(Instant::now())) {
            Ok(input) => next = take(app, input)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(End::Wanted),
        }
        // All that has come is drawn at once.
        while next < Next::TakeAgain
            && let Ok(input) = waiting.try_recv()
        {
            next = next.max(take(app, input)?);
        }
        next = next.max(app.tick(Instant::now()));
    }
}

/// Waits while another job has the terminal, and takes in what comes, until it is this program's turn, which is `None`,
/// or its end. A signal that ends it must not need the terminal: bash lets a stopped job go on behind, so that it can.
fn wait_for_foreground(app: &mut App, waiting: &Receiver<Input>) -> Result<Option<End>, Failure> {
    let was_behind = Job::now() == Job::Behind;
    loop {
        match Job::now() {
            Job::InFront => return Ok(None),
            Job::Alone if !was_behind => return Ok(None),
            // Whoever shared the terminal out has gone, or the terminal has.
            Job::Alone | Job::Lost => return Ok(Some(End::Wanted)),
            Job::Behind => {}
        }
        match waiting.recv_timeout(POLL_INTERVAL) {
            Ok(input) => match take(app, input)? {
                Next::Quit => return Ok(Some(End::Wanted)),
                Next::Die(signal) => return Ok(Some(End::Of(signal))),
                Next::Suspend => screen::suspend()?,
                _ => {}
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(End::Wanted)),
        }
    }
}

fn take(app: &mut App, input: Input) -> Result<Next, Failure> {
    let next = match input {
        Input::Terminal(event) => app.terminal(&event),
        Input::Update(update) => app.update(update),
        Input::Inspected(inspection) => app.inspected(*inspection),
        Input::Signal(Signal::End) | Input::Gone => Next::Quit,
        Input::Signal(Signal::Stop) => Next::Suspend,
        Input::Signal(Signal::Continue) => Next::TakeAgain,
        Input::Signal(Signal::Resize) => Next::Draw,
        Input::Signal(Signal::Die(signal)) => Next::Die(signal),
        Input::Failed(failure) => return Err(failure),
    };
    app.model.refused.take().map_or(Ok(next), |refused| Err(refused.into()))
}

/// A terminal that is gone is no error to tell.
fn terminal_error(error: io::Error) -> io::Error {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::IO | rustix::io::Errno::NXIO) => io::ErrorKind::BrokenPipe.into(),
        _ => error,
    }
}
