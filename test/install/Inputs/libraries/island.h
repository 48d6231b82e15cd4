// A library that uses attn internally. Its interface has no types of attn.
void island_attend(long length, const float *q, const float *k, const float *v, float *out);
const char *island_refused(void); ///< makes a call that fails, and returns the error message
