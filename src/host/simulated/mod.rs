//! A node read from a scenario file.
