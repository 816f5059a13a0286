//! Log lines: one JSON object each, with the same field names in every Worker. A line reads well alone (`message`) and can
//! be queried by its ids.

use serde_json::{Map, Value, json};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = log)]
    fn console_log(line: &JsValue);
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(line: &JsValue);
}

/// A Worker's log.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    worker: &'static str,
}

impl Log {
    /// The log of the Worker with this name.
    pub const fn new(worker: &'static str) -> Self {
        Self { worker }
    }

    /// Something that happened as it should. `fields` is an object.
    pub fn info(&self, message: &str, fields: Value) {
        console_log(&JsValue::from_str(&self.line("info", message, fields)));
    }

    /// Something that somebody should look at. `fields` is an object and never holds a secret or a payload.
    pub fn error(&self, message: &str, fields: Value) {
        console_error(&JsValue::from_str(&self.line("error", message, fields)));
    }

    fn line(&self, level: &str, message: &str, fields: Value) -> String {
        let mut line = Map::new();
        line.insert("worker".to_owned(), json!(self.worker));
        line.insert("level".to_owned(), json!(level));
        line.insert("message".to_owned(), json!(message));
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        Value::Object(line).to_string()
    }
}
