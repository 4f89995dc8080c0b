//! Kernels of a caller's own program: looked up once, and started by one function.
//!
//! Arguments are arrays, views and numbers in a tuple, in the order in which the kernel declares
//! them. A launch notes which arrays it reads and writes, so that streams wait for each other; a
//! trace and messages get the kernel's name.

use super::kernel::LaunchShape;
use crate::{
    error::Error,
    handles::{Function, Launch, LaunchArgument},
    memory::Queue,
    program::Module,
};

/// A kernel of a caller's program, with the queue that it runs on.
#[derive(Debug, Clone)]
pub struct UserKernel {
    /// For messages and traces.
    name: &'static str,
    function: Function,
    /// Has the stream of every launch.
    queue: Queue,
}

impl UserKernel {
    /// Looks up the kernel `name` of a module, to run on `queue`.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub fn of(module: &Module, name: &'static str, queue: &Queue) -> Result<Self, Error> {
        Ok(Self {
            name,
            function: module.function(name)?,
            queue: queue.clone(),
        })
    }

    /// Starts the kernel and returns without waiting for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) with the kernel's name. A fault of the
    /// kernel itself shows in a later call.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, and the kernel reads and writes nothing
    /// but what they allow.
    pub unsafe fn start<'a>(
        &'a self,
        shape: LaunchShape,
        arguments: impl KernelArguments<'a>,
    ) -> Result<(), Error> {
        let mut launch = self.queue.launch_builder(&self.function);
        arguments.push_to(&mut launch);
        let LaunchShape {
            blocks, threads, ..
        } = shape;
        // SAFETY: the caller guarantees that the arguments fit the kernel.
        unsafe { self.queue.launch(self.name, &mut launch, blocks, threads) }
    }
}

/// A tuple of 1 to 13 arguments of a kernel: references to arrays, views, numbers and structs.
///
/// Arrays and views that the kernel writes are borrowed mutably. Numbers and structs are
/// [`KernelArgument`](crate::KernelArgument)s, whose bytes are copied when the kernel is started,
/// so they may change or go afterwards. A kernel with more arguments takes a struct.
pub trait KernelArguments<'a> {
    /// Appends the arguments to those of a launch.
    fn push_to(self, launch: &mut Launch<'a>);
}

macro_rules! tuples {
    ($($kind:ident $at:tt),+) => {
        impl<'a, $($kind),+> KernelArguments<'a> for ($($kind,)+)
        where
            $($kind: LaunchArgument<'a>,)+
        {
            fn push_to(self, launch: &mut Launch<'a>) {
                $(launch.arg(self.$at);)+
            }
        }
    };
}
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
