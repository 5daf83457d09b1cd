//! What decides. Pure: no I/O, no clock, no async, no logging.
