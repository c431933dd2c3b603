//! How rows are locked.

/// PostgreSQL's four row lock modes, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl LockMode {
    /// How many bits a mode takes where it is stored: `self as u8`.
    pub(crate) const BITS: u32 = 2;

    /// PostgreSQL's table 13.3.
    pub fn conflicts(self, other: Self) -> bool {
        match self {
            Self::KeyShare => other == Self::Update,
            Self::Share => other >= Self::NoKeyUpdate,
            Self::NoKeyUpdate => other >= Self::Share,
            Self::Update => true,
        }
    }

    /// The mode that these bits are, the lowest [`LockMode::BITS`] of which count.
    pub(crate) fn of_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0 => Self::KeyShare,
            1 => Self::Share,
            2 => Self::NoKeyUpdate,
            _ => Self::Update,
        }
    }
}
