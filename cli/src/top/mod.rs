//! The live screen, `gpumon top`.
//!
//! - [`feed`] contains the sources of readings. [`model`] stores the newest readings of the
//!   selected GPUs, and [`history`] stores earlier readings.
//! - [`input`] defines all inputs, and [`app`] handles them. [`keys`] lists the key bindings, which
//!   [`binding`] defines.
//! - [`draw`] draws [`state`] and [`model`]. [`layout`] divides the screen, each file in [`panel`]
//!   and [`dialog`] draws one part with a [`painter`] in the colors of a [`theme`], and [`screen`]
//!   writes to the terminal. [`once`] prints a single frame.
//! - [`processes`] is the list of processes. [`inspect`] reads the details of a process, and
//!   [`kill`] sends signals.
//! - [`settings`] are read at the start. [`main_loop`] runs the screen. [`fleet`] is another screen
//!   for many machines, which uses the same loop.
//!
//! The thread that draws never calls the driver, and never reads files of a process that may hang
//! in the driver.

mod app;
mod binding;
mod dialog;
mod draw;
mod feed;
pub(crate) mod fleet;
mod history;
mod input;
mod inspect;
mod keys;
mod kill;
mod layout;
mod main_loop;
mod metrics;
mod model;
mod once;
mod painter;
mod panel;
mod plot;
mod processes;
mod screen;
pub(crate) mod settings;
mod state;
#[cfg(test)]
mod testing;
pub(crate) mod text;
pub(crate) mod theme;

use std::{
    env,
    path::PathBuf,
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use gpumon_recording::Player;
use ratatui::buffer::Buffer;

use self::{
    app::App,
    draw::draw_screen,
    feed::{Feed, PastReader, ServerAddress},
    input::Input,
    main_loop::{LiveScreen, NextStep},
    model::{Model, Origin},
    settings::Settings,
    state::State,
    theme::{Background, ThemeName},
};
use crate::{
    describe::Level,
    exit::{Failure, print_message},
    local_server::Server,
    options::{ShownProcesses, SourceArgs},
    terminal::screen::Glyphs,
};

#[cfg(any(fuzzing, test))]
pub(crate) use self::draw::fuzzing;
pub(crate) use self::model::Selection;

/// The maximum number of queued inputs. If the terminal accepts no output, the threads that send
/// inputs wait, so that memory use is limited.
const INPUT_CAPACITY: usize = 64;

/// The maximum time to wait for the first sample. An error within this time is reported before the
/// live screen opens.
const FIRST_SAMPLE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The interval between the two samples of [`once`], in milliseconds.
const ONCE_INTERVAL_MS: u32 = 250;

/// The options with which a live screen is started.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Request {
    pub(crate) source: SourceArgs,
    pub(crate) server: Option<Server>,
    /// A recording to play instead of showing live readings.
    pub(crate) player: Option<Player>,
    /// Messages to show when the screen opens.
    pub(crate) remarks: Vec<String>,
    /// The settings from files, environment variables and flags.
    pub(crate) settings: Settings,
    pub(crate) mouse: bool,
    /// Whether the theme was given on the command line. In this case, it takes precedence over
    /// `NO_COLOR`, which applies to all programs.
    pub(crate) is_theme_typed: bool,
    /// The file to which `W` saves the settings, or `None` if no location is known.
    pub(crate) file: Option<PathBuf>,
    pub(crate) is_file_named: bool,
    pub(crate) selection: Selection,
    /// The user to whose processes the list is limited, if any.
    pub(crate) user: Option<String>,
    pub(crate) shown: ShownProcesses,
    pub(crate) readonly: bool,
    pub(crate) once: bool,
}

/// Runs the live screen until the user quits. If `once` is set in the request, prints one frame
/// instead.
pub(crate) fn run(mut request: Request) -> Result<(), Failure> {
    if !request.once {
        match request.player {
            Some(_) => screen::check_terminal(
                "gpumon replay",
                "play the recording on the web page with --serve, or print it with `gpumon export`",
            )?,
            None => screen::check_terminal("gpumon top", screen::ALTERNATIVES)?,
        }
    }
    let theme = choose_theme(&request);
    let mut settings = request.settings.without_repetitions();
    let file = request.file;
    let new = file
        .as_ref()
        .filter(|path| request.is_file_named && !path.exists());
    let new = new.map(|path| {
        format!(
            "{} does not exist yet; press W to create it",
            path.display()
        )
    });
    let remark = request
        .remarks
        .into_iter()
        .chain(new)
        .collect::<Vec<_>>()
        .join("; ");
    if request.once {
        // Rates require a second sample. A short interval avoids unnecessary waiting.
        settings.interval_ms = ONCE_INTERVAL_MS;
    }
    let (inputs, waiting) = mpsc::sync_channel(INPUT_CAPACITY);
    let interval = Duration::from_millis(settings.interval_ms.into());
    let past = request
        .server
        .as_ref()
        .filter(|_| request.player.is_none() && !request.once);
    let past = past
        .map(|server| PastReader::new(ServerAddress::Socket(server.path.clone()), inputs.clone()));
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
        once::read_complete_sample(&mut model, &waiting)?;
    } else if origin != Origin::Recording {
        wait_for_first_sample(&mut model, &waiting)?;
    }
    let mut state = State::new(
        &settings,
        theme,
        settings.glyphs.unwrap_or_else(Glyphs::from_terminal),
    );
    state.set_background(Background::from_environment());
    state.processes.user = request.user;
    state.processes.shown = request.shown;
    match (remark.is_empty(), request.once) {
        (true, _) => {}
        (false, true) => print_message(&remark),
        (false, false) => state.show_notice(Level::Warn, remark),
    }
    let mouse = request.mouse;
    let mut app = App::new(model, state, feed, settings, file, inputs.clone());
    app.is_readonly = request.readonly;
    app.past = past;
    if request.once {
        return Ok(once::print_frame(&mut app)?);
    }
    main_loop::run_screen(app, mouse, inputs, &waiting)
}

fn choose_theme(request: &Request) -> ThemeName {
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if no_color && !request.is_theme_typed {
        ThemeName::Monochrome
    } else {
        request.settings.theme
    }
}

/// Waits briefly for the first sample. If an error prevents all readings, it can then be printed to
/// the normal screen, where it stays visible.
fn wait_for_first_sample(model: &mut Model, waiting: &Receiver<Input>) -> Result<(), Failure> {
    let begun = Instant::now();
    while model.sample.is_none() {
        let timeout = FIRST_SAMPLE_TIMEOUT.saturating_sub(begun.elapsed());
        if !once::receive_update(model, waiting, timeout)? {
            break;
        }
        if let Some(refused) = model.refused.take() {
            return Err(refused.into());
        }
    }
    Ok(())
}

impl LiveScreen for App {
    fn handle_input(&mut self, input: Input) -> Result<NextStep, Failure> {
        let next = match input {
            Input::Terminal(event) => self.handle_terminal_event(&event),
            Input::Background(background) => {
                self.state.set_background(background);
                NextStep::Draw
            }
            Input::Update(update) => self.apply_update(update),
            Input::Inspected(inspection) => self.apply_inspection(*inspection),
            Input::Signal(signal) => signal.into(),
            Input::Gone => NextStep::Quit,
            Input::Failed(failure) => return Err(failure),
            // Only the fleet screen uses these inputs.
            Input::Fleet(_) | Input::Node(..) => NextStep::Wait,
        };
        self.model
            .refused
            .take()
            .map_or(Ok(next), |refused| Err(refused.into()))
    }

    fn poll_timeout(&self, now: Instant) -> Duration {
        self.poll_timeout(now)
    }

    fn tick(&mut self, now: Instant) -> NextStep {
        self.tick(now)
    }

    fn theme(&self) -> ThemeName {
        self.state.theme_name
    }

    fn draw(&mut self, buffer: &mut Buffer) {
        self.hits = draw_screen(self, buffer);
    }
}
