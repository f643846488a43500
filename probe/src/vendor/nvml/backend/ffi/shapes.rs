//! The shapes of NVML functions, which are their parameter lists. Each shape is called in exactly
//! one place.
//!
//! All handles in this module come from the library, and all memory that a call fills in outlives
//! the call.
#![allow(dead_code, reason = "a shape is a type without values")]

use std::{
    array,
    ffi::{c_char, c_uint, c_ulonglong},
    marker::PhantomData,
    ptr,
};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::{
    library::{Device, Function, Library, Plain, Signature, check_code, text},
    lists::{EntryLayout, ListedProcess, Words, list_processes, read_with_growing_buffer},
    structures::Numbers,
};
use crate::vendor::nvml::query::{Answer, Code, Value};

/// The maximum length of text. `nvidia-smi` reads the same amount of a process's command line.
const MAX_TEXT_BYTES: usize = 2048;

/// The initial capacity of a list's buffer, in items. No board has this many clocks.
const INITIAL_LIST_ITEMS: usize = 512;

/// A function that needs special handling, because its result alone does not answer a query.
pub(crate) struct Raw<F>(PhantomData<F>);

impl<F: Copy> Signature for Raw<F> {
    type Call = F;
}

/// A function's parameter list, which may consist of a device, up to three numbers, and the values
/// to fill in.
pub(crate) trait Shape: Signature {
    type Filled;

    fn fill(call: Self::Call, device: nvmlDevice_t, of: &[u32]) -> Result<Self::Filled, Code>;
}

/// Conversion of a call's results to an answer.
pub(crate) trait IntoValue {
    fn into_value(self) -> Value;
}

impl<T: Numbers, const N: usize> IntoValue for [T; N] {
    fn into_value(self) -> Value {
        T::value(&self)
    }
}

impl<T: Numbers> IntoValue for Vec<T> {
    fn into_value(self) -> Value {
        T::value(&self)
    }
}

impl IntoValue for String {
    fn into_value(self) -> Value {
        Value::Text(self)
    }
}

impl IntoValue for () {
    fn into_value(self) -> Value {
        Value::Numbers(Vec::new())
    }
}

impl Library {
    /// Calls a function about a device and returns the values that it fills in.
    pub(crate) fn get<S: Shape>(
        &self,
        function: &Function<S>,
        device: Device,
        of: &[u32],
    ) -> Result<S::Filled, Code> {
        S::fill(self.find_function(function)?, device.0, of)
    }

    /// Calls a function about the machine and returns the values that it fills in.
    pub(crate) fn get_system<S: Shape>(
        &self,
        function: &Function<S>,
        of: &[u32],
    ) -> Result<S::Filled, Code> {
        S::fill(self.find_function(function)?, ptr::null_mut(), of)
    }

    /// Calls a function that fills in one value.
    pub(crate) fn get_one<S: Shape<Filled = [T; 1]>, T>(
        &self,
        function: &Function<S>,
        device: Device,
        of: &[u32],
    ) -> Result<T, Code> {
        self.get(function, device, of).map(|[value]| value)
    }

    /// Calls a function about the machine and returns its answer.
    pub(crate) fn answer_system<S: Shape<Filled: IntoValue>>(
        &self,
        function: &Function<S>,
        of: &[u32],
    ) -> Answer {
        self.get_system(function, of).map(S::Filled::into_value)
    }
}

fn first<const N: usize>(of: &[u32]) -> [c_uint; N] {
    array::from_fn(|at| of.get(at).copied().unwrap_or(0))
}

macro_rules! with {
    ($_:ident $with:ty) => {
        $with
    };
}

/// Defines shapes in the form `Shape(device): [the device, if it is a parameter] [numbers] [values
/// that are filled in];`.
macro_rules! values {
    ($(
        $(#[$doc:meta])*
        $shape:ident($device:ident): [$($handle:ident)?] [$($number:ident)*] [$($value:ident)+];
    )*) => {$(
        $(#[$doc])*
        pub(crate) struct $shape<T>(PhantomData<T>);

        impl<T: Plain> Signature for $shape<T> {
            type Call = unsafe extern "C" fn(
                $(with!($handle nvmlDevice_t),)? $(with!($number c_uint),)*
                $(with!($value *mut T)),+
            ) -> nvmlReturn_t;
        }

        impl<T: Plain> Shape for $shape<T> {
            type Filled = [T; [$(stringify!($value)),+].len()];

            fn fill(
                call: Self::Call,
                $device: nvmlDevice_t,
                of: &[u32],
            ) -> Result<Self::Filled, Code> {
                let [$($number),*] = first(of);
                fill_values(|[$($value),+]: &mut Self::Filled| {
                    // SAFETY: the handle comes from the library, and each pointer refers to one
                    // value.
                    unsafe { call($($handle,)? $($number,)* $($value),+) }
                })
            }
        }
    )*};
}

values! {
    /// Fills in one value.
    Out(device): [device] [] [a];
    /// Fills in two values.
    Out2(device): [device] [] [a b];
    /// Fills in three values.
    Out3(device): [device] [] [a b c];
    /// Fills in four values.
    Out4(device): [device] [] [a b c d];
    /// Fills in one value for one argument.
    Of(device): [device] [what] [a];
    /// Fills in one value for two arguments.
    Of2(device): [device] [one two] [a];
    /// Fills in one value for three arguments.
    Of3(device): [device] [one two three] [a];
    /// Fills in one value about the machine.
    System(_device): [] [] [a];
    /// Fills in one value about the machine for one argument.
    SystemOf(_device): [] [what] [a];
}

/// Fills in values of the current version. If the driver does not support that version, fills in
/// values of the older version.
fn fill_values<T: Plain, const N: usize>(
    call: impl Fn(&mut [T; N]) -> nvmlReturn_t,
) -> Result<[T; N], Code> {
    let fill = |mut values: [T; N]| check_code(call(&mut values)).map(|()| values);
    match (fill([T::make_blank(); N]), T::OLDER) {
        (Err(Code::ARGUMENT_VERSION_MISMATCH), Some(older)) => {
            fill([T::make_blank_of_version(older); N])
        }
        (outcome, _) => outcome,
    }
}

macro_rules! texts {
    ($(
        $(#[$doc:meta])*
        $shape:ident($device:ident): [$($handle:ident)?] [$($number:ident)*];
    )*) => {$(
        $(#[$doc])*
        pub(crate) struct $shape;

        impl Signature for $shape {
            type Call = unsafe extern "C" fn(
                $(with!($handle nvmlDevice_t),)? $(with!($number c_uint),)* *mut c_char, c_uint
            ) -> nvmlReturn_t;
        }

        impl Shape for $shape {
            type Filled = String;

            fn fill(call: Self::Call, $device: nvmlDevice_t, of: &[u32]) -> Result<String, Code> {
                let [$($number),*] = first(of);
                let mut room = [0; MAX_TEXT_BYTES];
                // SAFETY: the handle comes from the library, and the length passed is that of the
                // buffer.
                check_code(unsafe {
                    call($($handle,)? $($number,)* room.as_mut_ptr(), MAX_TEXT_BYTES as c_uint)
                })?;
                Ok(text(&room))
            }
        }
    )*};
}

texts! {
    Text(device): [device] [];
    /// Fills in text for one argument.
    TextOf(device): [device] [what];
    /// Fills in text about the machine, without arguments.
    SystemText(_device): [] [];
    /// Fills in text about the machine for one argument.
    SystemTextOf(_device): [] [what];
}

/// Defines shapes that return lists, in the form `Shape(item): (the numbers) |call, device,
/// numbers, count, items| { the call };`.
macro_rules! lists {
    ($(
        $(#[$doc:meta])*
        $shape:ident $(<$kind:ident>)?: $item:ty, fn($($type:ty),+)
        |$call:ident, $device:ident, $what:ident| $body:expr;
    )*) => {$(
        $(#[$doc])*
        pub(crate) struct $shape $(<$kind>(PhantomData<$kind>))?;

        impl $(<$kind: Plain>)? Signature for $shape $(<$kind>)? {
            type Call = unsafe extern "C" fn($($type),+) -> nvmlReturn_t;
        }

        impl $(<$kind: Plain>)? Shape for $shape $(<$kind>)? {
            type Filled = Vec<$item>;

            fn fill(
                $call: Self::Call,
                $device: nvmlDevice_t,
                of: &[u32],
            ) -> Result<Self::Filled, Code> {
                let [$what] = first(of);
                $body
            }
        }
    )*};
}

lists! {
    /// Fills in a list and its length. The caller passes the buffer's capacity.
    List<T>: T, fn(nvmlDevice_t, *mut c_uint, *mut T) |call, device, _what| {
        // SAFETY: the handle comes from the library, and the buffer has room for `count` items.
        read_with_growing_buffer(INITIAL_LIST_ITEMS, |count, items| unsafe { call(device, count, items) })
    };
    /// Fills in a list for one argument.
    ListOf<T>: T, fn(nvmlDevice_t, c_uint, *mut c_uint, *mut T) |call, device, what| {
        // SAFETY: the handle comes from the library, and the buffer has room for `count` items.
        read_with_growing_buffer(INITIAL_LIST_ITEMS, |count, items| unsafe { call(device, what, count, items) })
    };
    /// Fills in a list of retired pages, each with a time in microseconds and an address.
    RetiredPages: [c_ulonglong; 2],
    fn(nvmlDevice_t, c_uint, *mut c_uint, *mut c_ulonglong, *mut c_ulonglong) |call, device, what| {
        let mut stamps = Vec::new();
        let pages: Vec<c_ulonglong> = read_with_growing_buffer(INITIAL_LIST_ITEMS, |count, items| {
            // SAFETY: the caller of this closure has written the number.
            stamps.resize(unsafe { count.read() } as usize, 0);
            // SAFETY: the handle comes from the library, and both buffers have room for `count`
            // items.
            unsafe { call(device, what, count, items, stamps.as_mut_ptr()) }
        })?;
        Ok(stamps.into_iter().zip(pages).map(|(at, page)| [at, page]).collect())
    };
    /// Fills in a list of processes. The list is read as words, because its structures differ
    /// between drivers.
    Processes: ListedProcess, fn(nvmlDevice_t, *mut c_uint, *mut Words) |call, device, _what| {
        // SAFETY: the handle comes from the library, and the buffer has room for `count` items.
        list_processes(EntryLayout::Known, |count, items| unsafe { call(device, count, items) })
    };
    /// Fills in a list of processes in the format of drivers before 450.
    ShortProcesses: ListedProcess, fn(nvmlDevice_t, *mut c_uint, *mut Words) |call, device, _what| {
        // SAFETY: the handle comes from the library, and the buffer has room for `count` items.
        list_processes(EntryLayout::Short, |count, items| unsafe { call(device, count, items) })
    };
}

/// A function without results, which returns only a return code.
pub(crate) struct Check;

impl Signature for Check {
    type Call = unsafe extern "C" fn(nvmlDevice_t) -> nvmlReturn_t;
}

impl Shape for Check {
    type Filled = ();

    fn fill(call: Self::Call, device: nvmlDevice_t, _of: &[u32]) -> Result<(), Code> {
        // SAFETY: the handle comes from the library.
        check_code(unsafe { call(device) })
    }
}
