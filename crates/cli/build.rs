//! What the linker is told.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl") {
        // Nearly all of what the program adjusts when it starts are addresses of its own. In a short form
        // they need not be read from a megabyte of the file first.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
