//! Loading of NVML's library, and lookup of its functions by the names and types in `nvml.h`.

use std::{
    ffi::{c_char, c_uint},
    marker::PhantomData,
    mem::{MaybeUninit, transmute_copy},
    sync::OnceLock,
};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::vendor::nvml::query::Code;

/// The address of a function whose type is not known.
type Address = unsafe extern "C" fn();

/// A loaded library, which stays open until the process ends. A function is looked up only when it
/// is first used, so that loading is fast. Its address is then kept, because a lookup at each call
/// took 5% of the sampler's time.
pub(crate) struct Library {
    opened: libloading::Library,
    /// The addresses of functions. `None` means that the library lacks a function.
    addresses: Box<[OnceLock<Option<Address>>]>,
}

/// A description of a function's type.
pub(crate) trait Signature {
    type Call: Copy;
}

/// An NVML function: its name, and its type in `nvml.h`.
pub(crate) struct Function<S> {
    /// The function's name, terminated by a NUL character.
    name: &'static str,
    place: usize,
    kind: PhantomData<S>,
}

impl<S: Signature> Function<S> {
    /// Creates the description of a function.
    ///
    /// # Safety
    /// NVML's function called `name` must have the type `S::Call`, and no other function may have
    /// the same `place`.
    pub(super) const unsafe fn new(name: &'static str, place: usize) -> Self {
        assert!(size_of::<S::Call>() == size_of::<Address>());
        Self {
            name,
            place,
            kind: PhantomData,
        }
    }
}

/// The driver's handle for a GPU or MIG device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device(pub(super) nvmlDevice_t);

// SAFETY: any thread can use NVML's handles. Only NVML dereferences the pointer.
unsafe impl Send for Device {}
// SAFETY: any thread can use NVML's handles. Only NVML dereferences the pointer.
unsafe impl Sync for Device {}

/// A type that an NVML call can fill in.
///
/// # Safety
/// All zeros must be a valid value of the type. If the type has a version, it must begin with the
/// version.
pub(crate) unsafe trait Plain: Copy {
    /// The version of the type's layout, which the caller fills in, or `None` if the type has no
    /// version.
    const VERSION: Option<u32> = None;
    /// An older version of the structure, for drivers that lack the current version. Its layout
    /// must be the same as the beginning of the current layout.
    const OLDER: Option<u32> = None;

    /// Returns a value that consists of zeros, except for the version.
    fn make_blank() -> Self {
        match Self::VERSION {
            Some(version) => Self::make_blank_of_version(version_of::<Self>(version)),
            // SAFETY: the trait requires that all zeros form a valid value.
            None => unsafe { MaybeUninit::<Self>::zeroed().assume_init() },
        }
    }

    /// Returns a value that consists of zeros, except for the given version. The type must have a
    /// version.
    fn make_blank_of_version(version: u32) -> Self {
        assert!(Self::VERSION.is_some());
        let mut value = MaybeUninit::<Self>::zeroed();
        // SAFETY: the trait requires that the type begins with its version, and that all zeros form
        // a valid value.
        unsafe {
            value.as_mut_ptr().cast::<c_uint>().write(version);
            value.assume_init()
        }
    }
}

/// Returns a structure's `NVML_STRUCT_VERSION`, which combines its size and layout version.
pub(crate) const fn version_of<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | (version << 24)
}

impl Library {
    /// Creates a library with room for the addresses of `count` functions.
    pub(super) fn with_functions(opened: libloading::Library, count: usize) -> Self {
        let addresses = (0..count).map(|_| OnceLock::new()).collect();
        Self { opened, addresses }
    }

    pub(crate) fn find_function<S: Signature>(
        &self,
        function: &Function<S>,
    ) -> Result<S::Call, Code> {
        let address = self.addresses[function.place].get_or_init(|| {
            // SAFETY: the function is not called through this placeholder type.
            let symbol = unsafe { self.opened.get::<Address>(function.name.as_bytes()) };
            symbol.ok().map(|symbol| *symbol)
        });
        let address = address.ok_or(Code::FUNCTION_NOT_FOUND)?;
        // SAFETY: the creator of the `Function` has guaranteed that the library's function has this
        // type, and both types are function pointers.
        Ok(unsafe { transmute_copy::<Address, S::Call>(&address) })
    }

    pub(super) fn call_with_blank_value<S: Signature, T: Plain>(
        &self,
        function: &Function<S>,
        call: impl FnOnce(S::Call, &mut T) -> nvmlReturn_t,
    ) -> Result<T, Code> {
        let mut value = T::make_blank();
        check_code(call(self.find_function(function)?, &mut value))?;
        Ok(value)
    }
}

pub(super) fn check_code(code: nvmlReturn_t) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// Returns the text in a C array, up to the first NUL character.
pub(crate) fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| *byte as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use nvml_wrapper_sys::bindings::nvmlMarginTemperature_v1_t;

    use super::*;

    #[test]
    fn blank_structure_contains_only_its_version() {
        let blank = nvmlMarginTemperature_v1_t::make_blank();
        assert_eq!((blank.version, blank.marginTemperature), (0x0100_0008, 0));
        assert_eq!(u64::make_blank(), 0);
    }

    #[test]
    fn text_ends_at_nul_or_array_end() {
        let letters = |text: &[u8]| {
            text.iter()
                .map(|byte| c_char::try_from(*byte).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(text(&letters(b"N/A\0rest")), "N/A");
        assert_eq!(text(&letters(b"full")), "full");
    }
}
