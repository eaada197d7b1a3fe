#!/usr/bin/env python3
"""Exact ranks k of the signed-rank interval, counted in whole numbers.

    python3 signed_rank.py > signed_rank.json

Standard library only. The generating function of W, the product of (1 + x^r)
for r = 1 ... n, is one long integer with n + 1 bits for each coefficient, so
that nothing is rounded. k is the largest number with P(W <= k - 1) <= 0.025.
"""
import json
import sys

WANTED = (*range(6, 131), 150, 199, 200, 201, 202, 250, 300, 400)


def rank(n):
    width = n + 1
    # Only the lower half is ever asked for.
    mask = (1 << width * (n * (n + 1) // 4 + 1)) - 1
    packed = 1
    for r in range(1, n + 1):
        packed += packed << width * r
        packed &= mask
    counts = packed.to_bytes((packed.bit_length() + 7) // 8, "little")
    below, k, field = 0, 0, (1 << width) - 1
    while True:
        start = width * k
        part = int.from_bytes(counts[start // 8:start // 8 + width // 8 + 2], "little")
        below += part >> start % 8 & field
        if below * 1000 > 25 << n:
            return k
        k += 1


json.dump([[n, rank(n)] for n in WANTED], sys.stdout)
sys.stdout.write("\n")
