//! The functions of NVML by topic. Names, types and meanings are those of `nvml.h`.

mod affinity;
mod buffers;
mod clocks;
mod events;
mod fabric;
mod fields;
mod gpm;
mod handles;
mod identity;
mod load;
mod mig;
mod nvlink;
mod pcie;
mod processes;
mod repairs;
mod system;
mod table;
mod topology;

/// Exports functions that write their results through the caller's pointers: `fn NAME(ABOUT
/// |given|, inputs) -> OUTPUT { RESULT }`.
///
/// `ABOUT` is a function of [`call`](crate::call) that finds the subject of the call, and `given`
/// is the subject. An output is a value. `fills own: TYPE, VERSION` fills in a structure whose
/// version is set by the caller.
macro_rules! exports {
    () => {};
    ($(#[$meta:meta])* fn $name:ident(system |$given:tt| $(, $input:ident: $of:ty)*) $($rest:tt)*) => {
        $crate::exports::exports! {
            @output [$(#[$meta])* $name] [$($input: $of,)*] [$($input),*] [system(|$given|)] $($rest)*
        }
    };
    ($(#[$meta:meta])* fn $name:ident($about:ident |$($given:tt),+| $(, $input:ident: $of:ty)*) $($rest:tt)*) => {
        $crate::exports::exports! {
            @output [$(#[$meta])* $name]
            [handle: nvml_wrapper_sys::bindings::nvmlDevice_t, $($input: $of,)*] [$($input),*]
            [$about(handle, |$($given),+|)] $($rest)*
        }
    };
    (@output $what:tt [$($inputs:tt)*] $arguments:tt $about:tt -> $value:ty $body:block $($rest:tt)*) => {
        $crate::exports::exports! {
            @function $what [$($inputs)* value: *mut $value] $arguments $about answer
            // SAFETY: by NVML's contract, the pointer is null or may be written.
            { unsafe { $crate::out::write_output_value(value, $crate::given::answer_value_or_else::<$value>(answer, || $body)?) } }
        }
        $crate::exports::exports! { $($rest)* }
    };
    (
        @output $what:tt [$($inputs:tt)*] $arguments:tt $about:tt
        fills $own:ident: $type:ty, $version:literal $body:block $($rest:tt)*
    ) => {
        $crate::exports::exports! {
            @function $what [$($inputs)* own: *mut $type] $arguments $about answer
            {
                // SAFETY: by NVML's contract, the pointer is null or points to a structure with its
                // version filled in.
                let [$own] = unsafe { $crate::out::output_items_mut(own, 1) }? else {
                    return Err($crate::code::Code::INVALID_ARGUMENT);
                };
                if $own.version != $crate::exports::struct_version_field::<$type>($version) {
                    return Err($crate::code::Code::ARGUMENT_VERSION_MISMATCH);
                }
                if let Some(answer) = answer { answer.fill($own) } else { $body }
            }
        }
        $crate::exports::exports! { $($rest)* }
    };
    (
        @function [$(#[$meta:meta])* $name:ident] [$($parameters:tt)*] [$($argument:ident),*]
        [$about:ident($($handle:ident,)? |$($given:tt),+|)] $answer:ident $body:block
    ) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($parameters)*) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            let arguments = [$($crate::exports::Argument::to_u32($argument)),*];
            let $answer = $crate::given::$about(stringify!($name), $($handle,)? &arguments);
            $crate::call::$about(stringify!($name), $($handle,)? |$($given),+| $body)
        }
    };
}

pub(crate) use exports;
pub(crate) use identity::{make_pci_info, to_padded_c_array};
pub(crate) use load::encoder_stats;
pub(crate) use system::system_process_name;

/// An argument of a function, as a number. A scenario can have a separate answer for each value of
/// the argument.
trait Argument {
    fn to_u32(self) -> u32;
}

impl Argument for std::ffi::c_uint {
    fn to_u32(self) -> u32 {
        self
    }
}

/// A handle of a second GPU. A scenario cannot give different answers for different pairs of GPUs,
/// so every handle has the same number.
impl Argument for nvml_wrapper_sys::bindings::nvmlDevice_t {
    fn to_u32(self) -> u32 {
        0
    }
}

/// Returns the version field of a structure, like `NVML_STRUCT_VERSION`.
const fn struct_version_field<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}
