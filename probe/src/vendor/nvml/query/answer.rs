//! What an NVML call gave.

use serde::{Deserialize, Serialize};

/// What the call gave, or its return code.
pub type Answer = Result<Value, Code>;

/// What a call gave, in NVML's units. Which query gives which form, and which number stands where,
/// is said at the query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Integers, each in its full range: the call's results in their order, or a list.
    Numbers(Vec<i128>),
    /// Measured quantities.
    Reals(Vec<f64>),
    /// Text.
    Text(String),
}

/// An `nvmlReturn_t` other than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident = $code:literal;)*) => {$(
        #[doc = concat!("`NVML_ERROR_", stringify!($name), "`.")]
        pub const $name: Self = Self($code);
    )*};
}

impl Code {
    codes! {
        UNINITIALIZED = 1;
        INVALID_ARGUMENT = 2;
        NOT_SUPPORTED = 3;
        NO_PERMISSION = 4;
        NOT_FOUND = 6;
        INSUFFICIENT_POWER = 8;
        DRIVER_NOT_LOADED = 9;
        TIMEOUT = 10;
        IRQ_ISSUE = 11;
        // The library is older than the query.
        FUNCTION_NOT_FOUND = 13;
        CORRUPTED_INFOROM = 14;
        GPU_IS_LOST = 15;
        RESET_REQUIRED = 16;
        // The device cgroup blocks the GPU.
        OPERATING_SYSTEM = 17;
        NO_DATA = 21;
        // The driver knows another version of the structure.
        ARGUMENT_VERSION_MISMATCH = 25;
        DEPRECATED = 26;
        NOT_READY = 27;
        UNKNOWN = 999;
    }

    /// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`: library and kernel module are of different versions.
    pub const VERSION_MISMATCH: Self = Self(18);
}

impl Value {
    /// One number.
    pub fn number(number: impl Into<i128>) -> Self {
        Self::Numbers(vec![number.into()])
    }

    /// The numbers; none where it is of another form.
    pub fn numbers(&self) -> &[i128] {
        if let Self::Numbers(numbers) = self {
            numbers
        } else {
            &[]
        }
    }

    /// The number at a place; `None` where there is none.
    pub fn at(&self, place: usize) -> Option<i128> {
        self.numbers().get(place).copied()
    }

    /// The first quantity, an integer or not; `None` where there is none.
    pub fn real(&self) -> Option<f64> {
        match self {
            Self::Reals(reals) => reals.first().copied(),
            value => value.at(0).map(|number| number as f64),
        }
    }

    /// The text; `None` where it is of another form.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_from_json_as_it_was() {
        for answer in [
            Ok(Value::Numbers(vec![0, -8, i128::from(u64::MAX)])),
            Ok(Value::Numbers(Vec::new())),
            Ok(Value::Text("96.00.A5.00.1A".to_owned())),
            Ok(Value::Reals(vec![12.5])),
            Err(Code::NOT_SUPPORTED),
        ] {
            let json = serde_json::to_string(&answer).unwrap();
            assert_eq!(
                serde_json::from_str::<Answer>(&json).unwrap(),
                answer,
                "{json}"
            );
        }
    }
}
