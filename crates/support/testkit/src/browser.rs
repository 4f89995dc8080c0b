//! Pages in a browser, where there is one.
//!
//! `NEARFIELD_CHROMIUM` names a Chromium or Chrome; without it those of the search path are tried.
//! Without any, tests that need one say that they are skipped, or fail when
//! `NEARFIELD_REQUIRE_CHROMIUM=1`.

use std::{env, io, path::Path, process::Command};

/// A browser that runs here. `None` where there is none; the test is then skipped.
///
/// # Panics
/// If there is none and `NEARFIELD_REQUIRE_CHROMIUM=1`.
pub fn chromium() -> Option<String> {
    let named = env::var("NEARFIELD_CHROMIUM").ok();
    let tried = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    let mut candidates = named.into_iter().chain(tried.map(str::to_owned));
    let runs = |name: &String| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let found = candidates.find(runs);
    let required = env::var_os("NEARFIELD_REQUIRE_CHROMIUM").is_some_and(|value| value == "1");
    assert!(
        found.is_some() || !required,
        "no Chromium runs here, and NEARFIELD_REQUIRE_CHROMIUM=1"
    );
    if found.is_none() {
        eprintln!("skipped: no Chromium runs here");
    }
    found
}

/// The text of a page after its scripts have run, in a window of this width and height. WebGL is
/// computed by the CPU.
///
/// # Errors
/// If the browser cannot be started.
pub fn page_after_scripts(
    browser: &str,
    page: &Path,
    window: (u32, u32),
    flags: &[&str],
) -> io::Result<String> {
    let profile = page.with_extension("profile");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--use-gl=angle",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            "--dump-dom",
        ])
        .args(flags)
        .arg(format!("--window-size={},{}", window.0, window.1))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
