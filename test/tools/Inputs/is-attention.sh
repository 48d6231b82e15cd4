#!/bin/sh
# Exits with 1, which attn-reduce takes for interesting, where the module holds an attention.
! grep -q 'attn.attention' "$1"
