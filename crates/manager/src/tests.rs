//! Controllers over a scripted server, with the paused clock.

mod caches;
mod predicates;
mod results;
mod run;
mod server;
mod writes;
