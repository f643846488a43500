//! The live screen, `gpumon top`.
//!
//! - [`feed`] contains the sources of readings, [`replay`] among them. [`model`] keeps the newest
//!   readings, and [`history`] the earlier ones.
//! - [`input`] defines all inputs, [`app`] handles them, and [`keys`] lists the key bindings in
//!   terms of [`binding`].
//! - [`selection`] removes GPUs that are not selected. [`once`] prints a single frame.
//! - [`job`] checks whether the terminal may be used, and [`background`] whether it is light or
//!   dark.
//! - [`draw`] draws [`state`] and [`model`]: [`layout`] divides the screen, each file in [`panel`]
//!   and [`dialog`] draws one part with a [`painter`], and [`screen`] is the terminal.
//! - [`processes`] is the list of processes, [`inspect`] reads details of one, and [`kill`] sends
//!   it signals.
//! - [`settings`] are read at the start. [`live`] is the loop. [`fleet`] is another screen in the
//!   same loop, for many machines.
//!
//! The thread that draws never calls the driver and never reads files of a process that could hang
//! in the driver.

mod app;
mod background;
mod binding;
mod dialog;
mod draw;
mod feed;
pub(crate) mod fleet;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod history;
mod input;
mod inspect;
mod job;
mod keys;
mod kill;
mod layout;
mod live;
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
    env,
    path::PathBuf,
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use gpumon_recording::Player;
use ratatui::buffer::Buffer;

pub(crate) use self::selection::Selection;
use self::{
    app::App,
    background::Background,
    draw::draw,
    feed::{Feed, PastReader, Way},
    input::Input,
    live::{Live, Next},
    model::{Model, Origin},
    settings::Settings,
    state::State,
    theme::ThemeName,
};
use crate::terminal::glyphs::Glyphs;
use crate::{
    describe::Level,
    exit::{Failure, say},
    local::Server,
    options::SourceArgs,
    shown_processes::ShownProcesses,
};

/// The capacity of the input queue. If the terminal accepts no output, the readers wait, and memory
/// stays bounded.
const WAITING: usize = 64;

/// How long to wait for the first sample. An error within this time is reported before the live
/// screen opens.
const FIRST: Duration = Duration::from_millis(1500);

/// The interval between the two samples of [`once`], in milliseconds.
const ONCE_MS: u32 = 250;

/// The options of a live screen.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Request {
    pub(crate) source: SourceArgs,
    pub(crate) server: Option<Server>,
    /// A recording to play instead of any live source.
    pub(crate) player: Option<Player>,
    /// Messages to show first.
    pub(crate) remarks: Vec<String>,
    /// The settings from files, environment variables and flags.
    pub(crate) settings: Settings,
    pub(crate) mouse: bool,
    /// Whether the theme was given on the command line. Such a theme takes precedence over
    /// `NO_COLOR`, which is set for all programs.
    pub(crate) is_theme_typed: bool,
    /// The file in which `W` saves the settings, or `None` if there is no location for it.
    pub(crate) file: Option<PathBuf>,
    pub(crate) is_file_named: bool,
    pub(crate) selection: Selection,
    /// The user to whose processes the list is limited.
    pub(crate) user: Option<String>,
    pub(crate) shown: ShownProcesses,
    pub(crate) readonly: bool,
    pub(crate) once: bool,
}

/// Runs the live screen until the user quits, or prints one frame.
pub(crate) fn run(mut request: Request) -> Result<(), Failure> {
    if !request.once {
        match request.player {
            Some(_) => screen::check(
                "gpumon replay",
                "play it on the web page with --serve, or print it with `gpumon export`",
            )?,
            None => screen::check("gpumon top", screen::INSTEAD)?,
        }
    }
    let theme = theme_of(&request);
    let mut settings = request.settings.without_repetitions();
    let file = request.file;
    let new = file
        .as_ref()
        .filter(|path| request.is_file_named && !path.exists());
    let new = new.map(|path| format!("{} does not exist yet; W creates it", path.display()));
    let remark = request
        .remarks
        .into_iter()
        .chain(new)
        .collect::<Vec<_>>()
        .join("; ");
    if request.once {
        // Rates need a second sample, and a short interval avoids a needless wait.
        settings.interval_ms = ONCE_MS;
    }
    let (inputs, waiting) = mpsc::sync_channel(WAITING);
    let interval = Duration::from_millis(settings.interval_ms.into());
    let past = request
        .server
        .as_ref()
        .filter(|_| request.player.is_none() && !request.once);
    let past = past.map(|server| PastReader::new(Way::Socket(server.path.clone()), inputs.clone()));
    let (feed, origin) = match (request.player.take(), request.server) {
        (Some(player), _) => (Feed::Recording(Box::new(player)), Origin::Recording),
        (None, Some(server)) => (
            Feed::from_server(server, &request.source, interval, inputs.clone()),
            Origin::Server,
        ),
        (None, None) => (
            Feed::from_driver(&request.source, interval, inputs.clone()),
            Origin::Driver,
        ),
    };
    let mut model = Model {
        selection: request.selection,
        ..Model::new(origin)
    };
    if request.once {
        once::read(&mut model, &waiting)?;
    } else if origin != Origin::Recording {
        wait_for_first_sample(&mut model, &waiting)?;
    }
    let mut state = State::new(
        &settings,
        theme,
        settings.glyphs.unwrap_or_else(Glyphs::of_terminal),
    );
    state.set_background(Background::from_environment());
    state.processes.user = request.user;
    state.processes.shown = request.shown;
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
    live::show(app, mouse, inputs, &waiting)
}

fn theme_of(request: &Request) -> ThemeName {
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if no_color && !request.is_theme_typed {
        ThemeName::Monochrome
    } else {
        request.settings.theme
    }
}

/// Waits briefly for the first sample, so that an error that prevents all readings is printed to
/// the normal screen, where it remains.
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

impl Live for App {
    fn take(&mut self, input: Input) -> Result<Next, Failure> {
        let next = match input {
            Input::Terminal(event) => self.terminal(&event),
            Input::Background(background) => {
                self.state.set_background(background);
                Next::Draw
            }
            Input::Update(update) => self.update(update),
            Input::Inspected(inspection) => self.inspected(*inspection),
            Input::Signal(signal) => signal.into(),
            Input::Gone => Next::Quit,
            Input::Failed(failure) => return Err(failure),
            // These inputs belong to the fleet screen.
            Input::Fleet(_) | Input::Node(..) => Next::Wait,
        };
        self.model
            .refused
            .take()
            .map_or(Ok(next), |refused| Err(refused.into()))
    }

    fn idle(&self, now: Instant) -> Duration {
        self.idle(now)
    }

    fn tick(&mut self, now: Instant) -> Next {
        self.tick(now)
    }

    fn theme(&self) -> ThemeName {
        self.state.theme_name
    }

    fn draw(&mut self, buffer: &mut Buffer) {
        self.hits = draw(self, buffer);
    }
}
