// Owns the precompiled header that the other libraries reuse.
