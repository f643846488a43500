//! NVML's interface, by subject. Names, types and meanings are those of `nvml.h`.

mod accounting;
mod affinity;
mod board;
mod buffers;
mod clocks;
mod compute_instances;
mod confidential;
mod ecc;
mod events;
mod fabric;
mod fans;
mod fields;
mod firmware;
mod gpm;
mod handles;
mod identity;
mod instances;
mod load;
mod memory;
mod mig;
mod modes;
mod nvlink;
mod pcie;
mod power;
mod processes;
mod repairs;
mod system;
mod temperature;
mod throttled;
mod topology;
mod virtualization;

/// Exports functions that ask a GPU for one value: `fn NAME(TYPE) = |gpu| RESULT;`.
macro_rules! one_value {
    ($(fn $name:ident($type:ty) = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t,
            value: *mut $type,
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::call::device(stringify!($name), device, |gpu| {
                let answer: fn(&$crate::call::Gpu) -> Result<$type, $crate::code::Code> = $answer;
                // SAFETY: NVML's contract: the pointer is null or may be written.
                unsafe { $crate::out::put(value, answer(gpu)?) }
            })
        }
    )*};
}

/// Exports functions that ask a GPU for two values: `fn NAME(TYPE, TYPE) = |gpu| RESULT;`.
macro_rules! two_values {
    ($(fn $name:ident($one:ty, $two:ty) = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t,
            one: *mut $one,
            two: *mut $two,
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::call::device(stringify!($name), device, |gpu| {
                let answer: fn(&$crate::call::Gpu) -> Result<($one, $two), $crate::code::Code> = $answer;
                let (first, second) = answer(gpu)?;
                // SAFETY: NVML's contract: each pointer is null or may be written.
                unsafe { $crate::out::put(one, first).and_then(|()| $crate::out::put(two, second)) }
            })
        }
    )*};
}

/// Exports functions that fill in a structure, of which the caller says the version: `fn NAME(TYPE, VERSION) = |gpu, own|
/// OUTCOME;`.
macro_rules! versioned {
    ($(fn $name:ident($type:ty, $version:literal) = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t,
            value: *mut $type,
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::call::device(stringify!($name), device, |gpu| {
                // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
                let [own] = unsafe { $crate::out::items(value, 1) }? else {
                    return Err($crate::code::Code::INVALID_ARGUMENT);
                };
                if own.version != $crate::exports::version_of::<$type>($version) {
                    return Err($crate::code::Code::ARGUMENT_VERSION_MISMATCH);
                }
                let answer: fn(&$crate::call::Gpu, &mut $type) -> $crate::code::Outcome = $answer;
                answer(gpu, own)
            })
        }
    )*};
}

/// Exports functions that ask a GPU for a text: `fn NAME = |gpu| RESULT;`.
macro_rules! one_text {
    ($(fn $name:ident = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t,
            text: *mut std::ffi::c_char,
            length: std::ffi::c_uint,
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::call::device(stringify!($name), device, |gpu| {
                let answer: fn(&$crate::call::Gpu) -> Result<&str, $crate::code::Code> = $answer;
                // SAFETY: NVML's contract: the pointer is null or has room for `length` bytes.
                unsafe { $crate::out::put_text(text, length, answer(gpu)?) }
            })
        }
    )*};
}

pub(crate) use {one_text, one_value, two_values, versioned};

/// `NVML_STRUCT_VERSION`: the version field of a structure.
const fn version_of<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}
