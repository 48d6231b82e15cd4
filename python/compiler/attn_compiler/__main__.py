from attn_compiler import PREFIX

print(PREFIX)
