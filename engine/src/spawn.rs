//! Thread spawning as the engine sees it: a trait, so that the simulator can refuse threads
//! and drive every loop step by step on its own.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts named threads.
pub trait Spawn: Send + Sync {
    fn spawn(&self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

    /// Starts one that runs a single program and ends; there may be many of them at a time.
    fn spawn_for_program(&self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        self.spawn(name, body)
    }
}

/// The operating system's threads.
pub struct SystemSpawn;

impl Spawn for SystemSpawn {
    fn spawn(&self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        Builder::new().name(name).spawn(body)
    }
}

/// The operating system's threads, with stacks of so many bytes: what a program runs may nest as
/// deep as its host allows.
pub struct DeepSpawn {
    /// Of threads that run programs for as long as the engine is open.
    pub bytes: usize,
    /// Of one that starts now for a program that there is; an error where there is no room for it.
    pub bytes_for_program: fn() -> io::Result<usize>,
}

impl Spawn for DeepSpawn {
    fn spawn(&self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        Builder::new().name(name).stack_size(self.bytes).spawn(body)
    }

    fn spawn_for_program(&self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        Builder::new().name(name).stack_size((self.bytes_for_program)()?).spawn(body)
    }
}

/// Starts nothing: the simulator steps the log writer and the executors itself.
pub struct NoSpawn;

impl Spawn for NoSpawn {
    fn spawn(&self, _name: String, _body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this engine runs without threads of its own"))
    }
}
