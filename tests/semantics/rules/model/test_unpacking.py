"""Which parts of a pair that a call returns are read, and what binds to the forward of a module."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "parts": """
        def run(pair, index, sink, kept):
            a, _ = pair(1)  #: pair(1) => parts=0
            b, c = pair(2)  #: pair(2) => parts=1
            (d, e) = f = pair(3)  #: pair(3) => parts=0,1
            g = pair(4)  #: pair(4) => parts=0,1
            h = pair(5)  #: pair(5) => parts=0
            i, _ = h
            _, kept.last = pair(6)  #: pair(6) => parts=1
            j, *k = pair(7)  #: pair(7) => parts=?
            pair(8)  #: pair(8) => parts=none
            sink(pair(9))  #: pair(9) => parts=?
            l = pair(10)  #: pair(10) => parts=?
            sink(l)
            m = pair(11)[0], pair(12)[-1]  #: pair(11) => parts=0; pair(12) => parts=1
            n = pair(13)[:1], pair(14)[::2], pair(15)[1:]
            o = pair(16)[index], pair(17)[2]  #: pair(16) => parts=?; pair(17) => parts=?
            if index:
                p = pair(18)  #: pair(18) => parts=0,1
            else:
                p = pair(19)  #: pair(19) => parts=0,1
            q, r = p
            s = pair(20)  #: pair(20) => parts=0
            s = s[0]
            for t in pair(21):  #: pair(21) => parts=?
                sink(t)
            return a, c, d, f[1], g[0], g[1], i, m, n, o, q, r, s, pair(22)  #: pair(22) => parts=?


        def pair(number):
            return number, number


        shown, _ = pair(1)  #: pair(1) => parts=0
        first, second = pair(2)  #: pair(2) => parts=0,1
        both = pair(3)  #: pair(3) => parts=?
    """,
    "slices": """
        def run(pair):
            return (
                pair(1)[:1],  #: pair(1) => parts=0
                pair(2)[::2],  #: pair(2) => parts=0
                pair(3)[1:],  #: pair(3) => parts=1
                pair(4)[::-1],  #: pair(4) => parts=0,1
                pair(5)[::0],  #: pair(5) => parts=?
                pair(6)[: len(pair)],  #: pair(6) => parts=?
            )
    """,
    "arguments of a forward": """
        from torch import nn


        class Own(nn.MultiheadAttention):
            def __init__(self, dim):
                super().__init__(dim, 4)


        def run(x, options):
            attention = nn.MultiheadAttention(8, 2)
            attention(x, x, x)  #: attention(x, x, x) => need_weights=absent
            attention(x, x, x, None, True)  #: attention(x, x, x, None, True) => need_weights=given
            attention(x, x, x, need_weights=1)  #: attention(x, x, x, need_weights=1) => need_weights=given
            attention(x, x, x, **options)  #: attention(x, x, x, **options) => need_weights=unknown
            Own(8)(x, x, x)  #: Own(8)(x, x, x) => need_weights=absent
            nn.Linear(8, 2)(x)  #: nn.Linear(8, 2)(x) => need_weights=unknown
    """,
}


def test_unpacking(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
