//! The modules of a CUDA device: PTX compiled by the driver, and the entry points found in it.

use super::error::{DeviceError, DriverError};
use super::limits::KernelResources;
use super::{Version, driver, ptx};
use cust::error::CudaError;
use cust::function::{Function, FunctionAttribute};
use cust::module::Module;
use std::collections::HashMap;
use std::ffi::CString;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The PTX of this crate's kernels.
pub(super) const KERNELS: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// The dynamic and static shared memory, in bytes, that a launch may have without asking.
const SHARED_BYTES_WITHOUT_ASKING: u32 = 48 << 10;

/// Every function here wants the device's context to be current.
#[derive(Debug)]
pub(super) struct Modules {
    device: String,
    compute_capability: Version,
    driver: Version,
    loaded: RwLock<Loaded>,
}

#[derive(Debug, Default)]
struct Loaded {
    // In front of the modules, which they point into.
    entry_points: HashMap<String, Arc<EntryPoint>>,
    modules: Vec<Module>,
    /// Those of this crate's kernels that were launched, each by itself: to compile all of them takes seconds.
    kernels: Vec<Module>,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub(super) struct EntryPoint {
    pub name: Arc<str>,
    pub resources: KernelResources,
    /// A function of one of the modules, which live as long as the `Modules` that handed this out.
    pub function: Function<'static>,
    more_shared_allowed: AtomicBool,
}

impl Modules {
    /// `device` is for messages.
    pub fn new(device: String, compute_capability: Version, driver: Version) -> Self {
        Self {
            device,
            compute_capability,
            driver,
            loaded: RwLock::default(),
        }
    }

    /// Adds a module.
    pub fn load(&self, text: &str) -> Result<(), DeviceError> {
        let module = self.compile(text)?;
        self.write().modules.push(module);
        Ok(())
    }

    /// The entry point of that name: in the module loaded first that has it, else among this crate's own kernels, each of
    /// which is compiled when it is first wanted.
    pub fn entry_point(&self, name: &str) -> Result<Arc<EntryPoint>, DeviceError> {
        if let Some(entry_point) = self.read().entry_points.get(name) {
            return Ok(Arc::clone(entry_point));
        }
        let mut loaded = self.write();
        if let Some(entry_point) = loaded.entry_points.get(name) {
            return Ok(Arc::clone(entry_point));
        }
        // A zero byte would end the name in the driver's eyes.
        let found = if name.contains('\0') {
            None
        } else {
            self.find(&mut loaded, name)?
        };
        let entry_point = Arc::new(found.ok_or_else(|| DeviceError::NoKernel {
            kernel: name.to_owned(),
            loaded: loaded.modules.len(),
        })?);
        loaded
            .entry_points
            .insert(name.to_owned(), Arc::clone(&entry_point));
        Ok(entry_point)
    }

    fn find(&self, loaded: &mut Loaded, name: &str) -> Result<Option<EntryPoint>, DeviceError> {
        for module in &loaded.modules {
            if let Some(entry_point) = self.find_in(module, name)? {
                return Ok(Some(entry_point));
            }
        }
        let Some(text) = ptx::one_entry(KERNELS, name, self.compute_capability) else {
            return Ok(None);
        };
        let kernel = self.compile(&text)?;
        let entry_point = self.find_in(&kernel, name)?;
        loaded.kernels.push(kernel);
        Ok(entry_point)
    }

    fn find_in(&self, module: &Module, name: &str) -> Result<Option<EntryPoint>, DeviceError> {
        match module.get_function(name) {
            Ok(function) => self.describe(name, function).map(Some),
            Err(CudaError::NotFound) => Ok(None),
            Err(error) => Err(self.failed("look for a kernel in a module", error)),
        }
    }

    fn describe(&self, name: &str, function: Function<'_>) -> Result<EntryPoint, DeviceError> {
        let attribute = |attribute| match function.get_attribute(attribute) {
            Ok(value) => Ok(u32::try_from(value).unwrap_or(0)),
            Err(error) => Err(self.failed("tell a kernel's attribute", error)),
        };
        let resources = KernelResources {
            max_threads_per_block: attribute(FunctionAttribute::MaxThreadsPerBlock)?,
            static_shared_bytes: attribute(FunctionAttribute::SharedMemorySizeBytes)?,
        };
        Ok(EntryPoint {
            name: name.into(),
            resources,
            // SAFETY: only the lifetime changes. `Loaded` never removes a module, and the `Modules` that hand out an
            // entry point outlive its use.
            function: unsafe { mem::transmute::<Function<'_>, Function<'static>>(function) },
            more_shared_allowed: AtomicBool::new(false),
        })
    }

    fn compile(&self, text: &str) -> Result<Module, DeviceError> {
        ptx::check_driver(text, self.driver)?;
        let text = CString::new(text).map_err(|error| DeviceError::NotPtx {
            position: error.nul_position(),
        })?;
        Module::from_ptx_cstr(&text, &[]).map_err(|error| {
            let (error, log) = driver::load_failure(&text)
                .unwrap_or_else(|| (driver::describe("load a module", error), String::new()));
            DeviceError::Ptx {
                device: self.device.clone(),
                error: Box::new(error),
                log,
            }
        })
    }

    fn failed(&self, action: &'static str, error: CudaError) -> DeviceError {
        DeviceError::Driver {
            device: self.device.clone(),
            error: Box::new(driver::describe(action, error)),
        }
    }

    // A panic cannot leave the maps half changed, so a poisoned lock is as good as another.
    fn read(&self) -> RwLockReadGuard<'_, Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Loaded> {
        self.loaded.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EntryPoint {
    /// Makes a launch with that many bytes of dynamic shared memory possible, on a device that allows `most` bytes of a
    /// block in all.
    pub fn allow_shared(&self, dynamic_bytes: u32, most: u32) -> Result<(), DriverError> {
        let static_bytes = self.resources.static_shared_bytes;
        if dynamic_bytes.saturating_add(static_bytes) <= SHARED_BYTES_WITHOUT_ASKING
            || self.more_shared_allowed.load(Ordering::Relaxed)
        {
            return Ok(());
        }
        // All there is, once: then the order of launches that want different amounts does not matter. Threads that
        // come here together do the same.
        let bytes = most.saturating_sub(static_bytes);
        driver::allow_dynamic_shared(&self.function, i32::try_from(bytes).unwrap_or(i32::MAX))?;
        self.more_shared_allowed.store(true, Ordering::Relaxed);
        Ok(())
    }
}
