//! What this machine is called, so that a measurement says where it was made.

use sysinfo::{CpuRefreshKind, RefreshKind, System};

/// The processor's name without signs of trade; `unknown processor` where the system does not tell.
pub(crate) fn processor() -> String {
    let refresh = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(refresh).ok();
    let brand = system
        .as_ref()
        .and_then(|system| system.cpus().first())
        .map_or("", |cpu| cpu.brand());
    match tidy(brand) {
        name if name.is_empty() => "unknown processor".into(),
        name => name,
    }
}

fn tidy(brand: &str) -> String {
    let plain = brand.replace("(R)", "").replace("(TM)", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_signs_of_trade_and_no_needless_spaces() {
        assert_eq!(
            tidy("Intel(R) Xeon(R)  Processor @ 2.50GHz "),
            "Intel Xeon Processor @ 2.50GHz"
        );
        assert_eq!(tidy("Intel(R) Core(TM) i7"), "Intel Core i7");
        assert!(!processor().is_empty());
    }
}
