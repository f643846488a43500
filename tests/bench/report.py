"""Printing of figures, one per line."""

#: Names of the figures that have missed their targets.
missed = []


def print_row(what, target, measured, ok):
    mark = "ok  " if ok else ("OVER" if ok is False else "    ")
    print(f"  {mark}  {what:<58} {target:<24} {measured}", flush=True)
    if ok is False:
        missed.append(what)
