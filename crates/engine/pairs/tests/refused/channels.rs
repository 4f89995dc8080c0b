use nearfield_pairs::Channels;

#[derive(Clone, Copy, Channels)]
#[channels(crate = nearfield_pairs)]
struct Point([f32; 3], f32);

fn main() {}
