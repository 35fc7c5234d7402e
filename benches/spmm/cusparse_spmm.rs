//! The opponent: SpMM of cuSPARSE, in the same process, on the same device and stream as the kernels of this crate.

use crate::harness::cusparse::api::{
    Handle, NON_TRANSPOSE, SparseMatrix, Status, functions, opaque,
};
use crate::harness::cusparse::{self, CusparseElement, Error, Owned, pointer};
use cuda_std::element::Element;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use warprow::DeviceCsr;
use warprow::device::DeviceBuffer;

/// `cusparseOrder_t`: `CUSPARSE_ORDER_ROW`.
const ORDER_ROW: c_int = 2;

opaque! {
    /// `cusparseDnMatDescr_t`.
    DenseMatrix
}

functions! {
    /// The functions of SpMM.
    Functions:
    // rows, cols, leading dimension, values, type, order
    create_dense = "cusparseCreateDnMat": fn(
        *mut DenseMatrix, i64, i64, i64, *mut c_void, c_int, c_int
    ) -> Status;
    destroy_dense = "cusparseDestroyDnMat": fn(DenseMatrix) -> Status;
    // op of A, op of X, alpha, A, X, beta, Y, type of the computation, algorithm, bytes of the buffer
    spmm_buffer_size = "cusparseSpMM_bufferSize": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, DenseMatrix, *const c_void, DenseMatrix, c_int, c_int,
        *mut usize
    ) -> Status;
    // the same with the buffer in place of its size
    spmm_preprocess = "cusparseSpMM_preprocess": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, DenseMatrix, *const c_void, DenseMatrix, c_int, c_int,
        *mut c_void
    ) -> Status;
    spmm = "cusparseSpMM": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, DenseMatrix, *const c_void, DenseMatrix, c_int, c_int,
        *mut c_void
    ) -> Status;
}

/// cuSPARSE with the functions of SpMM.
pub type Cusparse = cusparse::Cusparse<Functions>;

/// The algorithms of cuSPARSE for CSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `CUSPARSE_SPMM_ALG_DEFAULT`.
    Default,
    /// `CUSPARSE_SPMM_CSR_ALG1`.
    Csr1,
    /// `CUSPARSE_SPMM_CSR_ALG2`.
    Csr2,
    /// `CUSPARSE_SPMM_CSR_ALG3`.
    Csr3,
}

impl Algorithm {
    /// All that cuSPARSE 12 has for CSR.
    pub const ALL: [Self; 4] = [Self::Default, Self::Csr1, Self::Csr2, Self::Csr3];

    /// The name in the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "cusparse_default",
            Self::Csr1 => "cusparse_csr_alg1",
            Self::Csr2 => "cusparse_csr_alg2",
            Self::Csr3 => "cusparse_csr_alg3",
        }
    }

    /// The value of `cusparseSpMMAlg_t`. 5, between the first two of CSR, is an algorithm for COO.
    const fn code(self) -> c_int {
        match self {
            Self::Default => 0,
            Self::Csr1 => 4,
            Self::Csr2 => 6,
            Self::Csr3 => 12,
        }
    }
}

/// `Y = A X` by one algorithm, ready to run: descriptors made, buffer allocated, preprocessing done.
#[derive(Debug)]
pub struct Product<'a, T: Element> {
    cusparse: &'a Cusparse,
    algorithm: Algorithm,
    a: Owned<SparseMatrix>,
    x: Owned<DenseMatrix>,
    y: Owned<DenseMatrix>,
    buffer: DeviceBuffer<u8>,
    operands: PhantomData<&'a T>,
}

impl<'a, T: CusparseElement> Product<'a, T> {
    /// Prepares the product with X and Y row-major, of `features` columns.
    ///
    /// # Errors
    ///
    /// Rows, columns or nonzeros beyond 31 bits; too little device memory; what cuSPARSE answers.
    ///
    /// # Panics
    ///
    /// If the lengths of `x` and `y` are not `features` times A's columns and rows, or a buffer is on another device.
    pub fn prepare(
        cusparse: &'a Cusparse,
        a: &'a DeviceCsr<T>,
        x: &'a DeviceBuffer<T>,
        y: &'a mut DeviceBuffer<T>,
        features: u32,
        algorithm: Algorithm,
    ) -> Result<Self, Error> {
        let (rows, cols) = (a.pattern().rows(), a.pattern().cols());
        assert_eq!(x.len() as u64, cols as u64 * u64::from(features));
        assert_eq!(y.len() as u64, rows as u64 * u64::from(features));
        for device in [a.pattern().device(), x.device(), y.device()] {
            assert_eq!(device, cusparse.device());
        }
        let (x_address, y_address) = (x.read_only().address(), y.mutable().address());
        let mut product = Self {
            cusparse,
            algorithm,
            // Of its own for each algorithm: the preprocessing is kept in the descriptor of A.
            a: cusparse.csr(a)?,
            x: dense::<T>(cusparse, cols, features, x_address)?,
            y: dense::<T>(cusparse, rows, features, y_address)?,
            buffer: cusparse.device().uninitialized(0)?,
            operands: PhantomData,
        };
        let mut bytes = 0;
        product.call(
            "cusparseSpMM_bufferSize",
            cusparse.functions.spmm_buffer_size,
            &raw mut bytes,
        )?;
        // At least one byte: an empty buffer may have no address.
        product.buffer = cusparse.device().uninitialized(bytes.max(1))?;
        let buffer = product.buffer_pointer();
        product.call(
            "cusparseSpMM_preprocess",
            cusparse.functions.spmm_preprocess,
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
        self.call("cusparseSpMM", self.cusparse.functions.spmm, buffer)
    }

    fn buffer_pointer(&mut self) -> *mut c_void {
        pointer(self.buffer.mutable().address())
    }

    /// Calls one of the three functions of SpMM, which differ in their last argument.
    fn call<Last>(
        &self,
        name: &'static str,
        function: SpmmFunction<Last>,
        last: Last,
    ) -> Result<(), Error> {
        let (alpha, beta) = (T::ONE, T::ZERO);
        // SAFETY: the descriptors are alive and describe operands that this product borrows, the scalars live on the
        // host (the default mode of the handle) during the call, and `last` is the size to write or a buffer of it.
        let status = unsafe {
            function(
                self.cusparse.handle(),
                NON_TRANSPOSE,
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

type SpmmFunction<Last> = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    *const c_void,
    SparseMatrix,
    DenseMatrix,
    *const c_void,
    DenseMatrix,
    c_int,
    c_int,
    Last,
) -> Status;

/// The descriptor of a row-major matrix of `rows` rows and `cols` columns at an address on the device.
fn dense<T: CusparseElement>(
    cusparse: &Cusparse,
    rows: usize,
    cols: u32,
    address: u64,
) -> Result<Owned<DenseMatrix>, Error> {
    let functions = &cusparse.functions;
    // The descriptor of A, made before, has such extents too: they fit 31 bits.
    let (rows, cols) = (rows as i64, i64::from(cols));
    let mut raw = DenseMatrix::NULL;
    // SAFETY: the address is that of `rows * cols` elements on the device; they are not read here.
    let status = unsafe {
        (functions.create_dense)(
            &mut raw,
            rows,
            cols,
            cols,
            pointer(address),
            T::DATA_TYPE,
            ORDER_ROW,
        )
    };
    cusparse.check("cusparseCreateDnMat", status)?;
    // SAFETY: it was made just now; the product, which has it, borrows the matrix.
    Ok(unsafe { Owned::new(raw, functions.destroy_dense) })
}
