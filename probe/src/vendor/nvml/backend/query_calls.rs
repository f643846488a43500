//! The NVML calls that each query makes.

use std::path::Path;

use nvml_wrapper_sys::bindings as sys;

use super::{
    NvmlBackend,
    ffi::{self, Device, Function, IntoValue, Number, Plain, Shape, function as f, numbers, text},
};
use crate::{
    model::sysfs_device_path,
    vendor::{
        drm::{Attributes, parse_pcie_generation},
        nvml::query::{Answer, Code, Query as Q, Subject, SystemQuery, Value},
    },
};

/// The maximum number of MIG devices. This is more than any GPU has; NVML supports 7.
const MAX_MIG_DEVICES: u32 = 64;

/// Each value of `nvmlPerfPolicyType_t` below this number has a field. The IDs of these fields are
/// consecutive.
const POLICY_FIELD_COUNT: u32 = 6;

/// The value of `NVML_CLOCK_ID_CUSTOMER_BOOST_MAX`.
const CUSTOMER_BOOST_MAX: u32 = 3;

/// Finds a query's row in a table of queries. Then calls the macro `$row` with the function names
/// or the method name from the row, and with the query's arguments.
macro_rules! answer_by_row {
    (
        $query:ident $row:ident $enum:ident
        $(
            $(#[$doc:meta])*
            $name:ident $(($($argument:ident: $kind:ty),+))?
            $(: $($shape:ident $(<$of:ty>)? = $symbol:ident)|+)? $(=> $method:ident)?
            $(, $attribute:ident $($cost:literal)? $(for $each:expr)?)*;
        )*
    ) => {
        match $query {
            $($enum::$name $(($($argument),+))? => {
                $row!([$($($symbol)+)?] [$($method)?] ($($($argument),+)?))
            })*
        }
    };
}

/// Runs a query about the machine and returns its answer.
pub(super) fn answer_system(library: &ffi::Library, query: SystemQuery) -> Answer {
    macro_rules! row {
        ([$symbol:ident] [] ($($argument:ident),*)) => {
            library.answer_system(&f::$symbol, &[$($argument),*])
        };
        ([] [$method:ident] ($($argument:ident),*)) => {
            $method(library, $($argument),*)
        };
    }
    crate::nvml_system_queries! { answer_by_row query row SystemQuery }
}

fn gpus_near_cpu(library: &ffi::Library, cpu: u32) -> Answer {
    list_indices(library, &library.gpus_near_cpu(cpu)?)
}

fn list_indices(library: &ffi::Library, devices: &[Device]) -> Answer {
    let index = |device: &Device| library.get_one(&f::nvmlDeviceGetIndex, *device, &[]);
    let indices: Vec<u32> = devices.iter().map(index).collect::<Result<_, _>>()?;
    Ok(numbers(indices))
}

/// An open GPU or MIG device that is queried.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) backend: &'a NvmlBackend,
    pub(super) subject: Subject,
    pub(super) device: Device,
}

impl<'a> Target<'a> {
    pub(super) fn answer(self, query: Q) -> Answer {
        macro_rules! row {
            ([$symbol:ident] [] ($($argument:ident),*)) => {
                self.ask(&f::$symbol, &[$($argument),*])
            };
            ([$($symbol:ident)+] [] ($($argument:ident),*)) => {{
                let of: &[u32] = &[$($argument),*];
                self.ask_newest(query, &[$(&|| self.ask(&f::$symbol, of)),+])
            }};
            ([] [$method:ident] ($($argument:ident),*)) => {
                self.$method($($argument),*)
            };
        }
        crate::nvml_queries! { answer_by_row query row Q }
    }

    fn library(self) -> &'a ffi::Library {
        self.backend.library
    }

    fn ask<S: Shape<Filled: IntoValue>>(self, function: &Function<S>, of: &[u32]) -> Answer {
        let filled = self.library().get(function, self.device, of)?;
        Ok(filled.into_value())
    }

    /// Calls the newest of `functions` that the driver has.
    fn ask_newest(self, query: Q, functions: &[&dyn Fn() -> Answer]) -> Answer {
        self.backend
            .find_gpu(self.subject.gpu)?
            .call_newest_function((self.subject.mig, query), functions)
    }

    fn bus_id(self) -> Answer {
        let info: sys::nvmlPciInfo_t =
            self.library()
                .get_one(&f::nvmlDeviceGetPciInfo_v3, self.device, &[])?;
        Ok(Value::Text(text(&info.busId)))
    }

    fn remote_bus_id(self, link: u32) -> Answer {
        let function = &f::nvmlDeviceGetNvLinkRemotePciInfo_v2;
        let info = self.library().get_one(function, self.device, &[link])?;
        Ok(Value::Text(text(&info.busId)))
    }

    /// Returns an error, because no library exports a function for the part number.
    #[expect(
        clippy::unused_self,
        reason = "the method is called like the other methods"
    )]
    fn gpu_part_number(self) -> Answer {
        Err(Code::FUNCTION_NOT_FOUND)
    }

    fn memory_info(self) -> Answer {
        self.ask_newest(
            Q::MemoryInfo,
            &[&|| self.ask(&f::nvmlDeviceGetMemoryInfo_v2, &[]), &|| {
                let function = &f::nvmlDeviceGetMemoryInfo;
                let old = self.library().get_one(function, self.device, &[])?;
                let [total, free, used] = [old.total, old.free, old.used].map(i128::from);
                Ok(Value::Numbers(vec![total, -1, free, used]))
            }],
        )
    }

    fn fan_speed_rpm(self, fan: u32) -> Answer {
        let asked = sys::nvmlFanSpeedInfo_t {
            fan,
            ..Plain::make_blank()
        };
        let function = &f::nvmlDeviceGetFanSpeedRPM;
        let info = self
            .library()
            .call_with_value(function, self.device, asked)?;
        Ok(numbers([info]))
    }

    fn customer_boost_clock(self, kind: u32) -> Answer {
        self.ask(&f::nvmlDeviceGetClock, &[kind, CUSTOMER_BOOST_MAX])
    }

    /// Reads the violation time from a field, or with a function if the driver lacks the field. The
    /// driver answers the field from a cache that is at most 100 ms old.
    fn violation_status(self, policy: u32) -> Answer {
        self.ask_newest(
            Q::ViolationStatus(policy),
            &[&|| self.violation_time(policy), &|| {
                self.ask(&f::nvmlDeviceGetViolationStatus, &[policy])
            }],
        )
    }

    fn violation_time(self, policy: u32) -> Answer {
        if policy >= POLICY_FIELD_COUNT {
            return Err(Code::FUNCTION_NOT_FOUND);
        }
        let field = ffi::Field {
            id: sys::field_id::NVML_FI_DEV_PERF_POLICY_POWER.saturating_add(policy),
            scope: 0,
        };
        match self.library().read_fields(self.device, &[field])?.pop() {
            Some(Ok((at_us, Number::Whole(ns)))) => Ok(Value::Numbers(vec![at_us.into(), ns])),
            // Drivers that do not know the field return this code. It is converted, so that the
            // function is called instead.
            Some(Err(Code::NOT_SUPPORTED)) => Err(Code::FUNCTION_NOT_FOUND),
            Some(Err(code)) => Err(code),
            _ => Err(Code::UNKNOWN),
        }
    }

    fn field(self, id: u32, scope: u32) -> Answer {
        let mut answers = self.read_fields(&[ffi::Field { id, scope }]);
        answers.pop().unwrap_or(Err(Code::UNKNOWN))
    }

    /// Reads several fields in one call, and returns their values in the same order.
    pub(super) fn read_fields(self, fields: &[ffi::Field]) -> Vec<Answer> {
        let value = |number| match number {
            Number::Whole(whole) => Value::Numbers(vec![whole]),
            Number::Real(real) => Value::Reals(vec![real]),
        };
        match self.library().read_fields(self.device, fields) {
            Ok(numbers) => numbers
                .into_iter()
                .map(|number| number.map(|(_at, number)| value(number)))
                .collect(),
            Err(code) => vec![Err(code); fields.len()],
        }
    }

    /// Returns the driver's samples of the `nvmlSamplingType_t` `kind` after `since_us`, in
    /// microseconds since 1970.
    fn list_samples(self, kind: u32, since_us: u64) -> Answer {
        let samples = self.library().read_samples(self.device, kind, since_us)?;
        let whole: Option<Vec<[i128; 2]>> = samples
            .iter()
            .map(|(at, number)| match number {
                Number::Whole(whole) => Some([(*at).into(), *whole]),
                Number::Real(_) => None,
            })
            .collect();
        let real = |number: &Number| match number {
            Number::Whole(whole) => *whole as f64,
            Number::Real(real) => *real,
        };
        Ok(match whole {
            Some(whole) => Value::Numbers(whole.concat()),
            None => Value::Reals(
                samples
                    .iter()
                    .flat_map(|(at, number)| [*at as f64, real(number)])
                    .collect(),
            ),
        })
    }

    fn host_max_pcie_generation(self) -> Answer {
        let bus_id = self.bus_id()?;
        let bus_id = bus_id.text().unwrap_or_default();
        read_port_generation(&self.backend.sys_root, bus_id)
    }

    fn cpu_affinity(self) -> Answer {
        self.library().cpu_affinity(self.device).map(numbers)
    }

    fn memory_affinity(self) -> Answer {
        self.library().memory_affinity(self.device).map(numbers)
    }

    fn nearest_gpus(self, level: u32) -> Answer {
        list_indices(
            self.library(),
            &self.library().nearest_gpus(self.device, level)?,
        )
    }

    fn common_ancestor(self, other: u32) -> Answer {
        let other = self.backend.find_device(Subject::from_gpu(other))?;
        let level = self.library().common_ancestor(self.device, other)?;
        Ok(Value::from_number(level))
    }

    fn p2p_status(self, other: u32, capability: u32) -> Answer {
        let other = self.backend.find_device(Subject::from_gpu(other))?;
        let status = self.library().p2p_status(self.device, other, capability)?;
        Ok(Value::from_number(status))
    }

    fn process_utilization(self, since_us: u64) -> Answer {
        let (library, device) = (self.library(), self.device);
        match library.processes_utilization(device, since_us) {
            Err(Code::FUNCTION_NOT_FOUND) => {
                library.process_utilization(device, since_us).map(numbers)
            }
            samples => samples.map(numbers),
        }
    }

    /// Returns the indices of all existing MIG devices. The list is empty if MIG mode is off.
    fn mig_devices(self) -> Answer {
        let function = &f::nvmlDeviceGetMaxMigDeviceCount;
        let most: u32 = self.library().get_one(function, self.device, &[])?;
        let most = most.min(MAX_MIG_DEVICES);
        let (mut there, mut failure) = (Vec::new(), None);
        for index in 0..most {
            match self
                .backend
                .find_device(Subject::from_mig(self.subject.gpu, index))
            {
                Ok(_) => there.push(index.into()),
                Err(Code::NOT_FOUND) => {}
                Err(code) => failure = Some(code),
            }
        }
        // An error is returned only if no device was found. If this user may not access some of the
        // devices, the others are still listed.
        failure
            .filter(|_| there.is_empty())
            .map_or(Ok(Value::Numbers(there)), Err)
    }

    fn mig_instance(self) -> Answer {
        let id = |function| self.library().get_one(function, self.device, &[]);
        let ids = [
            id(&f::nvmlDeviceGetGpuInstanceId)?,
            id(&f::nvmlDeviceGetComputeInstanceId)?,
        ];
        Ok(numbers(ids))
    }
}

/// Returns the highest PCIe generation of the port above a device. NVML does not report it, so it
/// is read from the kernel. `bus_id` identifies the device, and `sys_root` is `/sys` except in
/// tests. Returns [`Code::NOT_SUPPORTED`] if there is no port above the device, as in virtual
/// machines.
fn read_port_generation(sys_root: &Path, bus_id: &str) -> Answer {
    // The sysfs entry is a symbolic link into the device tree, where the parent folder is the port.
    let place = sysfs_device_path(sys_root, bus_id)
        .canonicalize()
        .map_err(|_| Code::NOT_SUPPORTED)?;
    let port = place.parent().ok_or(Code::NOT_SUPPORTED)?;
    let speed = Attributes::new(port).read_text("max_link_speed");
    let speed = speed.map_err(|_| Code::NOT_SUPPORTED)?;
    parse_pcie_generation(&speed)
        .map(Value::from_number)
        .ok_or(Code::NOT_SUPPORTED)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn pcie_generation_comes_from_port_above_gpu() {
        let root = std::env::temp_dir().join(format!("gpumon-port-{}", std::process::id()));
        let port = root.join("pci0000:3a/0000:3a:00.0");
        let (devices, own) = (root.join("bus/pci/devices"), port.join("0000:3b:00.0"));
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(&devices).unwrap();
        symlink(&own, devices.join("0000:3b:00.0")).unwrap();
        symlink(&port, devices.join("0000:3a:00.0")).unwrap();
        fs::write(own.join("max_link_speed"), "16.0 GT/s PCIe\n").unwrap();
        fs::write(port.join("max_link_speed"), "32.0 GT/s PCIe\n").unwrap();
        assert_eq!(
            read_port_generation(&root, "00000000:3B:00.0"),
            Ok(Value::from_number(5))
        );
        assert_eq!(
            read_port_generation(&root, "00000000:3A:00.0"),
            Err(Code::NOT_SUPPORTED),
            "on the root of the bus"
        );
        assert_eq!(
            read_port_generation(&root, "00000000:01:00.0"),
            Err(Code::NOT_SUPPORTED)
        );
        fs::remove_dir_all(root).unwrap();
    }
}
