//! Tests of the parser: complete, partial, interrupted, and unknown sequences.

use super::*;

/// Returns the names of the keys in bytes that arrive together. The prefix `^` means Ctrl, and `!`
/// means Alt.
fn parse_keys(bytes: &[u8]) -> Vec<String> {
    name_inputs(InputParser::default().parse(bytes, false))
}

fn name_inputs(inputs: Vec<Input>) -> Vec<String> {
    let name = |input: Input| match input {
        Input::Terminal(Event::Key(key)) => {
            let control = if key.modifiers.contains(KeyModifiers::CONTROL) {
                "^"
            } else {
                ""
            };
            let alt = if key.modifiers.contains(KeyModifiers::ALT) {
                "!"
            } else {
                ""
            };
            format!("{control}{alt}{}", key.code)
        }
        Input::Terminal(Event::Mouse(mouse)) => {
            format!("{:?} {} {}", mouse.kind, mouse.column, mouse.row)
        }
        Input::Background(background) => format!("{background:?}"),
        _ => panic!("neither a key, a click nor a background"),
    };
    inputs.into_iter().map(name).collect()
}

#[test]
fn letters_and_special_keys_are_parsed() {
    assert_eq!(parse_keys("qM?é訓".as_bytes()), ["q", "M", "?", "é", "訓"]);
    assert_eq!(
        parse_keys(b"\r\t\x7f\x08\x03\x1a\x0c"),
        ["Enter", "Tab", "Backspace", "Backspace", "^c", "^z", "^l"]
    );
    assert_eq!(parse_keys(b"\x1b"), ["Esc"]);
    assert_eq!(parse_keys(b"\x1b\x1b[A"), ["Esc", "Up"]);
    assert_eq!(parse_keys(b"\x1bq\x1b\x03"), ["!q", "^!c"]);
    assert_eq!(
        parse_keys(b"\x1b[A\x1b[B\x1b[C\x1b[D\x1bOA\x1bOH\x1b[F"),
        ["Up", "Down", "Right", "Left", "Up", "Home", "End"]
    );
    assert_eq!(
        parse_keys(b"\x1b[5~\x1b[6~\x1b[1~\x1b[4~\x1b[Z"),
        ["Page Up", "Page Down", "Home", "End", "Back Tab"]
    );
    assert_eq!(
        parse_keys(b"\x1bOP\x1b[11~\x1b[[A\x1b[15~\x1b[24~"),
        ["F1", "F1", "F1", "F5", "F12"]
    );
    assert_eq!(parse_keys(b"\x1b[1;5A\x1b[5;3~"), ["^Up", "!Page Up"]);
}

#[test]
fn escape_sequence_split_across_reads_is_joined() {
    for whole in [
        "\u{1b}[1;5A".as_bytes(),
        "\u{1b}[<0;12;7M".as_bytes(),
        "訓".as_bytes(),
        b"\x1b[M !!",
        b"\x1bOH",
    ] {
        let expected = parse_keys(whole);
        assert_eq!(expected.len(), 1, "{whole:?}");
        // The parser takes a lone escape character for the Escape key. A sequence that starts with
        // an escape character is therefore never split after its first byte.
        let first = if whole[0] == ESCAPE { 2 } else { 1 };
        for at in first..whole.len() {
            let mut parser = InputParser::default();
            assert_eq!(
                name_inputs(parser.parse(&whole[..at], false)),
                [""; 0],
                "{whole:?} at {at}"
            );
            assert_eq!(
                name_inputs(parser.parse(&whole[at..], false)),
                expected,
                "{whole:?} at {at}"
            );
        }
    }
    let mut parser = InputParser::default();
    assert_eq!(name_inputs(parser.parse(b"\x1b", true)), [""; 0]);
    assert_eq!(name_inputs(parser.parse(b"[Aq", false)), ["Up", "q"]);
}

#[test]
fn three_mouse_click_formats_are_parsed() {
    let click = "Down(Left) 11 6";
    assert_eq!(
        parse_keys(b"\x1b[<0;12;7M\x1b[32;12;7M\x1b[M ,'"),
        [click, click, click]
    );
    assert_eq!(
        parse_keys(b"\x1b[<64;1;1M\x1b[<65;1;1M"),
        ["ScrollUp 0 0", "ScrollDown 0 0"]
    );
    assert_eq!(
        parse_keys(b"\x1b[<0;12;7m\x1b[<35;3;3M\x1b[<2;3;3M\x1b[<0;0;0M"),
        [""; 0]
    );
}

#[test]
fn background_color_response_can_arrive_in_two_reads() {
    for answer in [
        &b"\x1b]11;rgb:ffff/ffff/ffff\x07"[..],
        b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
        b"\x1b]11;rgb:ffff/ffff/ffff\x9c",
    ] {
        assert_eq!(parse_keys(answer), ["Light"]);
        for at in 2..answer.len() {
            let mut parser = InputParser::default();
            assert_eq!(
                name_inputs(parser.parse(&answer[..at], false)),
                [""; 0],
                "{at}"
            );
            let rest = [&answer[at..], b"q"].concat();
            assert_eq!(
                name_inputs(parser.parse(&rest, false)),
                ["Light", "q"],
                "{at}"
            );
        }
    }
    assert_eq!(parse_keys(b"j\x1b]11;rgb:0/0/0\x07k"), ["j", "Dark", "k"]);
}

#[test]
fn key_after_interrupted_terminal_response_is_parsed() {
    assert_eq!(parse_keys(b"\x1b]q"), ["!]", "q"]);
    assert_eq!(parse_keys(b"\x1b]1q"), ["!]", "1", "q"]);
    assert_eq!(parse_keys(b"\x1b]11;?\x07q"), ["q"]);
    assert_eq!(parse_keys(b"\x1b]11;rgb:ff\x03"), ["^c"]);
    assert_eq!(parse_keys(b"\x1b]11;rgb:ff\x1b[A"), ["Up"]);
    let mut parser = InputParser::default();
    parser.parse(&[&b"\x1b]11;"[..], &[b'f'; 200]].concat(), false);
    assert_eq!(name_inputs(parser.parse(b"q", false)), ["q"]);
}

#[test]
fn unknown_sequence_does_not_swallow_next_key() {
    for strange in [
        &b"\x1b[1;99;9999R"[..],
        b"\x1b[?1;2c",
        b"\x1b[200~",
        b"\x1b[I",
        b"\x1b[<99999;0;0M",
        b"\x1b[99999999A",
        b"\x1b[<;M",
        b"\x1bOz",
        b"\xff",
        b"\xc3(",
    ] {
        let last = *parse_keys(&[strange, b"q"].concat()).last().unwrap() == *"q";
        assert!(last, "{strange:?}");
    }
    assert_eq!(parse_keys(b"\x1b[12\x1b[Aq"), ["Up", "q"], "broken off");
    let mut parser = InputParser::default();
    parser.parse(&[b"\x1b[".as_slice(), &[b'1'; 200]].concat(), false);
    assert_eq!(
        name_inputs(parser.parse(b"q", false)),
        ["q"],
        "a sequence without an end does not swallow what follows"
    );
}

#[test]
fn parser_consumes_arbitrary_bytes() {
    let mut state = 1_u32;
    let mut parser = InputParser::default();
    for _ in 0..20_000 {
        let part: Vec<u8> = (0..state % 7)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 30 == 0 {
                    ESCAPE
                } else {
                    (state >> 16) as u8
                }
            })
            .collect();
        parser.parse(&part, state >> 31 == 0);
        assert!(parser.held.len() <= MAX_SEQUENCE_BYTES, "{:?}", parser.held);
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
}
