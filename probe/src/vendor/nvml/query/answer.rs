//! What an NVML call gave.

use serde::{Deserialize, Serialize};

/// What the call gave, or its return code.
pub type Answer = Result<Value, Code>;

/// What a call gave, in NVML's units. Which query gives which form, and which number stands where, is said at the
/// query.
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

impl Code {
    /// `NVML_ERROR_UNINITIALIZED`.
    pub const UNINITIALIZED: Self = Self(1);
    /// `NVML_ERROR_INVALID_ARGUMENT`.
    pub const INVALID_ARGUMENT: Self = Self(2);
    /// `NVML_ERROR_NOT_SUPPORTED`.
    pub const NOT_SUPPORTED: Self = Self(3);
    /// `NVML_ERROR_NO_PERMISSION`.
    pub const NO_PERMISSION: Self = Self(4);
    /// `NVML_ERROR_NOT_FOUND`.
    pub const NOT_FOUND: Self = Self(6);
    /// `NVML_ERROR_DRIVER_NOT_LOADED`.
    pub const DRIVER_NOT_LOADED: Self = Self(9);
    /// `NVML_ERROR_TIMEOUT`.
    pub const TIMEOUT: Self = Self(10);
    /// `NVML_ERROR_FUNCTION_NOT_FOUND`: the library is older than the query.
    pub const FUNCTION_NOT_FOUND: Self = Self(13);
    /// `NVML_ERROR_CORRUPTED_INFOROM`.
    pub const CORRUPTED_INFOROM: Self = Self(14);
    /// `NVML_ERROR_GPU_IS_LOST`.
    pub const GPU_IS_LOST: Self = Self(15);
    /// `NVML_ERROR_RESET_REQUIRED`.
    pub const RESET_REQUIRED: Self = Self(16);
    /// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`: library and kernel module are of different versions.
    pub const VERSION_MISMATCH: Self = Self(18);
    /// `NVML_ERROR_NO_DATA`.
    pub const NO_DATA: Self = Self(21);
    /// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`: the driver knows another version of the structure.
    pub const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    /// `NVML_ERROR_DEPRECATED`.
    pub const DEPRECATED: Self = Self(26);
    /// `NVML_ERROR_NOT_READY`.
    pub const NOT_READY: Self = Self(27);
    /// `NVML_ERROR_UNKNOWN`.
    pub const UNKNOWN: Self = Self(999);
}

impl Value {
    /// One number.
    pub fn number(number: impl Into<i128>) -> Self {
        Self::Numbers(vec![number.into()])
    }

    /// The numbers; none where it is of another form.
    pub fn numbers(&self) -> &[i128] {
        if let Self::Numbers(numbers) = self { numbers } else { &[] }
    }

    /// The number at a place; `None` where there is none.
    pub fn at(&self, place: usize) -> Option<i128> {
        self.numbers().get(place).copied()
    }

    /// The text; `None` where it is of another form.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
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
            assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), answer, "{json}");
        }
    }
}
