//! Small conversions between JavaScript and Rust.

use wasm_bindgen::{JsCast, JsValue};

/// A property, or `undefined` if there is none or it throws.
pub fn property(of: &JsValue, name: &str) -> JsValue {
    js_sys::Reflect::get(of, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
}

/// A property that is text.
pub fn text(of: &JsValue, name: &str) -> Option<String> {
    property(of, name).as_string()
}

/// What an exception says: `message` and the messages of its causes, or the thrown value as text.
pub fn error_message(error: &JsValue) -> String {
    let Some(mut message) = text(error, "message") else {
        return error.as_string().unwrap_or_else(|| format!("{error:?}"));
    };
    let mut cause = property(error, "cause");
    while let Some(further) = text(&cause, "message") {
        if message.contains(&further) {
            break;
        }
        message.push_str(": ");
        message.push_str(&further);
        cause = property(&cause, "cause");
    }
    message
}

/// The stack of an exception, if it has one. Its first line is the message again.
pub fn error_stack(error: &JsValue) -> Option<String> {
    text(error, "stack").filter(|stack| !stack.is_empty())
}

/// A plain object with these properties.
pub fn object(properties: &[(&str, JsValue)]) -> JsValue {
    let object = js_sys::Object::new();
    for (name, value) in properties {
        // Setting a property of a fresh plain object cannot fail.
        let _ = js_sys::Reflect::set(&object, &JsValue::from_str(name), value);
    }
    object.into()
}

/// The name of a value's class. It tells the runtime's own objects from forged ones, which are plain `Object`s: RPC carries
/// no class instances.
pub fn class_name(value: &JsValue) -> Option<String> {
    text(&property(value, "constructor"), "name")
}

/// An `Error` to throw at the caller.
pub fn error(message: &str) -> JsValue {
    js_sys::Error::new(message).unchecked_into()
}
