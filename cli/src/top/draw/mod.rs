//! The whole screen.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    app::App,
    layout::{Areas, SMALLEST, Wishes, areas},
    panel,
    pen::{Hit, Pen},
    world::Origin,
};

/// Draws everything, and says what a click means where.
pub(super) fn draw(app: &mut App, buffer: &mut Buffer) -> Vec<(Rect, Hit)> {
    let screen = buffer.area;
    let theme = app.state.theme.clone();
    let mut pen = Pen { buffer, theme: &theme, glyphs: app.state.glyphs, hits: Vec::new() };
    pen.highlight(screen, theme.plain);
    let world = &app.world;
    let wishes = Wishes {
        banner: world.origin == Origin::Recording || panel::silence(world).is_some(),
        gpus: world.gpus().len(),
        processes: world.gpus().iter().map(|gpu| gpu.processes.value().map_or(0, Vec::len)).sum(),
        room: app.state.room,
    };
    let Some(areas) = areas(screen, wishes) else {
        let (width, height) = SMALLEST;
        let text = format!("{width}x{height} needed, this is {}x{}", screen.width, screen.height);
        pen.text(screen.x, screen.y, screen.width, &text, theme.plain);
        return pen.finish();
    };
    parts(app, &mut pen, areas);
    if let Some(mut dialog) = app.dialog.take() {
        dialog.draw(&mut pen, screen, &app.world, &app.state);
        app.dialog = Some(dialog);
    }
    pen.finish()
}

fn parts(app: &mut App, pen: &mut Pen<'_>, areas: Areas) {
    let player = app.player();
    panel::title(pen, areas.title, &app.world, &app.state);
    panel::banner(pen, areas.banner, &app.world, player);
    panel::gpus(pen, areas.gpus, areas.gpu_columns, &app.world, &app.state);
    panel::tabs(pen, areas.tabs, &app.world, &app.state);
    panel::view(pen, areas.view, &app.world, &app.state);
    panel::processes(pen, areas.processes, &app.world, &mut app.state);
    panel::footer(pen, areas.footer, &app.world, &app.state, app.prompt.as_ref());
}

#[cfg(test)]
mod tests;
