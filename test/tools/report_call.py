"""report_call.py FILE: checks that a report that attn-run writes is consistent and fits a call with a causal mask."""
import json
import sys

with open(sys.argv[1]) as file:
    report = json.load(file)
call = report["call"]
total = call["tiles_run"] + call["tiles_skipped"]
attentions = [a for level in report["levels"] for function in level["functions"] for a in function["attentions"]]
if report["version"] != 1 or [a["mask"] for a in attentions] != ["#attn.causal"]:
    sys.exit(f"expected one causal attention in a report of version 1, got {report}")
if abs(call["skipped_share"] - call["tiles_skipped"] / total) > 1e-12 or not 0.3 < call["skipped_share"] < 0.5:
    sys.exit(f"expected nearly half of the tiles to be skipped, got {call}")
