//! The whole screen.

use std::mem;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    app::App,
    layout::{Areas, SMALLEST, Wishes, areas},
    model::Origin,
    painter::{Hit, Painter},
    panel,
    theme::Theme,
};

/// Draws everything, and says what a click means where.
pub(super) fn draw(app: &mut App, buffer: &mut Buffer) -> Vec<(Rect, Hit)> {
    let screen = buffer.area;
    let theme = app.state.theme.clone();
    // What is measured is gray where nothing newer comes.
    let measured = if app.model.is_stale() { theme.faded() } else { theme.clone() };
    let mut painter = Painter { buffer, theme: &theme, glyphs: app.state.glyphs, hits: Vec::new() };
    painter.highlight(screen, theme.plain);
    let model = &app.model;
    let wishes = Wishes {
        banner: model.origin == Origin::Recording || panel::silence(model).is_some(),
        gpus: model.gpus().len(),
        processes: if app.state.processes.tree {
            app.state.processes.rows(model, app.state.gpu).len()
        } else {
            model.gpus().iter().map(|gpu| gpu.processes.value().map_or(0, Vec::len)).sum()
        },
        room: app.state.room,
    };
    let Some(areas) = areas(screen, wishes) else {
        let (width, height) = SMALLEST;
        let text = format!("{width}x{height} needed, this is {}x{}", screen.width, screen.height);
        painter.text(screen.x, screen.y, screen.width, &text, theme.plain);
        return painter.finish();
    };
    parts(app, &mut painter, areas, &measured);
    for dialog in [&mut app.covered, &mut app.dialog].into_iter().flatten() {
        dialog.draw(&mut painter, screen, &app.model, &app.state);
    }
    painter.finish()
}

fn parts<'a>(app: &mut App, painter: &mut Painter<'a>, areas: Areas, measured: &'a Theme) {
    let player = app.player();
    panel::title(painter, areas.title, &app.model, &app.state);
    panel::banner(painter, areas.banner, &app.model, player);
    panel::tabs(painter, areas.tabs, &app.model, &app.state);
    let theme = mem::replace(&mut painter.theme, measured);
    panel::host_line(painter, areas.host, &app.model, &app.state);
    panel::gpus(painter, areas.gpus, areas.gpu_columns, areas.totals, &app.model, &app.state);
    let empty = panel::view(painter, areas.view, &app.model, &app.state);
    panel::processes(painter, areas.processes_over(empty), &app.model, &mut app.state);
    painter.theme = theme;
    panel::footer(painter, areas.footer, &app.model, &app.state, app.prompt.as_ref());
}

#[cfg(test)]
mod tests;
