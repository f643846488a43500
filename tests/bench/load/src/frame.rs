//! Parsing of WebSocket frame headers, and of the beginning of gpumon's JSON in frames.

/// The number of bytes at the beginning of a payload that are parsed.
pub(crate) const PARSED_BYTES: usize = 200;

/// Maximum length of a frame header from a server, in bytes.
pub(crate) const MAX_HEADER_BYTES: usize = 10;

/// The header of a WebSocket frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) opcode: u8,
    pub(crate) length: usize,
    pub(crate) payload: usize,
}

pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;

impl Header {
    /// Parses the header at the beginning of `bytes`. Returns `None` if it is incomplete. Frames
    /// from servers are never masked.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, length) = (*bytes.first()?, bytes.get(1)? & 0x7f);
        let (length, payload) = match length {
            126 => (
                4,
                u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?) as usize,
            ),
            127 => (
                10,
                u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize,
            ),
            short => (2, short as usize),
        };
        Some(Self {
            opcode: first & 0xf,
            length,
            payload,
        })
    }
}

/// The type of a frame in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Hello,
    Sample { seq: u64, at_ms: u64 },
    Lagged { missed: u64 },
    Other,
}

impl FrameKind {
    /// Detects the type from the beginning of the payload. In a sample, `seq` and `at_ms` directly
    /// follow the type.
    pub(crate) fn from_payload(payload: &[u8]) -> Self {
        let named =
            |kind: &str| find_bytes(payload, format!("\"type\":\"{kind}\"").as_bytes()).is_some();
        let number = |name: &str| number_after(payload, format!("\"{name}\":").as_bytes());
        if named("sample")
            && let (Some(seq), Some(at_ms)) = (number("seq"), number("at_ms"))
        {
            return Self::Sample { seq, at_ms };
        }
        match (named("lagged"), number("missed")) {
            (true, Some(missed)) => Self::Lagged { missed },
            _ if named("hello") => Self::Hello,
            _ => Self::Other,
        }
    }
}

fn find_bytes(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

fn number_after(text: &[u8], name: &[u8]) -> Option<u64> {
    let digits = text[find_bytes(text, name)? + name.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number: Option<u64>, digit| {
        Some(
            number
                .unwrap_or_default()
                .wrapping_mul(10)
                .wrapping_add((digit - b'0').into()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_lengths_are_parsed() {
        let header = |length, payload| {
            Some(Header {
                opcode: 1,
                length,
                payload,
            })
        };
        assert_eq!(Header::parse(&[0x81, 5]), header(2, 5));
        assert_eq!(Header::parse(&[0x81, 126, 1, 0]), header(4, 256));
        assert_eq!(
            Header::parse(&[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
            header(10, 65_536)
        );
        for incomplete in [
            &[][..],
            &[0x81],
            &[0x81, 126, 1],
            &[0x81, 127, 0, 0, 0, 0, 0, 1, 0],
        ] {
            assert_eq!(Header::parse(incomplete), None, "{incomplete:?}");
        }
    }

    #[test]
    fn frame_kind_is_detected_from_beginning_of_payload() {
        let sample = br#"{"type":"sample","seq":12,"at_ms":1700000000123,"interval_ms":1000,"gpus":[{"index":0,"#;
        assert_eq!(
            FrameKind::from_payload(sample),
            FrameKind::Sample {
                seq: 12,
                at_ms: 1_700_000_000_123
            }
        );
        assert_eq!(
            FrameKind::from_payload(br#"{"type":"lagged","missed":3}"#),
            FrameKind::Lagged { missed: 3 }
        );
        assert_eq!(
            FrameKind::from_payload(br#"{"type":"hello","version":"0.1.0","at_ms":17"#),
            FrameKind::Hello
        );
        for other in [
            &br#"{"type":"heartbeat","at_ms":17}"#[..],
            br#"{"type":"sample"}"#,
            b"",
        ] {
            assert_eq!(FrameKind::from_payload(other), FrameKind::Other);
        }
    }
}
