//! Tokens, with the scopes that the token file gives them.

use std::{path::Path, sync::Arc};

use gpumon_probe::private_file::{PrivateFile, Secrecy};

use super::{digest::Digest, scope::Scope};

/// The minimum number of characters of a token: 16 random bytes in hexadecimal.
const SHORTEST: usize = 32;
const LONGEST: usize = 512;
/// The maximum number of characters of a name, which is written to the log.
const LONGEST_NAME: usize = 64;

const HOW: &str = "make one with `openssl rand -hex 32`";
const FORM: &str = "a line is `SCOPE NAME TOKEN`, where SCOPE is metrics, read or run";

pub(crate) struct Token {
    pub(super) name: Arc<str>,
    pub(super) scope: Scope,
    pub(super) digest: Digest,
}

pub(crate) struct Tokens(Vec<Token>);

impl Tokens {
    /// Reads the tokens of a file, which can be empty.
    ///
    /// # Errors
    /// Returns the problem of the file without quoting its contents.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let file = PrivateFile::read(path, Secrecy::Secret).map_err(|error| error.to_string())?;
        parse(file.text()).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
    }

    /// Returns a single token with all scopes.
    ///
    /// # Errors
    /// Returns the reason why the token is not valid.
    pub(super) fn single(name: &str, token: &str) -> Result<Self, String> {
        check(token)?;
        Ok(Self(vec![Token {
            name: name.into(),
            scope: Scope::Run,
            digest: digest(token),
        }]))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the token with this digest. All tokens are compared, so that the time is independent
    /// of the result.
    pub(super) fn find(&self, digest: &Digest) -> Option<&Token> {
        self.0.iter().fold(None, |found, token| {
            if token.digest.matches(digest) {
                Some(token)
            } else {
                found
            }
        })
    }
}

/// Returns the digest of a token.
pub(super) fn digest(token: &str) -> Digest {
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
        return Err(format!("{} words; {FORM}", words.len()));
    };
    // The word may be a token at the wrong position, so it is not quoted.
    let scope = scope
        .parse()
        .map_err(|()| format!("the first word is no scope; {FORM}"))?;
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if name.len() > LONGEST_NAME || !name.bytes().all(is_fit) {
        return Err(format!(
            "a name has up to {LONGEST_NAME} letters, digits, '-', '_', '.' and '@'; {FORM}"
        ));
    }
    check(token)?;
    Ok(Token {
        name: name.into(),
        scope,
        digest: digest(token),
    })
}

fn check(token: &str) -> Result<(), String> {
    let length = token.len();
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("a token has visible ASCII characters alone; {HOW}"));
    }
    if !(SHORTEST..=LONGEST).contains(&length) {
        return Err(format!(
            "a token of {length} characters; it has {SHORTEST} to {LONGEST}: {HOW}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn error(text: &str) -> String {
        let (line, why) = parse(text).err().unwrap();
        format!("{line}: {why}")
    }

    #[test]
    fn a_line_is_scope_name_and_token() {
        let other = TOKEN.replace('0', "x");
        let tokens = parse(&format!(
            "# for Grafana\n\nmetrics  prom-1\t{TOKEN}\r\n run ana {other}"
        ))
        .unwrap();
        let found = |token: &str| {
            tokens
                .find(&digest(token))
                .map(|token| (&*token.name, token.scope))
        };
        assert_eq!(found(TOKEN), Some(("prom-1", Scope::Metrics)));
        assert_eq!(found(&other), Some(("ana", Scope::Run)));
        assert_eq!(found(&TOKEN[1..]), None);
        assert!(parse("# nobody\n").unwrap().is_empty());
    }

    /// Returns the shortest of many measured times: other activity on the machine only makes it
    /// longer.
    fn shortest(tokens: &Tokens, shown: &str) -> Duration {
        // Hashing takes the same time for all texts of one length, so it is not measured.
        let digest = digest(shown);
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
    fn the_time_says_nothing_of_how_much_of_a_token_is_right() {
        let lines = (0..20).map(|number| format!("read name{number} {number:02}{TOKEN}"));
        let tokens = parse(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        let right = format!("00{TOKEN}");
        let almost = format!("{}x", &right[..right.len() - 1]);
        let last = format!("19{TOKEN}");
        let nothing = "x".repeat(right.len());
        assert!(tokens.find(&digest(&last)).is_some() && tokens.find(&digest(&almost)).is_none());
        // Even on a busy machine, at least one of several attempts should be undisturbed.
        let is_even = (0..5).any(|_| {
            let times = [&right, &almost, &last, &nothing]
                .map(|shown| shortest(&tokens, shown).as_secs_f64());
            let (fastest, slowest) = times.iter().fold((f64::MAX, 0.0_f64), |(a, b), time| {
                (a.min(*time), b.max(*time))
            });
            slowest < fastest * 1.1
        });
        assert!(is_even);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_cure_and_without_the_token() {
        for (text, words) in [
            (TOKEN.to_owned(), "1: 1 words; a line is `SCOPE NAME TOKEN`"),
            (
                format!("\nRun ana {TOKEN}"),
                "2: the first word is no scope",
            ),
            (format!("{TOKEN} run ana"), "1: the first word is no scope"),
            (
                format!("run {}\u{1b}[31m {TOKEN}", "a"),
                "a name has up to 64 letters",
            ),
            (
                format!("run {} {TOKEN}", "a".repeat(65)),
                "a name has up to 64 letters",
            ),
            (
                format!("run ana {}", &TOKEN[1..]),
                "a token of 31 characters; it has 32 to 512: make one with `openssl",
            ),
            (
                format!("run ana {}", TOKEN.repeat(17)),
                "a token of 544 characters",
            ),
            (format!("run ana {TOKEN}ä"), "visible ASCII"),
        ] {
            let error = error(&text);
            assert!(
                error.contains(words) && !error.contains(&TOKEN[1..]),
                "{text}: {error}"
            );
        }
    }
}
