import numpy as np
import pytest
from synthetic import odd_model

from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.result.draws import draws_dataset


def bare(layout: Layout) -> Model:
    return Model(lambda x: x.sum(), lambda x: x.sum(), layout)


def test_draws_are_constrained_named_and_in_the_order_of_the_layout():
    flat = np.random.default_rng(0).normal(size=(2, 4, 5))
    posterior = draws_dataset(odd_model(("mu", "theta", "alpha")), flat)
    assert list(posterior.data_vars) == ["mu", "theta", "alpha"]
    assert posterior["theta"].dims == ("chain", "draw", "school")
    np.testing.assert_array_equal(posterior["mu"], flat[..., 0])
    np.testing.assert_array_equal(posterior["theta"].sel(school="<script>"), flat[..., 3])
    np.testing.assert_allclose(posterior["alpha"], np.exp(flat[..., 4]), rtol=1e-15)


def test_extra_variables_of_a_front_end_come_last_with_their_dims():
    def constrain(flat):
        return {"y": np.arange(2 * len(flat)).reshape(-1, 2), "theta": flat}

    layout = Layout({"theta": (1,)}, dims={"y": ("obs",)}, coords={"obs": ["p", "q"]})
    dataset = draws_dataset(
        Model(lambda x: x.sum(), lambda x: x.sum(), layout, constrain_draws=constrain), np.zeros((2, 3, 1))
    )
    assert list(dataset.data_vars) == ["theta", "y"]
    assert dataset["y"].dims == ("chain", "draw", "obs")
    assert dataset["y"].dtype == np.int64
    assert int(dataset["y"].sel(obs="q")[1, 2]) == 11


@pytest.mark.parametrize("name", ["chain", "draw", "school", "theta_dim_0"])
def test_a_variable_with_the_name_of_a_dimension_gets_an_underscore(name):
    layout = Layout({name: (), "theta": (2,), "x": (2,)}, dims={"x": ("school",)}, coords={"school": [0, 1]})
    flat = np.random.default_rng(1).normal(size=(2, 3, 5))
    dataset = draws_dataset(bare(layout), flat)
    assert list(dataset.data_vars) == [f"{name}_", "theta", "x"]
    np.testing.assert_array_equal(dataset[f"{name}_"], flat[..., 0])


def test_names_that_an_underscore_would_merge_stay_apart():
    dataset = draws_dataset(bare(Layout({"chain": (), "chain_": ()})), np.arange(4.0).reshape(1, 2, 2))
    assert sorted(map(str, dataset.data_vars)) == ["chain_", "chain__"]
    assert sorted(float(x[0, 0]) for x in dataset.data_vars.values()) == [0.0, 1.0]


def test_no_draws_keep_their_shape():
    assert draws_dataset(odd_model(), np.zeros((3, 0, 5)))["theta"].shape == (3, 0, 3)


@pytest.mark.parametrize(
    ("dims", "coords", "sentence"),
    [
        ({"x": ("i", "j")}, {}, "'x' has 1 axes, and dims names 2"),
        ({"x": ("draw",)}, {}, "none of them chain or draw"),
        ({"y": ("i", "i")}, {}, "name each axis differently"),
        ({"x": ("i",)}, {"i": [1, 2]}, "'i' has length 3 in 'x' and 2 in its coordinate"),
        ({"x": ("i",), "y": ("i",)}, {}, "'i' has length 2 in 'y' and 3 in 'x'"),
        ({"x": ("i",)}, {"i": 3}, "'i' must be a list of values, and is 3"),
    ],
)
def test_bad_dims_and_coords_are_one_sentence(dims, coords, sentence):
    layout = Layout({"x": (3,), "y": (2, 2)}, dims=dims, coords=coords)
    with pytest.raises(InputError, match=sentence):
        draws_dataset(bare(layout), np.zeros((1, 1, 7)))


def test_coordinates_of_any_kind_become_text():
    layout = Layout({"x": (2,)}, dims={"x": ("i",)}, coords={"i": [("a", 1), None]})
    assert draws_dataset(bare(layout), np.zeros((1, 1, 2)))["i"].values.tolist() == ["('a', 1)", "None"]


def test_draws_may_be_changed_by_their_user():
    dataset = draws_dataset(odd_model(), np.zeros((2, 3, 5)))
    dataset["tau"] += 1.0
    assert float(dataset["tau"].min()) == 2.0
