//! The objects that Kubernetes publishes, through every conversion of this crate.
//!
//! [`golden`] are the files of `k8s.io/api`: one object of each kind with every field filled, of several releases. Some always
//! run from `tests/golden`; with `KUBESTRATA_K8S_API` set to the folder of that Go module, all do.
//! [`corpus`] are zero and sparse objects of every kind; `KUBESTRATA_CORPUS` names the file.
//!
//! Where a conversion gives something else than Go, the object is named here, and the reason in `docs/codec.md`: an exception
//! that is new fails the test, and so does one that is gone.

#![expect(clippy::unwrap_used, reason = "a test: a failure is a panic")]

mod corpus;
mod golden;

mod files;
mod tally;
mod typed;
