//! The setters of options, in the style of builders: `SpmmOptions::new().features(32).transpose(true)`.

/// Methods that set a field each and return the options. An optional field takes a value or an `Option` of one.
macro_rules! setters {
    (
        fields { $($field:ident: $type:ty),* $(,)? }
        optional { $($optional:ident: $inner:ty),* $(,)? }
    ) => {
        $(
            #[doc = concat!("Sets [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
            #[must_use]
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*
        $(
            #[doc = concat!("Sets [`", stringify!($optional), "`](#structfield.", stringify!($optional), ").")]
            #[must_use]
            pub fn $optional(mut self, $optional: impl Into<Option<$inner>>) -> Self {
                self.$optional = $optional.into();
                self
            }
        )*
    };
}
pub(crate) use setters;
