//! The modules of a CUDA device: PTX compiled by the driver, and the entry points found in it.

use super::archives::{ARCHIVES, ptx_version};
use super::{driver, ptx};
use crate::device::error::{DeviceError, DriverError};
use crate::device::launches::reports::ModuleLoad;
use crate::device::properties::Version;
use crate::device::properties::limits::KernelLimits;
use cust::error::CudaError;
use cust::function::{Function, FunctionAttribute};
use cust::module::Module;
use ptx_archive::{Archive, DEPENDENT};
use std::collections::HashMap;
use std::ffi::CString;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

/// The dynamic and static shared memory, in bytes, that a launch may have without asking.
const SHARED_BYTES_WITHOUT_ASKING: u32 = 48 << 10;

/// Every function here wants the device's context to be current.
///
/// No lock is held while the driver compiles, but that of the module itself: kernels that are ready are launched
/// meanwhile.
#[derive(Debug)]
pub(super) struct Modules {
    device: String,
    compute_capability: Version,
    driver: Version,
    /// The entry points that were wanted so far.
    ready: RwLock<HashMap<String, Arc<EntryPoint>>>,
    /// What the user loaded, in that order.
    loaded: RwLock<Vec<Source>>,
    /// This crate's own kernels.
    own: Vec<LazyModules>,
    loads: Mutex<Vec<ModuleLoad>>,
}

/// The version of the driver from which on launches may be dependent everywhere, in CUDA graphs too.
const DEPENDENT_LAUNCHES: Version = Version::new(12, 3);

/// Where a user's kernels are from.
#[derive(Clone, Debug)]
enum Source {
    Module(Arc<Compiled>),
    Archive(Arc<LazyModules>),
}

/// An archive, and of its modules those that were compiled because one of their kernels was wanted.
#[derive(Debug)]
struct LazyModules {
    archive: ArchiveRef,
    /// By the module's name. A thread that compiles a module holds its lock, so that others wait for it.
    compiled: HashMap<String, Mutex<Option<Arc<Compiled>>>>,
}

/// A module that the driver has compiled.
#[derive(Debug)]
struct Compiled {
    module: Module,
    /// Whether its kernels wait for the launch before them: see [`ptx_archive::waiting`].
    waits: bool,
}

#[derive(Debug)]
enum ArchiveRef {
    Own(&'static Archive),
    Loaded(Archive),
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub(super) struct EntryPoint {
    pub name: Arc<str>,
    pub resources: KernelLimits,
    /// Whether it waits for the launch before it.
    pub waits: bool,
    /// A function of the module.
    pub function: Function<'static>,
    more_shared_allowed: AtomicBool,
    /// Behind the function, which points into it.
    _module: Arc<Compiled>,
}

impl LazyModules {
    fn new(archive: ArchiveRef) -> Self {
        let names = archive
            .get()
            .modules()
            .iter()
            .map(|module| module.name.clone());
        Self {
            compiled: names.map(|name| (name, Mutex::default())).collect(),
            archive,
        }
    }
}

impl ArchiveRef {
    fn get(&self) -> &Archive {
        match self {
            Self::Own(archive) => archive,
            Self::Loaded(archive) => archive,
        }
    }
}

impl Modules {
    /// `device` is for messages.
    pub fn new(device: String, compute_capability: Version, driver: Version) -> Self {
        let own = ARCHIVES
            .iter()
            .map(|archive| LazyModules::new(ArchiveRef::Own(archive)));
        Self {
            device,
            compute_capability,
            driver,
            ready: RwLock::default(),
            loaded: RwLock::default(),
            own: own.collect(),
            loads: Mutex::default(),
        }
    }

    /// Compiles a module and adds it.
    pub fn load(&self, text: &str) -> Result<(), DeviceError> {
        let module = self.compile("loaded PTX", text, ptx::version(text))?;
        let waits = false;
        self.add(Source::Module(Arc::new(Compiled { module, waits })));
        Ok(())
    }

    /// Adds the kernels of an archive, each of which is compiled when it is first wanted.
    pub fn load_archive(&self, archive: Archive) {
        let modules = LazyModules::new(ArchiveRef::Loaded(archive));
        self.add(Source::Archive(Arc::new(modules)));
    }

    fn add(&self, source: Source) {
        // A panic cannot leave it half changed, here and below, so a poisoned lock is as good as another.
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        loaded.push(source);
    }

    /// The modules compiled so far, in that order, and the time that each took.
    pub fn loads(&self) -> Vec<ModuleLoad> {
        lock(&self.loads).clone()
    }

    /// The entry point of that name: among this crate's own kernels, else of what was loaded first that has it. So
    /// what is loaded cannot take the place of a kernel that this crate launches.
    pub fn entry_point(&self, name: &str) -> Result<Arc<EntryPoint>, DeviceError> {
        if let Some(entry_point) = self.ready().get(name) {
            return Ok(Arc::clone(entry_point));
        }
        let loaded = self
            .loaded
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        // A zero byte would end the name in the driver's eyes.
        let found = if name.contains('\0') {
            None
        } else {
            self.find(&loaded, name)?
        };
        let found = found.ok_or_else(|| DeviceError::NoKernel {
            kernel: name.to_owned(),
            loaded: loaded.len(),
        })?;
        // Another thread may have found it meanwhile: then its entry point is the one.
        let mut ready = self.ready_mut();
        let entry_point = ready
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(found));
        Ok(Arc::clone(entry_point))
    }

    fn find(&self, loaded: &[Source], name: &str) -> Result<Option<EntryPoint>, DeviceError> {
        for modules in &self.own {
            let found = self.find_in_archive(modules, name)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        for source in loaded {
            let found = match source {
                Source::Module(module) => self.find_in(module, name)?,
                Source::Archive(modules) => self.find_in_archive(modules, name)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The entry point in the module for the newest architecture that the device runs.
    fn find_in_archive(
        &self,
        modules: &LazyModules,
        name: &str,
    ) -> Result<Option<EntryPoint>, DeviceError> {
        let archive = modules.archive.get();
        let Version { major, minor } = self.compute_capability;
        let Some(module) = archive.module_for(name, (major, minor)) else {
            let targets: Vec<String> = archive
                .modules_of(name)
                .map(|module| module.target.to_string())
                .collect();
            if targets.is_empty() {
                return Ok(None);
            }
            return Err(DeviceError::KernelTarget {
                kernel: name.to_owned(),
                device: self.device.clone(),
                found: self.compute_capability,
                targets: targets.join(", "),
            });
        };
        // The index and the table have the same names.
        let Some(compiled) = modules.compiled.get(&module.name) else {
            return Ok(None);
        };
        let mut compiled = lock(compiled);
        let module = match &*compiled {
            Some(module) => Arc::clone(module),
            None => {
                let text = archive.text(module)?;
                let waiting = match self.has_dependent_launches() {
                    true => ptx_archive::waiting(&text),
                    false => None,
                };
                let waits = waiting.is_some();
                let (text, version) = (waiting.unwrap_or(text), ptx_version(module.version));
                let module = self.compile(&module.name, &text, Some(version))?;
                let module = Arc::new(Compiled { module, waits });
                *compiled = Some(Arc::clone(&module));
                module
            }
        };
        drop(compiled);
        self.find_in(&module, name)
    }

    fn has_dependent_launches(&self) -> bool {
        let Version { major, minor } = self.compute_capability;
        DEPENDENT.runs_on((major, minor)) && self.driver >= DEPENDENT_LAUNCHES
    }

    fn find_in(
        &self,
        module: &Arc<Compiled>,
        name: &str,
    ) -> Result<Option<EntryPoint>, DeviceError> {
        match module.module.get_function(name) {
            Ok(function) => self.describe(name, function, module).map(Some),
            Err(CudaError::NotFound) => Ok(None),
            Err(error) => Err(self.failed("look for a kernel in a module", error)),
        }
    }

    fn describe(
        &self,
        name: &str,
        function: Function<'_>,
        module: &Arc<Compiled>,
    ) -> Result<EntryPoint, DeviceError> {
        let attribute = |attribute| match function.get_attribute(attribute) {
            Ok(value) => Ok(u32::try_from(value).unwrap_or(0)),
            Err(error) => Err(self.failed("tell a kernel's attribute", error)),
        };
        let resources = KernelLimits {
            max_threads_per_block: attribute(FunctionAttribute::MaxThreadsPerBlock)?,
            static_shared_bytes: attribute(FunctionAttribute::SharedMemorySizeBytes)?,
        };
        Ok(EntryPoint {
            name: name.into(),
            resources,
            waits: module.waits,
            // SAFETY: only the lifetime changes. The entry point keeps the module, and gives the function out only by
            // reference.
            function: unsafe { mem::transmute::<Function<'_>, Function<'static>>(function) },
            more_shared_allowed: AtomicBool::new(false),
            _module: Arc::clone(module),
        })
    }

    /// Has the driver compile a text, which needs PTX of that version.
    fn compile(
        &self,
        name: &str,
        text: &str,
        version: Option<Version>,
    ) -> Result<Module, DeviceError> {
        ptx::check_driver(version, self.driver)?;
        let text = CString::new(text).map_err(|error| DeviceError::NotPtx {
            position: error.nul_position(),
        })?;
        let start = Instant::now();
        let module = Module::from_ptx_cstr(&text, &[]).map_err(|error| {
            let (error, log) = driver::load_failure(&text)
                .unwrap_or_else(|| (driver::describe("load a module", error), String::new()));
            DeviceError::Ptx {
                device: self.device.clone(),
                error: Box::new(error),
                log,
            }
        })?;
        lock(&self.loads).push(ModuleLoad {
            module: name.to_owned(),
            time: start.elapsed(),
        });
        Ok(module)
    }

    fn failed(&self, action: &'static str, error: CudaError) -> DeviceError {
        DeviceError::Driver {
            device: self.device.clone(),
            error: Box::new(driver::describe(action, error)),
        }
    }

    fn ready(&self) -> RwLockReadGuard<'_, HashMap<String, Arc<EntryPoint>>> {
        self.ready.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready_mut(&self) -> RwLockWriteGuard<'_, HashMap<String, Arc<EntryPoint>>> {
        self.ready.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
