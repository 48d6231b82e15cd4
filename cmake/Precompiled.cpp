// attn_pch compiles this file together with the precompiled header, which the other targets reuse.
