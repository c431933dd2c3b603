//! Arithmetic on dates and times.
