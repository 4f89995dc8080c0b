//! Errors point at the token that is refused.

#[test]
fn errors_stand_where_the_mistake_is() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
