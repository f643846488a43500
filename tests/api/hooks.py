"""Hooks that give schemathesis the rules that the API's description cannot express."""

import schemathesis

#: The rule in the alert file of the tested server.
RULE = "GPU is hot"


def floats_to_integers(value):
    """Returns the value with all whole floats, such as `2.0`, as integers."""
    if isinstance(value, dict):
        return {key: floats_to_integers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [floats_to_integers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@schemathesis.hook
def before_call(context, case, _kwargs) -> None:
    """Changes a request into one that a client could send.

    Whole numbers are sent without a fraction, because JSON Schema also accepts `2.0` as an integer.
    Runs use a backend that is not available, so that each run ends immediately. Valid silences
    refer to the existing rule.
    """
    case.body = floats_to_integers(case.body)
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
