//! Object managers in user space: what they ask, what decides for them, and what they tell.

pub mod audit;
pub mod decisions;
pub mod query;
