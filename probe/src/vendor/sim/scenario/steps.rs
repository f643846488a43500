//! Values that change in steps.

use serde::{Deserialize, Deserializer, de};

use super::quantity::Seconds;

/// A value that is constant, or that changes in steps at key frames.
///
/// In TOML, it is one value, or `[[seconds, value], ...]` in order of time. The first value also
/// applies before the first key frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Steps<T> {
    /// The times in seconds since the start, with the values from these times on. Never empty.
    frames: Vec<(f64, T)>,
}

impl<T> Steps<T> {
    pub(crate) fn at(&self, seconds: f64) -> &T {
        let after = self.frames.partition_point(|(time, _)| *time <= seconds);
        &self.frames[after.saturating_sub(1)].1
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.frames.iter().map(|(_, value)| value)
    }
}

/// The format of a value in the file. If the values are lists, an empty list is a value.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "this is neither a value for this key nor key frames as [[seconds, value], ...]; \
                 tests/fake-nvml/scenarios/example.toml shows both"
)]
enum Written<T> {
    Fixed(T),
    Frames(Vec<(Seconds, T)>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Steps<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let frames = match Written::deserialize(deserializer)? {
            Written::Fixed(value) => vec![(0.0, value)],
            Written::Frames(frames) => frames
                .into_iter()
                .map(|(time, value)| (time.0, value))
                .collect(),
        };
        if frames.is_empty() {
            return Err(de::Error::custom(
                "no key frames; write at least one, as [[0, value]]",
            ));
        }
        if let Some(pair) = frames.windows(2).find(|pair| pair[0].0 > pair[1].0) {
            return Err(de::Error::custom(format!(
                "the key frame at {} s comes after the one at {} s; put them in order of time",
                pair[1].0, pair[0].0
            )));
        }
        Ok(Self { frames })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Document {
        lists: Steps<Vec<u32>>,
    }

    fn read(toml: &str) -> Result<Steps<Vec<u32>>, toml::de::Error> {
        toml::from_str::<Document>(&format!("lists = {toml}")).map(|document| document.lists)
    }

    #[test]
    fn a_value_holds_until_the_next_key_frame() {
        let steps = read("[[5, []], [10, [1, 2]], [20, [3]]]").unwrap();
        assert_eq!(
            [0.0, 9.9, 10.0, 19.9, 99.0].map(|s| steps.at(s).len()),
            [0, 0, 2, 2, 1]
        );
        assert_eq!(steps.values().map(Vec::len).collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    fn a_list_can_be_one_value_also_an_empty_one() {
        assert_eq!(read("[7, 8]").unwrap().at(3.0), &[7, 8]);
        assert_eq!(read("[]").unwrap().at(3.0), &Vec::<u32>::new());
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert!(read("\"x\"").unwrap_err().message().contains("neither"));
        assert!(
            read("[[9, []], [3, []]]")
                .unwrap_err()
                .message()
                .contains("in order of time")
        );
    }
}
