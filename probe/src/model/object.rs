//! Tagged JSON objects: one field, the tag, contains the object's kind.
//!
//! The code that serde derives for `tag` and `flatten` first copies all values into an intermediate
//! representation, and is compiled a second time for that representation, which adds 200 KB. This
//! module reads the fields one by one instead.

use std::mem;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Error, Map, Value};

/// A JSON object from which fields are taken one by one.
#[derive(Debug)]
pub struct Object(Map<String, Value>);

impl Object {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// Returns an error if the text is not an object.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map(Self)
    }

    /// Removes a field and returns its value. A missing field is treated like `null`.
    ///
    /// # Errors
    /// Returns an error with the field's name if the value has the wrong type.
    pub fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T, Error> {
        match self.0.remove(name) {
            Some(value) => T::deserialize(value)
                .map_err(|error| Error::custom(format_args!("`{name}`: {error}"))),
            None => T::deserialize(Value::Null).map_err(|_| Error::missing_field(name)),
        }
    }

    /// Removes an optional field and returns its value, or the default if the field is missing.
    ///
    /// # Errors
    /// Returns an error with the field's name if the value has the wrong type.
    pub fn take_or_default<T: DeserializeOwned + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, Error> {
        if self.0.contains_key(name) {
            self.take(name)
        } else {
            Ok(T::default())
        }
    }

    /// Removes all remaining fields and returns them as one value of type `T`.
    ///
    /// # Errors
    /// Returns an error if the fields do not form such a value.
    pub fn take_rest<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        T::deserialize(Value::Object(mem::take(&mut self.0)))
    }

    /// Checks that no field remains.
    ///
    /// # Errors
    /// Returns an error with the name of a remaining field.
    pub fn check_no_field_remains(&self) -> Result<(), Error> {
        match self.0.keys().next() {
            Some(name) => Err(Error::custom(format_args!("unknown field `{name}`"))),
            None => Ok(()),
        }
    }

    /// Deserializes an object inside another value.
    ///
    /// # Errors
    /// Returns an error if the value is not an object, or if `read` fails.
    pub fn deserialize_object<'de, T, D: Deserializer<'de>>(
        deserializer: D,
        read: fn(&mut Self) -> Result<T, Error>,
    ) -> Result<T, D::Error> {
        read(&mut Self(Map::deserialize(deserializer)?)).map_err(D::Error::custom)
    }
}

/// Implements `Deserialize` for an enum whose variant is given by a tag. With `strict`, unknown
/// fields are an error. A field marked with `default` is optional. A field marked with `rest` takes
/// all remaining fields.
#[macro_export]
macro_rules! tagged {
    ($type:ident by $key:literal $($strict:ident)? {
        $($tag:literal => $variant:ident $({ $($field:ident $(: $how:ident)?),* })? $(($all:ident))?,)+
        $(_ => $other:ident,)?
    }) => {
        impl $type {
            /// All tags, in the order of the variants.
            pub const TAGS: &'static [&'static str] = &[$($tag),+];

            /// Returns the value's tag, or `None` for the variant that stands for unknown tags.
            // The `match` makes the compiler report variants that have no tag.
            pub fn tag(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant { .. } => Some($tag),)+
                    $(Self::$other => None,)?
                }
            }

            fn read(from: &mut $crate::model::Object) -> serde_json::Result<Self> {
                let read = match &*from.take::<String>($key)? {
                    $($tag => Self::$variant
                        $({ $($field: $crate::taken!(from $field $($how)?)),* })?
                        $(($crate::taken!(from $all $all)))?,)+
                    $(_ => Self::$other,)?
                    #[allow(unreachable_patterns, reason = "some types have a variant for all \
                                                            other values")]
                    other => return Err(serde::de::Error::unknown_variant(other, Self::TAGS)),
                };
                $(from.$strict()?;)?
                Ok(read)
            }
        }
        $crate::deserialized_by_read!($type);
    };
}

/// Implements `Deserialize` for a structure field by field. Fields have the same options as in
/// [`tagged`].
#[macro_export]
macro_rules! flat {
    ($type:ident { $($field:ident $(= $name:literal)? $(: $how:ident)?),+ }) => {
        impl $type {
            fn read(from: &mut $crate::model::Object) -> serde_json::Result<Self> {
                Ok(Self { $($field: $crate::taken!(from $field $($name)? $($how)?)),+ })
            }
        }
        $crate::deserialized_by_read!($type);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! taken {
    ($from:ident $field:ident) => {
        $from.take(stringify!($field))?
    };
    ($from:ident $field:ident $name:literal) => {
        $from.take($name)?
    };
    ($from:ident $field:ident default) => {
        $from.take_or_default(stringify!($field))?
    };
    ($from:ident $field:ident rest) => {
        $from.take_rest()?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! deserialized_by_read {
    ($type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::model::Object::deserialize_object(deserializer, Self::read)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use schemars::{JsonSchema, schema_for};

    use super::*;
    use crate::model::{ConditionKind, EventKind, Health};

    #[test]
    fn parsed_fields_are_removed_from_json_object() {
        let mut object = Object::parse(r#"{"a":1,"b":null,"c":[2],"d":3}"#).unwrap();
        assert_eq!(object.take::<u8>("a").unwrap(), 1);
        assert_eq!(
            (
                object.take::<Option<u8>>("b").unwrap(),
                object.take::<Option<u8>>("z").unwrap()
            ),
            (None, None)
        );
        assert_eq!(
            (
                object.take_or_default::<u8>("z").unwrap(),
                object.take_or_default::<u8>("d").unwrap()
            ),
            (0, 3)
        );
        assert_eq!(
            object.take::<u8>("z").unwrap_err().to_string(),
            "missing field `z`"
        );
        assert_eq!(
            object.take::<u8>("c").unwrap_err().to_string(),
            "`c`: invalid type: sequence, expected u8"
        );
        object.check_no_field_remains().unwrap();
        let left = Object::parse(r#"{"e":1}"#).unwrap();
        assert_eq!(
            left.check_no_field_remains().unwrap_err().to_string(),
            "unknown field `e`"
        );
        assert!(Object::parse("[]").is_err() && Object::parse(r#"{"a":1} x"#).is_err());
    }

    /// Deserializes one object for each tag in the JSON Schema.
    fn check_tags<T: DeserializeOwned + JsonSchema>(key: &str) {
        let schema = schema_for!(T);
        let variants = schema.get("oneOf").and_then(Value::as_array).unwrap();
        for variant in variants {
            let tag = variant["properties"][key]["const"].as_str().unwrap();
            let fields = variant["required"].as_array().unwrap().len()
                + usize::from(variant.get("$ref").is_some());
            match serde_json::from_value::<T>(serde_json::json!({ key: tag })) {
                Ok(_) => assert_eq!(fields, 1, "{tag}"),
                Err(error) => assert!(
                    fields > 1 && error.to_string().contains("missing field"),
                    "{tag}: {error}"
                ),
            }
        }
    }

    #[test]
    fn every_serialized_variant_tag_is_parsed() {
        check_tags::<ConditionKind>("condition");
        check_tags::<EventKind>("what");
        check_tags::<Health>("state");
        let error = serde_json::from_str::<Health>(r#"{"state":"well"}"#)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("unknown variant `well`, expected one of `ok`, `asleep`"),
            "{error}"
        );
    }
}
