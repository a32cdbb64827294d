# How figures are summed up and printed, the same for all measurements.

import statistics


def ratios(numerators, denominators):
    """Ratios of what was measured next to each other, so that a drift of the machine's speed drops out."""
    return [n / d for n, d in zip(numerators, denominators)]


def quartiles(values):
    if len(values) < 3:
        return min(values), statistics.median(values), max(values)
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def spread(values, digits=2):
    """Median, and in brackets the quartiles."""
    low, median, high = quartiles(values)
    return f"{median:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def verdict(reached, target):
    return f"target {target}: {'reached' if reached else 'MISSED'}"
