//! What stands on disk about the installed kernels: which there are, what they export, who owns
//! a module's file, what DKMS has built, and what a rebuild would find. Every reader takes the
//! root of the system that it is about, and needs no privileges.

mod ask;
pub mod dkms;
pub mod dkms_status;
pub mod duplicates;
pub mod installed;
pub mod owners;
pub mod rebuild;
pub mod root;
mod rpm;
pub mod symvers;

pub use root::Root;
