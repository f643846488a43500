//! NVML's interface, by subject. Names, types and meanings are those of `nvml.h`.

mod accounting;
mod buffers;
mod clocks;
mod ecc;
mod events;
mod fabric;
mod fans;
mod fields;
mod gpm;
mod handles;
mod identity;
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

/// Exports functions that ask a GPU for a text: `fn NAME = |gpu| TEXT;`.
macro_rules! one_text {
    ($(fn $name:ident = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t,
            text: *mut std::ffi::c_char,
            length: std::ffi::c_uint,
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::call::device(stringify!($name), device, |gpu| {
                let answer: fn(&$crate::call::Gpu) -> &str = $answer;
                // SAFETY: NVML's contract: the pointer is null or has room for `length` bytes.
                unsafe { $crate::out::put_text(text, length, answer(gpu)) }
            })
        }
    )*};
}

pub(crate) use {one_text, one_value};

/// `NVML_STRUCT_VERSION`: the version field of a structure.
const fn version_of<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}
