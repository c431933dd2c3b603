//! Window functions that are no aggregates.

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

impl Ranking {
    /// The name in pg_proc.
    pub fn name(self) -> &'static str {
        match self {
            Ranking::RowNumber => "row_number",
            Ranking::Rank => "rank",
            Ranking::DenseRank => "dense_rank",
            Ranking::PercentRank => "percent_rank",
            Ranking::CumeDist => "cume_dist",
            Ranking::Ntile => "ntile",
            Ranking::Lag => "lag",
            Ranking::Lead => "lead",
            Ranking::FirstValue => "first_value",
            Ranking::LastValue => "last_value",
            Ranking::NthValue => "nth_value",
        }
    }
}
