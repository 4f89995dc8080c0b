//! Gives the shared library the name under which programs look for it at run time. Its number is
//! that of `nf_abi_version`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_CAPI").is_some() {
        // cargo-c gives the name itself.
        return;
    }
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    match system.as_str() {
        "linux" => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnearfield.so.0"),
        "macos" => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libnearfield.0.dylib");
        }
        _ => {}
    }
}
