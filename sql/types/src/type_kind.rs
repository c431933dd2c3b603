//! The kinds of types that users make: which numbers are theirs, and what is asked of all types of one.
//!
//! What kind of type a number stands for is plain from the number alone: values are read, shown, stored
//! and compared where no catalog is at hand, and such a question costs a mask and a comparison. Each kind
//! has a block of numbers, those with the same four high bits; the even ones in it are types, and behind
//! each comes the array over it. What differs between types of one kind (labels, fields, names) is the
//! catalog's to tell.
//!
//! A new kind is an entry of the table below, and the functions that make values of its texts; the
//! compiler shows who calls them, and who has to know of a new way to hold values.
//!
//! Of the other blocks, 0 is that of all that is numbered as it is made (relations, routines, domains, which
//! values are never of), and 5 that of the labels of enums; 7 is free. Rows of catalogs that are made when
//! somebody reads them are numbered in 1 (rules, extensions), 2 and 3 (members of operator classes) and 8
//! to 15 (defaults of columns): nothing keeps those, and they may move when a kind needs the room.

use crate::types::Oid;

/// The columns of pg_type that say how PostgreSQL keeps the values of a type, and what sort of type it
/// is: every type has them, whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// typtype: 'b' base, 'c' composite, 'e' enum, 'p' pseudo, 'r' range.
    pub letter: u8,
    /// As [`TypeInfo`](crate::type_table::TypeInfo) has them.
    pub category: u8,
    pub length: i16,
    pub by_value: bool,
    pub align: u8,
    pub storage: u8,
}

impl Layout {
    /// What is supposed of a number that no type is known by.
    pub const UNKNOWN: Layout =
        Layout { letter: b'b', category: b'U', length: -1, by_value: false, align: b'd', storage: b'x' };

    /// That of the array over a type of this one.
    pub const fn of_array(self) -> Layout {
        let align = if self.align == b'd' { b'd' } else { b'i' };
        Layout { letter: b'b', category: b'A', length: -1, by_value: false, align, storage: b'x' }
    }
}

/// How values are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// As the oid of a label, of which the catalog has the name. They sort and hash as numbers.
    Label,
    /// As a record of fields, of which the catalog has the names and types.
    Fields,
}

/// What is asked of all types of a kind.
#[derive(Debug)]
pub struct KindTraits {
    pub layout: Layout,
    pub held: Held,
    /// What reads and writes them in pg_type: typinput, typoutput, typreceive and typsend.
    pub functions: [Oid; 4],
    /// The pseudo-type that stands for all of them, and no others, in functions and operator classes.
    pub polymorphic: Option<Oid>,
    /// The type that PostgreSQL's operator classes for them are declared for.
    pub class_input: Oid,
}

/// Numbers of a block: the rest of an oid is its place in one.
const BLOCK_BITS: u32 = 28;

/// Numbers are drawn below this, so that each has a type and an array in every block.
pub const NUMBERS_END: u32 = 1 << (BLOCK_BITS - 1);

macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident = block $block:literal, $traits:expr;)*) => {
        /// A kind of types that users make.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TypeKind {
            $($(#[$about])* $kind,)*
        }

        impl TypeKind {
            /// All of them.
            pub const ALL: &'static [TypeKind] = &[$(TypeKind::$kind),*];

            /// The kind that a block is of.
            #[inline]
            const fn of_block(block: u32) -> Option<TypeKind> {
                match block {
                    $($block => Some(TypeKind::$kind),)*
                    _ => None,
                }
            }

            const fn block(self) -> u32 {
                match self {
                    $(TypeKind::$kind => $block,)*
                }
            }

            /// What is asked of its types.
            #[inline]
            pub const fn traits(self) -> &'static KindTraits {
                match self {
                    $(TypeKind::$kind => const { &$traits },)*
                }
            }
        }
    };
}

kinds! {
    /// Enums. Each label has a number of its own.
    Enum = block 4, KindTraits {
        layout: Layout { letter: b'e', category: b'E', length: 4, by_value: true, align: b'i', storage: b'p' },
        held: Held::Label,
        // enum_in, enum_out, enum_recv, enum_send
        functions: [Oid(3506), Oid(3507), Oid(3532), Oid(3533)],
        polymorphic: Some(Oid::ANYENUM),
        class_input: Oid::ANYENUM,
    };
    /// Composite types, and those of the rows of relations: the number of one is the relation's.
    Composite = block 6, KindTraits {
        layout: Layout { letter: b'c', category: b'C', length: -1, by_value: false, align: b'd', storage: b'x' },
        held: Held::Fields,
        // record_in, record_out, record_recv, record_send
        functions: [Oid(2290), Oid(2291), Oid(2402), Oid(2403)],
        // `record` takes them by a cast.
        polymorphic: None,
        class_input: Oid::RECORD,
    };
}

impl TypeKind {
    /// The type that a number which was drawn stands for; 0 where there is none.
    pub const fn numbered(self, number: Oid) -> Oid {
        if number.0 < NUMBERS_END { Oid((self.block() << BLOCK_BITS) + 2 * number.0) } else { Oid(0) }
    }
}

impl Oid {
    /// The kind of a type that somebody made; `None` for built-in types, domains and arrays.
    #[inline]
    pub const fn kind(self) -> Option<TypeKind> {
        if self.0 & 1 == 0 { self.innermost_kind() } else { None }
    }

    /// The kind of the elements of an array over such a type.
    #[inline]
    pub const fn element_kind(self) -> Option<TypeKind> {
        if self.0 & 1 == 1 { self.innermost_kind() } else { None }
    }

    /// The kind of such a type, or of an array's elements.
    #[inline]
    pub const fn innermost_kind(self) -> Option<TypeKind> {
        TypeKind::of_block(self.0 >> BLOCK_BITS)
    }

    /// Whether the type is an enum.
    #[inline]
    pub const fn is_enum(self) -> bool {
        matches!(self.kind(), Some(TypeKind::Enum))
    }

    /// Whether the type is a composite type, a table's row type included; `record` is none.
    #[inline]
    pub const fn is_composite(self) -> bool {
        matches!(self.kind(), Some(TypeKind::Composite))
    }

    /// How values of such a type are held; `None` for built-in types and arrays.
    #[inline]
    pub fn held(self) -> Option<Held> {
        self.kind().map(|kind| kind.traits().held)
    }

    /// Whether values of the type have fields, those of `record` included.
    #[inline]
    pub fn has_fields(self) -> bool {
        self == Oid::RECORD || self.held() == Some(Held::Fields)
    }

    /// Whether its values are rows of a composite type, or arrays of such: they are kept as its fields were.
    #[inline]
    pub fn holds_fields(self) -> bool {
        self.innermost_kind().is_some_and(|kind| kind.traits().held == Held::Fields)
    }

    /// Whether values of the type are labels. A label that shows nothing else of its type is of `anyenum`.
    #[inline]
    pub fn has_labels(self) -> bool {
        self == Oid::ANYENUM || self.held() == Some(Held::Label)
    }

    /// The pseudo-type that stands for all types of its kind.
    pub fn polymorphic(self) -> Option<Oid> {
        self.kind().and_then(|kind| kind.traits().polymorphic)
    }

    /// The type that the operator classes of such a type are declared for.
    pub fn class_input(self) -> Option<Oid> {
        self.kind().map(|kind| kind.traits().class_input)
    }

    /// The composite type of the rows of a relation; 0 for what is the oid of none.
    pub const fn row_type_of(relation: Oid) -> Oid {
        TypeKind::Composite.numbered(relation)
    }

    /// The relation (pg_type.typrelid) of a composite type.
    pub const fn relation_of_row_type(self) -> Option<Oid> {
        if self.is_composite() { Some(self.drawn()) } else { None }
    }

    /// The number that was drawn for what it is the oid of: a type's, or that of an array's elements, is in
    /// it; any other is that number.
    pub const fn drawn(self) -> Oid {
        match self.innermost_kind() {
            Some(_) => Oid((self.0 & ((1 << BLOCK_BITS) - 1)) / 2),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_table::{array_of, element_of, layout};

    #[test]
    fn numbers_are_those_of_the_directories_that_were_written() {
        assert_eq!(TypeKind::Enum.numbered(Oid(20_000)), Oid(0x4000_0000 + 40_000));
        assert_eq!(Oid::row_type_of(Oid(20_000)), Oid(0x6000_0000 + 40_000));
        assert_eq!(Oid(Oid::ENUM_LABELS + 40_000).innermost_kind(), None);
        assert_eq!(Oid::row_type_of(Oid::row_type_of(Oid(20_000))), Oid(0));
    }

    #[test]
    fn every_kind_knows_its_types_and_their_arrays() {
        for kind in TypeKind::ALL {
            for number in [Oid(0), Oid(16_384), Oid(NUMBERS_END - 1)] {
                let ty = kind.numbered(number);
                let array = array_of(ty).unwrap();
                assert_eq!((ty.kind(), ty.element_kind()), (Some(*kind), None));
                assert_eq!((array.kind(), array.element_kind()), (None, Some(*kind)));
                assert_eq!((ty.drawn(), array.drawn()), (number, number));
                assert_eq!((element_of(array), element_of(ty)), (Some(ty), None));
                assert!(!ty.is_enum_label() && !array.is_enum_label());
                assert_eq!(layout(array).map(|layout| layout.category), Some(b'A'));
            }
        }
    }

    #[test]
    fn what_is_built_in_or_drawn_has_no_kind() {
        for oid in [Oid::INT4, Oid::INT4_ARRAY, Oid::RECORD, Oid(16_385), Oid(NUMBERS_END - 1)] {
            assert_eq!((oid.innermost_kind(), oid.drawn()), (None, oid));
        }
    }
}
