//! The exports that are generated from the tables of queries. Each export has the name and
//! parameters of a row in a table, and answers the query in that row.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

use gpumon_probe::vendor::nvml::query::{Code as ProbeCode, Query, SystemQuery};
use nvml_wrapper_sys::bindings::{self as sys, nvmlDevice_t, nvmlReturn_t};

use crate::{
    answers, call,
    code::Code,
    given::{self, Answered, Filled, RemappedRowsInfo, ShortText, UnrepairableMemory, UntimedPage},
    out,
};

/// Generates the exports of all rows.
macro_rules! exports_of_queries {
    ($(
        $(#[$doc:meta])*
        $query:ident $(($($argument:ident: $kind:ty),+))?
        $(: $($shape:ident $(<$of:ty>)? = $symbol:ident)|+)? $(=> $method:ident)?
        $(, $attribute:ident $($cost:literal)? $(for $each:expr)?)*;
    )*) => {
        $(exports_of_query! {
            $query ($($($argument),+)?) $($([$shape $($of)?] $symbol)+)?
        })*
    };
}

macro_rules! exports_of_query {
    ($query:ident $arguments:tt $($shape:tt $symbol:ident)*) => {
        $(export! { $symbol $shape ($query $arguments) })*
    };
}

/// Exports a function by its signature. The functions in the first lines do more than a query. They
/// are not exported here, and each has its own code elsewhere.
macro_rules! export {
    (nvmlDeviceGetGpuFabricInfoV $($rest:tt)*) => {};
    (nvmlDeviceGetNvLinkInfo $($rest:tt)*) => {};
    (nvmlDeviceGetPcieThroughput $($rest:tt)*) => {};
    ($symbol:ident [Processes] $($rest:tt)*) => {};
    ($symbol:ident [ShortProcesses] $($rest:tt)*) => {};
    ($symbol:ident [RetiredPages] $($rest:tt)*) => {};

    ($symbol:ident [Out $of:ty] $query:tt) => {
        values! { $symbol part [handle] [] [a] $of, $query }
    };
    ($symbol:ident [Out2 $of:ty] $query:tt) => {
        values! { $symbol part [handle] [] [a b] $of, $query }
    };
    ($symbol:ident [Out3 $of:ty] $query:tt) => {
        values! { $symbol part [handle] [] [a b c] $of, $query }
    };
    ($symbol:ident [Out4 $of:ty] $query:tt) => {
        values! { $symbol part [handle] [] [a b c d] $of, $query }
    };
    ($symbol:ident [Of $of:ty] $query:tt) => {
        values! { $symbol part [handle] [one] [a] $of, $query }
    };
    ($symbol:ident [Of2 $of:ty] $query:tt) => {
        values! { $symbol part [handle] [one two] [a] $of, $query }
    };
    ($symbol:ident [Of3 $of:ty] $query:tt) => {
        values! { $symbol part [handle] [one two three] [a] $of, $query }
    };
    ($symbol:ident [System $of:ty] $query:tt) => {
        values! { $symbol system [] [] [a] $of, $query }
    };
    ($symbol:ident [SystemOf $of:ty] $query:tt) => {
        values! { $symbol system [] [one] [a] $of, $query }
    };
    ($symbol:ident [Check] $query:tt) => {
        function! { $symbol part [handle] [] [] $query |answered| { answered.check_is_empty() } }
    };
    ($symbol:ident [Text] $query:tt) => {
        text! { $symbol part [handle] [] $query }
    };
    ($symbol:ident [TextOf] $query:tt) => {
        text! { $symbol part [handle] [one] $query }
    };
    ($symbol:ident [SystemText] $query:tt) => {
        text! { $symbol system [] [] $query }
    };
    ($symbol:ident [SystemTextOf] $query:tt) => {
        text! { $symbol system [] [one] $query }
    };
    ($symbol:ident [List $of:ty] $query:tt) => {
        list! { $symbol [] $of, $query }
    };
    ($symbol:ident [ListOf $of:ty] $query:tt) => {
        list! { $symbol [one] $of, $query }
    };
}

macro_rules! values {
    (
        $symbol:ident $about:ident [$($handle:ident)?] [$($one:ident)*] [$($a:ident)+]
        $of:ty, $query:tt
    ) => {
        function! {
            $symbol $about [$($handle)?] [$($one)*] [$($a: *mut $of),+] $query
            // SAFETY: by NVML's contract, each pointer is null or points to a value, with its
            // version filled in if it has one.
            { $(unsafe { check_version($a) }?;)+ }
            |answered| {
                let count = [$(stringify!($a)),+].len();
                for (place, value) in [$($a),+].into_iter().enumerate() {
                    // SAFETY: by NVML's contract, each pointer is null or points to a value.
                    unsafe { answered.write_output_value(value, place, count) }?;
                }
                Ok(())
            }
        }
    };
}

macro_rules! text {
    ($symbol:ident $about:ident [$($handle:ident)?] [$($one:ident)?] $query:tt) => {
        function! {
            $symbol $about [$($handle)?] [$($one)?] [text: *mut c_char, length: c_uint] $query
            // SAFETY: by NVML's contract, the pointer is null or has room for `length` bytes.
            |answered| { unsafe { out::put_text(text, length, answered.text()?) } }
        }
    };
}

macro_rules! list {
    ($symbol:ident [$($one:ident)?] $of:ty, $query:tt) => {
        function! {
            $symbol part [handle] [$($one)?] [count: *mut c_uint, list: *mut $of] $query
            // SAFETY: by NVML's contract, `count` may be read and written, and `list` is null or
            // has room for `*count` items.
            |answered| { unsafe { out::put_list(list, count, answered.list::<$of>()?) } }
        }
    };
}

/// Exports a function with its handle, the numbers of its query, and its outputs.
macro_rules! function {
    (
        $symbol:ident $about:ident [$($handle:ident)?] [$($number:ident)*]
        [$($parameter:ident: $type:ty),*] $query:tt $($check:block)? |$answered:ident| $body:block
    ) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $symbol(
            $($handle: nvmlDevice_t,)? $($number: c_uint,)* $($parameter: $type),*
        ) -> nvmlReturn_t {
            let numbers: &[c_uint] = &[$($number),*];
            let given = given::$about(stringify!($symbol), $($handle,)? numbers);
            call::$about(stringify!($symbol), $($handle,)? |asked| {
                $($check)?
                let $answered = Answered::new(given, || {
                    answer!($about asked, query!($about numbers $query)?)
                })?;
                $body
            })
        }
    };
}

macro_rules! answer {
    (part $gpu:ident, $query:expr) => {
        answers::answer_gpu_or_mig($gpu, $query)
    };
    (system $session:ident, $query:expr) => {
        answers::answer_system($session, $query)
    };
}

/// Builds the query of a row from the numbers of a call. Missing numbers are 0.
macro_rules! query {
    (part $numbers:ident ($query:ident $arguments:tt)) => {
        query!(Query $query $numbers $arguments)
    };
    (system $numbers:ident ($query:ident $arguments:tt)) => {
        query!(SystemQuery $query $numbers $arguments)
    };
    ($enum:ident $query:ident $numbers:ident ()) => {
        require_zero_arguments($enum::$query, $numbers)
    };
    ($enum:ident $query:ident $numbers:ident ($_:ident)) => {
        require_zero_arguments($enum::$query($numbers[0]), &$numbers[1..])
    };
    ($enum:ident $query:ident $numbers:ident ($_:ident, $__:ident)) => {
        require_zero_arguments($enum::$query($numbers[0], $numbers[1]), &$numbers[2..])
    };
    ($enum:ident $query:ident $numbers:ident ($_:ident, $__:ident, $___:ident)) => {
        require_zero_arguments($enum::$query($numbers[0], $numbers[1], $numbers[2]), &$numbers[3..])
    };
}

fn require_zero_arguments<Q>(query: Q, others: &[c_uint]) -> Result<Q, ProbeCode> {
    if others.iter().all(|number| *number == 0) {
        Ok(query)
    } else {
        Err(ProbeCode::INVALID_ARGUMENT)
    }
}

/// Returns an error if the version in a structure is not that of its type.
///
/// # Safety
/// The pointer is null or points to a value, with its version filled in if it has one.
unsafe fn check_version<T: Filled>(value: *mut T) -> Result<(), Code> {
    let Some(version) = T::VERSION else {
        return Ok(());
    };
    if value.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: by this function's contract, the value begins with its version.
    if unsafe { value.cast::<c_uint>().read() } == super::struct_version_field::<T>(version) {
        Ok(())
    } else {
        Err(Code::ARGUMENT_VERSION_MISMATCH)
    }
}

gpumon_probe::nvml_queries! { exports_of_queries }
gpumon_probe::nvml_system_queries! { exports_of_queries }
