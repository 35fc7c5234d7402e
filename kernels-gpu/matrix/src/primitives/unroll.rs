//! Loops that the macro writes out, so that arrays which they index stay in registers.

/// Repeats a block with `i` a constant from 0 to before 2, 3, 4, 8 or 16.
///
/// The compiler unrolls only some loops. Elsewhere the index is a variable, and an array indexed by
/// a variable lies in local memory, a hundred times as slow as a register.
#[macro_export]
macro_rules! unroll {
    ($i:ident in 0..2 $body:block) => { $crate::unroll!(@ $i [0 1] $body) };
    ($i:ident in 0..3 $body:block) => { $crate::unroll!(@ $i [0 1 2] $body) };
    ($i:ident in 0..4 $body:block) => { $crate::unroll!(@ $i [0 1 2 3] $body) };
    ($i:ident in 0..8 $body:block) => { $crate::unroll!(@ $i [0 1 2 3 4 5 6 7] $body) };
    ($i:ident in 0..16 $body:block) => {
        $crate::unroll!(@ $i [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] $body)
    };
    (@ $i:ident [$($value:literal)*] $body:block) => {
        $({
            #[allow(non_upper_case_globals, reason = "it is an index, as in a loop")]
            const $i: usize = $value;
            $body
        })*
    };
}
