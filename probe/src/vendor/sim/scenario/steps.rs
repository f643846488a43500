//! Values that change in steps.

use serde::{Deserialize, Deserializer, de};

use super::quantity::Seconds;

/// A value that is constant or changes in steps at key frames.
///
/// In TOML, the value is either a single value or `[[seconds, value], ...]` in chronological order.
/// The first value also applies before the first key frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Steps<T> {
    /// The key frames, with at least one entry. Each value applies from its time on, in seconds
    /// since the start.
    frames: Vec<(f64, T)>,
}

impl<T> Steps<T> {
    pub(crate) fn value_at(&self, seconds: f64) -> &T {
        let after = self.frames.partition_point(|(time, _)| *time <= seconds);
        &self.frames[after.saturating_sub(1)].1
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.frames.iter().map(|(_, value)| value)
    }
}

/// The value as it appears in the file. If `T` is a list, an empty list is parsed as a fixed value.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "this is neither a value for this key nor key frames in the form [[seconds, \
                 value], ...]; tests/fake-nvml/scenarios/example.toml shows both"
)]
enum StepsInput<T> {
    Fixed(T),
    Frames(Vec<(Seconds, T)>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Steps<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let frames = match StepsInput::deserialize(deserializer)? {
            StepsInput::Fixed(value) => vec![(0.0, value)],
            StepsInput::Frames(frames) => frames
                .into_iter()
                .map(|(time, value)| (time.0, value))
                .collect(),
        };
        if frames.is_empty() {
            return Err(de::Error::custom(
                "there are no key frames; write at least one, such as [[0, value]]",
            ));
        }
        if let Some(pair) = frames.windows(2).find(|pair| pair[0].0 > pair[1].0) {
            return Err(de::Error::custom(format!(
                "the key frame at {} s is listed after the key frame at {} s; sort the key frames \
                 by time",
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
    fn value_applies_until_next_key_frame() {
        let steps = read("[[5, []], [10, [1, 2]], [20, [3]]]").unwrap();
        assert_eq!(
            [0.0, 9.9, 10.0, 19.9, 99.0].map(|s| steps.value_at(s).len()),
            [0, 0, 2, 2, 1]
        );
        assert_eq!(steps.values().map(Vec::len).collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    fn list_can_be_a_single_value() {
        assert_eq!(read("[7, 8]").unwrap().value_at(3.0), &[7, 8]);
        assert_eq!(read("[]").unwrap().value_at(3.0), &Vec::<u32>::new());
    }

    #[test]
    fn invalid_values_are_rejected() {
        assert!(read("\"x\"").unwrap_err().message().contains("neither"));
        assert!(
            read("[[9, []], [3, []]]")
                .unwrap_err()
                .message()
                .contains("sort the key frames by time")
        );
    }
}
