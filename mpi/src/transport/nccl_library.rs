//! The functions of NCCL that are used here, loaded at run time from `libnccl.so.2`.

use anyhow::{Context, Result, bail};
use libloading::os::unix::Library;
use std::ffi::{CStr, c_char, c_int, c_void};

/// The name that the dynamic linker searches, also in `LD_LIBRARY_PATH`.
const NAME: &str = "libnccl.so.2";

/// `ncclUint8`.
const BYTE: c_int = 1;

/// `ncclUniqueId`: what rank 0 makes and all ranks need to find each other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UniqueId(pub [u8; 128]);

/// A pointer to a communicator, `ncclComm_t`.
pub type RawComm = *mut c_void;

/// The functions, with the signatures of `nccl.h` 2. A result is 0 if all went well.
#[derive(Debug)]
pub struct NcclLibrary {
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    comm_init_rank: unsafe extern "C" fn(*mut RawComm, c_int, UniqueId, c_int) -> c_int,
    comm_destroy: unsafe extern "C" fn(RawComm) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, RawComm, *mut c_void) -> c_int,
    recv: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, RawComm, *mut c_void) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    // The functions are its own.
    _library: Library,
}

impl NcclLibrary {
    /// Loads the library.
    ///
    /// # Errors
    ///
    /// It is not there, or lacks a function.
    pub fn load() -> Result<Self> {
        // SAFETY: NCCL's initialisation has no requirements. The functions have the types that `nccl.h` declares in all
        // versions that have them.
        unsafe {
            let library = Library::new(NAME).with_context(|| format!("cannot load {NAME}"))?;
            macro_rules! function {
                ($name:literal) => {
                    *(library.get($name)).with_context(|| {
                        format!("{NAME} has no function {}", String::from_utf8_lossy($name))
                    })?
                };
            }
            Ok(Self {
                get_unique_id: function!(b"ncclGetUniqueId"),
                comm_init_rank: function!(b"ncclCommInitRank"),
                comm_destroy: function!(b"ncclCommDestroy"),
                group_start: function!(b"ncclGroupStart"),
                group_end: function!(b"ncclGroupEnd"),
                send: function!(b"ncclSend"),
                recv: function!(b"ncclRecv"),
                error_string: function!(b"ncclGetErrorString"),
                _library: library,
            })
        }
    }

    /// What the ranks of a new communicator need to find each other.
    pub fn unique_id(&self) -> Result<UniqueId> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: NCCL writes the 128 bytes.
        self.check("make an id", unsafe { (self.get_unique_id)(&raw mut id) })?;
        Ok(id)
    }

    /// Joins a communicator, with the GPU whose context is current. Returns when all ranks have joined.
    pub fn join(&self, id: UniqueId, ranks: usize, rank: usize) -> Result<RawComm> {
        let mut comm = std::ptr::null_mut();
        let (ranks, rank) = (c_int::try_from(ranks)?, c_int::try_from(rank)?);
        // SAFETY: NCCL writes one pointer.
        let result = unsafe { (self.comm_init_rank)(&raw mut comm, ranks, id, rank) };
        self.check("connect the ranks", result)?;
        Ok(comm)
    }

    /// Leaves a communicator.
    ///
    /// # Safety
    ///
    /// `join` has returned it, nobody uses it afterwards, and none of its work runs.
    pub unsafe fn leave(&self, comm: RawComm) {
        // SAFETY: the caller's contract. A failure leaves nothing to do.
        let _ = unsafe { (self.comm_destroy)(comm) };
    }

    /// Puts sends and receives into a stream, as one group: address, bytes and the other rank of each.
    ///
    /// # Safety
    ///
    /// `join` has returned `comm`. The stream is of its GPU's current context. In the order of the stream the memory is
    /// there, initialised where it is sent, and nobody else writes it, or reads what is received.
    pub unsafe fn exchange(
        &self,
        comm: RawComm,
        stream: *mut c_void,
        sends: &[(u64, usize, usize)],
        receives: &[(u64, usize, usize)],
    ) -> Result<()> {
        // SAFETY: no pointers.
        self.check("start a group", unsafe { (self.group_start)() })?;
        let mut result = 0;
        for &(address, bytes, rank) in sends {
            let from = address as *const c_void;
            // SAFETY: the caller's contract; ranks fit, or `join` would have failed.
            result =
                result.max(unsafe { (self.send)(from, bytes, BYTE, rank as c_int, comm, stream) });
        }
        for &(address, bytes, rank) in receives {
            let to = address as *mut c_void;
            // SAFETY: as above.
            result =
                result.max(unsafe { (self.recv)(to, bytes, BYTE, rank as c_int, comm, stream) });
        }
        // SAFETY: no pointers. A group is ended also after a failure.
        let ended = unsafe { (self.group_end)() };
        self.check("send and receive", result)?;
        self.check("send and receive", ended)
    }

    fn check(&self, action: &str, result: c_int) -> Result<()> {
        if result == 0 {
            return Ok(());
        }
        // SAFETY: NCCL returns a text that is never freed, for every number.
        let text = unsafe { CStr::from_ptr((self.error_string)(result)) };
        bail!("NCCL cannot {action}: {}", text.to_string_lossy())
    }
}
