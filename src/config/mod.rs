//! Configuration: UAPI.6 files, merged per key, validated into [`crate::model::Desired`].
