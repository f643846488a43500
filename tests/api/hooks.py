"""What schemathesis is told of gpumon that no description tells."""

import schemathesis

#: The rule of the alert file that the server of the tests has.
RULE = "GPU is hot"


def whole(value):
    """The same with `2.0` as `2`."""
    if isinstance(value, dict):
        return {key: whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@schemathesis.hook
def before_call(context, case, _kwargs) -> None:
    """What is sent is what clients send: a whole number without a fraction, which JSON Schema takes
    for the same.

    Runs are asked for on a GPU that can run nothing, so that each ends at once; what is no job
    stays none. Valid silences are of the rule that there is.
    """
    case.body = whole(case.body)
    if not isinstance(case.body, dict):
        return
    if case.operation.label == "POST /api/v1/runs":
        place = case.body.get("where", {})
        if isinstance(place, dict) and place.get("backend", "auto") in ("auto", "cpu", "both"):
            case.body = {**case.body, "where": {**place, "backend": "cuda"}}
    elif (
        case.operation.label == "POST /api/v1/alerts/silence"
        and case.meta.generation.mode.is_positive
    ):
        case.body = {**case.body, "rule": RULE}
