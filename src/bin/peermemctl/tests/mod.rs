//! Tests of the whole program below its command line.

mod doctor;
mod fake;
mod holding;
mod pages;
mod run;
mod samples;
mod verbs;
mod waiting;
