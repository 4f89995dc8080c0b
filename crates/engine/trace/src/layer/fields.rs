//! Collects the values of spans and events.

use crate::model::{Fields, Value};
use std::{error::Error, fmt};
use tracing::field::{Field, Visit};

/// A visitor that stores values in fields.
pub(super) struct Collect<'a>(pub(super) &'a mut Fields);

impl Collect<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().into(), value);
    }
}

impl Visit for Collect<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::Count(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        // Literals come as signed numbers.
        let value = u64::try_from(value).map_or(Value::Signed(value), Value::Count);
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::Text(value.to_owned().into()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, Value::Text(value.to_string().into()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::Text(format!("{value:?}").into()));
    }
}
