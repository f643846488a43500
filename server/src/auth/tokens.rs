//! Tokens and the scopes that the token file grants them.

use std::{path::Path, sync::Arc};

use gpumon_probe::private_file::{PrivateFile, Secrecy};

use super::{client::Scope, credentials::Digest};

/// The minimum number of characters of a token: 16 random bytes in hexadecimal.
const MIN_TOKEN_CHARS: usize = 32;
const MAX_TOKEN_CHARS: usize = 512;
/// The maximum number of characters of a name. Names are written to the log.
const MAX_NAME_CHARS: usize = 64;

const TOKEN_HINT: &str = "create one with `openssl rand -hex 32`";
const LINE_HINT: &str = "a line is `SCOPE NAME TOKEN`, where SCOPE is metrics, read or run";

pub(crate) struct Token {
    pub(super) name: Arc<str>,
    pub(super) scope: Scope,
    pub(super) digest: Digest,
}

pub(crate) struct Tokens(Vec<Token>);

impl Tokens {
    /// Reads the tokens from a file, which may be empty.
    ///
    /// # Errors
    /// Returns the problem of the file, without quoting its contents.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let file = PrivateFile::read(path, Secrecy::Secret).map_err(|error| error.to_string())?;
        parse(file.text()).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
    }

    /// Returns a set that contains only this token, with all scopes.
    ///
    /// # Errors
    /// Returns the reason why the token is not valid.
    pub(super) fn from_token(name: &str, token: &str) -> Result<Self, String> {
        check_token(token)?;
        Ok(Self(vec![Token {
            name: name.into(),
            scope: Scope::Run,
            digest: digest_token(token),
        }]))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the token with this digest. All tokens are compared, so that the duration does not
    /// depend on the result.
    pub(super) fn find(&self, digest: &Digest) -> Option<&Token> {
        self.0.iter().fold(None, |found, token| {
            if token.digest.is_equal(digest) {
                Some(token)
            } else {
                found
            }
        })
    }
}

/// Returns the digest of a token.
pub(super) fn digest_token(token: &str) -> Digest {
    Digest::new(&[b"token", token.as_bytes()])
}

fn parse(text: &str) -> Result<Tokens, (usize, String)> {
    let lines = text
        .lines()
        .map(str::trim)
        .zip(1..)
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(line, number)| parse_line(line).map_err(|why| (number, why)))
        .collect::<Result<_, _>>()
        .map(Tokens)
}

fn parse_line(line: &str) -> Result<Token, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [scope, name, token] = words[..] else {
        return Err(format!(
            "the line has {} instead of 3 words; {LINE_HINT}",
            words.len()
        ));
    };
    // The word may be a token in the wrong position, so the error does not quote it.
    let scope = scope
        .parse()
        .map_err(|()| format!("the first word is not a scope; {LINE_HINT}"))?;
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if name.len() > MAX_NAME_CHARS || !name.bytes().all(is_fit) {
        return Err(format!(
            "a name can have up to {MAX_NAME_CHARS} letters, digits, '-', '_', '.' and '@'; \
             {LINE_HINT}"
        ));
    }
    check_token(token)?;
    Ok(Token {
        name: name.into(),
        scope,
        digest: digest_token(token),
    })
}

fn check_token(token: &str) -> Result<(), String> {
    let length = token.len();
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "a token can contain only visible ASCII characters; {TOKEN_HINT}"
        ));
    }
    if !(MIN_TOKEN_CHARS..=MAX_TOKEN_CHARS).contains(&length) {
        return Err(format!(
            "the token has {length} characters, but must have {MIN_TOKEN_CHARS} to \
             {MAX_TOKEN_CHARS}: {TOKEN_HINT}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn parse_error(text: &str) -> String {
        let (line, why) = parse(text).err().unwrap();
        format!("{line}: {why}")
    }

    #[test]
    fn token_line_has_scope_name_and_token() {
        let other = TOKEN.replace('0', "x");
        let tokens = parse(&format!(
            "# for Grafana\n\nmetrics  prom-1\t{TOKEN}\r\n run ana {other}"
        ))
        .unwrap();
        let found = |token: &str| {
            tokens
                .find(&digest_token(token))
                .map(|token| (&*token.name, token.scope))
        };
        assert_eq!(found(TOKEN), Some(("prom-1", Scope::Metrics)));
        assert_eq!(found(&other), Some(("ana", Scope::Run)));
        assert_eq!(found(&TOKEN[1..]), None);
        assert!(parse("# nobody\n").unwrap().is_empty());
    }

    /// Measures a lookup many times and returns the shortest duration, because other activity on
    /// the machine can only lengthen it.
    fn measure_shortest_lookup(tokens: &Tokens, shown: &str) -> Duration {
        // The digest is computed before the measurement, because hashing takes the same time for
        // all inputs of one length.
        let digest = digest_token(shown);
        let once = || {
            let begun = Instant::now();
            for _ in 0..50 {
                std::hint::black_box(tokens.find(std::hint::black_box(&digest)));
            }
            begun.elapsed()
        };
        (0..400).map(|_| once()).min().unwrap()
    }

    #[test]
    fn comparison_time_is_independent_of_token() {
        let lines = (0..20).map(|number| format!("read name{number} {number:02}{TOKEN}"));
        let tokens = parse(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        let right = format!("00{TOKEN}");
        let almost = format!("{}x", &right[..right.len() - 1]);
        let last = format!("19{TOKEN}");
        let nothing = "x".repeat(right.len());
        assert!(
            tokens.find(&digest_token(&last)).is_some()
                && tokens.find(&digest_token(&almost)).is_none()
        );
        // On a busy machine, a measurement can be disturbed. At least one of several attempts
        // should not be.
        let is_even = (0..5).any(|_| {
            let times = [&right, &almost, &last, &nothing]
                .map(|shown| measure_shortest_lookup(&tokens, shown).as_secs_f64());
            let (fastest, slowest) = times.iter().fold((f64::MAX, 0.0_f64), |(a, b), time| {
                (a.min(*time), b.max(*time))
            });
            slowest < fastest * 1.1
        });
        assert!(is_even);
    }

    #[test]
    fn invalid_line_is_reported_without_token() {
        for (text, words) in [
            (
                TOKEN.to_owned(),
                "1: the line has 1 instead of 3 words; a line is `SCOPE NAME TOKEN`",
            ),
            (
                format!("\nRun ana {TOKEN}"),
                "2: the first word is not a scope",
            ),
            (
                format!("{TOKEN} run ana"),
                "1: the first word is not a scope",
            ),
            (
                format!("run {}\u{1b}[31m {TOKEN}", "a"),
                "a name can have up to 64 letters",
            ),
            (
                format!("run {} {TOKEN}", "a".repeat(65)),
                "a name can have up to 64 letters",
            ),
            (
                format!("run ana {}", &TOKEN[1..]),
                "the token has 31 characters, but must have 32 to 512: create one with `openssl",
            ),
            (
                format!("run ana {}", TOKEN.repeat(17)),
                "the token has 544 characters",
            ),
            (format!("run ana {TOKEN}ä"), "visible ASCII"),
        ] {
            let error = parse_error(&text);
            assert!(
                error.contains(words) && !error.contains(&TOKEN[1..]),
                "{text}: {error}"
            );
        }
    }
}
