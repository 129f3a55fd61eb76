from __future__ import annotations

import numpy as np

from pathtemp.frontends.stan.names import variables


def test_shapes_and_order_follow_the_indices() -> None:
    names = ["a.1.2", "a.1.1", "a.2.1", "a.2.2", "s"]
    found = {v.name: v for v in variables(names)}
    flat = np.array([[12.0, 11.0, 21.0, 22.0, 5.0]])
    np.testing.assert_array_equal(found["a"].take(flat), [[[11.0, 12.0], [21.0, 22.0]]])
    np.testing.assert_array_equal(found["s"].take(flat), [5.0])


def test_parts_of_tuples_and_of_complex_numbers_are_variables() -> None:
    names = [
        "t:1",
        "t:2.1",
        "t:2.2",
        "z.real",
        "z.imag",
        "c.1.real",
        "c.1.imag",
        "q.1:1",
        "q.2:1",
        "q.1:2.1",
        "q.2:2.1",
    ]
    assert {v.name: v.shape for v in variables(names)} == {
        "t:1": (),
        "t:2": (2,),
        "z.real": (),
        "z.imag": (),
        "c.real": (1,),
        "c.imag": (1,),
        "q:1": (2,),
        "q:2": (2, 1),
    }
