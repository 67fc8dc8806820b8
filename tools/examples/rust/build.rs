//! Where libattnjit.so is: in ATTNJIT_LIB_DIR, or where pkg-config knows it, or on the linker's path.

use std::process::Command;

fn directory_of_pkg_config() -> Option<String> {
    let query = Command::new("pkg-config").args(["--variable=libdir", "attnjit"]).output().ok()?;
    let directory = String::from_utf8(query.stdout).ok()?.trim().to_string();
    (query.status.success() && !directory.is_empty()).then_some(directory)
}

fn main() {
    println!("cargo:rerun-if-env-changed=ATTNJIT_LIB_DIR");
    if let Some(directory) = std::env::var("ATTNJIT_LIB_DIR").ok().or_else(directory_of_pkg_config)
    {
        println!("cargo:rustc-link-search=native={directory}");
    }
}
