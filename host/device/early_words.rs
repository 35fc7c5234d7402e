//! A few numbers that are copied to the host while the device goes on.

#[cfg(cuda)]
use super::Backend;
#[cfg(cuda)]
use super::buffer::uses::Access;
#[cfg(cuda)]
use super::cuda::{Cuda, SMALL_BYTES, SmallRead};
use super::error::DeviceError;
use super::slice::DeviceSlice;
use std::marker::PhantomData;
#[cfg(cuda)]
use std::slice;

/// Numbers that are copied to the host. What is launched after [`DeviceSlice::start_words`] does not wait for the copy,
/// and must not change the numbers before [`wait`](Self::wait). After the start of a [`Transfer`](super::Transfer) it
/// would wait, and the caller would have to bring pinned memory.
///
/// If it is dropped, the host waits for the copy.
#[derive(Debug)]
pub(crate) struct EarlyWords<'a> {
    words: Vec<u32>,
    /// The copy to the words, if it still runs.
    #[cfg(cuda)]
    running: Option<(SmallRead, &'a Cuda)>,
    device_words: PhantomData<DeviceSlice<'a, u32>>,
}

impl<'a> DeviceSlice<'a, u32> {
    /// Starts to copy the numbers to the host, after all earlier work of this thread's stream. For more than 4 KiB, on
    /// an emulator, and on a host that cannot pin more memory, it waits for the copy.
    pub(crate) fn start_words(self) -> Result<EarlyWords<'a>, DeviceError> {
        #[cfg(cuda)]
        if let Backend::Cuda(cuda) = &*self.device.backend
            && (1..=SMALL_BYTES).contains(&self.bytes())
        {
            self.device.recordings.refuse("a copy from the device")?;
            self.use_now(Access::Read);
            let queue = self.device.streams.current();
            // SAFETY: the slice's own memory, borrowed until the copy is finished.
            let read = unsafe { cuda.start_small_read(queue.cuda(), self.address, self.bytes())? };
            if let Some(read) = read {
                return Ok(EarlyWords {
                    words: vec![0; self.len],
                    running: Some((read, cuda)),
                    device_words: PhantomData,
                });
            }
        }
        Ok(EarlyWords {
            words: self.download()?,
            #[cfg(cuda)]
            running: None,
            device_words: PhantomData,
        })
    }
}

impl EarlyWords<'_> {
    /// Waits until the numbers are there.
    #[cfg_attr(not(cuda), allow(unused_mut, reason = "nothing is left to copy"))]
    pub fn wait(mut self) -> Result<Vec<u32>, DeviceError> {
        let mut words = std::mem::take(&mut self.words);
        #[cfg(cuda)]
        if let Some((read, cuda)) = self.running.take() {
            let (start, len) = (words.as_mut_ptr().cast(), size_of_val(&words[..]));
            // SAFETY: the bytes of the words; every pattern of bits is a number.
            cuda.finish_small_read(read, unsafe { slice::from_raw_parts_mut(start, len) })?;
        }
        Ok(words)
    }
}

#[cfg(cuda)]
impl Drop for EarlyWords<'_> {
    fn drop(&mut self) {
        if let Some((read, cuda)) = self.running.take() {
            // The memory can be used again. What fails here is reported by a later call.
            let _ = cuda.finish_small_read(read, &mut []);
        }
    }
}
