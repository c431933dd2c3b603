//! to_char and to_date templates.
