//! Prints what a target makes of an input: `cargo run --example describe -- TARGET FILE`.

use std::{env, fs, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [name, path] = &arguments[..] else {
        eprintln!("usage: describe TARGET FILE");
        return ExitCode::from(2);
    };
    match fs::read(path) {
        Ok(bytes) => {
            println!("{}", nearfield_fuzz::describe(name, &bytes));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}
