//! Drawing of the whole screen.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    app::App,
    dialog::Dialog,
    layout::{SMALLEST, Wishes, areas},
    model::Origin,
    painter::{Hit, Painter},
    panel,
};

/// Draws the screen, and returns its clickable areas.
pub(super) fn draw(app: &mut App, buffer: &mut Buffer) -> Vec<(Rect, Hit)> {
    let screen = buffer.area;
    let theme = app.state.theme.clone();
    // Measured values are gray if they are outdated.
    let measured = if app.model.is_stale() {
        theme.faded()
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
    let rows = app.state.processes.rows(&app.model, app.state.gpu);
    let wishes = Wishes {
        banner: app.model.origin == Origin::Recording || panel::silence(&app.model).is_some(),
        gpus: app.model.gpus().len(),
        processes: rows.len(),
        room: app.state.room,
    };
    let Some(areas) = areas(screen, wishes) else {
        let (width, height) = SMALLEST;
        let text = format!(
            "{width}x{height} needed, this is {}x{}",
            screen.width, screen.height
        );
        painter.text(screen.x, screen.y, screen.width, &text, theme.plain);
        return painter.finish();
    };
    panel::title(&mut painter, areas.title, &app.model, &app.state);
    // The screen of a process covers everything below the title.
    if !matches!(
        app.covered.as_ref().or(app.dialog.as_ref()),
        Some(Dialog::Process(_))
    ) {
        panel::banner(&mut painter, areas.banner, &app.model, app.player());
        panel::tabs(&mut painter, areas.tabs, &app.model, &app.state);
        painter.theme = &measured;
        panel::host_line(&mut painter, areas.host, &app.model, &app.state);
        panel::draw_gpus(
            &mut painter,
            areas.gpus,
            areas.gpu_columns,
            areas.totals,
            &app.model,
            &mut app.state,
        );
        let empty = panel::view(&mut painter, areas.view, &app.model, &app.state);
        panel::processes(
            &mut painter,
            areas.processes_over(empty),
            &app.model,
            &mut app.state,
            &rows,
        );
        painter.theme = &theme;
        panel::footer(
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

#[cfg(test)]
mod tests;
