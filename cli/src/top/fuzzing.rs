//! Fuzz target that draws an untrusted recording.

use std::{
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use gpumon_recording::Player;
use ratatui::{
    buffer::Buffer,
    crossterm::event::{Event, KeyCode},
    layout::Rect,
};

use super::{
    app::App,
    draw::draw_screen,
    feed::Feed,
    layout::View,
    model::{Model, Origin},
    settings::Settings,
    state::State,
    theme::ThemeName,
};
use crate::terminal::screen::Glyphs;

/// Plays a recording from its start with one step per view, then jumps to its end and back to its
/// start. Draws the screen after each step.
pub(crate) fn fuzz_replay(recording: &Path) {
    let Ok(player) = Player::open(recording) else {
        return;
    };
    let settings = Settings::default();
    let state = State::new(&settings, ThemeName::Dark, Glyphs::Braille);
    let (inputs, _waiting) = mpsc::sync_channel(16);
    let feed = Feed::Recording(Box::new(player));
    let mut app = App::new(
        Model::new(Origin::Recording),
        state,
        feed,
        settings,
        None,
        inputs,
    );
    app.tick(Instant::now());
    for _ in View::ALL {
        for code in ['.', 'm']
            .map(KeyCode::Char)
            .into_iter()
            .chain([KeyCode::Tab])
        {
            app.handle_terminal_event(&Event::Key(code.into()));
        }
        draw_with_size(&mut app, 120, 40);
    }
    for key in [')', '(', ',', ' '] {
        app.handle_terminal_event(&Event::Key(KeyCode::Char(key).into()));
        draw_with_size(&mut app, 80, 24);
    }
    app.tick(Instant::now() + Duration::from_hours(1));
    draw_with_size(&mut app, 200, 60);
}

fn draw_with_size(app: &mut App, width: u16, height: u16) {
    let mut buffer = Buffer::empty(Rect {
        x: 0,
        y: 0,
        width,
        height,
    });
    draw_screen(app, &mut buffer);
}
