//! Parsing of keys, clicks, and the background color in the bytes of a terminal. The sequences are
//! those of xterm, which other terminals also send.

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use super::Input;
use crate::top::background::Background;

/// The maximum length of a sequence of a key or a click.
const LONGEST: usize = 64;

const BELL: u8 = 0x07;
/// The one-byte end of a string (ECMA-48, section 8.3.143).
const STRING_TERMINATOR: u8 = 0x9c;
const ESCAPE: u8 = 0x1b;

/// A parser that keeps the bytes of an incomplete sequence.
#[derive(Default)]
pub(super) struct Bytes {
    held: Vec<u8>,
}

/// The first element of some bytes.
enum Found {
    /// An input, or `None` for an unknown one, and its length in bytes.
    Input(Option<Input>, usize),
    /// An incomplete sequence.
    Part,
}

impl Bytes {
    /// Returns the inputs in the bytes received. `more` indicates that further bytes are on their
    /// way.
    pub(super) fn parse(&mut self, new: &[u8], more: bool) -> Vec<Input> {
        self.held.extend_from_slice(new);
        let mut inputs = Vec::new();
        let mut begin = 0;
        while begin < self.held.len() {
            let rest = &self.held[begin..];
            match found(rest, more) {
                Found::Input(input, length) => {
                    inputs.extend(input);
                    begin += length;
                }
                Found::Part if rest.len() > LONGEST => begin = self.held.len(),
                Found::Part => break,
            }
        }
        self.held.drain(..begin);
        inputs
    }
}

fn found(bytes: &[u8], more: bool) -> Found {
    match bytes {
        // A key sends its sequence in one piece, so a lone escape character is the Escape key.
        [ESCAPE] if more => Found::Part,
        [ESCAPE] | [ESCAPE, ESCAPE, ..] => {
            Found::Input(Some(key(KeyCode::Esc, KeyModifiers::NONE)), 1)
        }
        [ESCAPE, b'[', rest @ ..] => control_sequence(rest),
        [ESCAPE, b']', rest @ ..] => parse_background(rest),
        [ESCAPE, b'O', last, ..] => Found::Input(
            last_letter(*last).map(|code| key(code, KeyModifiers::NONE)),
            3,
        ),
        [ESCAPE, b'O'] => Found::Part,
        [ESCAPE, rest @ ..] => match letter(rest, KeyModifiers::ALT) {
            Found::Input(input, length) => Found::Input(input, length + 1),
            Found::Part => Found::Part,
        },
        _ => letter(bytes, KeyModifiers::NONE),
    }
}

/// Parses a letter, possibly with the control key.
fn letter(bytes: &[u8], held: KeyModifiers) -> Found {
    let Some(first) = bytes.first().copied() else {
        return Found::Part;
    };
    let control = |letter: u8| key(KeyCode::Char(letter.into()), held | KeyModifiers::CONTROL);
    let event = match first {
        b'\r' | b'\n' => key(KeyCode::Enter, held),
        b'\t' => key(KeyCode::Tab, held),
        0x08 | 0x7f => key(KeyCode::Backspace, held),
        0 => control(b' '),
        0x01..=0x1a => control(first - 1 + b'a'),
        0x1b..=0x1f => control(first - 0x1b + b'3'),
        b' '..=b'~' => key(KeyCode::Char(first.into()), held),
        0x80.. => return utf8(bytes, held),
    };
    Found::Input(Some(event), 1)
}

fn utf8(bytes: &[u8], held: KeyModifiers) -> Found {
    let first = bytes.utf8_chunks().next();
    match first.map(|chunk| (chunk.valid().chars().next(), chunk.invalid().len())) {
        Some((Some(letter), _)) => {
            Found::Input(Some(key(KeyCode::Char(letter), held)), letter.len_utf8())
        }
        // The beginning of a UTF-8 letter of up to four bytes is only valid if no other byte
        // follows it.
        Some((None, wrong))
            if wrong < bytes.len() || bytes.len() >= 4 || !(0xc2..=0xf4).contains(&bytes[0]) =>
        {
            Found::Input(None, wrong)
        }
        _ => Found::Part,
    }
}

/// Parses the rest of a sequence after `ESC [`: parameters, and a final letter that gives their
/// meaning.
fn control_sequence(bytes: &[u8]) -> Found {
    const INTRODUCER: usize = 2;
    // These are the function keys of the Linux console.
    if let [b'[', rest @ ..] = bytes {
        let event = |last: &u8| {
            (b'A'..=b'E')
                .contains(last)
                .then(|| key(KeyCode::F(last - b'A' + 1), KeyModifiers::NONE))
        };
        return rest.first().map_or(Found::Part, |last| {
            Found::Input(event(last), INTRODUCER + 2)
        });
    }
    let Some(length) = bytes.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return Found::Part;
    };
    let (parameters, last) = (&bytes[..length], bytes[length]);
    if !(0x40..=0x7e).contains(&last) {
        // The sequence was interrupted, and another one starts.
        return Found::Input(None, INTRODUCER + length);
    }
    let whole = INTRODUCER + length + 1;
    if last == b'M' && parameters.is_empty() {
        // This is the oldest mouse protocol: three bytes, each with 32 added.
        let Some([button, x, y]) = bytes.get(1..4) else {
            return Found::Part;
        };
        let plain = |byte: &u8| u16::from(byte.saturating_sub(32));
        return Found::Input(click(plain(button), plain(x), plain(y)), whole + 3);
    }
    Found::Input(interpret(parameters, last), whole)
}

/// Parses the color that follows `ESC ]`, or else the key ] with Alt. A color ends with BEL or with
/// `ESC \`.
fn parse_background(bytes: &[u8]) -> Found {
    const INTRODUCER: usize = 2;
    const NUMBER: &[u8] = b"11;";
    let Some(color) = bytes.strip_prefix(NUMBER) else {
        // Without further bytes, this could be the start of an answer that arrives in pieces.
        return if NUMBER.starts_with(bytes) {
            Found::Part
        } else {
            let key = key(KeyCode::Char(']'), KeyModifiers::ALT);
            Found::Input(Some(key), INTRODUCER)
        };
    };
    let Some(length) = color.iter().position(|byte| !(b' '..=b'~').contains(byte)) else {
        return Found::Part;
    };
    let (color, end) = color.split_at(length);
    let answer = || Background::parse_color(color).map(Input::Background);
    let whole = INTRODUCER + NUMBER.len() + length;
    match end {
        [BELL | STRING_TERMINATOR, ..] => Found::Input(answer(), whole + 1),
        [ESCAPE, b'\\', ..] => Found::Input(answer(), whole + 2),
        [ESCAPE] => Found::Part,
        // The answer was interrupted, and another sequence starts.
        _ => Found::Input(None, whole),
    }
}

fn interpret(parameters: &[u8], last: u8) -> Option<Input> {
    let text = std::str::from_utf8(parameters).ok()?;
    if let Some(mouse) = text.strip_prefix('<') {
        let [button, x, y] = numbers(mouse)?[..] else {
            return None;
        };
        // A lowercase letter reports the release of a button.
        return if last == b'M' {
            click(button, x, y)
        } else {
            None
        };
    }
    let numbers = numbers(text)?;
    if let (b'M', [button, x, y]) = (last, &numbers[..]) {
        return click(button.checked_sub(32)?, *x, *y);
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
        // Further parameters mean that it is not a key but the cursor position or another report.
        (letter, 1) if numbers.len() <= 2 => last_letter(letter)?,
        _ => return None,
    };
    Some(key(code, held))
}

/// Parses numbers separated by semicolons. An omitted number is 1. Returns `None` if one is
/// invalid.
fn numbers(text: &str) -> Option<Vec<u16>> {
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

/// Returns the key that the last letter of a sequence denotes.
fn last_letter(letter: u8) -> Option<KeyCode> {
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

fn key(code: KeyCode, held: KeyModifiers) -> Input {
    Input::Terminal(Event::Key(KeyEvent::new(code, held)))
}

/// Returns the event of the left button or the wheel. Other buttons and movements are ignored.
/// Coordinates start at 1.
fn click(button: u16, x: u16, y: u16) -> Option<Input> {
    // The bits 4, 8 and 16 are modifier keys.
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
mod tests;
