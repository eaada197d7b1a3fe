//! Phase profiles.
