//! The server as clients see it, by HTTP requests without a socket.

mod definitions;
mod delete;
mod harness;
mod hostile;
mod list;
mod protobuf;
mod restart;
mod watch;
mod write;
