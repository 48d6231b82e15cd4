#!/bin/sh
# Exits with 1, which tells attn-reduce that the module is interesting, if the module has an attn.attention.
! grep -q 'attn.attention' "$1"
