//! One product of cuSPARSE: its descriptors, its buffer, and the call.

use super::api::{self, DenseMatrix, Functions, SparseMatrix};
use super::{Algorithm, Cusparse, Error, pointer};
use crate::csr::CsrBuffers;
use cuda_std::element::Element;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use warprow::device::DeviceBuffer;
use warprow::{bf16, f16};

/// An element type of cuSPARSE.
pub trait CusparseElement: Element {
    /// Its `cudaDataType`.
    const DATA_TYPE: c_int;
    /// The `cudaDataType` of sums.
    const COMPUTE_TYPE: c_int;
    /// The type of sums, and so of alpha and beta.
    type Sum: Copy;
    /// 1, for alpha.
    const ONE: Self::Sum;
    /// 0, for beta.
    const ZERO: Self::Sum;
}

macro_rules! cusparse_element {
    ($($element:ident: $data_type:ident, $sum:ident: $compute_type:ident;)*) => {$(
        impl CusparseElement for $element {
            const DATA_TYPE: c_int = api::$data_type;
            const COMPUTE_TYPE: c_int = api::$compute_type;
            type Sum = $sum;
            const ONE: $sum = 1.0;
            const ZERO: $sum = 0.0;
        }
    )*};
}
cusparse_element! {
    f32: R_32F, f32: R_32F;
    f64: R_64F, f64: R_64F;
    f16: R_16F, f32: R_32F;
    bf16: R_16BF, f32: R_32F;
}

/// An extent as cuSPARSE counts it.
fn fits(what: &'static str, found: usize) -> Result<i64, Error> {
    match i32::try_from(found) {
        Ok(fitting) => Ok(i64::from(fitting)),
        Err(_) => Err(Error::TooLarge { what, found }),
    }
}

/// `Y = A X` by one algorithm, ready to run: descriptors made, buffer allocated, preprocessing done.
#[derive(Debug)]
pub struct Product<'a, T: Element> {
    cusparse: &'a Cusparse,
    algorithm: Algorithm,
    a: SparseDescriptor<'a>,
    x: DenseDescriptor<'a>,
    y: DenseDescriptor<'a>,
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
        a: &'a CsrBuffers<T>,
        x: &'a DeviceBuffer<T>,
        y: &'a mut DeviceBuffer<T>,
        features: u32,
        algorithm: Algorithm,
    ) -> Result<Self, Error> {
        let (rows, cols) = (
            fits("the number of rows", a.rows)?,
            fits("the number of columns", a.cols)?,
        );
        fits("the number of nonzeros", a.values.len())?;
        assert_eq!(x.len() as u64, a.cols as u64 * u64::from(features));
        assert_eq!(y.len() as u64, a.rows as u64 * u64::from(features));
        for device in [a.values.device(), x.device(), y.device()] {
            assert_eq!(*device, cusparse.device);
        }
        let features = i64::from(features);
        let (x_address, y_address) = (x.read_only().address(), y.mutable().address());
        let mut product = Self {
            cusparse,
            algorithm,
            // Of its own for each algorithm: the preprocessing is kept in the descriptor of A.
            a: SparseDescriptor::of(cusparse, a)?,
            x: DenseDescriptor::of::<T>(cusparse, cols, features, x_address)?,
            y: DenseDescriptor::of::<T>(cusparse, rows, features, y_address)?,
            buffer: cusparse.device.uninitialized(0)?,
            operands: PhantomData,
        };
        let mut bytes = 0;
        product.call(
            "cusparseSpMM_bufferSize",
            cusparse.functions.spmm_buffer_size,
            &raw mut bytes,
        )?;
        // At least one byte: an empty buffer may have no address.
        product.buffer = cusparse.device.uninitialized(bytes.max(1))?;
        let buffer = product.buffer_pointer();
        product.call(
            "cusparseSpMM_preprocess",
            cusparse.functions.spmm_preprocess,
            buffer,
        )?;
        cusparse.device.synchronize()?;
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
                self.cusparse.handle,
                api::NON_TRANSPOSE,
                api::NON_TRANSPOSE,
                (&raw const alpha).cast(),
                self.a.raw,
                self.x.raw,
                (&raw const beta).cast(),
                self.y.raw,
                T::COMPUTE_TYPE,
                self.algorithm.code(),
                last,
            )
        };
        self.cusparse.check(name, status)
    }
}

type SpmmFunction<Last> = unsafe extern "C" fn(
    api::Handle,
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
) -> api::Status;

#[derive(Debug)]
struct SparseDescriptor<'a> {
    functions: &'a Functions,
    raw: SparseMatrix,
}

impl<'a> SparseDescriptor<'a> {
    fn of<T: CusparseElement>(cusparse: &'a Cusparse, a: &CsrBuffers<T>) -> Result<Self, Error> {
        let mut raw = SparseMatrix::NULL;
        // SAFETY: the addresses are those of arrays of these lengths and types on the device; they are not read here.
        let status = unsafe {
            (cusparse.functions.create_csr)(
                &mut raw,
                a.rows as i64,
                a.cols as i64,
                a.values.len() as i64,
                pointer(a.row_ptr.read_only().address()),
                pointer(a.col_idx.read_only().address()),
                pointer(a.values.read_only().address()),
                api::INDEX_32I,
                api::INDEX_32I,
                api::INDEX_BASE_ZERO,
                T::DATA_TYPE,
            )
        };
        cusparse.check("cusparseCreateCsr", status)?;
        Ok(Self {
            functions: &cusparse.functions,
            raw,
        })
    }
}

impl Drop for SparseDescriptor<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created by this library and is given up. A failure to destroy it has no remedy.
        let _ = unsafe { (self.functions.destroy_sparse)(self.raw) };
    }
}

#[derive(Debug)]
struct DenseDescriptor<'a> {
    functions: &'a Functions,
    raw: DenseMatrix,
}

impl<'a> DenseDescriptor<'a> {
    /// A row-major matrix of `rows` rows and `cols` columns at an address on the device.
    fn of<T: CusparseElement>(
        cusparse: &'a Cusparse,
        rows: i64,
        cols: i64,
        address: u64,
    ) -> Result<Self, Error> {
        let mut raw = DenseMatrix::NULL;
        // SAFETY: the address is that of `rows * cols` elements on the device; they are not read here.
        let status = unsafe {
            (cusparse.functions.create_dense)(
                &mut raw,
                rows,
                cols,
                cols,
                pointer(address),
                T::DATA_TYPE,
                api::ORDER_ROW,
            )
        };
        cusparse.check("cusparseCreateDnMat", status)?;
        Ok(Self {
            functions: &cusparse.functions,
            raw,
        })
    }
}

impl Drop for DenseDescriptor<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created by this library and is given up. A failure to destroy it has no remedy.
        let _ = unsafe { (self.functions.destroy_dense)(self.raw) };
    }
}
