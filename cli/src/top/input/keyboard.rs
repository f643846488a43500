//! Reading and parsing of the terminal's input on a separate thread, while this program is in the
//! foreground: keys, mouse events, and the terminal's background color.

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::{AsFd, BorrowedFd},
    sync::mpsc::SyncSender,
    thread,
    time::Duration,
};

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    stdio::stdin,
};

use super::Input;
use crate::{
    background::spawn_detached_thread,
    top::{screen::TerminalJob, theme::Background},
};

/// While another program receives the keys, the thread checks at this interval whether this program
/// is in the foreground again.
const FOREGROUND_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The maximum number of bytes per read.
const READ_BYTES: usize = 4096;

/// Starts to read keys and mouse events. The terminal must already be set up.
pub(in crate::top) fn watch_terminal(inputs: SyncSender<Input>) -> io::Result<()> {
    // Standard input may be a file, so keys are read from the terminal device.
    let opened = if io::stdin().is_terminal() {
        None
    } else {
        Some(open_terminal()?)
    };
    let body = move || {
        let keyboard = match &opened {
            Some(file) => file.as_fd(),
            None => stdin(),
        };
        let left = forward_inputs(keyboard, |input| inputs.send(input).is_ok());
        if !left {
            let _ = inputs.send(Input::Gone);
        }
    };
    spawn_detached_thread("keys", body)
}

fn open_terminal() -> io::Result<File> {
    let why = |error| {
        format!(
            "cannot read the keyboard: standard input is not a terminal, and /dev/tty cannot be \
             opened: {error}"
        )
    };
    File::open("/dev/tty").map_err(|error| io::Error::new(error.kind(), why(error)))
}

/// Sends each input from the keyboard. Returns `true` if the receiver no longer exists, or `false`
/// if the terminal was closed.
fn forward_inputs(keyboard: BorrowedFd<'_>, mut send: impl FnMut(Input) -> bool) -> bool {
    let mut parser = InputParser::default();
    let mut part = [0; READ_BYTES];
    loop {
        let mut waiting = [PollFd::from_borrowed_fd(keyboard, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_)
                if waiting[0]
                    .revents()
                    .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) =>
            {
                return false;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return false,
        }
        if !TerminalJob::detect().has_terminal() {
            thread::sleep(FOREGROUND_POLL_INTERVAL);
            continue;
        }
        match rustix::io::read(keyboard, &mut part) {
            // Reading zero bytes means that the shell has left an end-of-file character in the
            // input. If the terminal had been closed, `poll` would have reported this.
            Ok(0) => thread::sleep(FOREGROUND_POLL_INTERVAL),
            Ok(length) => {
                if !parser
                    .parse(&part[..length], length == READ_BYTES)
                    .into_iter()
                    .all(&mut send)
                {
                    return true;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Either another process has come to the foreground, or the terminal was closed. The
            // next `poll` reports a closed terminal.
            Err(_) => thread::sleep(FOREGROUND_POLL_INTERVAL),
        }
    }
}

// Parsing. The sequences are those of xterm, which other terminals also send.

/// The maximum length in bytes of the sequence for a key or click.
const MAX_SEQUENCE_BYTES: usize = 64;

const BELL: u8 = 0x07;
/// The single-byte string terminator (ECMA-48, section 8.3.143).
const STRING_TERMINATOR: u8 = 0x9c;
const ESCAPE: u8 = 0x1b;

/// A parser for terminal input, which keeps the bytes of an incomplete sequence.
#[derive(Default)]
struct InputParser {
    held: Vec<u8>,
}

/// The first token in a sequence of bytes.
enum Token {
    /// An input and its length in bytes. The input is `None` if the sequence is unknown.
    Input(Option<Input>, usize),
    /// The start of an incomplete sequence.
    Part,
}

impl InputParser {
    /// Returns the inputs in the received bytes. `more` means that further bytes are about to
    /// arrive.
    fn parse(&mut self, new: &[u8], more: bool) -> Vec<Input> {
        self.held.extend_from_slice(new);
        let mut inputs = Vec::new();
        let mut begin = 0;
        while begin < self.held.len() {
            let rest = &self.held[begin..];
            match parse_token(rest, more) {
                Token::Input(input, length) => {
                    inputs.extend(input);
                    begin += length;
                }
                Token::Part if rest.len() > MAX_SEQUENCE_BYTES => begin = self.held.len(),
                Token::Part => break,
            }
        }
        self.held.drain(..begin);
        inputs
    }
}

fn parse_token(bytes: &[u8], more: bool) -> Token {
    match bytes {
        // A key sends its whole sequence at once, so a lone escape character is the Escape key
        // unless more bytes follow.
        [ESCAPE] if more => Token::Part,
        [ESCAPE] | [ESCAPE, ESCAPE, ..] => {
            Token::Input(Some(make_key_input(KeyCode::Esc, KeyModifiers::NONE)), 1)
        }
        [ESCAPE, b'[', rest @ ..] => parse_control_sequence(rest),
        [ESCAPE, b']', rest @ ..] => parse_background(rest),
        [ESCAPE, b'O', last, ..] => Token::Input(
            find_key_by_letter(*last).map(|code| make_key_input(code, KeyModifiers::NONE)),
            3,
        ),
        [ESCAPE, b'O'] => Token::Part,
        [ESCAPE, rest @ ..] => match parse_letter(rest, KeyModifiers::ALT) {
            Token::Input(input, length) => Token::Input(input, length + 1),
            Token::Part => Token::Part,
        },
        _ => parse_letter(bytes, KeyModifiers::NONE),
    }
}

/// Parses a letter, possibly with the control key.
fn parse_letter(bytes: &[u8], held: KeyModifiers) -> Token {
    let Some(first) = bytes.first().copied() else {
        return Token::Part;
    };
    let control =
        |letter: u8| make_key_input(KeyCode::Char(letter.into()), held | KeyModifiers::CONTROL);
    let event = match first {
        b'\r' | b'\n' => make_key_input(KeyCode::Enter, held),
        b'\t' => make_key_input(KeyCode::Tab, held),
        0x08 | 0x7f => make_key_input(KeyCode::Backspace, held),
        0 => control(b' '),
        0x01..=0x1a => control(first - 1 + b'a'),
        0x1b..=0x1f => control(first - 0x1b + b'3'),
        b' '..=b'~' => make_key_input(KeyCode::Char(first.into()), held),
        0x80.. => return parse_utf8(bytes, held),
    };
    Token::Input(Some(event), 1)
}

fn parse_utf8(bytes: &[u8], held: KeyModifiers) -> Token {
    let first = bytes.utf8_chunks().next();
    match first.map(|chunk| (chunk.valid().chars().next(), chunk.invalid().len())) {
        Some((Some(letter), _)) => Token::Input(
            Some(make_key_input(KeyCode::Char(letter), held)),
            letter.len_utf8(),
        ),
        // The start of a UTF-8 character is kept only if it may be completed by later bytes: it
        // must be at the end of the input and shorter than four bytes.
        Some((None, wrong))
            if wrong < bytes.len() || bytes.len() >= 4 || !(0xc2..=0xf4).contains(&bytes[0]) =>
        {
            Token::Input(None, wrong)
        }
        _ => Token::Part,
    }
}

/// Parses the rest of a sequence that starts with `ESC [`. It consists of parameters and a final
/// letter, which determines their meaning.
fn parse_control_sequence(bytes: &[u8]) -> Token {
    const INTRODUCER: usize = 2;
    // The Linux console sends these sequences for its function keys.
    if let [b'[', rest @ ..] = bytes {
        let event = |last: &u8| {
            (b'A'..=b'E')
                .contains(last)
                .then(|| make_key_input(KeyCode::F(last - b'A' + 1), KeyModifiers::NONE))
        };
        return rest.first().map_or(Token::Part, |last| {
            Token::Input(event(last), INTRODUCER + 2)
        });
    }
    let Some(length) = bytes.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return Token::Part;
    };
    let (parameters, last) = (&bytes[..length], bytes[length]);
    if !(0x40..=0x7e).contains(&last) {
        // The sequence was interrupted by the start of another sequence.
        return Token::Input(None, INTRODUCER + length);
    }
    let whole = INTRODUCER + length + 1;
    if last == b'M' && parameters.is_empty() {
        // This is the oldest mouse protocol, which uses three bytes with 32 added to each value.
        let Some([button, x, y]) = bytes.get(1..4) else {
            return Token::Part;
        };
        let plain = |byte: &u8| u16::from(byte.saturating_sub(32));
        return Token::Input(
            make_mouse_input(plain(button), plain(x), plain(y)),
            whole + 3,
        );
    }
    Token::Input(interpret_sequence(parameters, last), whole)
}

/// Parses a color after `ESC ]`. Other bytes after `ESC ]` mean the key `]` with Alt. A color ends
/// with BEL or `ESC \`.
fn parse_background(bytes: &[u8]) -> Token {
    const INTRODUCER: usize = 2;
    const NUMBER: &[u8] = b"11;";
    let Some(color) = bytes.strip_prefix(NUMBER) else {
        // The bytes may be the start of a color that has not arrived completely.
        return if NUMBER.starts_with(bytes) {
            Token::Part
        } else {
            let key = make_key_input(KeyCode::Char(']'), KeyModifiers::ALT);
            Token::Input(Some(key), INTRODUCER)
        };
    };
    let Some(length) = color.iter().position(|byte| !(b' '..=b'~').contains(byte)) else {
        return Token::Part;
    };
    let (color, end) = color.split_at(length);
    let answer = || Background::parse_color(color).map(Input::Background);
    let whole = INTRODUCER + NUMBER.len() + length;
    match end {
        [BELL | STRING_TERMINATOR, ..] => Token::Input(answer(), whole + 1),
        [ESCAPE, b'\\', ..] => Token::Input(answer(), whole + 2),
        [ESCAPE] => Token::Part,
        // The color was interrupted by the start of another sequence.
        _ => Token::Input(None, whole),
    }
}

fn interpret_sequence(parameters: &[u8], last: u8) -> Option<Input> {
    let text = std::str::from_utf8(parameters).ok()?;
    if let Some(mouse) = text.strip_prefix('<') {
        let [button, x, y] = parse_numbers(mouse)?[..] else {
            return None;
        };
        // With a lowercase `m`, the sequence reports that a button was released.
        return if last == b'M' {
            make_mouse_input(button, x, y)
        } else {
            None
        };
    }
    let numbers = parse_numbers(text)?;
    if let (b'M', [button, x, y]) = (last, &numbers[..]) {
        return make_mouse_input(button.checked_sub(32)?, *x, *y);
    }
    let held = numbers.get(1).map_or(0, |held| held.saturating_sub(1));
    let has = |bit: u16, modifier| {
        if held & bit == 0 {
            KeyModifiers::NONE
        } else {
            modifier
        }
    };
    let held =
        has(1, KeyModifiers::SHIFT) | has(2, KeyModifiers::ALT) | has(4, KeyModifiers::CONTROL);
    let code = match (last, numbers.first().copied().unwrap_or(1)) {
        (b'~', 1 | 7) => KeyCode::Home,
        (b'~', 4 | 8) => KeyCode::End,
        (b'~', 2) => KeyCode::Insert,
        (b'~', 3) => KeyCode::Delete,
        (b'~', 5) => KeyCode::PageUp,
        (b'~', 6) => KeyCode::PageDown,
        (b'~', number @ 11..=15) => KeyCode::F(number as u8 - 10),
        (b'~', number @ 17..=21) => KeyCode::F(number as u8 - 11),
        (b'~', number @ 23..=24) => KeyCode::F(number as u8 - 12),
        (b'~', _) => return None,
        // With more parameters, the sequence is not a key but a report, such as the cursor
        // position.
        (letter, 1) if numbers.len() <= 2 => find_key_by_letter(letter)?,
        _ => return None,
    };
    Some(make_key_input(code, held))
}

/// Parses numbers separated by semicolons. An omitted number is 1. Returns `None` if any number is
/// invalid.
fn parse_numbers(text: &str) -> Option<Vec<u16>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(';')
        .map(|number| {
            if number.is_empty() {
                Some(1)
            } else {
                number.parse().ok()
            }
        })
        .collect()
}

/// Returns the key for the final letter of a sequence.
fn find_key_by_letter(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        b'Z' => KeyCode::BackTab,
        _ => return None,
    })
}

fn make_key_input(code: KeyCode, held: KeyModifiers) -> Input {
    Input::Terminal(Event::Key(KeyEvent::new(code, held)))
}

/// Returns the event of a click with the left button or of the mouse wheel. Other buttons and
/// movements are ignored. `x` and `y` start at 1.
fn make_mouse_input(button: u16, x: u16, y: u16) -> Option<Input> {
    // The bits 4, 8 and 16 indicate modifier keys, which are ignored.
    let kind = match button & !0b1_1100 {
        0 => MouseEventKind::Down(MouseButton::Left),
        64 => MouseEventKind::ScrollUp,
        65 => MouseEventKind::ScrollDown,
        _ => return None,
    };
    let (column, row) = (x.checked_sub(1)?, y.checked_sub(1)?);
    Some(Input::Terminal(Event::Mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    })))
}

#[cfg(test)]
mod parser_tests;

#[cfg(test)]
mod tests {
    use rustix::{
        fs::{Mode, OFlags},
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    };

    use super::*;

    #[test]
    fn keyboard_reader_ends_when_terminal_closes() {
        let outside =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outside).unwrap();
        unlockpt(&outside).unwrap();
        let path = ptsname(&outside, Vec::new()).unwrap();
        let inside = rustix::fs::open(
            path,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .unwrap();
        let listening = thread::spawn(move || forward_inputs(inside.as_fd(), |_| true));
        drop(outside);
        assert!(!listening.join().unwrap());
    }
}
