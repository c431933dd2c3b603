//! procedures
