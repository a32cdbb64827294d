# How figures are summed up and printed, the same for all measurements.

import math
import statistics


def ratios(numerators, denominators):
    """Ratios of what was measured next to each other, so that a drift of the machine's speed drops out."""
    return [n / d for n, d in zip(numerators, denominators)]


def median_of(values, digits=2):
    """The median, and in brackets its 95 % interval by the order of the values; of a few values the extremes."""
    ordered = sorted(values)
    reach = math.ceil(0.98 * math.sqrt(len(ordered)))
    low = max(0, len(ordered) // 2 - reach)
    high = min(len(ordered) - 1, (len(ordered) - 1) // 2 + reach)
    return f"{statistics.median(ordered):.{digits}f} ({ordered[low]:.{digits}f}-{ordered[high]:.{digits}f})"


def verdict(reached, target):
    return f"target {target}: {'reached' if reached else 'MISSED'}"
