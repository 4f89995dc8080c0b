//! Ranks as threads that hand memory of a GPU over by its address, as an MPI does that knows GPUs.

use nearfield::device::{Context, Lent};
use nearfield_ranks::transport::{
    Announced, DeviceMemory, Fault, Handed, Tag, Transport, threads::ThreadTransport,
};

/// Messages of one GPU, which all ranks share.
pub(crate) struct ByAddress(pub(crate) ThreadTransport);

impl Transport for ByAddress {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn ranks(&self) -> usize {
        self.0.ranks()
    }

    fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault> {
        self.0.post(to, tag, message)
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault> {
        self.0.receive(from, tag)
    }

    fn poll(&mut self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault> {
        self.0.poll(from, tag)
    }

    fn takes_device_memory(&self) -> Result<(), String> {
        Ok(())
    }

    fn hand_over(
        &mut self,
        to: usize,
        tag: Tag,
        message: Vec<u8>,
        with: Handed,
    ) -> Result<(), Fault> {
        let memory = with.downcast::<DeviceMemory>().unwrap();
        let announced = Announced::new(memory.bytes(), memory);
        self.0.hand_over(to, tag, message, Box::new(announced))
    }

    fn receive_handed(
        &mut self,
        from: usize,
        tag: Tag,
    ) -> Result<(Vec<u8>, Option<Handed>), Fault> {
        self.0.receive_handed(from, tag)
    }

    fn receive_into(&mut self, parts: Vec<(Announced, DeviceMemory)>) -> Result<(), Fault> {
        for (announced, to) in parts {
            assert_eq!(announced.bytes(), to.bytes());
            let from = announced.by().downcast::<DeviceMemory>().unwrap();
            let stream = Context::open(0).unwrap().default_stream();
            // SAFETY: both are memory of the GPU with as many bytes, which their owners keep; the
            // copy is waited for.
            let lent = |address| unsafe { Lent::<u8>::new(&stream, address, to.bytes()) };
            let (from, mut to) = (lent(from.address()), lent(to.address()));
            let copied = stream.memcpy_dtod(&*from, &mut to.as_view_mut());
            copied.and_then(|()| stream.synchronize()).unwrap();
        }
        Ok(())
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.0.fail(fault)
    }
}
