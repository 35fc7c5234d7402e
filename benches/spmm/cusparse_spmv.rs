//! The opponent where X has one column: SpMV of cuSPARSE, on the same device and stream as the kernels of this crate.

use crate::harness::cusparse::api::{
    Handle, NON_TRANSPOSE, SparseMatrix, Status, functions, opaque,
};
use crate::harness::cusparse::{self, CusparseElement, Error, Owned, pointer};
use cuda_std::element::Element;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use warprow::DeviceCsr;
use warprow::device::DeviceBuffer;

opaque! {
    /// `cusparseDnVecDescr_t`.
    DenseVector
}

functions! {
    /// The functions of SpMV.
    Functions:
    // length, values, type
    create_dense = "cusparseCreateDnVec": fn(*mut DenseVector, i64, *mut c_void, c_int) -> Status;
    destroy_dense = "cusparseDestroyDnVec": fn(DenseVector) -> Status;
    // op of A, alpha, A, x, beta, y, type of the computation, algorithm, bytes of the buffer
    spmv_buffer_size = "cusparseSpMV_bufferSize": fn(
        Handle, c_int, *const c_void, SparseMatrix, DenseVector, *const c_void, DenseVector, c_int, c_int, *mut usize
    ) -> Status;
    // the same with the buffer in place of its size
    spmv_preprocess = "cusparseSpMV_preprocess": fn(
        Handle, c_int, *const c_void, SparseMatrix, DenseVector, *const c_void, DenseVector, c_int, c_int, *mut c_void
    ) -> Status;
    spmv = "cusparseSpMV": fn(
        Handle, c_int, *const c_void, SparseMatrix, DenseVector, *const c_void, DenseVector, c_int, c_int, *mut c_void
    ) -> Status;
}

/// cuSPARSE with the functions of SpMV.
pub type Cusparse = cusparse::Cusparse<Functions>;

/// The algorithms of cuSPARSE for CSR. The default is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `CUSPARSE_SPMV_CSR_ALG1`.
    Csr1,
    /// `CUSPARSE_SPMV_CSR_ALG2`, which gives the same bits in every run.
    Csr2,
}

impl Algorithm {
    /// All that cuSPARSE 12 has for CSR.
    pub const ALL: [Self; 2] = [Self::Csr1, Self::Csr2];

    /// The name in the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csr1 => "cusparse_spmv_csr_alg1",
            Self::Csr2 => "cusparse_spmv_csr_alg2",
        }
    }

    /// The value of `cusparseSpMVAlg_t`.
    const fn code(self) -> c_int {
        match self {
            Self::Csr1 => 2,
            Self::Csr2 => 3,
        }
    }
}

/// `y = A x` by one algorithm, ready to run: descriptors made, buffer allocated, preprocessing done.
#[derive(Debug)]
pub struct Product<'a, T: Element> {
    cusparse: &'a Cusparse,
    algorithm: Algorithm,
    a: Owned<SparseMatrix>,
    x: Owned<DenseVector>,
    y: Owned<DenseVector>,
    buffer: DeviceBuffer<u8>,
    operands: PhantomData<&'a T>,
}

impl<'a, T: CusparseElement> Product<'a, T> {
    /// Prepares the product.
    ///
    /// # Errors
    ///
    /// Rows, columns or nonzeros beyond 31 bits; too little device memory; what cuSPARSE answers.
    ///
    /// # Panics
    ///
    /// If the lengths of `x` and `y` are not A's columns and rows, or a buffer is on another device.
    pub fn prepare(
        cusparse: &'a Cusparse,
        a: &'a DeviceCsr<T>,
        x: &'a DeviceBuffer<T>,
        y: &'a mut DeviceBuffer<T>,
        algorithm: Algorithm,
    ) -> Result<Self, Error> {
        assert_eq!([x.len(), y.len()], [a.pattern().cols(), a.pattern().rows()]);
        for device in [a.pattern().device(), x.device(), y.device()] {
            assert_eq!(device, cusparse.device());
        }
        let mut product = Self {
            cusparse,
            algorithm,
            // Of its own for each algorithm: the preprocessing is kept in the descriptor of A.
            a: cusparse.csr(a)?,
            x: dense::<T>(cusparse, x.len(), x.read_only().address())?,
            y: dense::<T>(cusparse, y.len(), y.mutable().address())?,
            buffer: cusparse.device().uninitialized(0)?,
            operands: PhantomData,
        };
        let mut bytes = 0;
        product.call(
            "cusparseSpMV_bufferSize",
            cusparse.functions.spmv_buffer_size,
            &raw mut bytes,
        )?;
        // At least one byte: an empty buffer may have no address.
        product.buffer = cusparse.device().uninitialized(bytes.max(1))?;
        let buffer = product.buffer_pointer();
        product.call(
            "cusparseSpMV_preprocess",
            cusparse.functions.spmv_preprocess,
            buffer,
        )?;
        cusparse.device().synchronize()?;
        Ok(product)
    }

    /// Launches the product; it returns before it is there.
    ///
    /// # Errors
    ///
    /// What cuSPARSE answers.
    pub fn run(&mut self) -> Result<(), Error> {
        let buffer = self.buffer_pointer();
        self.call("cusparseSpMV", self.cusparse.functions.spmv, buffer)
    }

    fn buffer_pointer(&mut self) -> *mut c_void {
        pointer(self.buffer.mutable().address())
    }

    /// Calls one of the three functions of SpMV, which differ in their last argument.
    fn call<Last>(
        &self,
        name: &'static str,
        function: SpmvFunction<Last>,
        last: Last,
    ) -> Result<(), Error> {
        let (alpha, beta) = (T::ONE, T::ZERO);
        // SAFETY: the descriptors are alive and describe operands that this product borrows, the scalars live on the
        // host (the default mode of the handle) during the call, and `last` is the size to write or a buffer of it.
        let status = unsafe {
            function(
                self.cusparse.handle(),
                NON_TRANSPOSE,
                (&raw const alpha).cast(),
                self.a.raw(),
                self.x.raw(),
                (&raw const beta).cast(),
                self.y.raw(),
                T::COMPUTE_TYPE,
                self.algorithm.code(),
                last,
            )
        };
        self.cusparse.check(name, status)
    }
}

type SpmvFunction<Last> = unsafe extern "C" fn(
    Handle,
    c_int,
    *const c_void,
    SparseMatrix,
    DenseVector,
    *const c_void,
    DenseVector,
    c_int,
    c_int,
    Last,
) -> Status;

/// The descriptor of a vector at an address on the device.
fn dense<T: CusparseElement>(
    cusparse: &Cusparse,
    length: usize,
    address: u64,
) -> Result<Owned<DenseVector>, Error> {
    let functions = &cusparse.functions;
    let mut raw = DenseVector::NULL;
    // The descriptor of A, made before, has this extent too: it fits 31 bits.
    let length = length as i64;
    // SAFETY: the address is that of `length` elements on the device; they are not read here.
    let status =
        unsafe { (functions.create_dense)(&mut raw, length, pointer(address), T::DATA_TYPE) };
    cusparse.check("cusparseCreateDnVec", status)?;
    // SAFETY: it was made just now; the product, which has it, borrows the vector.
    Ok(unsafe { Owned::new(raw, functions.destroy_dense) })
}
