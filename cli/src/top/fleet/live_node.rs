//! The live screen of a single node, which shows data from the node's own server.

use std::{
    io,
    path::PathBuf,
    sync::mpsc::{self, SyncSender},
    time::Duration,
};

use gpumon_server::listen::Connector;

use crate::{
    background::spawn_detached_thread,
    terminal::screen::Glyphs,
    top::{
        INPUT_CAPACITY,
        app::App,
        feed::{Feed, PastReader, ServerAddress},
        input::Input,
        main_loop::{LiveScreen, NextStep},
        model::{Model, Origin},
        settings::Settings,
        state::State,
        theme::{Background, ThemeName},
    },
};

/// The settings and channels needed to open the screen of a node.
pub(super) struct Opener {
    pub(super) connector: Connector,
    pub(super) settings: Settings,
    /// The file in which `W` saves the settings.
    pub(super) file: Option<PathBuf>,
    /// The theme at the start of the program.
    pub(super) theme: ThemeName,
    pub(super) glyphs: Glyphs,
    pub(super) inputs: SyncSender<Input>,
    /// The number of node screens opened so far. It identifies the newest node screen.
    pub(super) opened: u64,
}

/// The live screen of an opened node. The connection ends when this value is dropped.
pub(super) struct LiveNode {
    number: u64,
    pub(super) app: App,
    /// Whether data has arrived, so that the screen is shown.
    pub(super) is_shown: bool,
}

impl Opener {
    /// Connects to the stream of a node. The inputs for the node's screen arrive as
    /// [`Input::Node`].
    pub(super) fn open_node(
        &mut self,
        name: &str,
        theme: ThemeName,
        background: Background,
    ) -> io::Result<LiveNode> {
        self.opened += 1;
        let (number, fleet) = (self.opened, self.inputs.clone());
        let (inputs, waiting) = mpsc::sync_channel(INPUT_CAPACITY);
        // Each input is sent with the number of this screen. A late input for a closed screen is
        // then not mistaken for an input for the current screen.
        let pass_on = move || {
            let mut all = waiting.into_iter();
            while all
                .next()
                .is_some_and(|input| fleet.send(Input::Node(number, Box::new(input))).is_ok())
            {
            }
        };
        spawn_detached_thread("node", pass_on)?;
        let address = ServerAddress::Node(name.to_owned(), self.connector.clone());
        let interval = Duration::from_millis(self.settings.interval_ms.into());
        let feed = Feed::from_node(address.clone(), interval, inputs.clone());
        let mut state = State::new(&self.settings, self.theme, self.glyphs);
        if theme != self.theme {
            state.set_theme(theme);
        }
        state.set_background(background);
        let (settings, file) = (self.settings.clone(), self.file.clone());
        let mut app = App::new(
            Model::new(Origin::Node),
            state,
            feed,
            settings,
            file,
            inputs.clone(),
        );
        app.past = Some(PastReader::new(address, inputs));
        Ok(LiveNode {
            number,
            app,
            is_shown: false,
        })
    }
}

impl LiveNode {
    /// Handles an input for the node's screen.
    ///
    /// # Errors
    /// Returns the reason why the node cannot be shown.
    pub(super) fn handle_input(&mut self, number: u64, input: Input) -> Result<NextStep, String> {
        if number != self.number {
            return Ok(NextStep::Wait);
        }
        self.is_shown |= matches!(input, Input::Update(_));
        self.app
            .handle_input(input)
            .map_err(|failure| failure.message().unwrap_or_default())
    }
}
