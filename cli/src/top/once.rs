//! Printing of a single frame to standard output, for `--once`.

use std::{
    io::{self, Write},
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use ratatui::{
    buffer::{Buffer, Cell},
    crossterm::{
        queue,
        style::{Attribute, Print, SetAttribute, SetBackgroundColor, SetForegroundColor},
    },
    layout::Rect,
    prelude::IntoCrossterm as _,
    style::{Color, Modifier},
};

use super::{
    app::App,
    draw::draw_screen,
    input::Input,
    model::{Model, Origin},
    screen,
};
use crate::exit::Failure;

/// The size in columns and rows if standard output is not a terminal. The last row, the footer, is
/// not printed.
const DEFAULT_SIZE: (u16, u16) = (120, 41);

const SAMPLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time to wait for a server's history. A server of another version may not send any.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads until the model has a sample with rates and owners. A server's first sample contains them;
/// the server's history is then read as well. If this program samples the GPUs itself, only the
/// second sample contains them.
pub(super) fn read_complete_sample(
    model: &mut Model,
    waiting: &Receiver<Input>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let first = u64::from(model.origin != Origin::Server);
    while model
        .sample
        .as_ref()
        .is_none_or(|sample| sample.seq < first)
    {
        let timeout = SAMPLE_TIMEOUT.saturating_sub(begun.elapsed());
        if !receive_update(model, waiting, timeout)? {
            let why = model
                .silent
                .clone()
                .unwrap_or_else(|| "run `gpumon doctor`".to_owned());
            return Err(Failure::from(anyhow!(
                "no readings within {} s: {why}",
                SAMPLE_TIMEOUT.as_secs()
            )));
        }
        if let Some(failure) = model.refused.take() {
            return Err(failure.into());
        }
    }
    let begun = Instant::now();
    while model.origin == Origin::Server && model.direct.is_none() && !model.has_past {
        let timeout = HISTORY_TIMEOUT.saturating_sub(begun.elapsed());
        if !receive_update(model, waiting, timeout)? {
            break;
        }
    }
    Ok(())
}

/// Waits for the next input, and applies it to the model if it is an update. Returns `false` if no
/// input arrives within `timeout`.
///
/// # Errors
/// Returns an error if the input reports a failure.
pub(super) fn receive_update(
    model: &mut Model,
    waiting: &Receiver<Input>,
    timeout: Duration,
) -> Result<bool, Failure> {
    match waiting.recv_timeout(timeout) {
        Ok(Input::Update(update)) => model.ingest(update),
        Ok(Input::Failed(failure)) => return Err(failure),
        Ok(_) => {}
        Err(_) => return Ok(false),
    }
    Ok(true)
}

/// Prints a frame in the terminal's size. The footer is omitted, because the shell's prompt takes
/// its place.
pub(super) fn print_frame(app: &mut App) -> io::Result<()> {
    let (width, height) = screen::terminal_size().unwrap_or(DEFAULT_SIZE);
    let mut buffer = Buffer::empty(Rect {
        x: 0,
        y: 0,
        width,
        height,
    });
    draw_screen(app, &mut buffer);
    let lines = buffer
        .content
        .chunks(usize::from(width.max(1)))
        .take(usize::from(height).saturating_sub(1));
    let mut picture = Vec::new();
    for line in lines {
        write_line(&mut picture, line)?;
    }
    let mut out = anstream::stdout();
    out.write_all(&picture)?;
    out.flush()
}

/// Writes one row of cells, without trailing blanks.
fn write_line(out: &mut Vec<u8>, cells: &[Cell]) -> io::Result<()> {
    let is_blank = |cell: &Cell| {
        cell.symbol() == " "
            && cell.bg == Color::Reset
            && !cell.modifier.contains(Modifier::REVERSED)
    };
    let length = cells
        .iter()
        .rposition(|cell| !is_blank(cell))
        .map_or(0, |last| last + 1);
    for run in cells[..length].chunk_by(|a, b| a.style() == b.style()) {
        let text: String = run.iter().map(Cell::symbol).collect();
        let style = &run[0];
        let effects = [
            (Modifier::BOLD, Attribute::Bold),
            (Modifier::DIM, Attribute::Dim),
            (Modifier::UNDERLINED, Attribute::Underlined),
            (Modifier::REVERSED, Attribute::Reverse),
        ];
        for (_, attribute) in effects
            .into_iter()
            .filter(|(modifier, _)| style.modifier.contains(*modifier))
        {
            queue!(out, SetAttribute(attribute))?;
        }
        if style.fg != Color::Reset {
            queue!(out, SetForegroundColor(style.fg.into_crossterm()))?;
        }
        if style.bg != Color::Reset {
            queue!(out, SetBackgroundColor(style.bg.into_crossterm()))?;
        }
        queue!(out, Print(text), SetAttribute(Attribute::Reset))?;
    }
    queue!(out, Print("\n"))
}
