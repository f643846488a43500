"""What schemathesis is told of gpumon that no description tells."""

import schemathesis


@schemathesis.hook
def before_call(context, case, _kwargs) -> None:
    """Runs are asked for on a GPU that can run nothing, so that each ends at once; what is no job stays none."""
    if case.operation.label != "POST /api/v1/runs" or not isinstance(case.body, dict):
        return
    place = case.body.get("where", {})
    if isinstance(place, dict) and place.get("backend", "auto") in ("auto", "cpu", "both"):
        case.body = {**case.body, "where": {**place, "backend": "cuda"}}
