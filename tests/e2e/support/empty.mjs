// A Worker that only lends its bindings to a test.

export default {};
