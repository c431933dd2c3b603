//! planner/analytics
