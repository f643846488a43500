//! Drawing of the whole screen, and a fuzz target that draws recordings.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    app::App,
    dialog::Dialog,
    layout::{LayoutRequest, MIN_SIZE, divide_screen},
    model::Origin,
    painter::{Hit, Painter},
    panel,
};
use crate::describe;

/// Draws the screen, and returns its clickable areas.
pub(super) fn draw_screen(app: &mut App, buffer: &mut Buffer) -> Vec<(Rect, Hit)> {
    let screen = buffer.area;
    let theme = app.state.theme.clone();
    // If the readings are outdated, measured values are drawn in faded colors.
    let measured = if app.model.is_stale() {
        theme.to_faded()
    } else {
        theme.clone()
    };
    let mut painter = Painter {
        buffer,
        theme: &theme,
        glyphs: app.state.glyphs,
        hits: Vec::new(),
    };
    painter.highlight(screen, theme.plain);
    let rows = app.state.processes.list_rows(&app.model, app.state.gpu);
    let now_ms = app.model.now_ms();
    app.state.has_limits |=
        (app.model.gpus().iter()).any(|gpu| describe::find_limits_phrase(gpu, now_ms).is_some());
    let wishes = LayoutRequest {
        banner: app.model.origin == Origin::Recording
            || panel::find_silence_reason(&app.model).is_some(),
        gpus: app.model.gpus().len(),
        processes: rows.len(),
        limits: app.state.has_limits,
        room: app.state.room,
    };
    let Some(areas) = divide_screen(screen, wishes) else {
        painter.draw_minimum_size(MIN_SIZE);
        return painter.finish();
    };
    panel::draw_title(&mut painter, areas.title, &app.model, &app.state);
    // The screen of a single process covers everything below the title.
    if !matches!(
        app.covered.as_ref().or(app.dialog.as_ref()),
        Some(Dialog::Process(_))
    ) {
        panel::draw_banner(&mut painter, areas.banner, &app.model, app.player());
        panel::draw_tabs(&mut painter, areas.tabs, &app.model, &app.state);
        painter.theme = &measured;
        panel::draw_host_line(&mut painter, areas.host, &app.model, &app.state);
        panel::draw_gpus(&mut painter, &areas, &app.model, &mut app.state);
        let empty = panel::draw_view(&mut painter, areas.view, &app.model, &app.state);
        panel::draw_processes(
            &mut painter,
            areas.extended_processes_area(empty),
            &app.model,
            &mut app.state,
            &rows,
        );
        painter.theme = &theme;
        panel::draw_footer(
            &mut painter,
            areas.footer,
            &app.model,
            &app.state,
            app.prompt.as_ref(),
        );
    }
    for dialog in [&mut app.covered, &mut app.dialog].into_iter().flatten() {
        dialog.draw(&mut painter, screen, &app.model, &app.state);
    }
    painter.finish()
}

#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing {
    //! Fuzz target that draws an untrusted recording.

    use std::{
        path::Path,
        sync::mpsc,
        time::{Duration, Instant},
    };

    use clap::ValueEnum as _;
    use gpumon_recording::Player;
    use ratatui::{
        buffer::Buffer,
        crossterm::event::{Event, KeyCode},
        layout::Rect,
    };

    use super::draw_screen;
    use crate::{
        terminal::screen::Glyphs,
        top::{
            app::App,
            feed::Feed,
            layout::View,
            model::{Model, Origin},
            settings::Settings,
            state::State,
            theme::ThemeName,
        },
    };

    /// Plays a recording from its start. For each view, plays one sample, selects the next view,
    /// and draws the screen. Then presses the keys that skip forward, skip back and step back, and
    /// the space bar, and draws the screen after each of them.
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
        for _ in View::value_variants() {
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
}

#[cfg(test)]
mod tests;
